#include "iwarp/cm/connect_request.h"

#include <unistd.h>

#include <array>
#include <boost/asio/post.hpp>

#include "iwarp/cm/last_reply.h"
#include "iwarp/cm/socket_io.h"

namespace iwarp::cm {

using Clock = std::chrono::steady_clock;

ConnectRequest::ConnectRequest(Engine& engine, tcp::socket socket, mpa::Responder responder,
                               const mpa::RequestReceived& request, std::shared_ptr<void> slot,
                               std::size_t receive_window, std::shared_ptr<ByteTap> tap)
    : engine_(&engine),
      socket_(std::in_place, std::move(socket)),
      responder_(std::move(responder)),
      slot_(std::move(slot)),
      tap_(std::move(tap)),
      private_data_(request.private_data.begin(), request.private_data.end()),
      receive_window_(receive_window),
      peer_ird_(request.peer_ird),
      peer_ord_(request.peer_ord),
      enhanced_(request.request.enhanced),
      engine_life_(engine.life()) {
  boost::system::error_code ec;
  local_ = socket_->local_endpoint(ec);
  remote_ = socket_->remote_endpoint(ec);
}

// The handler that holds a request may outlive the engine, inside an io_context that is being destroyed.
ConnectRequest::~ConnectRequest() {
  if (!socket_.alive()) {
    if (!decided_) (void)::close(socket_->native_handle());  // the child's own descriptor
    return;
  }
  if (!engine_life_.expired()) reject();
}

Result<void> ConnectRequest::move_to(Engine& engine) {
  if (!socket_.alive() || !engine.context()->alive()) return verbs::used_after_fork();
  if (decided_) return make_error(Errc::kInvalidArgument, "request already decided");
  if (engine.context() != engine_->context())
    return make_error(Errc::kInvalidArgument, "the engine is of another Context than the listener's");
  if (&engine != engine_) {
    auto moved = rebind(*socket_, remote_.protocol(), engine.io());
    if (!moved) {
      decided_ = true;
      return moved.error();
    }
    *socket_ = std::move(moved).value();
    engine_ = &engine;
    engine_life_ = engine.life();
    engine.start();
  }
  place_ = engine.take_place();
  return {};
}

void ConnectRequest::accept(std::shared_ptr<verbs::QueuePair> qp, const AcceptOptions& options,
                            Connection::EstablishedHandler handler, const std::shared_ptr<Canceller>& cancel) {
  if (!socket_.alive() || !qp->pd().context()->alive()) return handler(verbs::used_after_fork(), nullptr);
  const auto refuse = [&](const Error& error) {
    boost::asio::post(engine_->io(), [handler, error] { handler(error, nullptr); });
  };
  if (decided_) return refuse(make_error(Errc::kInvalidArgument, "request already decided"));
  if (auto ok = qp->usable(); !ok) return refuse(ok.error());
  if (auto ok = engine_->serves(*qp); !ok) return refuse(ok.error());
  if (auto ok = stream::validate(options.mpa); !ok) return refuse(ok.error());
  {
    const auto lock = qp->lock();
    if (qp->endpoint().phase() != endpoint::Phase::kIdle)
      return refuse(make_error(Errc::kInvalidArgument, "queue pair was used before"));
  }
  if (!take_early_octet()) {
    if (auto ok = responder_.accept(options.ird, options.ord, options.private_data, options.told); !ok)
      return refuse(ok.error());
  }
  decided_ = true;
  slot_.reset();
  make_room(socket_->native_handle(), receive_window_);  // not before: peers that wait undecided may be many
  auto connection = std::make_shared<Connection>(*engine_, std::move(*socket_), std::move(qp), options.mpa);
  connection->set_tap(std::move(tap_));
  const auto started = connection->start(std::move(responder_), handler);
  place_.reset();  // the connection counts now, or nothing does
  if (!started) return refuse(started.error());
  if (cancel == nullptr) return;
  cancel->set([weak = std::weak_ptr<Connection>(connection)] {
    if (const auto self = weak.lock()) self->cancel_start();
  });
}

// What came behind the Request, in its segment or since, is refused: true, and the responder has failed.
bool ConnectRequest::take_early_octet() {
  boost::system::error_code ec;
  if (socket_->available(ec) == 0) return false;
  std::array<std::byte, 1> first{};
  const MutBytes room{first};
  const Transfer got = receive_pieces(socket_->native_handle(), std::span{&room, 1});
  if (got.n == 0) return false;
  if (tap_ != nullptr) tap_->received({ConstBytes{first}}, Clock::now());
  (void)responder_.rx(first, Clock::now());  // req: RFC5044-7.1.1-31
  return true;
}

void ConnectRequest::reject() {
  (void)reject(ConstBytes{});
}

Result<void> ConnectRequest::reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord) {
  if (auto ok = decide_against(private_data, required_ord); !ok) return ok;
  // The socket takes its place along: it lives until the peer has closed, or the time is up.
  say_farewell(std::move(*socket_), responder_.tx_bytes(), tap_, std::move(slot_));
  return {};
}

void ConnectRequest::reject_keeping_tcp(ConstBytes private_data, std::optional<std::uint16_t> required_ord,
                                        TcpHandler handler) {
  if (!socket_.alive()) return handler(verbs::used_after_fork(), TcpConnection());
  if (auto ok = decide_against(private_data, required_ord); !ok) {
    boost::asio::post(engine_->io(),
                      [handler = std::move(handler), error = ok.error()] { handler(error, TcpConnection()); });
    return;
  }
  hand_back(std::move(*socket_), responder_.tx_bytes(), tap_, std::move(slot_),
            std::move(handler));  // req: RFC5044-7.1.2-7
}

Result<void> ConnectRequest::decide_against(ConstBytes private_data, std::optional<std::uint16_t> required_ord) {
  if (!engine_->context()->alive()) return make_error(Errc::kInvalidArgument, "engine used after fork()");
  if (decided_) return make_error(Errc::kInvalidArgument, "request already decided");
  if (auto ok = responder_.reject(private_data, required_ord); !ok) return ok;
  decided_ = true;
  place_.reset();
  return {};
}

}  // namespace iwarp::cm
