#include "iwarp/cm/connector.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include "iwarp/cm/system_cause.h"

namespace iwarp::cm {
namespace {

using boost::asio::ip::tcp;

// From a refusal to the next attempt. Where ConnectOptions::try_again asks for one, twice as long each time.
constexpr std::chrono::milliseconds kRefusalPause{2}, kLongestPause{100};

// One connect(): keeps itself alive through the handlers it waits for. Its members are touched in its strand only.
class Attempt : public verbs::Driver, public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options,
          Connection::EstablishedHandler handler, std::unique_ptr<TcpConnection> given)
      : engine_(engine),
        operations_(engine.operations()),
        strand_(boost::asio::make_strand(engine.io())),
        qp_(std::move(qp)),
        options_(std::move(options)),
        handler_(std::move(handler)),
        given_(std::move(given)),
        resolver_(strand_),
        socket_(strand_),
        timer_(strand_),
        pause_(strand_) {}

  ~Attempt() override { let_go(); }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  void post_begin() {
    const bool held = hold();
    boost::asio::post(strand_, [self = shared_from_this(), held] {
      if (self->done_) return;
      if (!held) return self->fail(make_error(Errc::kInvalidArgument, "queue pair was used before"));
      self->begin();
    });
  }
  void post_cancel() {
    boost::asio::post(strand_, [self = shared_from_this()] { self->cancel(); });
  }
  // verbs::Driver. Before there is a connection only the end of the queue pair matters.
  void kick() override {
    if (qp_->endpoint().phase() != endpoint::Phase::kClosed) return;
    if (auto self = weak_from_this().lock())
      boost::asio::post(strand_, [self = std::move(self)] { self->fail(make_error(Errc::kAborted)); });
  }

 private:
  void begin() {
    if (engine_went()) return;
    if (auto ok = qp_->usable(); !ok) return fail(ok.error());
    if (auto ok = engine_.serves(*qp_); !ok) return fail(ok.error());
    if (auto ok = validate(options_); !ok) return fail(ok.error());
    if (given_ != nullptr) return take_over();
    start_timer();
    boost::system::error_code not_numeric;
    const auto address = boost::asio::ip::make_address(options_.host, not_numeric);
    if (!not_numeric) {
      endpoints_.emplace_back(address, options_.port);
      return try_next();
    }
    resolver_.async_resolve(
        options_.host, std::to_string(options_.port),
        [self = shared_from_this()](boost::system::error_code ec, const tcp::resolver::results_type& found) {
          if (self->done_ || self->engine_went()) return;
          if (ec) return self->fail(resolve_error(ec));
          for (const auto& entry : found) self->endpoints_.push_back(entry.endpoint());
          self->try_next();
        });
  }

