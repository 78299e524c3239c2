#include "iwarp/cm/connector.h"

#include <boost/asio/post.hpp>

namespace iwarp::cm {
namespace {

using boost::asio::ip::tcp;

// One connect(): keeps itself alive through the handlers it waits for.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options, Connection::EstablishedHandler handler)
      : engine_(engine), qp_(std::move(qp)), options_(std::move(options)), handler_(std::move(handler)), resolver_(engine.io()), socket_(engine.io()), timer_(engine.io()) {}

  void begin() {
    if (auto ok = mpa::validate(options_.policy); !ok) return finish(ok.error(), nullptr);
    timer_.expires_after(options_.connect_timeout);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (!ec) self->on_timeout();
    });
    resolver_.async_resolve(options_.host, std::to_string(options_.port), [self = shared_from_this()](boost::system::error_code ec, const tcp::resolver::results_type& found) {
      if (self->done_) return;
      if (ec) return self->finish(make_error(Errc::kSystem, "cannot resolve the host name"), nullptr);
      for (const auto& entry : found) self->endpoints_.push_back(entry.endpoint());
      self->try_next();
    });
  }

 private:
  void try_next() {
    if (next_ == endpoints_.size()) return finish(last_error_, nullptr);
    const tcp::endpoint to = endpoints_[next_++];
    boost::system::error_code ec;
    socket_.close(ec);
    socket_.open(to.protocol(), ec);
    if (ec) {
      last_error_ = make_error(Errc::kResource, "cannot open a socket");
      return try_next();
    }
    if (options_.local && options_.local->protocol() == to.protocol()) {
      socket_.set_option(boost::asio::socket_base::reuse_address(true), ec);
      socket_.bind(*options_.local, ec);
      if (ec) {
        last_error_ = make_error(Errc::kSystem, "cannot bind to the local address");
        return try_next();
      }
    }
    socket_.async_connect(to, [self = shared_from_this()](boost::system::error_code failed) {
      if (self->done_) return;
      if (failed) {
        self->last_error_ = describe(failed);
        return self->try_next();
      }
      self->on_connected();
    });
  }

  static Error describe(const boost::system::error_code& ec) {
    namespace errc = boost::system::errc;
    if (ec == errc::connection_refused) return make_error(Errc::kSystem, "connection refused: nothing listens there");
    if (ec == errc::host_unreachable || ec == errc::network_unreachable) return make_error(Errc::kSystem, "host is unreachable");
    if (ec == errc::timed_out) return make_error(Errc::kTimeout, "TCP connect timed out");
    return make_error(Errc::kSystem, "TCP connect failed");
  }

  void on_connected() {
    timer_.cancel();
    if (auto ok = prepare(socket_, options_.socket); !ok) return finish(ok.error(), nullptr);
    auto connection = std::make_shared<Connection>(engine_, std::move(socket_), qp_);
    socket_ = tcp::socket(engine_.io());
    connection->start(
        mpa::Initiator(options_.policy, options_.private_data, std::chrono::steady_clock::now()),
        [self = shared_from_this()](const Error& error, const std::shared_ptr<Connection>& c) { self->finish(error, c); },
        [self = shared_from_this()](const Error&) { self->fall_back(); });
  }

  void fall_back() {
    options_.policy.revision = 1;
    options_.policy.allow_revision_1_fallback = false;
    next_ = next_ > 0 ? next_ - 1 : 0;
    timer_.expires_after(options_.connect_timeout);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (!ec) self->on_timeout();
    });
    try_next();
  }

  void on_timeout() {
    if (done_) return;
    finish(make_error(Errc::kTimeout, "TCP connect timed out"), nullptr);
  }

  void finish(const Error& error, const std::shared_ptr<Connection>& connection) {
    if (std::exchange(done_, true)) return;
    boost::system::error_code ec;
    socket_.close(ec);
    resolver_.cancel();
    timer_.cancel();
    if (error.code != Errc::kOk && connection == nullptr) {
      const auto lock = qp_->lock();
      qp_->core().abort(error);
      qp_->drain_completions();
    }
    handler_(error, connection);
  }

  Engine& engine_;
  std::shared_ptr<verbs::QueuePair> qp_;
  ConnectOptions options_;
  Connection::EstablishedHandler handler_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::vector<tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
  Error last_error_ = make_error(Errc::kSystem, "host has no address");
  bool done_ = false;
};

}  // namespace

void connect(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options, Connection::EstablishedHandler handler) {
  engine.start();
  auto attempt = std::make_shared<Attempt>(engine, std::move(qp), std::move(options), std::move(handler));
  boost::asio::post(engine.io(), [attempt] { attempt->begin(); });
}

}  // namespace iwarp::cm
