#include "iwarp/sctp_cm/peers.h"

namespace iwarp::sctp_cm {

Handle Peers::known(const Peer& peer) const {
  const auto it = known_.find(peer);
  return it == known_.end() ? kNoHandle : it->second;
}

Handle Peers::asking(const Peer& peer) const {
  const auto it = asking_.find(peer);
  return it == asking_.end() ? kNoHandle : it->second.handle;
}

// One that SCTP knows already, if no cookie of its last peer is good any more.
Handle Peers::fresh(TimePoint now) {
  if (!resting_.empty() && now >= add_saturating(resting_.front().since, 2 * kCookieLife)) {
    const Handle handle = resting_.front().handle;
    resting_.pop_front();
    return handle;
  }
  return Handle{++last_};
}

Handle Peers::ask(const Peer& peer, TimePoint now) {
  if (const Handle before = asking(peer); before != kNoHandle) return before;
  while (asking_.size() >= max_asking_ && !order_.empty()) {
    const Peer oldest = order_.front();
    const Handle handle = asking_.at(oldest).handle;
    asking_.erase(oldest);
    order_.pop_front();
    forget(handle, now);
    ++displaced_;
  }
  const Handle handle = fresh(now);
  order_.push_back(peer);
  asking_.emplace(peer, Asked{handle, std::prev(order_.end())});
  by_handle_.emplace(handle, peer);
  return handle;
}

Handle Peers::settle(const Peer& peer, TimePoint now) {
  Handle handle;
  if (const auto it = asking_.find(peer); it != asking_.end()) {
    handle = it->second.handle;
    order_.erase(it->second.place);
    asking_.erase(it);
  } else {
    handle = fresh(now);
    by_handle_.emplace(handle, peer);
  }
  known_.emplace(peer, handle);
  return handle;
}

void Peers::unsettle(Handle handle, TimePoint now) {
  const Peer* peer = find(handle);
  if (peer == nullptr) return;
  known_.erase(*peer);
  if (asking_.size() >= max_asking_) return forget(handle, now);
  order_.push_back(*peer);
  asking_.emplace(*peer, Asked{handle, std::prev(order_.end())});
}

void Peers::forget(Handle handle, TimePoint now) {
  const auto it = by_handle_.find(handle);
  if (it == by_handle_.end()) return;
  if (const auto known = known_.find(it->second); known != known_.end() && known->second == handle) known_.erase(known);
  by_handle_.erase(it);
  if (in_use_.contains(handle)) resting_.push_back({handle, now});
}

const Peer* Peers::find(Handle handle) const {
  const auto it = by_handle_.find(handle);
  return it == by_handle_.end() ? nullptr : &it->second;
}

void Peers::drop_asking(const UdpPort* by, TimePoint now) {
  for (auto it = order_.begin(); it != order_.end();) {
    if (it->by != by) {
      ++it;
      continue;
    }
    const auto asked = asking_.find(*it);
    forget(asked->second.handle, now);
    asking_.erase(asked);
    it = order_.erase(it);
  }
}

bool Peers::first_use(Handle handle) {
  return in_use_.insert(handle).second;
}

}  // namespace iwarp::sctp_cm
