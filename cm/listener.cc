#include "iwarp/cm/listener.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <unordered_set>

#include "iwarp/cm/accept_pause.h"
#include "iwarp/cm/socket_io.h"
#include "iwarp/cm/system_cause.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::cm {
namespace {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// After a Reply with R=1 the peer closes (RFC 5044 s7.1.2 rule 2); whoever does not is closed after this.
constexpr std::chrono::seconds kRejectLinger{5};

// Sends the bytes, half-closes, and waits for the peer's end, bounded in time and in what is read.
class Farewell : public std::enable_shared_from_this<Farewell> {
 public:
  Farewell(tcp::socket socket, ConstBytes bytes, std::shared_ptr<void> slot)
      : slot_(std::move(slot)),
        socket_(std::move(socket)),
        strand_(boost::asio::make_strand(socket_.get_executor())),
        timer_(strand_),
        bytes_(bytes.begin(), bytes.end()) {}

  void begin() {
    timer_.expires_after(kRejectLinger);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code) {
      boost::system::error_code ec;
      self->socket_.close(ec);
    });
    auto written = [self = shared_from_this()](boost::system::error_code failed, std::size_t) {
      boost::system::error_code ec;
      self->socket_.shutdown(tcp::socket::shutdown_send, ec);
      if (failed) return self->end();
      self->discard();
    };
    boost::asio::async_write(socket_, boost::asio::buffer(bytes_),
                             boost::asio::bind_executor(strand_, std::move(written)));
  }

 private:
  void discard() {
    auto came = [self = shared_from_this()](boost::system::error_code ec, std::size_t n) {
      self->discarded_ += n;
      if (ec || self->discarded_ > self->sink_.size() * 64) return self->end();
      self->discard();
    };
    socket_.async_read_some(boost::asio::buffer(sink_), boost::asio::bind_executor(strand_, std::move(came)));
  }
  void end() { timer_.cancel(); }

  std::shared_ptr<void> slot_;  // outlives the socket
  tcp::socket socket_;
  boost::asio::strand<tcp::socket::executor_type> strand_;
  boost::asio::steady_timer timer_;
  std::vector<std::byte> bytes_;
  std::array<std::byte, 1024> sink_{};
  std::size_t discarded_ = 0;
};

void say_farewell(tcp::socket socket, ConstBytes bytes, const std::shared_ptr<ByteTap>& tap,
                  std::shared_ptr<void> slot) {
  if (tap != nullptr) {
    tap->sent({bytes}, Clock::now());
    tap->sent_end(ByteTap::End::kFin, Clock::now());
  }
  std::make_shared<Farewell>(std::move(socket), bytes, std::move(slot))->begin();
}

}  // namespace

// --- ConnectRequest

ConnectRequest::ConnectRequest(Engine& engine, tcp::socket socket, mpa::Responder responder,
                               const mpa::RequestReceived& request, std::shared_ptr<void> slot,
                               std::size_t receive_window, std::shared_ptr<ByteTap> tap)
    : engine_(engine),
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

