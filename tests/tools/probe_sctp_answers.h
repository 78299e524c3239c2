// What a passive DDP/SCTP peer says to `iwarp probe --llp sctp`, made by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "iwarp/base/wire.h"
#include "iwarp/ddp/segment_header.h"
#include "iwarp/rdmap/control.h"
#include "tests/support/hex.h"
#include "tools/probe/raw_control.h"
#include "tools/probe/sctp_judgement.h"

namespace iwarp::test {

using tools::probe::SctpAnswer;
using tools::probe::SctpMessage;
using tools::probe::SctpQuestion;
using tools::probe::SctpSession;
using tools::probe::SctpState;

inline Bytes be16(std::size_t value) {
  return {static_cast<std::byte>(value >> 8), static_cast<std::byte>(value)};
}

// Enhanced data as octets.
inline Bytes octets_of(const enhanced::EnhancedData& data) {
  Bytes out(enhanced::kEnhancedDataBytes);
  data.write_to(MutBytes(out).first<enhanced::kEnhancedDataBytes>());
  return out;
}

inline SctpMessage control(unsigned ssn, unsigned code, const Bytes& field = {}) {
  return {17, false, be16(ssn) + be16(code) + field};
}
inline SctpMessage segment(unsigned ssn, const Bytes& octets = hex("c1 40 00000001 0000000000000000")) {
  return {16, false, be16(ssn) + octets};
}
// To the Read RTR of the probe.
inline SctpMessage read_response(unsigned ssn) {
  Bytes out(ddp::TaggedHeader::kSize);
  const ddp::TaggedHeader header{
      .rsvd_ulp = rdmap::control_octet(rdmap::Opcode::kReadResponse), .stag = Stag{1}, .to = 1};
  header.write_to(MutBytes(out).first<ddp::TaggedHeader::kSize>());
  return segment(ssn, out);
}

constexpr unsigned kAccept = 2, kReject = 3, kTerminate = 4, kEnhancedAccept = 6, kEnhancedReject = 7;

// The Accept of one that does all it is asked for.
inline SctpMessage accept(const SctpQuestion& q) {
  return q.enhanced() ? control(0, kEnhancedAccept, octets_of(q.data)) : control(0, kAccept);
}

// An association with one session on which this was heard.
inline SctpAnswer heard(std::vector<SctpMessage> messages, SctpState state = SctpState::kOpen) {
  SctpAnswer a;
  a.init = {1, 64, 64, 1400};
  a.sessions.push_back({.stream = 0, .heard = std::move(messages)});
  a.state = state;
  a.whole = state != SctpState::kAborted;
  return a;
}

}  // namespace iwarp::test
