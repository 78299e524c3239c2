// What happened on one connection of `iwarp probe`: a plain value, so that judging it needs no network.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/base/error.h"
#include "iwarp/mpa/policy.h"

namespace iwarp::tools::probe {

enum class TcpState : std::uint8_t {
  kOpen,         // until we closed it
  kClosed,       // FIN from the peer
  kReset,        // RST from the peer
  kUnreachable,  // there was no connection
};

// How the peer took the RTR that its Reply named.
struct RtrResult {
  enum class Fate : std::uint8_t {
    kNotSent,
    kTaken,       // Read: the Read Response came. Write: the connection lives on
    kNoResponse,  // Read: nothing came in time
    kTerminated,  // Terminate, in `code`
    kEnded,       // FIN or RST
    kBadCrc,      // an FPDU came whose CRC is wrong, CRCs being on
    kOdd,         // another thing came, see `what`
  };

  mpa::Rtr form = mpa::Rtr::kNone;
  Fate fate = Fate::kNotSent;
  std::optional<TerminateCode> code{};
  std::string what{};
};

struct Answer {
  // What came before we sent anything but the Request: a Reply as it should be, or anything else. Never longer than
  // kMaxOctets.
  std::vector<std::byte> octets;
  // After the Reply, or instead of it, before the RTR.
  TcpState after_reply = TcpState::kUnreachable;
  RtrResult rtr{};
  TcpState at_end = TcpState::kUnreachable;
  std::string why{};  // of kUnreachable
  std::chrono::milliseconds took{};

  static constexpr std::size_t kMaxOctets = 2048;
};

}  // namespace iwarp::tools::probe