void ConnectRequest::accept(std::shared_ptr<verbs::QueuePair> qp, const AcceptOptions& options,
                            Connection::EstablishedHandler handler, const std::shared_ptr<Canceller>& cancel) {
  if (!socket_.alive() || !qp->pd().context()->alive()) return handler(verbs::used_after_fork(), nullptr);
  const auto refuse = [&](const Error& error) {
    boost::asio::post(engine_.io(), [handler, error] { handler(error, nullptr); });
  };
  if (decided_) return refuse(make_error(Errc::kInvalidArgument, "request already decided"));
  if (auto ok = qp->usable(); !ok) return refuse(ok.error());
  {
    const auto lock = qp->lock();
    if (qp->core().phase() != stream::Phase::kIdle)
      return refuse(make_error(Errc::kInvalidArgument, "queue pair was used before"));
  }
  if (!take_early_octet()) {
    if (auto ok = responder_.accept(options.ird, options.ord, options.private_data); !ok) return refuse(ok.error());
  }
  decided_ = true;
  slot_.reset();
  make_room(socket_->native_handle(), receive_window_);  // not before: peers that wait undecided may be many
  auto connection = std::make_shared<Connection>(engine_, std::move(*socket_), std::move(qp));
  connection->set_tap(std::move(tap_));
  if (auto ok = connection->start(std::move(responder_), handler); !ok) return refuse(ok.error());
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

Result<void> ConnectRequest::reject(ConstBytes private_data) {
  if (!engine_.context()->alive()) return make_error(Errc::kInvalidArgument, "engine used after fork()");
  if (decided_) return make_error(Errc::kInvalidArgument, "request already decided");
  if (auto ok = responder_.reject(private_data); !ok) return ok.error();
  decided_ = true;
  // The socket takes its place along: it lives until the peer has closed, or the time is up.
  say_farewell(std::move(*socket_), responder_.tx_bytes(), tap_, std::move(slot_));
  return {};
}

// --- Listener

Result<void> validate(const ListenOptions& options) {
  if (auto ok = mpa::validate(options.policy); !ok) return ok;
  if (auto ok = validate(options.socket); !ok) return ok;
  if (options.max_pending == 0)
    return make_error(Errc::kInvalidArgument, "ListenOptions::max_pending must be 1 or more");
  return {};
}

class Listener::Impl : public std::enable_shared_from_this<Listener::Impl> {
 public:
  Impl(Engine& engine, const ListenOptions& options)
      : engine_(engine),
        operations_(engine.operations()),
        options_(options),
        strand_(boost::asio::make_strand(engine.io())),
        acceptor_(strand_),
        pause_(strand_, options.on_shortage) {}

  Result<void> open() {
    if (auto ok = validate(options_); !ok) return ok.error();
    boost::system::error_code ec;
    acceptor_.open(options_.endpoint.protocol(), ec);
    if (ec) return listen_error(ec);
    acceptor_.set_option(boost::asio::socket_base::reuse_address(true), ec);
    if (auto ok = set_congestion_control(acceptor_.native_handle(), options_.socket.congestion_control); !ok)
      return ok.error();
    // "::" means all addresses, whatever the system's default.
    if (options_.endpoint.address().is_v6() && options_.endpoint.address().is_unspecified())
      acceptor_.set_option(boost::asio::ip::v6_only(false), ec);
    acceptor_.bind(options_.endpoint, ec);
    if (ec) return listen_error(ec);
    acceptor_.listen(options_.backlog, ec);
    if (ec) return listen_error(ec);
    local_ = acceptor_.local_endpoint(ec);
    boost::asio::post(strand_, [self = shared_from_this()] { self->accept_next(); });
    return {};
  }

  void close() {
    boost::asio::post(strand_, [self = shared_from_this()] {
      self->closed_ = true;
      boost::system::error_code ec;
      self->acceptor_.close(ec);
      self->pause_.cancel();
      self->ready_.clear();
      for (const auto& p : std::exchange(self->startups_, {})) {
        p->done = true;
        p->timer.cancel();
        p->socket.close(ec);
      }
      if (self->waiting_) std::exchange(self->waiting_, {})(make_error(Errc::kAborted, "listener closed"), nullptr);
    });
  }

  void accept(AcceptHandler handler, const std::shared_ptr<Canceller>& cancel) {
    boost::asio::post(strand_, [self = shared_from_this(), handler = std::move(handler), key = cancel.get()]() mutable {
      if (self->closed_) return handler(make_error(Errc::kAborted, "listener closed"), nullptr);
      if (self->waiting_) return handler(make_error(Errc::kInvalidArgument, "another accept is waiting"), nullptr);
      self->waiting_ = std::move(handler);
      self->waiting_key_ = key;
      self->hand_over();
    });
    if (cancel == nullptr) return;
    cancel->set([weak = weak_from_this(), which = std::weak_ptr<Canceller>(cancel)] {
      const auto self = weak.lock();
      const auto lasting = which.lock();  // so that the address names no later wait
      if (self == nullptr || lasting == nullptr) return;
      boost::asio::post(self->strand_, [self, lasting] {
        if (self->waiting_ && self->waiting_key_ == lasting.get())
          std::exchange(self->waiting_, {})(make_error(Errc::kAborted, kCancelledWhy), nullptr);
      });
    });
  }
  void set_policy(const mpa::Policy& policy) {
    boost::asio::post(strand_, [self = shared_from_this(), policy] { self->options_.policy = policy; });
  }
  // In a forked child: its own descriptor.
  void close_descriptor() { (void)::close(acceptor_.native_handle()); }

  [[nodiscard]] const tcp::endpoint& local() const { return local_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_.load(); }

 private:
  // One of max_pending connections, given back where its owner ends.
  class Slot {
   public:
    explicit Slot(const std::shared_ptr<Impl>& impl) : impl_(impl) { ++impl->pending_; }
    ~Slot() {
      if (!process_.alive()) return;  // a thread that this child does not have may hold the lock of its io_context
      auto impl = impl_.lock();
      if (impl == nullptr) return;
      boost::asio::post(impl->strand_, [impl] {
        --impl->pending_;
        impl->accept_next();
      });
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    std::weak_ptr<Impl> impl_;
    verbs::ForkGuard process_;
  };
  // One accepted socket until its Request is complete.
  struct Pending {
    Pending(tcp::socket s, const mpa::Policy& policy, std::shared_ptr<void> of)
        // req: RFC5044-7.1-3
        : slot(std::move(of)), socket(std::move(s)), timer(socket.get_executor()), responder(policy, Clock::now()) {}
    std::shared_ptr<void> slot;
    tcp::socket socket;
    boost::asio::steady_timer timer;
    mpa::Responder responder;
    std::shared_ptr<ByteTap> tap;
    std::array<std::byte, 1024> bytes{};
    bool done = false;
  };

  void accept_next() {
    if (closed_ || accepting_ || pending_ >= options_.max_pending) return;
    accepting_ = true;
    acceptor_.async_accept(strand_, [self = shared_from_this()](boost::system::error_code ec, tcp::socket socket) {
      self->accepting_ = false;
      if (self->closed_ || self->operations_->closed()) return;
      if (ec) return self->pause_.begin(ec, [self] { self->accept_next(); });
      if (auto ok = prepare(socket, self->options_.socket); ok) {
        self->begin(std::make_shared<Pending>(std::move(socket), self->options_.policy, std::make_shared<Slot>(self)));
      }
      self->accept_next();
    });
  }

  void begin(const std::shared_ptr<Pending>& p) {
    startups_.insert(p);
    boost::system::error_code gone;
    p->tap = engine_.make_tap({p->socket.local_endpoint(gone), p->socket.remote_endpoint(gone), false});
    if (const auto deadline = p->responder.deadline()) {
      p->timer.expires_at(*deadline);
      p->timer.async_wait([self = shared_from_this(), p](boost::system::error_code ec) {
        if (ec || p->done) return;
        p->responder.on_deadline(Clock::now());
        self->look(p);
      });
    }
    read(p);
  }

  void read(const std::shared_ptr<Pending>& p) {
    p->socket.async_read_some(boost::asio::buffer(p->bytes),
                              [self = shared_from_this(), p](boost::system::error_code ec, std::size_t n) {
                                if (p->done) return;
                                if (p->tap != nullptr) show(*p, ec, n);
                                if (ec) {
                                  p->responder.rx_end(ec != boost::asio::error::eof);
                                } else {
                                  (void)p->responder.rx(ConstBytes{p->bytes}.first(n), Clock::now());
                                }
                                self->look(p);
                                if (!p->done) self->read(p);
                              });
  }

  static void show(Pending& p, boost::system::error_code ec, std::size_t n) {
    if (ec) {
      const bool fin = ec == boost::asio::error::eof;
      const auto how = end_of({.error = fin ? 0 : ec.value()});
      if (how) p.tap->received_end(*how, Clock::now());
      if (!fin) p.tap.reset();  // nothing can be sent any more
    } else {
      p.tap->received({ConstBytes{p.bytes}.first(n)}, Clock::now());
    }
  }

  void look(const std::shared_ptr<Pending>& p) {
    while (auto event = p->responder.poll_event()) {
      if (auto* request = std::get_if<mpa::RequestReceived>(&*event)) {
        end(p);
        // From here on the connection's lock orders things, not the strand.
        auto socket = rebind(p->socket, local_.protocol(), engine_.io());
        if (!socket) return drop_short(*p, socket.error());
        ready_.push_back(std::make_unique<ConnectRequest>(engine_, std::move(socket).value(), std::move(p->responder),
                                                          *request, std::move(p->slot), options_.socket.receive_window,
                                                          std::move(p->tap)));
        hand_over();
        return;
      }
      if (std::holds_alternative<mpa::Failed>(*event)) {
        end(p);
        if (p->responder.tx_bytes().empty()) return drop(*p);
        auto socket = rebind(p->socket, local_.protocol(), engine_.io());
        if (!socket) return drop_short(*p, socket.error());
        failed_.fetch_add(1);
        say_farewell(std::move(socket).value(), p->responder.tx_bytes(), p->tap, std::move(p->slot));
        return;
      }
    }
  }

  // For want of what another connection takes.
  void drop_short(Pending& p, const Error& shortage) {
    pause_.tell(shortage);
    drop(p);
  }

  // Without a word.
  void drop(Pending& p) {
    failed_.fetch_add(1);
    if (p.tap != nullptr) p.tap->sent_end(ByteTap::End::kFin, Clock::now());
    boost::system::error_code ec;
    p.socket.close(ec);
  }

  void end(const std::shared_ptr<Pending>& p) {
    p->done = true;
    p->timer.cancel();
    startups_.erase(p);
  }

  void hand_over() {
    if (!waiting_ || ready_.empty()) return;
    auto request = std::move(ready_.front());
    ready_.pop_front();
    std::exchange(waiting_, {})(Error{}, std::move(request));
  }

  Engine& engine_;
  const std::shared_ptr<Operations> operations_;
  ListenOptions options_;
  boost::asio::strand<boost::asio::io_context::executor_type> strand_;
  tcp::acceptor acceptor_;
  AcceptPause pause_;
  tcp::endpoint local_;
  bool closed_ = false, accepting_ = false;
  std::size_t pending_ = 0;
  std::unordered_set<std::shared_ptr<Pending>> startups_;
  std::deque<std::unique_ptr<ConnectRequest>> ready_;
  AcceptHandler waiting_;
  const Canceller* waiting_key_ = nullptr;  // which of the waits it is; never followed
  std::atomic<std::uint64_t> failed_{0};
};

Result<std::unique_ptr<Listener>> Listener::listen(Engine& engine, const ListenOptions& options) {
  if (!engine.context()->alive()) return make_error(Errc::kInvalidArgument, "engine used after fork()");
  auto impl = std::make_shared<Impl>(engine, options);
  if (auto ok = impl->open(); !ok) return ok.error();
  engine.start();
  return std::unique_ptr<Listener>(new Listener(engine.operations(), std::move(impl)));
}

Listener::~Listener() {
  if (impl_.alive()) {
    (*impl_)->close();
  } else {
    (*impl_)->close_descriptor();
  }
}

tcp::endpoint Listener::local() const {
  return (*impl_)->local();
}
void Listener::accept(AcceptHandler handler, const std::shared_ptr<Canceller>& cancel) {
  if (!impl_.alive()) return handler(verbs::used_after_fork(), nullptr);
  (*impl_)->accept(std::move(handler), cancel);
}
Result<void> Listener::set_policy(const mpa::Policy& policy) {
  if (!impl_.alive()) return verbs::used_after_fork();
  if (auto ok = mpa::validate(policy); !ok) return ok;
  (*impl_)->set_policy(policy);
  return {};
}

std::uint64_t Listener::failed_startups() const {
  return (*impl_)->failed();
}

}  // namespace iwarp::cm
