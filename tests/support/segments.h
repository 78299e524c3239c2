// DDP segments and FPDUs made by hand, for tests that play a peer.
#pragma once

#include "iwarp/base/wire.h"
#include "iwarp/ddp/segment_header.h"
#include "iwarp/mpa/crc32c.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/mpa/markers.h"
#include "iwarp/rdmap/control.h"
#include "iwarp/rdmap/read_request.h"
#include "tests/support/hex.h"

namespace iwarp::test {

inline Bytes operator|(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Bytes header_bytes(const ddp::TaggedHeader& h) {
  Bytes out(ddp::TaggedHeader::kSize);
  h.write_to(std::span<std::byte, ddp::TaggedHeader::kSize>(out));
  return out;
}
inline Bytes header_bytes(const ddp::UntaggedHeader& h) {
  Bytes out(ddp::UntaggedHeader::kSize);
  h.write_to(std::span<std::byte, ddp::UntaggedHeader::kSize>(out));
  return out;
}
inline Bytes header_bytes(const rdmap::ReadRequest& r) {
  Bytes out(rdmap::ReadRequest::kSize);
  r.write_to(std::span<std::byte, rdmap::ReadRequest::kSize>(out));
  return out;
}

struct SegmentAt {
  std::uint32_t msn = 1;
  std::uint32_t mo = 0;
  bool last = true;
  std::uint32_t tail = 0;  // Invalidate STag
};

inline Bytes send_segment(const Bytes& payload, SegmentAt at = {}, rdmap::Opcode op = rdmap::Opcode::kSend,
                          std::uint32_t qn = rdmap::kSendQn) {
  return header_bytes(ddp::UntaggedHeader{at.last, rdmap::control_octet(op), at.tail, qn, Msn{at.msn}, at.mo}) |
         payload;
}
inline Bytes read_request_segment(const rdmap::ReadRequest& r, std::uint32_t msn = 1) {
  return send_segment(header_bytes(r), {.msn = msn}, rdmap::Opcode::kReadRequest, rdmap::kReadRequestQn);
}
inline Bytes terminate_segment(const Bytes& body) {
  return send_segment(body, {}, rdmap::Opcode::kTerminate, rdmap::kTerminateQn);
}
inline Bytes tagged_segment(rdmap::Opcode op, Stag stag, std::uint64_t to, const Bytes& payload, bool last = true) {
  return header_bytes(ddp::TaggedHeader{last, rdmap::control_octet(op), stag, to}) | payload;
}
inline Bytes write_segment(Stag stag, std::uint64_t to, const Bytes& payload, bool last = true) {
  return tagged_segment(rdmap::Opcode::kWrite, stag, to, payload, last);
}

inline Bytes fpdu(const Bytes& ulpdu, bool crc) {
  Bytes out(mpa::kLengthBytes);
  store_be<std::uint16_t>(out, static_cast<std::uint16_t>(ulpdu.size()));
  out = out | ulpdu;
  const mpa::FpduTrailer trailer = mpa::make_trailer(out, {}, crc);
  out.insert(out.end(), trailer.view().begin(), trailer.view().end());
  return out;
}

// With the Markers of an FPDU that begins `position` octets behind the first of Full Operation.
inline Bytes marked_fpdu(const Bytes& ulpdu, std::uint64_t position, bool crc) {
  const std::size_t octets = mpa::fpdu_bytes(ulpdu.size());
  Bytes length(mpa::kLengthBytes), out(octets + mpa::marker_bytes(position, octets));
  store_be<std::uint16_t>(length, static_cast<std::uint16_t>(ulpdu.size()));
  mpa::MarkedFpduWriter writer(out, position);
  writer.append(length);
  writer.append(ulpdu);
  writer.finish(crc);
  return out;
}

}  // namespace iwarp::test
