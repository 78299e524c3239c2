#include "iwarp/cm/completion_alarm.h"

#include <boost/asio/post.hpp>
#include <new>

namespace iwarp::cm {

// The caller holds locks that a timer's own must not wait behind, so the context sets it.
bool CompletionAlarm::set(TimePoint when) noexcept {
  try {
    boost::asio::post(io_, [self = shared_from_this(), when] { self->start(when); });
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void CompletionAlarm::start(TimePoint when) {
  try {
    const std::lock_guard lock(mu_);
    timer_->expires_at(when);
    timer_->async_wait([queue = queue_](boost::system::error_code ec) {
      if (ec) return;
      if (const auto q = queue.lock()) q->period_over();
    });
  } catch (const std::bad_alloc&) {
    if (const auto q = queue_.lock()) q->period_over();  // which asks again, until there is memory or the time is over
  }
}

}  // namespace iwarp::cm
