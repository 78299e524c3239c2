// What happened on one SCTP association of `iwarp probe`: plain values, so that judging them needs no network.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/probe/answer.h"

namespace iwarp::tools::probe {

// Of INIT and INIT ACK.
struct SctpInit {
  std::optional<std::uint32_t> indication{};  // adaptation indication of the peer
  std::uint16_t inbound = 0;                  // streams from the peer
  std::uint16_t outbound = 0;                 // streams to it
  std::size_t fragmentation_point = 0;        // octets of a message that leaves in one chunk, at most
};

// A message of the peer.
struct SctpMessage {
  std::uint32_t ppid = 0;
  bool ordered = false;
  std::vector<std::byte> octets{};  // DDP-SSN first
};

// A DDP Stream Session, or the attempt.
struct SctpSession {
  std::uint16_t stream = 0;
  std::vector<SctpMessage> heard{};  // as they came, which need not be their order
  RtrResult rtr{};
  // The peer has sent a Terminate, or nothing more could come, before this end sent its own.
  bool left = false;
};

enum class SctpState : std::uint8_t {
  kOpen,         // until this end shut it down
  kShutDown,     // by the peer, in order
  kAborted,      // by the peer, or lost
  kUnreachable,  // there was no association
};

struct SctpAnswer {
  std::optional<SctpInit> init{};       // nullopt: no association
  std::vector<SctpSession> sessions{};  // in the order of their Initiates; fewer than asked for if one ended too early
  std::vector<std::uint16_t> strays{};  // streams on which something came that no session had, one for each message
  SctpState state = SctpState::kUnreachable;
  std::string why{};                 // no association, or one that the peer has ended
  bool whole = false;                // all that the peer has sent has been heard
  std::chrono::milliseconds took{};  // to the first answer, or to the end of waiting for it

  // Messages that are kept: one that sends more is not heard to its end.
  static constexpr std::size_t kMaxMessages = 64;
};

}  // namespace iwarp::tools::probe
