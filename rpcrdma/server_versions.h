// What the connections to one server have told of the versions of RPC-over-RDMA that it speaks: asked again each time
// for what it refuses, or does not survive, they would end for ever (draft-cel-nfsv4-rpcrdma-version-two-00 section
// 5.2). Time is passed in. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "iwarp/base/time.h"
#include "iwarp/rpcrdma/version_negotiation.h"

namespace iwarp::rpcrdma {

class ServerVersions {
 public:
  // How a connection has ended.
  enum class End : std::uint8_t {
    kLost,        // by the server, or by what is in between
    kUnanswered,  // by its owner, as the question was not answered in time
    kOurs,        // by its owner, for reasons that have nothing to do with the server
  };
  // So many connections that are lost, one after the other, while the question is unanswered count as a refusal. One
  // does not: a server that is started again, or a network that fails, loses it as well.
  static constexpr unsigned kMostLost = 2;

  // The version to ask for: `wanted`, or what is known to be less, for kVersionMemoryTime.
  [[nodiscard]] std::uint32_t highest(std::uint32_t wanted, TimePoint now) const;
  // A connection that was begun at `begun` has ended. True: less is asked for from now on.
  bool learn(const VersionNegotiation& versions, End how, TimePoint begun, TimePoint now);
  // Of the last time that something was learned; nothing: never.
  [[nodiscard]] std::optional<TimePoint> since() const { return since_; }

 private:
  std::uint32_t lowered_to_ = 0;  // 0: it is not
  unsigned lost_ = 0;             // with the question unanswered, since it was last answered
  std::optional<TimePoint> since_;
  TimePoint until_{};
};

}  // namespace iwarp::rpcrdma
