// What the queue pairs of two drop-in libraries say to each other before they are connected by ibv_modify_qp(), as the
// private data of an MPA Request to the port that the peer's number names. Pure functions. Thread-safe.
//
//    0               1               2               3
//   +---------------+---------------+-------------------------------+
//   |                     magic, "iwRendez"                         |
//   |                                                               |
//   +---------------+---------------+-------------------------------+
//   |    version    |     kind      |               0               |
//   +---------------+---------------+-------------------------------+
//   |                number of the sender's queue pair              |
//   +---------------------------------------------------------------+
//   |               number of the receiver's queue pair             |
//   +---------------------------------------------------------------+
//   |               PSN that the sender's requests begin with       |
//   +---------------------------------------------------------------+
//   |              PSN that the receiver's requests begin with      |
//   +---------------------------------------------------------------+
// The PSNs are the nonce: each end knows the peer's from RTR on, and its own from RTS on, from its application. Others
// know them who have heard the applications, or guess 24 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "iwarp/base/bytes.h"

namespace iwarp::dropin {

struct RendezvousMessage {
  enum class Kind : std::uint8_t {
    kConnect = 1,  // be connected by this Request
    kKnock = 2,    // you are the one to connect, and this end is ready: the Request itself is rejected
  };

  static constexpr std::size_t kSize = 28;

  Kind kind = Kind::kConnect;
  std::uint32_t from = 0, to = 0;          // numbers, of 24 bits
  std::uint32_t from_psn = 0, to_psn = 0;  // of 24 bits

  // nullopt: it is none, or of a version that is not known.
  [[nodiscard]] static std::optional<RendezvousMessage> parse(ConstBytes octets);
  [[nodiscard]] std::vector<std::byte> octets() const;
  friend bool operator==(const RendezvousMessage&, const RendezvousMessage&) = default;
};

// Why a Request was rejected: the private data of the Reply.
enum class Refusal : std::uint8_t {
  kHeard = 1,        // none: a knock was heard
  kNoMessage = 2,    // the Request has no message, or one that is not known
  kNoQueuePair = 3,  // nobody has that number, or its queue pair is one of rdma_cm, or was reset
  kOtherPeer = 4,    // the queue pair has another peer, or the same with other PSNs, or is connected
  kTooMany = 5,      // too many Requests wait, or this one did for long: to be sent again
};

[[nodiscard]] std::vector<std::byte> octets_of(Refusal why);
[[nodiscard]] std::optional<Refusal> parse_refusal(ConstBytes octets);

}  // namespace iwarp::dropin
