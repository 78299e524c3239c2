#include "dropin/rdmacm/request_order.h"

#include <algorithm>

namespace iwarp::dropin::rdmacm {

void RequestOrder::accepting(const Address& peer) {
  ++accepting_[peer];
}

bool RequestOrder::must_wait(const Address& peer) const {
  return accepting_.contains(peer) || std::ranges::any_of(waiting_, [&](const Waiting& w) { return w.peer == peer; });
}

void RequestOrder::keep(const Address& peer, std::unique_ptr<Event> request, TimePoint now) {
  waiting_.push_back({peer, nullptr, now});
  waiting_.back().request = std::move(request);
}

RequestOrder::Events RequestOrder::told(const Address& peer) {
  const auto found = accepting_.find(peer);
  if (found == accepting_.end() || --found->second > 0) return {};
  accepting_.erase(found);
  return take([&](const Waiting& w) { return w.peer == peer; });
}

RequestOrder::Events RequestOrder::overdue(TimePoint now) {
  return take([&](const Waiting& w) { return now - w.since >= kLimit; });
}

RequestOrder::Events RequestOrder::take_all() {
  return take([](const Waiting&) { return true; });
}

template <class Wanted>
RequestOrder::Events RequestOrder::take(const Wanted& wanted) {
  Events taken;
  for (auto& waiting : waiting_) {
    if (wanted(waiting)) taken.push_back(std::move(waiting.request));
  }
  std::erase_if(waiting_, [](const Waiting& w) { return w.request == nullptr; });
  return taken;
}

}  // namespace iwarp::dropin::rdmacm
