// Octets of a connection: sending, receiving and turns, in docs/DRIVING.md's order.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <tuple>

#include "iwarp/cm/after_drive.h"
#include "iwarp/cm/connection.h"

namespace iwarp::cm {
namespace {

using Clock = std::chrono::steady_clock;

// After so much, either way, or so long other connections get their turn: what they wait is this times their number. A
// turn ends behind a read or a batch, of which the longest is as long as this.
constexpr std::size_t kTurnBytes = 256 * 1024;
constexpr std::chrono::milliseconds kTurnTime{1};
// A read whose octets took longer than this, since they were many small messages, halves the next one.
constexpr std::chrono::microseconds kLongRead{250};
constexpr std::size_t kLeastReadBytes = 16 * 1024;
// While nothing is read the peer's FIN tells itself to nobody: it is looked for so often.
constexpr std::chrono::seconds kLookBehind{1};
// Batches sent before TCP is asked again for its segment size, though it never made us wait.
constexpr unsigned kEmssEvery = 256;

// Lent to whichever connection this thread drives: an idle connection owns no staging memory.
MutBytes thread_scratch() {
  thread_local const auto scratch = std::make_unique_for_overwrite<std::byte[]>(Connection::kMostReadBytes);
  return {scratch.get(), Connection::kMostReadBytes};
}

bool is_dry(Side side) {
  return side == Side::kDry || side == Side::kDryArmed;
}

}  // namespace

// What one call of drive() may do. It tells the core the time, too.
class Connection::Turn {
 public:
  explicit Turn(TimePoint now) : begin_(now), now_(now) {}
  [[nodiscard]] TimePoint now() const { return now_; }
  void moved(std::size_t octets) { octets_ += octets; }
  // Others had the lock: the core may have been told a later time.
  void resume(Connection& connection) { now_ = connection.advance(now_); }
  // Looks at the clock.
  [[nodiscard]] bool over(Connection& connection) {
    now_ = connection.advance(Clock::now());
    return octets_ >= kTurnBytes || now_ - begin_ >= kTurnTime;
  }

