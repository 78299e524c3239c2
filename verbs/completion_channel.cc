#include "iwarp/verbs/completion_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace iwarp::verbs {

CompletionChannel::CompletionChannel() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

CompletionChannel::~CompletionChannel() {
  ::close(fd_);
}

std::optional<CompletionQueue*> CompletionChannel::next_event() {
  const std::lock_guard lock(mu_);
  if (events_.empty()) return std::nullopt;
  CompletionQueue* cq = events_.front();
  events_.pop_front();
  std::uint64_t one = 0;
  while (::read(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  return cq;
}

void CompletionChannel::notify(CompletionQueue& cq) noexcept {
  const std::lock_guard lock(mu_);
  events_.push_back(&cq);
  const std::uint64_t one = 1;
  while (::write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace iwarp::verbs
