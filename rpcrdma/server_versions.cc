#include "iwarp/rpcrdma/server_versions.h"

#include <algorithm>

namespace iwarp::rpcrdma {

std::uint32_t ServerVersions::highest(std::uint32_t wanted, TimePoint now) const {
  return lowered_to_ != 0 && now < until_ ? std::min(wanted, lowered_to_) : wanted;
}

bool ServerVersions::learn(const VersionNegotiation& versions, End how, TimePoint begun, TimePoint now) {
  const bool asked = versions.state() == VersionNegotiation::State::kAsking;
  if (asked && how == End::kOurs) return false;
  if (asked && how == End::kLost) {
    if (lost_ > 0 && since_ && begun < *since_) return false;  // by the same event as the last
    since_ = now;
    if (++lost_ < kMostLost) return false;
  } else if (!asked && versions.state() != VersionNegotiation::State::kUnasked) {
    lost_ = 0;
  }
  const auto highest = versions.for_next_connection();
  if (!highest) return false;
  lowered_to_ = *highest;
  lost_ = 0;
  since_ = now;
  until_ = now + kVersionMemoryTime;
  return true;
}

}  // namespace iwarp::rpcrdma