 private:
  TimePoint begin_, now_;
  std::size_t octets_ = 0;
};

// The token, from a successful take_token() on. Ended with the lock held: who left word that nobody has heard gets a
// turn.
class Connection::Holding {
 public:
  explicit Holding(Connection& connection) : c_(connection) {}
  ~Holding() {
    while (!c_.token_.leave()) {
      c_.hear();  // a drive that was posted may have come meanwhile: then another one is to be
      if (c_.engine_ != nullptr) c_.post_drive();
    }
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  Connection& c_;
};

bool Connection::take_token(unsigned fired) {
  if (fired == 0) return token_.look();
  fired_.fetch_or(fired);
  return token_.ask();
}

// What others left word of while this thread had the token. Before a whole turn: it is for that.
void Connection::hear() {
  token_.see();
  const unsigned fired = fired_.load() == 0 ? 0 : fired_.exchange(0);
  if ((fired & kPosted) != 0) drive_posted_ = false;
  if ((fired & kTimer) != 0) timer_deadline_.reset();  // it has rung: whatever is due is set anew
  if ((fired & kHungUp) != 0) look_at_ = {};
  if ((fired & kReadable) != 0) step(rx_side_, SideInput::kFired);
  if ((fired & kWritable) == 0) return;
  step(tx_side_, SideInput::kFired);
  if (!released_) core_->set_emss(effective_mss(*socket_));  // req: RFC5044-3-2 RFC5044-4.5-5
}

void Connection::kick() {
  const auto self = weak_from_this().lock();
  if (released_ || self == nullptr || !take_token(kWork)) return;
  const Holding holding(*this);
  try {
    send_now();
  } catch (const std::bad_alloc&) {
    // The peer hears of it at once, which needs no memory; the application with the next drive().
    fail_for_memory();
    post_drive();
  }
}

void Connection::fail_for_memory() {
  core_->abort(make_error(Errc::kResource, "no memory to go on with the connection"));
  qp_->drain_completions();
  apply_link_action();
}

void Connection::send_now() {
  Turn turn(advance(Clock::now()));
  bool sent = false;
  if (!is_dry(tx_side_)) sent = transmit(turn);
  const bool goes_on = stopped_ != nullptr && !core_->holding();
  if (goes_on) stopped_.reset();
  if (core_->phase() != stream::Phase::kFull || goes_on || (sent && again(sent, false))) {
    // What follows may call the application, which posting must not do.
    post_drive();
  } else if (tx_side_ == Side::kDry || next_deadline() != timer_deadline_) {
    arm();  // what has gone out may be the first FPDU, which an early wake follows
  }
}

// Another thread may have read the clock later and got the lock sooner.
TimePoint Connection::advance(TimePoint now) {
  return latest_ = std::max(latest_, now);
}

void Connection::step(Side& side, SideInput on) {
  if (const auto to = next(side, on)) side = *to;
}

// Whether another round may move something.
bool Connection::again(bool sent, bool received) {
  const bool more_to_send = (sent || received) && !is_dry(tx_side_) && core_->tx_pending();
  return more_to_send || (received && !is_dry(rx_side_));
}

// Sends until nothing is left, TCP takes no more, or the turn is over. True when octets moved.
bool Connection::transmit(Turn& turn) {
  stream::Connection& core = *core_;
  bool moved = false;
  do {
    const auto spans = core.tx_buffers(turn.now());
    if (spans.empty()) return moved;
    const Transfer sent = send_pieces(socket_->native_handle(), spans);
    if (sent.error != 0) {
      core.tx_commit(0, turn.now());
      if (sent.error == EINTR) continue;
      if (sent.would_block()) {
        step(tx_side_, SideInput::kShort);
      } else if (sent.error != EPIPE || core.holding()) {
        // EPIPE: the peer's end is still to be read, and says more. While a message waits nothing is read.
        on_tcp_end(sent, turn.now());
      }
      return moved;
    }
    if (tap_ != nullptr) [[unlikely]]
      tap_->sent(first_octets(spans, sent.n), Clock::now());
    core.tx_commit(sent.n, turn.now());
    turn.moved(sent.n);
    moved = true;
    if (++batches_ % kEmssEvery == 0) core.set_emss(effective_mss(*socket_));  // req: RFC5044-3-2
    if (!sent.whole) {
      step(tx_side_, SideInput::kShort);
      return moved;
    }
  } while (core.tx_pending() && !turn.over(*this) && !qp_->lock_wanted());
  return moved;
}

// One read. True when octets arrived or the stream ended.
bool Connection::receive(Turn& turn) {
  stream::Connection& core = *core_;
  const bool many = last_read_bytes_ >= kLeastReadBytes;  // else the clock is not worth its look
  const TimePoint begin = many ? Clock::now() : TimePoint{};
  const auto spans = core.rx_buffers(thread_scratch().first(read_bytes_));
  if (stopped_ != nullptr || spans.empty()) [[unlikely]]
    stop_reading(core.holding(), turn.now());
  if (spans.empty()) {
    step(rx_side_, SideInput::kWhole);
    return core.holding() && turn.now() >= look_at_ && look_behind(turn.now());
  }
  const Transfer got = early_.empty() ? receive_pieces(socket_->native_handle(), spans) : receive_early(spans);
  if (tap_ != nullptr && got.n > 0) [[unlikely]]
    tap_->received(first_octets(spans, got.n), Clock::now());
  core.rx_commit(got.n, turn.now());
  if (got.n > 0) {
    // Less than asked for: the socket is empty now, another read would only say so.
    step(rx_side_, got.whole ? SideInput::kWhole : SideInput::kShort);
    turn.moved(got.n);
    last_read_bytes_ = got.n;
    if (many) pace_reads(Clock::now() - begin, got.n);
    return true;
  }
  if (got.would_block() || got.error == EINTR) {
    step(rx_side_, SideInput::kShort);
    return false;
  }
  step(rx_side_, SideInput::kWhole);
  on_tcp_end(got, turn.now());
  return true;
}

void Connection::stop_reading(bool stop, TimePoint now) {
  if (!stop) return stopped_.reset();
  if (stopped_ == nullptr) look_at_ = now + kLookBehind;
  stopped_ = shared_from_this();
}

// Nothing is read, so the end of TCP is looked for without. True when it has ended with a reset, or the like.
bool Connection::look_behind(TimePoint now) {
  look_at_ = now + kLookBehind;
  const SocketEnd end = end_behind(socket_->native_handle());
  // With both FINs under way TCP says the same as behind a reset.
  const bool over = end.error != 0 || (end.hung_up && core_->phase() < stream::Phase::kEndWait);
  if (over) {
    on_tcp_end({.error = end.error != 0 ? end.error : ECONNRESET}, now);
  } else if (end.fin) {
    core_->fin_is_behind(now);
  }
  return over;
}

// What the application had read before it handed its TCP connection over.
Transfer Connection::receive_early(std::span<const MutBytes> spans) {
  std::size_t n = 0;
  for (const MutBytes piece : spans) {
    const std::size_t some = std::min(piece.size(), early_.size() - n);
    std::copy_n(early_.begin() + static_cast<std::ptrdiff_t>(n), some, piece.begin());
    n += some;
  }
  early_.erase(early_.begin(), early_.begin() + static_cast<std::ptrdiff_t>(n));
  return {.n = n, .whole = true};  // the socket has not been asked yet
}

void Connection::pace_reads(std::chrono::nanoseconds took, std::size_t octets) {
  if (took > kLongRead && octets >= read_bytes_ / 2) {
    read_bytes_ = std::max(read_bytes_ / 2, kLeastReadBytes);
  } else if (took < kLongRead / 2 && octets >= read_bytes_) {
    read_bytes_ = std::min(read_bytes_ * 2, kMostReadBytes);
  }
}

void Connection::on_tcp_end(const Transfer& failed, TimePoint now) {
  const auto how = end_of(failed);
  if (!how) return core_->abort(make_error(Errc::kConnectionLost, cause_of(failed)));
  if (tap_ != nullptr) tap_->received_end(*how, Clock::now());
  core_->rx_end(*how, now);
}

void Connection::post_drive() {
  if (std::exchange(drive_posted_, true)) return;
  drive_room_.post(engine_io_, [self = shared_from_this()] { self->drive(kPosted, Clock::now()); });
}

int Connection::quiet_socket() const {
  if (!alive()) return -1;
  const auto lock = qp_->lock();
  return released_ || is_dry(tx_side_) || stopped_ != nullptr ? -1 : socket_->native_handle();
}

Connection::Driven Connection::drive(unsigned fired, TimePoint now) {
  if (!alive()) return {};
  const bool application = (fired & kApplication) != 0, posted = (fired & kPosted) != 0;
  std::optional<AfterDrive> after;
  verbs::QueuePair::Lock lock;
  // For this drive nobody else need come. A thread that posts without a pause would only have to post it anew each
  // time, and so wake this one in vain: better it waits for the lock.
  if (posted) lock = qp_->lock();
  if (!take_token(fired)) return {.taken = true};
  if (!posted) lock = qp_->lock();
  if (!application) after.emplace(engine_io_);
  Events events;
  Driven driven;
  {
    const Holding holding(*this);
    // Threads that post, or ask, and would hardly get the lock between two drives: here, and between two rounds,
    // anything may change.
    qp_->give_way();
    hear();
    Turn turn(advance(now));
    driven.moved = !released_ && take_turn(turn);
    while (auto event = core_->poll_event()) events.push_back(std::move(*event));
    driven.blocked = is_dry(tx_side_);
  }
  driven.told = !events.empty();
  driven.told ? deliver(events, lock, application) : lock.unlock();
  if (after && after->run()) driven.told = true;
  return driven;
}

// Whether octets moved.
bool Connection::take_turn(Turn& turn) {
  stream::Connection& core = *core_;
  bool moved = false, more = true;
  try {
    std::tie(moved, more) = rounds(turn);
    // After reading: what came in time may have lain in the socket while nobody drove.
    if (const auto deadline = core.deadline(); deadline && turn.now() >= *deadline) {
      const bool held = core.holding();
      core.on_deadline(turn.now());
      qp_->drain_completions();
      apply_link_action();
      more = more || (!is_dry(tx_side_) && core.tx_pending());  // a wake may be due
      more = more || (held && !core.holding());                 // it reads again, if only to see the peer's end
    }
    if (!released_) {
      arm();
      if (more) post_drive();
    }
  } catch (const std::bad_alloc&) {
    fail_for_memory();
  }
  return moved;
}

// Sends and receives in turn, until nothing moves any more or the turn is over. Whether octets moved, and whether more
// may.
std::pair<bool, bool> Connection::rounds(Turn& turn) {
  stream::Connection& core = *core_;
  bool moved = false, more = true;
  while (more) {
    const bool sent = !is_dry(tx_side_) && transmit(turn);
    const bool received = core.phase() != stream::Phase::kClosed && receive(turn);
    moved = moved || sent || received;
    // The Terminate leaves before anybody hears of the end: who does may reset the connection.
    if (received && core.phase() == stream::Phase::kTerminating && !is_dry(tx_side_)) (void)transmit(turn);
    qp_->drain_completions();
    apply_link_action();
    more = !released_ && again(sent, received);
    if (!more || turn.over(*this)) break;
    qp_->give_way();
    hear();
    turn.resume(*this);
    more = !released_;
  }
  return {moved, more};
}

std::optional<TimePoint> Connection::next_deadline() const {
  const auto of_core = core_->deadline();
  return stopped_ != nullptr && (!of_core || look_at_ < *of_core) ? look_at_ : of_core;
}

// Waits for what is missing. Never re-arms what is armed, nor a timer whose deadline has not changed.
void Connection::arm() {
  if (rx_side_ == Side::kDry) {
    socket_->async_wait(tcp::socket::wait_read, [self = shared_from_this()](boost::system::error_code ec) {
      if (!ec) self->drive(kReadable, Clock::now());
    });
    step(rx_side_, SideInput::kArm);
  }
  if (tx_side_ == Side::kDry) {
    socket_->async_wait(tcp::socket::wait_write, [self = shared_from_this()](boost::system::error_code ec) {
      if (!ec) self->drive(kWritable, Clock::now());
    });
    step(tx_side_, SideInput::kArm);
  }
  // Once: a peer that makes it ring with urgent data is looked at by the timer.
  if (stopped_ != nullptr && !watched_) {
    watched_ = true;
    socket_->async_wait(tcp::socket::wait_error, [weak = weak_from_this()](boost::system::error_code ec) {
      if (auto self = weak.lock(); self != nullptr && !ec) self->drive(kHungUp, Clock::now());
    });
  }
  const auto deadline = next_deadline();
  if (deadline == timer_deadline_) return;
  timer_deadline_.reset();
  if (!deadline) {
    timer_->cancel();
    return;
  }
  timer_->expires_at(*deadline);
  timer_->async_wait([weak = weak_from_this()](boost::system::error_code ec) {
    if (auto self = weak.lock(); self != nullptr && !ec) self->drive(kTimer, Clock::now());
  });
  timer_deadline_ = deadline;  // and not before: there may be no memory for it
}

}  // namespace iwarp::cm
