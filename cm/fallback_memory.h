// What a peer had to be asked for in the end, by its address, so that the next connection begins with it. Bounded, and
// forgotten after a while: a peer may have been replaced, or its reset may have meant something else. Thread-safe.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <map>
#include <mutex>

#include "iwarp/base/time.h"
#include "iwarp/mpa/fallback.h"

namespace iwarp::cm {

class FallbackMemory {
 public:
  using Peer = boost::asio::ip::tcp::endpoint;

  // Peers remembered at a time; one more, and the one learned first is forgotten.
  static constexpr std::size_t kPeers = 256;
  // From learning to forgetting, however often it was of use.
  static constexpr std::chrono::minutes kKept{10};

  // A connection came about with that. kNone: with what was asked for first.
  void worked(const Peer& peer, mpa::Fallback fallback, TimePoint now);
  void forget(const Peer& peer);
  // kNone when nothing is known.
  [[nodiscard]] mpa::Fallback recall(const Peer& peer, TimePoint now) const;
  [[nodiscard]] std::size_t size() const;

 private:
  struct Learned {
    mpa::Fallback fallback = mpa::Fallback::kNone;
    TimePoint until{};
  };
  mutable std::mutex mu_;
  std::map<Peer, Learned> peers_;
};

}  // namespace iwarp::cm
