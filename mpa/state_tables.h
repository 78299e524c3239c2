// The transitions of both startup machines as data (RFC 5044 s7.1.2). An absent pair means that the input is not
// possible or no longer matters in that state; the machines name which. tests/vectors/mpa/*.states.txt hold the whole
// matrices for review.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace iwarp::mpa {

enum class InitiatorState : std::uint8_t { kWaitReply, kFull, kRejected, kFailed };
enum class InitiatorInput : std::uint8_t {
  kReplyAccepted,  // valid Reply with R=0 that fits the Request
  kReplyRejected,  // valid Reply with R=1
  kReplyUnusable,  // valid form, but no common ground: IRD, RTR, CRC, Markers, revision, model
  kReplyMalformed,
  kConnectionEnd,  // FIN or RST
  kTimeout,
  kBadArgument,  // policy or private data impossible
};

enum class ResponderState : std::uint8_t { kWaitRequest, kDeciding, kReplying, kRejecting, kFull, kRejected, kFailed };
enum class ResponderInput : std::uint8_t {
  kRequest,         // valid Request that policy can live with
  kRequestRefused,  // valid form, but policy forbids it
  kRequestMalformed,
  kEarlyBytes,  // octets behind the Request before it was answered
  kAccept,      // by the application
  kReject,      // by the application
  kReplySent,   // the last octet of the Reply was handed to TCP
  kConnectionEnd,
  kTimeout,
  kBadArgument,
};

inline constexpr std::size_t kInitiatorStates = 4;
inline constexpr std::size_t kInitiatorInputs = 7;
inline constexpr std::size_t kResponderStates = 7;
inline constexpr std::size_t kResponderInputs = 10;

[[nodiscard]] std::optional<InitiatorState> next(InitiatorState from, InitiatorInput on);
[[nodiscard]] std::optional<ResponderState> next(ResponderState from, ResponderInput on);

[[nodiscard]] const char* name(InitiatorState state);
[[nodiscard]] const char* name(InitiatorInput input);
[[nodiscard]] const char* name(ResponderState state);
[[nodiscard]] const char* name(ResponderInput input);

}  // namespace iwarp::mpa
