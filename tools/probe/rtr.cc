#include "tools/probe/rtr.h"

#include <algorithm>

#include "iwarp/ddp/segment_header.h"
#include "iwarp/mpa/fpdu_decoder.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/rdmap/control.h"
#include "iwarp/rdmap/read_request.h"
#include "iwarp/rdmap/terminate_message.h"

namespace iwarp::tools::probe {
namespace {

// Nobody checks STags of a message without payload, except RNICs that dislike STag 0.
constexpr Stag kStag{1};
constexpr std::uint64_t kOffset = 1;

RtrResult result(mpa::Rtr form, RtrResult::Fate fate, std::string what = {}) {
  return {.form = form, .fate = fate, .code = {}, .what = std::move(what)};
}

}  // namespace

mpa::Rtr rtr_to_send(const Question& question, const RawFrame& reply) {
  if (!reply.is_reply() || !reply.complete() || !reply.behind.empty() || reply.reject || !reply.enhanced)
    return mpa::Rtr::kNone;
  if (question.markers || reply.markers || !question.enhanced || question.revision != 2) return mpa::Rtr::kNone;
  return rtr_to_send(question.data, *reply.enhanced);
}

mpa::Rtr rtr_to_send(const mpa::EnhancedData& ours, const mpa::EnhancedData& theirs) {
  if (!ours.peer_to_peer || !theirs.peer_to_peer) return mpa::Rtr::kNone;
  if (ours.rtr_read && theirs.rtr_read && ours.ord > 0 && theirs.ird > 0) return mpa::Rtr::kRead;
  return ours.rtr_write && theirs.rtr_write ? mpa::Rtr::kWrite : mpa::Rtr::kNone;
}

std::vector<std::byte> rtr_segment(mpa::Rtr form) {
  if (form == mpa::Rtr::kRead) {
    std::vector<std::byte> out(ddp::UntaggedHeader::kSize + rdmap::ReadRequest::kSize);
    const MutBytes at(out);
    const ddp::UntaggedHeader header{.rsvd_ulp = rdmap::control_octet(rdmap::Opcode::kReadRequest),
                                     .qn = rdmap::kReadRequestQn};
    header.write_to(at.first<ddp::UntaggedHeader::kSize>());
    const rdmap::ReadRequest request{
        .sink_stag = kStag, .sink_to = kOffset, .size = 0, .source_stag = kStag, .source_to = kOffset};
    request.write_to(at.subspan<ddp::UntaggedHeader::kSize, rdmap::ReadRequest::kSize>());
    return out;
  }
  std::vector<std::byte> out(ddp::TaggedHeader::kSize);
  const ddp::TaggedHeader header{.rsvd_ulp = rdmap::control_octet(rdmap::Opcode::kWrite), .stag = kStag, .to = kOffset};
  header.write_to(MutBytes(out).first<ddp::TaggedHeader::kSize>());
  return out;
}

std::vector<std::byte> rtr_fpdu(mpa::Rtr form, bool crc) {
  const std::vector<std::byte> segment = rtr_segment(form);
  std::vector<std::byte> out(mpa::kLengthBytes);
  mpa::write_length(MutBytes(out).first<mpa::kLengthBytes>(), segment.size());
  out.insert(out.end(), segment.begin(), segment.end());
  const mpa::FpduTrailer trailer = mpa::make_trailer(out, {}, crc);
  out.insert(out.end(), trailer.view().begin(), trailer.view().end());
  return out;
}

std::optional<RtrResult> rtr_answer(mpa::Rtr form, ConstBytes segment) {
  const auto header = ddp::parse_segment_header(segment);
  if (!header) return result(form, RtrResult::Fate::kOdd, std::string("a segment that is none: ") + header.error().why);
  const auto opcode = rdmap::check_control(*header);
  if (!opcode) return result(form, RtrResult::Fate::kOdd, std::string("a bad segment: ") + opcode.error().why);
  const ConstBytes payload = segment.subspan(ddp::header_size(*header));
  if (*opcode == rdmap::Opcode::kTerminate) {
    RtrResult r = result(form, RtrResult::Fate::kTerminated);
    if (const auto message = rdmap::TerminateMessage::parse(payload)) r.code = message->code;
    return r;
  }
  // A responder whose ULP speaks first may do so now.
  if (form != mpa::Rtr::kRead || *opcode != rdmap::Opcode::kReadResponse) return std::nullopt;
  const auto& tagged = std::get<ddp::TaggedHeader>(*header);
  if (!payload.empty()) return result(form, RtrResult::Fate::kOdd, "a Read Response with payload");
  if (tagged.stag != kStag || tagged.to != kOffset || !tagged.last)
    return result(form, RtrResult::Fate::kOdd, "a Read Response to another place");
  return result(form, RtrResult::Fate::kTaken);
}

std::optional<RtrResult> rtr_answer(mpa::Rtr form, bool crc, MutBytes octets) {
  mpa::FpduDecoder decoder(crc);
  for (;;) {
    const mpa::DecodeResult decoded = decoder.decode(octets);
    if (const auto* error = std::get_if<Error>(&decoded)) {
      if (error->code == Errc::kCrcMismatch) return result(form, RtrResult::Fate::kBadCrc);
      return result(form, RtrResult::Fate::kOdd, std::string("no FPDU: ") + error->why);
    }
    const auto* frame = std::get_if<mpa::FpduFrame>(&decoded);
    if (frame == nullptr) return std::nullopt;
    if (auto found = rtr_answer(form, frame->ulpdu)) return found;
    octets = octets.subspan(frame->fpdu_bytes);
  }
}

}  // namespace iwarp::tools::probe