  void start_timer() {
    connecting_ = true;
    started_.reset();
    timer_.expires_at(add_saturating(std::chrono::steady_clock::now(), options_.connect_timeout));
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (!ec && self->connecting_) self->fail(connect_error(boost::asio::error::timed_out));
    });
  }

  void try_next() {
    if (next_ == endpoints_.size()) return after_all();
    const tcp::endpoint to = endpoints_[next_++];
    boost::system::error_code ec;
    socket_.close(ec);
    open_tcp(socket_, to.protocol(), ec);
    if (ec) {
      last_error_ = connect_error(ec);
      return try_next();
    }
    if (auto ok = set_congestion_control(socket_.native_handle(), options_.socket.congestion_control); !ok)
      return fail(ok.error());
    if (options_.local) {
      if (options_.local->protocol() != to.protocol()) {
        last_error_ = make_error(Errc::kSystem, "local address is of another family than the peer's");
        return try_next();
      }
      socket_.set_option(boost::asio::socket_base::reuse_address(true), ec);
      socket_.bind(*options_.local, ec);
      if (ec) {
        last_error_ = connect_error(ec);
        return try_next();
      }
    }
    socket_.async_connect(to, [self = shared_from_this()](boost::system::error_code failed) {
      if (self->done_) return;
      if (failed) return self->not_connected(failed);
      self->on_connected();
    });
  }

  void not_connected(boost::system::error_code why) {
    last_error_ = connect_error(why);
    if (last_error_.code == Errc::kConnectionRefused) refused_ = last_error_;
    try_next();
  }

  // No endpoint has taken it.
  void after_all() {
    const TimePoint now = std::chrono::steady_clock::now();
    if (!refused_until_) refused_until_ = add_saturating(now, options_.refusal_patience);
    if (!refused_) return fail_or_try_again(last_error_);
    if (now >= *refused_until_)
      return fail_or_try_again(options_.refusal_patience.count() > 0 ? *refused_ : last_error_);
    next_ = 0;
    refused_.reset();
    pause_.expires_after(kRefusalPause);
    pause_.async_wait([self = shared_from_this()](boost::system::error_code) {
      if (!self->done_ && !self->engine_went()) self->try_next();
    });
  }

  void fail_or_try_again(const Error& error) {
    auto private_data = options_.try_again ? options_.try_again(error, {}) : std::nullopt;
    if (!private_data) return fail(error);
    timer_.cancel();
    try_later(std::move(*private_data));
  }

  // All over again, with another Request.
  void try_later(std::vector<std::byte> private_data) {
    options_.private_data = std::move(private_data);
    connecting_ = true;  // it may be cancelled
    started_.reset();
    next_ = 0;
    refused_.reset();
    refused_until_.reset();
    pause_.expires_after(pause_for_);
    pause_for_ = std::min(2 * pause_for_, kLongestPause);
    pause_.async_wait([self = shared_from_this()](boost::system::error_code) {
      if (self->done_ || self->engine_went()) return;
      self->start_timer();
      self->try_next();
    });
  }

  void on_connected() {
    if (engine_went()) return;
    if (is_connected_to_itself()) {
      boost::system::error_code ec;
      socket_.set_option(boost::asio::socket_base::linger(true, 0), ec);  // the port is for who is to listen there
      socket_.close(ec);
      return not_connected(boost::asio::error::connection_refused);
    }
    connecting_ = false;
    timer_.cancel();
    if (auto ok = prepare(socket_, options_.socket); !ok) return fail(ok.error());
    make_room(socket_.native_handle(), options_.socket.receive_window);
    // From here on the connection's lock orders things, not the strand.
    auto socket = rebind(socket_, endpoints_[next_ - 1].protocol(), engine_.io());
    if (!socket) return fail(socket.error());
    start_mpa(std::move(socket).value());
  }

  // Where nobody listens, on this host, TCP connects a socket to itself when that port is picked for it.
  [[nodiscard]] bool is_connected_to_itself() const {
    boost::system::error_code no_local, no_remote;
    return socket_.local_endpoint(no_local) == socket_.remote_endpoint(no_remote) && !no_local && !no_remote;
  }

  // The application's TCP connection, whichever end has opened it.
  void take_over() {  // req: RFC5044-7.1-4, RFC5044-7.1-9, RFC5044-7.1.3-1
    auto socket = given_->socket(engine_.get_executor());
    if (!socket) return fail(socket.error());
    if (auto ok = set_congestion_control(socket->native_handle(), options_.socket.congestion_control); !ok)
      return fail(ok.error());
    if (auto ok = prepare(*socket, options_.socket); !ok) return fail(ok.error());
    make_room(socket->native_handle(), options_.socket.receive_window);
    start_mpa(std::move(socket).value());
  }

  void start_mpa(tcp::socket socket) {
    auto connection = std::make_shared<Connection>(engine_, std::move(socket), qp_, options_.mpa);
    if (fallback_ == mpa::Fallback::kNone) {
      const auto remembered = engine_.fallbacks().recall(connection->remote(), std::chrono::steady_clock::now());
      fall_back_to(mpa::reachable(options_.policy, remembered));
    }
    if (options_.keep_tcp_if_rejected) connection->keep_tcp_if_rejected();
    if (given_ != nullptr) {  // there is no other to fall back to
      options_.policy.allow_peer_to_peer_fallback = options_.policy.allow_revision_1_fallback = false;
      connection->set_early(given_->early());  // req: RFC5044-7.1.5-1
    }
    const auto started = connection->start(
        mpa::Initiator(options_.policy, options_.private_data, std::chrono::steady_clock::now()),
        [self = shared_from_this()](const Error& error, const std::shared_ptr<Connection>& c) {
          self->remember(error, c->remote());
          self->handler_(error, c);
        },
        [self = shared_from_this()](const stream::FallBack& to) {
          boost::asio::post(self->strand_, [self, to] { self->try_again_with(to); });
        },
        this, options_.judge_reply, given_ == nullptr ? options_.try_again : stream::RetryJudge());
    if (!started) return fail(started.error());
    started_ = connection;
  }

  void fall_back_to(mpa::Fallback to) {
    fallback_ = to;
    options_.policy = mpa::with_fallback(options_.policy, to);
  }

  void remember(const Error& error, const tcp::endpoint& peer) {
    if (error.code == Errc::kOk) {
      engine_.fallbacks().worked(peer, fallback_, std::chrono::steady_clock::now());
    } else if (fallback_ != mpa::Fallback::kNone && error.code != Errc::kAborted && error.code != Errc::kPeerRejected) {
      engine_.fallbacks().forget(peer);  // the next one begins at the beginning
    }
  }

  void try_again_with(const stream::FallBack& next) {
    const bool held = hold();
    if (engine_went()) return;
    if (cancelled_) return fail(make_error(Errc::kAborted, kCancelledWhy));
    if (!held) return fail(make_error(Errc::kAborted));
    if (next.to == mpa::Fallback::kNone) return try_later(next.private_data);
    fall_back_to(next.to);
    --next_;
    start_timer();
    try_next();
  }

  // Hears of abort() from now on, until a connection does. False when the queue pair is in use, or used up.
  bool hold() {
    const auto lock = qp_->lock();
    if (qp_->driver() != nullptr || qp_->endpoint().phase() != endpoint::Phase::kIdle) return false;
    qp_->set_driver(this);
    return true;
  }
  void let_go() {
    const auto lock = qp_->lock();
    if (qp_->driver() == this) qp_->set_driver(nullptr);
  }

  void cancel() {
    if (done_) return;
    cancelled_ = true;
    if (const auto connection = started_.lock()) return connection->cancel_start();
    if (connecting_) fail(make_error(Errc::kAborted, kCancelledWhy));
  }

  // No connection came about.
  void fail(const Error& error) {
    if (std::exchange(done_, true)) return;
    boost::system::error_code ec;
    socket_.close(ec);
    given_.reset();
    resolver_.cancel();
    timer_.cancel();
    pause_.cancel();
    {
      const auto lock = qp_->lock();
      if (qp_->driver() == this) {  // else it is in use elsewhere
        qp_->set_driver(nullptr);
        qp_->endpoint().end(endpoint::Input::kAbort, error);
      }
      qp_->drain_completions();
    }
    handler_(error, nullptr);
  }

  // The engine goes before the handlers of its io_context do: nothing of it may be used then.
  [[nodiscard]] bool engine_went() {
    if (!operations_->closed()) return false;
    fail(make_error(Errc::kAborted, "engine destroyed"));
    return true;
  }

  Engine& engine_;
  const std::shared_ptr<Operations> operations_;
  boost::asio::strand<boost::asio::io_context::executor_type> strand_;
  std::shared_ptr<verbs::QueuePair> qp_;
  ConnectOptions options_;
  Connection::EstablishedHandler handler_;
  std::unique_ptr<TcpConnection> given_;  // by the application, to be taken over; null: to be made here
  tcp::resolver resolver_;
  tcp::socket socket_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer pause_;  // before it is tried again
  std::chrono::milliseconds pause_for_ = kRefusalPause;
  std::optional<TimePoint> refused_until_;  // set when all endpoints have been tried
  std::optional<Error> refused_;            // by one of them, since the first was tried
  std::vector<tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
  mpa::Fallback fallback_ = mpa::Fallback::kNone;  // what options_.policy has come to
  Error last_error_ = make_error(Errc::kSystem, "host has no address");
  std::weak_ptr<Connection> started_;  // MPA startup is under way there
  bool connecting_ = false;
  bool cancelled_ = false;
  bool done_ = false;
};

