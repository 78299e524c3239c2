// Which version of RPC-over-RDMA a Requester speaks on one connection
// (draft-cel-nfsv4-rpcrdma-version-two-00 section 5): the first Call goes alone, small and in the highest version; its
// answer settles the version for the rest of the connection. Pure: whoever owns the connection keeps what is to be
// remembered of a peer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

// How long a server may leave the question for the version unanswered before its owner gives the connection up and asks
// for_next_connection(), unless it knows better: servers that know one version only have been seen to say nothing.
// There is no clock in here. Lower takes slow servers for such ones.
inline constexpr std::chrono::seconds kVersionAnswerTime{10};
// So long a server is asked for no more than for_next_connection() has told. Then it is again: servers are upgraded.
inline constexpr std::chrono::minutes kVersionMemoryTime{10};

class VersionNegotiation {
 public:
  enum class State : std::uint8_t {
    kUnasked,  // nothing was sent yet
    kAsking,   // one Call is under way, in the highest version
    kLowered,  // an error was the answer: that Call goes again in a lower version, or the next one, alone as before
    kSettled,  // a message that is no error has come
    kFailed,   // no version that both speak
  };

  // `highest`: kVersion1 or kVersion2; with kVersion1 nothing is asked, and everything is as RFC 8166 has it.
  // `lowest`: kVersion1, or kVersion2 where a peer without it is of no use.
  explicit VersionNegotiation(std::uint32_t highest, std::uint32_t lowest = kVersion1)
      : version_(std::clamp(highest, kVersion1, kVersion2)),
        lowest_(std::min(lowest, version_)),
        state_(version_ == kVersion1 ? State::kSettled : State::kUnasked) {}

  [[nodiscard]] State state() const { return state_; }
  // Of the next Call.
  [[nodiscard]] std::uint32_t version() const { return version_; }
  // Only one message may be under way, whatever the credits say. req: V2-5-2
  [[nodiscard]] bool alone() const { return state_ != State::kSettled; }
  // Octets of the largest message that may be sent, where both ends have agreed on `agreed` (ConnectionLimits).
  [[nodiscard]] std::uint32_t inline_bytes(std::uint32_t agreed) const;

  // A Call has been given to the connection.
  void on_call_sent();
  // A good Reply, of this version. False: it is not the version of its Call, and so is none; one of a lower version in
  // answer to the question settles that one for the Calls that follow. req: V2-5.3-1
  [[nodiscard]] bool on_reply(std::uint32_t version);
  // RDMA_ERROR of another kind, in a header of this version. True: it is the answer of a peer that does not know the
  // version of the Call: send it again, in version().
  [[nodiscard]] bool on_other_error(std::uint32_t version);
  // RDMA_ERROR with ERR_VERS, and this range. True: send the Call again, in version(): the highest of the range, or,
  // where the range makes no sense, the lowest that is good enough. False: the Call fails, and no other can succeed
  // where state() is kFailed.
  [[nodiscard]] bool on_err_vers(std::uint32_t low, std::uint32_t high);
  // What to take as highest version of this peer on its next connection, now that this one has ended: what it has
  // refused, or, in kAsking, not survived is not asked for again for ever (ServerVersions). Nullopt: nothing was
  // learned.
  [[nodiscard]] std::optional<std::uint32_t> for_next_connection() const;

 private:
  // The same Call goes again, in this version.
  bool lower(std::uint32_t version);

  std::uint32_t version_;
  std::uint32_t lowest_;
  State state_;
  bool refused_ = false;  // the highest version was
};

}  // namespace iwarp::rpcrdma
