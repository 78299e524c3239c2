#include "iwarp/rdmap/control.h"

#include <array>

namespace iwarp::rdmap {
namespace {

struct Row {
  bool tagged;
  std::uint32_t qn;
  const char* name;
};
constexpr std::size_t kOfRfc5040 = 8;   // opcodes below are its own
constexpr std::size_t kOfRfc7306 = 12;  // likewise, from there on
// Figure 4 of RFC 5040, then Figure 2 of RFC 7306, indexed by opcode. req: RFC5040-4.1-7
constexpr std::array<Row, 16> kOpcodes = {{
    {true, 0, "Write"},                            // req: RFC5040-4.1-16 RFC5040-5.1-1
    {false, kReadRequestQn, "ReadRequest"},        // req: RFC5040-4.1-17 RFC5040-5.2.1-1 RFC5040-5.2.1-6 RFC5040-3.1-3
    {true, 0, "ReadResponse"},                     // req: RFC5040-4.1-18 RFC5040-5.2.2-2
    {false, kSendQn, "Send"},                      // req: RFC5040-4.1-19 RFC5040-5.3-1 RFC5040-5.3-9 RFC5040-3.1-2
    {false, kSendQn, "SendInvalidate"},            // req: RFC5040-4.1-20
    {false, kSendQn, "SendSolicited"},             // req: RFC5040-4.1-21
    {false, kSendQn, "SendSolicitedInvalidate"},   // req: RFC5040-4.1-22
    {false, kTerminateQn, "Terminate"},            // req: RFC5040-4.1-23 RFC5040-5.4-2 RFC5040-5.4-3 RFC5040-3.1-4
    {false, kSendQn, "Immediate"},                 // req: RFC7306-4.1-5 RFC7306-6.3-1 RFC7306-6.3-4
    {false, kSendQn, "ImmediateSolicited"},        // req: RFC7306-4.1-6
    {false, kReadRequestQn, "AtomicRequest"},      // req: RFC7306-4.1-7 RFC7306-5.2-1 RFC7306-5.2-5 RFC7306-5.2.1-14
    {false, kAtomicResponseQn, "AtomicResponse"},  // req: RFC7306-4.1-8 RFC7306-5-7 RFC7306-5.2-4 RFC7306-5.2.2-5
    {false, kSendQn, "reserved"},
    {false, kSendQn, "reserved"},
    {false, kSendQn, "SendSolicitedWithImmediate"},
    {false, kSendQn, "SendWithImmediate"},
}};

bool is_known(unsigned op, Extensions known) {
  if (op < kOfRfc5040) return true;
  if (op < kOfRfc7306) return known != Extensions::kNone;
  return known == Extensions::kSendWithImmediate && is_send_with_immediate(static_cast<Opcode>(op));
}

}  // namespace

Result<Opcode> check_control(const ddp::SegmentHeader& header, Extensions known) {
  const auto* tagged = std::get_if<ddp::TaggedHeader>(&header);
  const auto* untagged = std::get_if<ddp::UntaggedHeader>(&header);
  // req: RFC5041-4.2-5
  const std::uint8_t octet = tagged != nullptr ? tagged->rsvd_ulp : untagged->rsvd_ulp;
  // DDP checks run before RDMAP's, so an unknown queue is a DDP error.
  // req: RFC5041-7.2-8
  const std::uint32_t last_qn = known == Extensions::kNone ? kTerminateQn : kAtomicResponseQn;
  if (untagged != nullptr && untagged->qn > last_qn) return make_error(Errc::kUntaggedInvalidQn);  // req: RFC5041-7.1-1
  // req: RFC5040-4.8-19
  if ((octet >> 6) > 1)
    // req: RFC5040-4.1-10 RFC5040-7.2-3 RFC5040-7.2-8; Rsv is not examined: RFC5040-4.1-12
    return make_error(Errc::kRdmapVersion);
  const unsigned op = octet & 0x0F;
  // req: RFC5040-7.2-2 RFC5040-7.2-7 RFC5040-4.1-24 RFC5040-4.2-5
  // req: RFC7306-1.1-4 RFC7306-4.1-2 RFC7306-8.2-3
  if (!is_known(op, known)) return make_error(Errc::kRdmapOpcode);
  // req: RFC7306-4.1-1 RFC7306-8.2-4
  if (op >= kOfRfc5040 && (octet >> 6) != 1) return make_error(Errc::kRdmapVersion);
  const Row& row = kOpcodes[op];
  if (row.tagged != (tagged != nullptr) ||
      (untagged != nullptr && untagged->qn != row.qn)) {  // req: RFC5040-4.1-6 RFC5040-4.1-8
    return make_error(Errc::kRdmapOpcode,
                      "RDMAP opcode contradicts the tagged flag or the queue number");  // req: RFC5040-4.8-20
  }
  return static_cast<Opcode>(op);
}

const char* to_string(Opcode op) {
  return kOpcodes[static_cast<std::size_t>(op)].name;
}

}  // namespace iwarp::rdmap
