// RDMAP control field, opcodes and queue numbers (RFC 5040 s4.1, Figures 3 and 4; RFC 7306 s4.1).
#pragma once

#include <cstdint>

#include "iwarp/base/result.h"
#include "iwarp/ddp/segment_header.h"

namespace iwarp::rdmap {

enum class Opcode : std::uint8_t {
  kWrite = 0,
  kReadRequest = 1,
  kReadResponse = 2,
  kSend = 3,
  kSendInvalidate = 4,
  kSendSolicited = 5,
  kSendSolicitedInvalidate = 6,
  kTerminate = 7,
  // RFC 7306. req: RFC7306-10-1
  kImmediate = 8,
  kImmediateSolicited = 9,
  kAtomicRequest = 10,
  kAtomicResponse = 11,
  // Of no RFC: a value that is not assigned, and the one for experiments (RFC 6580 s3.2). Both ends have agreed on them
  // by other means. A Send whose Invalidate STag field is 32 bits for the receiver's completion.
  kSendSolicitedWithImmediate = 14,
  kSendWithImmediate = 15,
};

// Which messages a stream knows, each with those before it. Whoever has not agreed on RFC 7306 refuses its messages as
// any reserved opcode (s1.1).
enum class Extensions : std::uint8_t { kNone, kRfc7306, kSendWithImmediate };

inline constexpr std::uint32_t kSendQn = 0;
inline constexpr std::uint32_t kReadRequestQn = 1;
inline constexpr std::uint32_t kTerminateQn = 2;
inline constexpr std::uint32_t kAtomicResponseQn = 3;  // req: RFC7306-4-4 RFC7306-10.2-1

// The octet that RDMAP puts first into RsvdULP of every segment: RV=01b, Rsv=0, opcode.
// req: RFC5040-4.1-2 RFC5040-4.1-9 RFC5040-4.1-11
[[nodiscard]] constexpr std::uint8_t control_octet(Opcode op) {
  return static_cast<std::uint8_t>(0x40 | static_cast<std::uint8_t>(op));
}

[[nodiscard]] constexpr bool is_send(Opcode op) {
  return (op >= Opcode::kSend && op <= Opcode::kSendSolicitedInvalidate) || op >= Opcode::kSendSolicitedWithImmediate;
}
[[nodiscard]] constexpr bool invalidates(Opcode op) {
  return op == Opcode::kSendInvalidate || op == Opcode::kSendSolicitedInvalidate;
}
[[nodiscard]] constexpr bool solicited(Opcode op) {
  return op == Opcode::kSendSolicited || op == Opcode::kSendSolicitedInvalidate || op == Opcode::kImmediateSolicited ||
         op == Opcode::kSendSolicitedWithImmediate;
}
[[nodiscard]] constexpr bool is_send_with_immediate(Opcode op) {
  return op == Opcode::kSendWithImmediate || op == Opcode::kSendSolicitedWithImmediate;
}
[[nodiscard]] constexpr bool is_immediate(Opcode op) {
  return op == Opcode::kImmediate || op == Opcode::kImmediateSolicited;
}
// Immediate Data is 8 octets (RFC 7306 s6.2).
inline constexpr std::size_t kImmediateBytes = 8;

// The opcode of a segment, after checking version, opcode, T bit and queue number against Figure 4 and, with
// Extensions::kRfc7306, Figure 2 of that document. Errors: kRdmapVersion (RV 10b or 11b; 00b in a message of RFC 7306),
// kRdmapOpcode (reserved, or in contradiction to T or QN), kUntaggedInvalidQn (no such queue).
[[nodiscard]] Result<Opcode> check_control(const ddp::SegmentHeader& header, Extensions known = Extensions::kNone);

[[nodiscard]] const char* to_string(Opcode op);

}  // namespace iwarp::rdmap