// `given`: null, or what is to be taken over.
void begin(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, std::unique_ptr<TcpConnection> given,
           ConnectOptions options, Connection::EstablishedHandler handler, const std::shared_ptr<Canceller>& cancel) {
  // The child's sockets would go into an epoll set that its parent waits on.
  if (!engine.context()->alive() || !qp->pd().context()->alive()) return handler(verbs::used_after_fork(), nullptr);
  engine.start();
  const auto attempt =
      std::make_shared<Attempt>(engine, std::move(qp), std::move(options), std::move(handler), std::move(given));
  attempt->post_begin();
  if (cancel == nullptr) return;
  cancel->set([weak = std::weak_ptr<Attempt>(attempt)] {
    if (const auto self = weak.lock()) self->post_cancel();
  });
}

}  // namespace

Result<void> validate(const ConnectOptions& options) {
  if (auto ok = mpa::validate(options.policy); !ok) return ok;
  if (auto ok = stream::validate(options.mpa); !ok) return ok;
  if (auto ok = validate(options.socket); !ok) return ok;
  if (options.private_data.size() > mpa::kMaxSendPrivateDataBytes)
    return make_error(Errc::kInvalidArgument, "more than 251 octets of private data");
  if (options.connect_timeout <= std::chrono::milliseconds::zero())
    return make_error(Errc::kInvalidArgument, "ConnectOptions::connect_timeout must be 1 ms or more");
  return {};
}

void connect(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options,
             Connection::EstablishedHandler handler, const std::shared_ptr<Canceller>& cancel) {
  begin(engine, std::move(qp), {}, std::move(options), std::move(handler), cancel);
}

void connect_over(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, TcpConnection tcp, ConnectOptions options,
                  Connection::EstablishedHandler handler, const std::shared_ptr<Canceller>& cancel) {
  begin(engine, std::move(qp), std::make_unique<TcpConnection>(std::move(tcp)), std::move(options), std::move(handler),
        cancel);
}

}  // namespace iwarp::cm
