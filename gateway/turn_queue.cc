#include "iwarp/gateway/turn_queue.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace iwarp::gateway {

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
    if (auto self = weak.lock()) self->give_turn();
  });
  posted_ = true;
}

void TurnQueue::give_turn() {
  posted_ = false;
  const auto taker = waiting_.front().lock();
  waiting_.pop_front();
  post();
  if (!taker) return;
  taker->waits_ = false;
  taker->take_turn();
}

}  // namespace iwarp::gateway
