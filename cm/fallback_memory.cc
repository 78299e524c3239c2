#include "iwarp/cm/fallback_memory.h"

#include <algorithm>

namespace iwarp::cm {

void FallbackMemory::worked(const Peer& peer, mpa::Fallback fallback, TimePoint now) {
  const std::lock_guard lock(mu_);
  if (fallback == mpa::Fallback::kNone) {
    peers_.erase(peer);
    return;
  }
  const auto known = peers_.find(peer);
  if (known != peers_.end() && known->second.fallback == fallback && now < known->second.until) return;
  peers_[peer] = {fallback, now + kKept};
  if (peers_.size() <= kPeers) return;
  peers_.erase(std::min_element(peers_.begin(), peers_.end(),
                                [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
}

void FallbackMemory::forget(const Peer& peer) {
  const std::lock_guard lock(mu_);
  peers_.erase(peer);
}

mpa::Fallback FallbackMemory::recall(const Peer& peer, TimePoint now) const {
  const std::lock_guard lock(mu_);
  const auto known = peers_.find(peer);
  return known == peers_.end() || now >= known->second.until ? mpa::Fallback::kNone : known->second.fallback;
}

std::size_t FallbackMemory::size() const {
  const std::lock_guard lock(mu_);
  return peers_.size();
}

}  // namespace iwarp::cm
