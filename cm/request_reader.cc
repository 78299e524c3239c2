#include "iwarp/cm/request_reader.h"

#include "iwarp/cm/last_reply.h"
#include "iwarp/cm/socket_io.h"

namespace iwarp::cm {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

RequestReader::RequestReader(Engine& engine, tcp::socket socket, const mpa::Policy& policy, std::size_t receive_window,
                             std::shared_ptr<void> slot)
    // req: RFC5044-7.1-3
    : engine_(engine),
      operations_(engine.operations()),
      slot_(std::move(slot)),
      socket_(std::move(socket)),
      protocol_(tcp::v4()),
      timer_(socket_.get_executor()),
      responder_(policy, Clock::now()),
      receive_window_(receive_window) {
  boost::system::error_code gone;
  const tcp::endpoint local = socket_.local_endpoint(gone);
  protocol_ = local.protocol();
  tap_ = engine.make_tap({local, socket_.remote_endpoint(gone), false});
}

void RequestReader::begin(ConstBytes early, Told told) {
  const auto alive = shared_from_this();  // whoever is told may let go of it
  told_ = std::move(told);
  if (const auto deadline = responder_.deadline()) {
    timer_.expires_at(*deadline);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (ec || !self->told_) return;
      if (self->operations_->closed()) return self->stop();
      self->responder_.on_deadline(Clock::now());
      self->look();
    });
  }
  if (!early.empty()) {
    if (tap_ != nullptr) tap_->received({early}, Clock::now());
    (void)responder_.rx(early, Clock::now());  // req: RFC5044-7.1.5-1
  }
  look();
  if (told_) read();
}

void RequestReader::stop() {
  told_ = {};
  timer_.cancel();
  boost::system::error_code ec;
  socket_.close(ec);
}

void RequestReader::read() {
  socket_.async_read_some(boost::asio::buffer(bytes_),
                          [self = shared_from_this()](boost::system::error_code ec, std::size_t n) {
                            if (!self->told_) return;
                            if (self->operations_->closed()) return self->stop();
                            if (self->tap_ != nullptr) self->show(ec, n);
                            if (ec) {
                              self->responder_.rx_end(ec != boost::asio::error::eof);
                            } else {
                              (void)self->responder_.rx(ConstBytes{self->bytes_}.first(n), Clock::now());
                            }
                            self->look();
                            if (self->told_) self->read();
                          });
}

void RequestReader::show(boost::system::error_code ec, std::size_t n) {
  if (ec) {
    const bool fin = ec == boost::asio::error::eof;
    const auto how = end_of({.error = fin ? 0 : ec.value()});
    if (how) tap_->received_end(*how, Clock::now());
    if (!fin) tap_.reset();  // nothing can be sent any more
  } else {
    tap_->received({ConstBytes{bytes_}.first(n)}, Clock::now());
  }
}

void RequestReader::look() {
  const auto event = responder_.poll_event();
  if (!event) return;
  timer_.cancel();
  if (const auto* request = std::get_if<mpa::RequestReceived>(&*event)) return hand_over(*request);
  if (const auto* failed = std::get_if<mpa::Failed>(&*event)) refuse(failed->error);
}

void RequestReader::hand_over(const mpa::RequestReceived& request) {
  // From here on the connection's lock orders things, not the strand.
  auto socket = rebind(socket_, protocol_, engine_.io());
  if (!socket) return drop(socket.error());
  tell({}, std::make_unique<ConnectRequest>(engine_, std::move(socket).value(), std::move(responder_), request,
                                            std::move(slot_), receive_window_, std::move(tap_)));
}

void RequestReader::refuse(const Error& error) {
  if (responder_.tx_bytes().empty()) return drop(error);
  auto socket = rebind(socket_, protocol_, engine_.io());
  if (!socket) return drop(socket.error());
  say_farewell(std::move(socket).value(), responder_.tx_bytes(), tap_, std::move(slot_));
  tell(error, nullptr);
}

// Without a word.
void RequestReader::drop(const Error& error) {
  if (tap_ != nullptr) tap_->sent_end(ByteTap::End::kFin, Clock::now());
  boost::system::error_code ec;
  socket_.close(ec);
  tell(error, nullptr);
}

void RequestReader::tell(const Error& error, std::unique_ptr<ConnectRequest> request) {
  std::exchange(told_, {})(shared_from_this(), error, std::move(request));
}

}  // namespace iwarp::cm
