#include "iwarp/verbs/completion_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>

#include "iwarp/base/ring.h"

namespace iwarp::verbs {

class CompletionChannel::Events final : public SharedNotifier {
 public:
  using Event = std::shared_ptr<CompletionQueue::Shared>;

  Events() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~Events() override { close(); }

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool alive() const { return process_.alive(); }

  // Room for the event of one more queue.
  void reserve() {
    const std::lock_guard lock(mu_);
    if (waiting_.size() + armed_ == waiting_.capacity()) {
      Ring<Event> larger(2 * waiting_.capacity() + 1);
      while (!waiting_.empty()) larger.push(waiting_.pop());
      waiting_ = std::move(larger);
    }
    ++armed_;
  }
  void notify(CompletionQueue& cq) noexcept override {
    const std::lock_guard lock(mu_);
    --armed_;
    if (fd_ < 0) return;  // the channel is gone
    waiting_.push(cq.shared());
    const std::uint64_t one = 1;
    while (::write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  void let_go() noexcept override {
    const std::lock_guard lock(mu_);
    --armed_;
  }
  // The oldest.
  [[nodiscard]] Event take() {
    const std::lock_guard lock(mu_);
    if (waiting_.empty()) return nullptr;
    Event oldest = waiting_.pop();
    std::uint64_t one = 0;
    while (::read(fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    return oldest;
  }
  void close() {
    Ring<Event> dropped(0);
    if (!alive()) {  // a forked child: nobody is left to give the lock back
      if (fd_ >= 0) ::close(std::exchange(fd_, -1));
      return;
    }
    const std::lock_guard lock(mu_);
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    dropped = std::exchange(waiting_, Ring<Event>(0));
  }

 private:
  const ForkGuard process_;
  std::mutex mu_;
  int fd_;
  Ring<Event> waiting_{0};  // with room for all that are armed
  std::size_t armed_ = 0;
};

CompletionChannel::CompletionChannel() : events_(std::make_shared<Events>()) {}

CompletionChannel::~CompletionChannel() {
  events_->close();
}

int CompletionChannel::fd() const {
  return events_->fd();
}

void CompletionChannel::arm(CompletionQueue& cq, CompletionQueue::Notify what) {
  if (!events_->alive() || !cq.shared()->alive()) return;
  events_->reserve();
  if (!cq.shared()->arm(what, events_)) events_->let_go();
}

std::optional<CompletionQueue*> CompletionChannel::next_event() {
  if (!events_->alive()) return std::nullopt;  // the descriptor is the parent's, too
  while (const auto event = events_->take()) {
    if (CompletionQueue* const cq = event->queue()) return cq;
  }
  return std::nullopt;
}

}  // namespace iwarp::verbs
