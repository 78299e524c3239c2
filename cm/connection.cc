#include "iwarp/cm/connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>

namespace iwarp::cm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kScratchBytes = 256 * 1024;
// Rounds of sending and receiving before other connections get their turn.
constexpr unsigned kWorkBudget = 16;
// Octets sent before something is received.
constexpr std::size_t kTransmitBytes = 4 * 1024 * 1024;
// Batches sent before TCP is asked again for its segment size, though it never made us wait.
constexpr unsigned kEmssEvery = 256;

// Lent to whichever connection this thread drives: an idle connection owns no staging memory.
MutBytes thread_scratch() {
  thread_local const std::unique_ptr<std::byte[]> scratch = std::make_unique_for_overwrite<std::byte[]>(kScratchBytes);
  return {scratch.get(), kScratchBytes};
}

}  // namespace

Connection::Connection(Engine& engine, tcp::socket socket, std::shared_ptr<verbs::QueuePair> qp)
    : engine_(&engine),
      engine_io_(engine.io()),
      socket_(std::move(socket)),
      timer_(std::in_place, engine.io()),
      qp_(std::move(qp)) {
  boost::system::error_code ec;
  local_ = socket_->local_endpoint(ec);
  remote_ = socket_->remote_endpoint(ec);
}

Connection::~Connection() {
  if (const auto lock = qp_->lock(); qp_->driver() == this) qp_->set_driver(nullptr);
  if (engine_ != nullptr) engine_->remove(this);
}

mpa::Negotiated Connection::negotiated() const {
  const auto lock = qp_->lock();
  return qp_->core().negotiated();
}

std::vector<std::byte> Connection::private_data() const {
  const auto lock = qp_->lock();
  return private_data_;
}

Counters Connection::counters() const {
  const auto lock = qp_->lock();
  return {qp_->core().tx_counters(), qp_->core().rx_counters()};
}

std::optional<stream::Disconnected> Connection::disconnected() const {
  const auto lock = qp_->lock();
  return disconnected_;
}

std::string Connection::to_string() const {
  return "local=" + cm::to_string(local_) + " peer=" + cm::to_string(remote_) +
         " role=" + (initiator_ ? "initiator " : "responder ") + negotiated().to_string();
}

Result<void> Connection::begin(EstablishedHandler handler) {
  if (qp_->core().phase() != stream::Phase::kIdle || qp_->driver() != nullptr)
    return make_error(Errc::kInvalidArgument, "queue pair was used before");  // req: RFC5041-2.3-1
  established_ = std::move(handler);
  qp_->set_driver(this);
  qp_->core().set_emss(effective_mss(*socket_));
  return {};
}

Result<void> Connection::start(mpa::Initiator initiator, EstablishedHandler handler, RetryHandler retry) {
  {
    const auto lock = qp_->lock();
    if (auto ok = begin(std::move(handler)); !ok) return ok;
    initiator_ = true;
    tap_ = engine_->make_tap({local_, remote_, true});
    retry_ = std::move(retry);
    qp_->core().start(std::move(initiator), Clock::now());
  }
  engine_->add(shared_from_this());
  drive(kApplication, Clock::now());
  return {};
}

Result<void> Connection::start(mpa::Responder responder, EstablishedHandler handler) {
  {
    const auto lock = qp_->lock();
    if (auto ok = begin(std::move(handler)); !ok) return ok;
    qp_->core().start(std::move(responder), Clock::now());
  }
  engine_->add(shared_from_this());
  drive(kApplication, Clock::now());
  return {};
}

void Connection::disconnect() {
  if (!qp_->pd().context()->alive()) return;  // a forked child: who held the lock when it forked never gives it back
  {
    const auto lock = qp_->lock();
    qp_->core().disconnect(advance(Clock::now()));
  }
  drive(kApplication, Clock::now());
}

void Connection::abort(const Error& reason) {
  if (!qp_->pd().context()->alive()) return;
  {
    const auto lock = qp_->lock();
    qp_->core().abort(reason);
  }
  drive(kApplication, Clock::now());
}

void Connection::on_disconnected(std::function<void(stream::Disconnected)> handler) {
  std::unique_lock lock = qp_->lock();
  if (!disconnected_) {
    disconnect_waiters_.push_back(std::move(handler));
    return;
  }
  if (engine_ == nullptr) return;
  boost::asio::post(engine_io_, [handler = std::move(handler), how = *disconnected_] { handler(how); });
}

