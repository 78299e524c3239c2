#include "iwarp/cm/listener.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <deque>
#include <mutex>
#include <unordered_set>

#include "iwarp/cm/accept_pause.h"
#include "iwarp/cm/request_reader.h"
#include "iwarp/cm/system_cause.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::cm {

using boost::asio::ip::tcp;

Result<void> validate(const ListenOptions& options) {
  if (auto ok = mpa::validate(options.policy); !ok) return ok;
  if (auto ok = validate(options.socket); !ok) return ok;
  if (options.max_pending == 0)
    return make_error(Errc::kInvalidArgument, "ListenOptions::max_pending must be 1 or more");
  if (std::ranges::find(options.engines, nullptr) != options.engines.end())
    return make_error(Errc::kInvalidArgument, "ListenOptions::engines has a null pointer");
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
    if (auto ok = check(); !ok) return ok;
    boost::system::error_code ec;
    open_tcp(acceptor_, options_.endpoint.protocol(), ec);
    if (ec) return listen_error(ec);
    acceptor_.set_option(boost::asio::socket_base::reuse_address(true), ec);
    if (auto ok = set_congestion_control(acceptor_.native_handle(), options_.socket.congestion_control); !ok)
      return ok.error();
    // "::" means all addresses, whatever the system's default.
    if (options_.endpoint.address().is_v6() && options_.endpoint.address().is_unspecified())
      acceptor_.set_option(boost::asio::ip::v6_only(false), ec);
    acceptor_.bind(options_.endpoint, ec);
    if (ec) return listen_error(ec);
    return start();
  }

  Result<void> open(tcp::acceptor bound) {
    if (auto ok = check(); !ok) return ok;
    boost::system::error_code ec;
    const auto local = bound.local_endpoint(ec);
    if (ec || local.port() == 0)
      return make_error(Errc::kInvalidArgument, "the socket to listen with is not open, or not bound");
    if (auto ok = set_congestion_control(bound.native_handle(), options_.socket.congestion_control); !ok)
      return ok.error();
    const int descriptor = bound.release(ec);
    if (ec) return listen_error(ec);
    (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    assign_tcp(acceptor_, local.protocol(), descriptor, ec);
    if (ec) return listen_error(ec);
    return start();
  }

  Result<void> start() {
    boost::system::error_code ec;
    acceptor_.listen(options_.backlog, ec);
    if (!ec) acceptor_.native_non_blocking(true, ec);
    if (ec) return listen_error(ec);
    local_ = acceptor_.local_endpoint(ec);
    boost::asio::post(strand_, [self = shared_from_this()] { self->accept_next(); });
    return {};
  }

  void close() {
    std::deque<std::unique_ptr<ConnectRequest>> rejected;  // goes without the lock
    {
      const std::lock_guard lock(gate_->mu);
      gate_->closed = true;
      rejected.swap(ready_);
      release_port();
    }
    boost::asio::post(strand_, [self = shared_from_this()] {
      self->closed_ = true;
      boost::system::error_code ec;
      self->acceptor_.close(ec);
      self->pause_.cancel();
      for (const auto& reader : std::exchange(self->startups_, {})) reader->stop();
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
  [[nodiscard]] Result<void> check() const {
    if (auto ok = validate(options_); !ok) return ok;
    for (const Engine* engine : options_.engines) {
      if (engine->context() != engine_.context())
        return make_error(Errc::kInvalidArgument,
                          "ListenOptions::engines: one is of another Context than the listener's");
    }
    return {};
  }

  [[nodiscard]] bool is_closed() const {
    const std::lock_guard lock(gate_->mu);
    return gate_->closed;
  }

  // Without waiting for the engine's thread: its descriptor becomes one of nothing, until that thread closes it. An
  // accept(2) that comes between fails. Without another descriptor to be had the port is free when that thread comes.
  void release_port() {
    // A thread in accept(2) holds the socket until it returns: it listens no more, so that others may bind and listen.
    // So does a child that was forked.
    if (!options_.shared_socket) {
      const int one = 1;
      (void)::setsockopt(acceptor_.native_handle(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
      (void)::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    }
    const int nothing = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (nothing < 0) return;
    (void)::dup3(nothing, acceptor_.native_handle(), O_CLOEXEC);
    (void)::close(nothing);
  }

  // Closed by the Listener when it goes. Who holds it open finds the engines there, its own and those that serve.
  struct Gate {
    std::mutex mu;
    bool closed = false;
  };
  // One of max_pending connections, given back where its owner ends, in a thread of any engine.
  class Slot {
   public:
    explicit Slot(const std::shared_ptr<Impl>& impl) : impl_(impl), gate_(impl->gate_) { ++impl->pending_; }
    ~Slot() {
      if (!process_.alive()) return;  // a thread that this child does not have may hold the lock of its io_context
      const std::lock_guard lock(gate_->mu);
      if (gate_->closed) return;
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
    std::shared_ptr<Gate> gate_;
    verbs::ForkGuard process_;
  };
  void accept_next() {
    if (closed_ || accepting_ || pending_ >= options_.max_pending) return;
    accepting_ = true;
    // Asio's own accept would let children inherit the connection.
    acceptor_.async_wait(tcp::acceptor::wait_read, [self = shared_from_this()](boost::system::error_code ec) {
      self->accepting_ = false;
      if (self->is_closed() || self->operations_->closed()) return;
      tcp::socket socket(self->strand_);
      if (!ec) self->accept(socket, ec);
      if (ec && !gone_meanwhile(ec)) return self->pause_.begin(ec, [self] { self->accept_next(); });
      if (!ec) {
        if (auto ok = prepare(socket, self->options_.socket); ok) self->begin(std::move(socket));
      }
      self->accept_next();
    });
  }

  void accept(tcp::socket& socket, boost::system::error_code& ec) {
    const int descriptor = accept_tcp(acceptor_.native_handle(), ec);
    if (!ec) assign_tcp(socket, local_.protocol(), descriptor, ec);
  }

  // Who waited has given up, or another process that shares the socket has taken it.
  [[nodiscard]] static bool gone_meanwhile(const boost::system::error_code& ec) {
    return ec == boost::asio::error::would_block || ec == boost::asio::error::try_again ||
           ec == boost::asio::error::connection_aborted || ec == boost::asio::error::interrupted ||
           ec == boost::system::errc::protocol_error;
  }

  void begin(tcp::socket socket) {
    const auto reader =
        std::make_shared<RequestReader>(engine_, std::move(socket), options_.policy, options_.socket.receive_window,
                                        std::make_shared<Slot>(shared_from_this()));
    startups_.insert(reader);
    reader->begin({}, [weak = weak_from_this()](const std::shared_ptr<RequestReader>& done, const Error& error,
                                                std::unique_ptr<ConnectRequest> request) {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->startups_.erase(done);
      if (request == nullptr) {
        self->failed_.fetch_add(1);
        if (error.code == Errc::kResource) self->pause_.tell(error);
        return;
      }
      if (auto kept = self->keep(request); !kept) {
        self->failed_.fetch_add(1);
        return self->pause_.tell(kept.error());
      }
      self->hand_over();
    });
  }

  // Until somebody takes it. What is left in `request` is to go without the lock: its slot asks for it.
  [[nodiscard]] Result<void> keep(std::unique_ptr<ConnectRequest>& request) {
    const std::lock_guard lock(gate_->mu);
    if (gate_->closed) return {};
    if (!options_.engines.empty()) {
      Engine* const least = *std::ranges::min_element(options_.engines, {}, &Engine::load);
      if (auto ok = request->move_to(*least); !ok) return ok;
    }
    ready_.push_back(std::move(request));
    return {};
  }

  void hand_over() {
    if (!waiting_) return;
    std::unique_ptr<ConnectRequest> request;
    {
      const std::lock_guard lock(gate_->mu);
      if (ready_.empty()) return;
      request = std::move(ready_.front());
      ready_.pop_front();
    }
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
  std::unordered_set<std::shared_ptr<RequestReader>> startups_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::deque<std::unique_ptr<ConnectRequest>> ready_;  // guarded by it
  AcceptHandler waiting_;
  const Canceller* waiting_key_ = nullptr;  // which of the waits it is; never followed
  std::atomic<std::uint64_t> failed_{0};
};

Result<std::unique_ptr<Listener>> Listener::listen(Engine& engine, const ListenOptions& options) {
  if (!engine.context()->alive()) return make_error(Errc::kInvalidArgument, "engine used after fork()");
  auto impl = std::make_shared<Impl>(engine, options);
  if (auto ok = impl->open(); !ok) return ok.error();
  return begin(engine, options, std::move(impl));
}

Result<std::unique_ptr<Listener>> Listener::listen(Engine& engine, tcp::acceptor bound, const ListenOptions& options) {
  if (!engine.context()->alive()) return make_error(Errc::kInvalidArgument, "engine used after fork()");
  auto impl = std::make_shared<Impl>(engine, options);
  if (auto ok = impl->open(std::move(bound)); !ok) return ok.error();
  return begin(engine, options, std::move(impl));
}

std::unique_ptr<Listener> Listener::begin(Engine& engine, const ListenOptions& options, std::shared_ptr<Impl> impl) {
  engine.start();
  for (Engine* serving : options.engines) serving->start();
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
