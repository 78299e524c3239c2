#include "dropin/rsocket/poll.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <vector>

#include "dropin/rsocket/socket.h"
#include "dropin/rsocket/table.h"

namespace iwarp::dropin::rsockets {
namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

int poll_plainly(std::span<pollfd> watched, std::optional<Nanoseconds> timeout) {
  timespec left{};
  if (timeout) {
    const auto positive = std::max(*timeout, Nanoseconds{0});
    left.tv_sec = static_cast<std::time_t>(std::chrono::duration_cast<std::chrono::seconds>(positive).count());
    left.tv_nsec = static_cast<long>((positive % std::chrono::seconds{1}).count());
  }
  return ::ppoll(watched.data(), watched.size(), timeout ? &left : nullptr, nullptr);
}

// One call with rsockets in it.
class Call {
 public:
  Call(std::span<pollfd> watched, std::vector<std::shared_ptr<Socket>> sockets)
      : watched_(watched), sockets_(std::move(sockets)) {}
  ~Call() {
    if (!alarm_) return;
    for (const auto& socket : sockets_)
      if (socket != nullptr) socket->waiters().remove(*alarm_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  int run(std::optional<Nanoseconds> timeout) {
    std::optional<Clock::time_point> deadline;
    if (timeout && *timeout < std::chrono::hours{24 * 365}) deadline = Clock::now() + *timeout;
    int found = look(false);
    if (found == 0) found = look(true);
    if (found != 0 || (timeout && *timeout <= Nanoseconds{0})) return found;
    ring();
    for (;;) {
      found = look(false);
      if (found != 0) return found;
      std::optional<Nanoseconds> left;
      if (deadline) left = *deadline - Clock::now();
      if (left && *left <= Nanoseconds{0}) return 0;
      if (poll_plainly(plain_, left) < 0) return -1;
      alarm_->silence();
    }
  }

 private:
  // At rsockets, and at the others. -1, with errno.
  int look(bool drive) {
    int ready = 0;
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      if (sockets_[i] == nullptr) continue;
      watched_[i].revents = sockets_[i]->ready(watched_[i].events, drive);
      if (watched_[i].revents != 0) ++ready;
    }
    if (plain_.empty()) make_plain();
    if (!any_plain_) return ready;
    if (poll_plainly(plain_, Nanoseconds{0}) < 0) return -1;
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      if (sockets_[i] != nullptr) continue;
      watched_[i].revents = plain_[i].revents;
      if (watched_[i].revents != 0) ++ready;
    }
    return ready;
  }
  // As `watched_`, without the rsockets, and with the alarm behind them.
  void make_plain() {
    plain_.assign(watched_.begin(), watched_.end());
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      if (sockets_[i] != nullptr) plain_[i].fd = -1;
      if (sockets_[i] == nullptr) any_plain_ = true;
    }
    plain_.push_back({.fd = -1, .events = POLLIN, .revents = 0});
  }
  void ring() {
    alarm_ = std::make_unique<Alarm>();
    plain_.back().fd = alarm_->descriptor();
    for (const auto& socket : sockets_)
      if (socket != nullptr) socket->waiters().add(*alarm_);
  }

  const std::span<pollfd> watched_;
  const std::vector<std::shared_ptr<Socket>> sockets_;  // null: no rsocket
  std::vector<pollfd> plain_;
  bool any_plain_ = false;
  std::unique_ptr<Alarm> alarm_;
};

}  // namespace

int poll(std::span<pollfd> watched, std::optional<Nanoseconds> timeout) {
  std::vector<std::shared_ptr<Socket>> sockets = table().find(watched);
  if (sockets.empty()) return poll_plainly(watched, timeout);
  return Call(watched, std::move(sockets)).run(timeout);
}

short Socket::ready(short events, bool drive) {
  Turn turn(*this);
  switch (state_) {
    case State::kIdle:
    case State::kBound:
    case State::kConnecting:
      return 0;
    case State::kListening:
      return static_cast<short>(arrived_.empty() ? 0 : events & POLLIN);
    case State::kFailed:
      return static_cast<short>((events & (POLLIN | POLLOUT)) | POLLERR);
    case State::kConnected:
      turn.process();
      if (const short ready = ready_stream(events); ready != 0 || !drive) return ready;
      turn.drive();
      return state_ == State::kConnected ? ready_stream(events) : short{POLLNVAL};
    case State::kClosed:
      break;
  }
  return POLLNVAL;
}

short Socket::ready_stream(short events) const {
  int ready = 0;
  const Stream& s = *stream_;
  if (s.readable() > 0 || s.at_end()) ready |= events & (POLLIN | POLLRDNORM);
  if (s.at_end()) ready |= events & POLLRDHUP;
  if (s.can_send() || s.why_not_send() != 0) ready |= events & (POLLOUT | POLLWRNORM);
  // Not before what has come is read: programs take these for the end of it.
  if (s.readable() == 0 && s.error() != 0) ready |= POLLERR;
  if (s.readable() == 0 && s.disconnected()) ready |= POLLHUP;
  return static_cast<short>(ready);
}

}  // namespace iwarp::dropin::rsockets