void Connection::kick() {
  const auto self = weak_from_this().lock();
  if (released_ || self == nullptr) return;
  if (!tx_blocked_) (void)transmit(advance(Clock::now()));
  if (qp_->core().phase() != stream::Phase::kFull || more_work_) {
    // What follows may call the application, which posting must not do.
    post_drive();
  } else if (tx_blocked_ && !write_armed_) {
    arm();
  }
}

// Another thread may have read the clock later and got the lock sooner.
TimePoint Connection::advance(TimePoint now) {
  return latest_ = std::max(latest_, now);
}

// Sends until nothing is left or TCP takes no more. True when octets moved.
bool Connection::transmit(TimePoint now) {
  stream::Connection& core = qp_->core();
  bool moved = false;
  std::size_t octets = 0;
  more_work_ = false;
  for (unsigned round = 0;; ++round) {
    if (round == kWorkBudget || octets >= kTransmitBytes) {
      more_work_ = true;
      return moved;
    }
    const auto spans = core.tx_buffers(now);
    if (spans.empty()) break;
    const Transfer sent = send_pieces(socket_->native_handle(), spans);
    if (sent.error != 0) {
      core.tx_commit(0, now);
      if (sent.error == EINTR) continue;
      if (sent.would_block()) {
        tx_blocked_ = true;
      } else if (sent.error != EPIPE) {
        // EPIPE: the peer's end is still to be read, and says more.
        on_tcp_end(sent, now);
      }
      return moved;
    }
    if (tap_ != nullptr) [[unlikely]]
      tap_->sent(first_octets(spans, sent.n), Clock::now());
    core.tx_commit(sent.n, now);
    moved = true;
    octets += sent.n;
    if (++batches_ % kEmssEvery == 0) core.set_emss(effective_mss(*socket_));  // req: RFC5044-3-2
    if (!sent.whole) {
      tx_blocked_ = true;
      return moved;
    }
  }
  tx_blocked_ = false;
  return moved;
}

// One read. True when octets arrived or the stream ended.
bool Connection::receive(TimePoint now) {
  stream::Connection& core = qp_->core();
  rx_wanted_ = false;
  const auto spans = core.rx_buffers(thread_scratch());
  if (spans.empty()) return false;
  const Transfer got = receive_pieces(socket_->native_handle(), spans);
  if (tap_ != nullptr && got.n > 0) [[unlikely]]
    tap_->received(first_octets(spans, got.n), Clock::now());
  core.rx_commit(got.n, now);
  if (got.n > 0) {
    // Less than asked for: the socket is empty now, another read would only say so.
    rx_wanted_ = !got.whole;
    return true;
  }
  if (got.would_block() || got.error == EINTR) {
    rx_wanted_ = true;
    return false;
  }
  on_tcp_end(got, now);
  return true;
}

void Connection::on_tcp_end(const Transfer& failed, TimePoint now) {
  const auto how = end_of(failed);
  if (!how) return qp_->core().abort(make_error(Errc::kConnectionLost, cause_of(failed)));
  if (tap_ != nullptr) tap_->received_end(*how, Clock::now());
  qp_->core().rx_end(*how, now);
}

// One at a time: each may post the next.
void Connection::post_drive() {
  if (std::exchange(drive_posted_, true)) return;
  boost::asio::post(engine_io_, [self = shared_from_this()] { self->drive(kPosted, Clock::now()); });
}

Connection::Driven Connection::drive(unsigned fired, TimePoint now) {
  std::vector<stream::Event> events;
  std::unique_lock lock = qp_->lock();
  now = advance(now);
  if ((fired & kPosted) != 0) drive_posted_ = false;
  if ((fired & kReadable) != 0) read_armed_ = false;
  if ((fired & kWritable) != 0) write_armed_ = tx_blocked_ = false;
  if (released_ || !qp_->pd().context()->alive()) return {};
  stream::Connection& core = qp_->core();
  if ((fired & kWritable) != 0) core.set_emss(effective_mss(*socket_));  // req: RFC5044-3-2 RFC5044-4.5-5
  if (const auto deadline = core.deadline(); deadline && now >= *deadline) core.on_deadline(now);

  bool again = true, moved = false;
  for (unsigned round = 0; round < kWorkBudget && again && !released_; ++round) {
    const bool sent = !tx_blocked_ && transmit(now);
    const bool received = core.phase() != stream::Phase::kClosed && receive(now);
    moved = moved || sent || received;
    qp_->drain_completions();
    apply_link_action();
    again = (received && !rx_wanted_) || (sent && !tx_blocked_ && core.tx_pending()) ||
            (received && core.tx_pending() && !tx_blocked_) || more_work_;
  }
  while (auto event = core.poll_event()) events.push_back(std::move(*event));
  if (!released_) {
    arm();
    if (again) post_drive();
  }
  const bool blocked = tx_blocked_, told = !events.empty();
  if (told) deliver(events, lock, (fired & kApplication) != 0);
  return {.moved = moved, .blocked = blocked, .told = told};
}

