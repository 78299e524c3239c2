#include "iwarp/sctp_cm/peers.h"

#include <algorithm>

namespace iwarp::sctp_cm {

Handle Peers::known(const Peer& peer) const {
  const auto it = known_.find(peer);
  return it == known_.end() ? kNoHandle : it->second;
}

Handle Peers::asking(const Peer& peer) const {
  const auto it = asking_.find(peer);
  return it == asking_.end() ? kNoHandle : it->second.handle;
}

bool Peers::has_rested(TimePoint now) const {
  return !resting_.empty() && now >= resting_.front().until;
}

// One that SCTP knows already, if what it knows of its last association is past.
Handle Peers::fresh(TimePoint now) {
  if (has_rested(now)) {
    const Handle handle = resting_.front().handle;
    resting_.pop_front();
    return handle;
  }
  return Handle{++last_};
}

Handle Peers::ask(const Peer& peer, TimePoint now) {
  auto before = asking_.find(peer);
  if (before != asking_.end() && !may_use(before->second.handle) && has_rested(now)) {
    drop(before);  // its cookie would not be taken: another handle
    before = asking_.end();
  }
  if (before != asking_.end()) {
    before->second.since = now;
    heard_at(before->second.handle, peer.own);
    order_.splice(order_.end(), order_, before->second.place);
    return before->second.handle;
  }
  while (asking_.size() >= max_asking_ && !order_.empty()) {
    drop(asking_.find(order_.front()));
    ++displaced_;
  }
  const Handle handle = fresh(now);
  order_.push_back(peer);
  asking_.emplace(peer, Asked{handle, std::prev(order_.end()), now});
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

void Peers::answered(Handle handle, std::uint32_t tag) {
  const Peer* peer = find(handle);
  const auto it = peer == nullptr ? asking_.end() : asking_.find(*peer);
  if (it != asking_.end()) it->second.tags[it->second.answers++ % kTags] = tag;
}

bool Peers::expects(const Peer& peer, std::uint32_t tag) const {
  const auto it = asking_.find(peer);
  return it != asking_.end() && tag != 0 && std::ranges::find(it->second.tags, tag) != it->second.tags.end();
}

// Its handle is free at once: it has had its rest.
void Peers::drop(AskedOf::iterator asked) {
  const Handle handle = asked->second.handle;
  order_.erase(asked->second.place);
  asking_.erase(asked);
  by_handle_.erase(handle);
  if (in_use_.contains(handle)) resting_.push_front({handle, TimePoint{}});
}

void Peers::expire(TimePoint now) {
  while (!order_.empty()) {
    const auto asked = asking_.find(order_.front());
    if (now < add_saturating(asked->second.since, kCookieLife)) return;
    drop(asked);
  }
}

void Peers::forget(Handle handle, TimePoint now) {
  const auto it = by_handle_.find(handle);
  if (it == by_handle_.end()) return;
  if (const auto known = known_.find(it->second); known != known_.end() && known->second == handle) known_.erase(known);
  by_handle_.erase(it);
  if (in_use_.contains(handle)) resting_.push_back({handle, add_saturating(now, 2 * kCookieLife)});
}

void Peers::heard_at(Handle handle, const boost::asio::ip::address& own) {
  const auto it = by_handle_.find(handle);
  if (it != by_handle_.end() && !own.is_unspecified()) it->second.own = own;
}

const Peer* Peers::find(Handle handle) const {
  const auto it = by_handle_.find(handle);
  return it == by_handle_.end() ? nullptr : &it->second;
}

void Peers::drop_asking(const UdpPort* by) {
  for (auto it = order_.begin(); it != order_.end();) {
    if (it->by != by) {
      ++it;
      continue;
    }
    drop(asking_.find(*it++));
  }
}

bool Peers::has_any(const UdpPort* by) const {
  Peer least;  // peers are in the order of their ends first
  least.by = const_cast<UdpPort*>(by);
  const auto in = [&](const auto& peers) {
    const auto it = peers.lower_bound(least);
    return it != peers.end() && it->first.by == by;
  };
  return in(known_) || in(asking_);
}

std::uint16_t Peers::free_own_port(Peer peer, std::uint16_t first, std::uint32_t start,
                                   const std::function<bool(std::uint16_t)>& taken) const {
  const std::uint32_t ports = 65536u - first;
  for (std::uint32_t i = 0; i < ports; ++i) {
    peer.own_port = static_cast<std::uint16_t>(first + (start % ports + i) % ports);
    if (known(peer) == kNoHandle && !taken(peer.own_port)) return peer.own_port;
  }
  return 0;
}

bool Peers::first_use(Handle handle) {
  return in_use_.insert(handle).second;
}

}  // namespace iwarp::sctp_cm
