#include "iwarp/rpcrdma/version_negotiation.h"

#include <algorithm>

namespace iwarp::rpcrdma {

std::uint32_t VersionNegotiation::inline_bytes(std::uint32_t agreed) const {
  if (alone()) return std::min(agreed, kDefaultInlineBytes);  // req: V2-5-4
  // req: V2-5.1-2 V2-5.2-5 V2-5.2-6 V2-2.3-2
  return version_ == kVersion2 ? std::max(agreed, kDefaultInlineBytes2) : agreed;
}

void VersionNegotiation::on_call_sent() {
  if (state_ == State::kUnasked) state_ = State::kAsking;  // req: V2-5-3
}

bool VersionNegotiation::on_reply(std::uint32_t version) {
  if (version != version_ || state_ == State::kFailed) {
    // It has executed that Call already, in its own version: the Call does not go again.
    if (state_ == State::kAsking && lowest_ <= version && version < version_) {
      (void)lower(version);
      state_ = State::kSettled;
    }
    return false;
  }
  state_ = State::kSettled;  // req: V2-5-1 V2-5.1-1
  return true;
}

bool VersionNegotiation::on_other_error(std::uint32_t version) {
  if (state_ != State::kAsking) return false;
  if (version != version_ && lowest_ < version_) return lower(lowest_);
  // It knows this version, and does not like the Call; an error lifts no limit. req: V2-5-2
  state_ = version == version_ ? State::kLowered : State::kFailed;
  return false;
}

bool VersionNegotiation::lower(std::uint32_t version) {
  version_ = version;
  refused_ = true;
  state_ = State::kLowered;
  return true;
}

bool VersionNegotiation::on_err_vers(std::uint32_t low, std::uint32_t high) {
  if (state_ != State::kAsking) return false;  // a peer that has settled, or has named this version, does not mean it
  const bool makes_sense = low <= high && (high < version_ || version_ < low) && high > 0;
  if (!makes_sense && lowest_ < version_) return lower(lowest_);
  // Highest first. req: V2-5.2-2
  const std::uint32_t best = std::min(high, version_ - 1);
  if (!makes_sense || best < std::max(low, lowest_)) {
    state_ = State::kFailed;
    return false;
  }
  return lower(best);
}

std::optional<std::uint32_t> VersionNegotiation::for_next_connection() const {
  if (refused_) return version_;
  if (state_ == State::kAsking && lowest_ < version_) return version_ - 1;
  return std::nullopt;
}

}  // namespace iwarp::rpcrdma