void Connection::apply_link_action() {
  for (;;) {
    switch (qp_->core().link_action()) {
      case stream::LinkAction::kNone:
        return;
      case stream::LinkAction::kShutdownWrite: {
        boost::system::error_code ec;
        socket_->shutdown(tcp::socket::shutdown_send, ec);
        if (tap_ != nullptr) tap_->sent_end(ByteTap::End::kFin, Clock::now());
        break;
      }
      case stream::LinkAction::kClose:
        release_socket(false);
        return;
      case stream::LinkAction::kReset:
        release_socket(true);
        return;
    }
  }
}

void Connection::release_socket(bool reset) {
  if (released_) return;
  released_ = true;
  boost::system::error_code ec;
  if (tap_ != nullptr && reset) tap_->sent_end(ByteTap::End::kReset, Clock::now());
  tap_.reset();
  if (reset) socket_->set_option(boost::asio::socket_base::linger(true, 0), ec);
  socket_->close(ec);
  timer_->cancel();
  timer_deadline_.reset();
  if (qp_->driver() == this) qp_->set_driver(nullptr);
}

// Waits for what is missing. Never re-arms what is armed, nor a timer whose deadline has not changed.
void Connection::arm() {
  const stream::Connection& core = qp_->core();
  if (rx_wanted_ && !read_armed_) {
    read_armed_ = true;
    socket_->async_wait(tcp::socket::wait_read, [self = shared_from_this()](boost::system::error_code ec) {
      if (!ec) self->drive(kReadable, Clock::now());
    });
  }
  if (tx_blocked_ && !write_armed_) {
    write_armed_ = true;
    socket_->async_wait(tcp::socket::wait_write, [self = shared_from_this()](boost::system::error_code ec) {
      if (!ec) self->drive(kWritable, Clock::now());
    });
  }
  const auto deadline = core.deadline();
  if (deadline == timer_deadline_) return;
  timer_deadline_ = deadline;
  if (!deadline) {
    timer_->cancel();
    return;
  }
  timer_->expires_at(*deadline);
  timer_->async_wait([weak = weak_from_this()](boost::system::error_code ec) {
    if (auto self = weak.lock(); self != nullptr && !ec) self->drive(kTimer, Clock::now());
  });
}

void Connection::deliver(std::vector<stream::Event>& events, std::unique_lock<std::mutex>& lock, bool post) {
  std::vector<std::function<void()>> calls;
  for (stream::Event& event : events) {
    // What the handler holds goes when it cannot be called any more, and without the lock.
    if (!std::holds_alternative<stream::RetryWithRevision1>(event) && retry_)
      calls.push_back([drop = std::exchange(retry_, {})] {});
    if (auto* established = std::get_if<stream::Established>(&event)) {
      private_data_ = std::move(established->private_data);
      if (established_)
        calls.push_back(
            [handler = std::exchange(established_, {}), self = shared_from_this()] { handler(Error{}, self); });
    } else if (auto* retry = std::get_if<stream::RetryWithRevision1>(&event)) {
      release_socket(false);
      if (retry_) calls.push_back([handler = std::exchange(retry_, {}), reason = retry->reason] { handler(reason); });
    } else {
      disconnected_ = std::move(std::get<stream::Disconnected>(event));
      const stream::Disconnected& how = *disconnected_;
      if (!how.was_established) private_data_ = how.private_data;
      if (established_) {
        calls.push_back([handler = std::exchange(established_, {}), self = shared_from_this(), reason = how.reason] {
          handler(reason, self);
        });
      }
      for (auto& waiter : disconnect_waiters_) calls.push_back([waiter = std::move(waiter), how] { waiter(how); });
      disconnect_waiters_.clear();
    }
  }
  lock.unlock();
  for (auto& call : calls) {
    if (post) {
      boost::asio::post(engine_io_, std::move(call));
    } else {
      call();
    }
  }
}

void Connection::detach_from_engine() {
  std::vector<stream::Event> events;
  std::unique_lock lock = qp_->lock();
  engine_ = nullptr;
  if (!released_) {
    qp_->core().abort(make_error(Errc::kAborted, "engine destroyed"));
    qp_->drain_completions();
    release_socket(true);
    while (auto event = qp_->core().poll_event()) events.push_back(std::move(*event));
  }
  socket_.reset();
  timer_.reset();
  deliver(events, lock, false);
}

}  // namespace iwarp::cm
