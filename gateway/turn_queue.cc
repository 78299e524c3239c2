#include "iwarp/gateway/turn_queue.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <ctime>

namespace iwarp::gateway {

// Not that of the wall: while the thread sleeps, or others have its processor, nobody is served.
std::chrono::nanoseconds TurnQueue::processor_time() {
  std::timespec t{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

void TurnQueue::add(const std::shared_ptr<TurnTaker>& taker) {
  if (taker->waits_) return;
  waiting_.emplace_back(taker);
  taker->waits_ = true;
  post();
}

// One at a time: the event loop looks at the sockets before it comes to what was posted meanwhile.
void TurnQueue::post() {
  if (posted_ || waiting_.empty()) return;
  boost::asio::post(io_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->give_turns();
  });
  posted_ = true;
}

void TurnQueue::give_turns() {
  const auto begin = clock_();
  const auto share = std::min<std::chrono::nanoseconds>((begin - last_turn_ended_) / 2, kLongestShare);
  posted_ = false;
  for (std::size_t left = waiting_.size(); left > 0; --left) {
    give_turn();
    last_turn_ended_ = clock_();
    if (last_turn_ended_ - begin >= share) break;
  }
  post();
}

void TurnQueue::give_turn() {
  const auto taker = waiting_.front().lock();
  waiting_.pop_front();
  if (!taker) return;
  taker->waits_ = false;
  taker->take_turn();
}

}  // namespace iwarp::gateway
