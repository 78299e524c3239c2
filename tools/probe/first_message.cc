#include "tools/probe/first_message.h"

#include "iwarp/ddp/segment_header.h"
#include "iwarp/mpa/fpdu_decoder.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/rdmap/control.h"
#include "iwarp/rdmap/terminate_message.h"

namespace iwarp::tools::probe {
namespace {

using Kind = FirstMessage::Kind;

FirstMessage no_fpdu(std::string what) {
  return {.kind = Kind::kNoFpdu, .what = std::move(what)};
}

FirstMessage of_ulpdu(ConstBytes ulpdu) {
  const auto header = ddp::parse_segment_header(ulpdu);
  if (!header) return no_fpdu(std::string("a segment that is none: ") + header.error().why);
  const auto opcode = rdmap::check_control(*header);
  if (!opcode) return no_fpdu(std::string("a bad segment: ") + opcode.error().why);
  const ConstBytes payload = ulpdu.subspan(ddp::header_size(*header));
  switch (*opcode) {
    case rdmap::Opcode::kSend:
    case rdmap::Opcode::kSendInvalidate:
    case rdmap::Opcode::kSendSolicited:
    case rdmap::Opcode::kSendSolicitedInvalidate:
      return {.kind = Kind::kSend, .empty = payload.empty()};
    case rdmap::Opcode::kWrite:
      return {.kind = Kind::kWrite, .empty = payload.empty()};
    case rdmap::Opcode::kReadRequest: {
      const auto request = rdmap::ReadRequest::parse(payload);
      if (!request) return no_fpdu("a Read Request that is none");
      return {.kind = Kind::kRead, .empty = request->size == 0, .read = *request};
    }
    case rdmap::Opcode::kTerminate: {
      const auto message = rdmap::TerminateMessage::parse(payload);
      if (!message) return no_fpdu("a Terminate that is none");
      return {.kind = Kind::kTerminate, .code = message->code};
    }
    case rdmap::Opcode::kReadResponse:
    // Bad segments above: none of these is spoken here.
    case rdmap::Opcode::kSendWithImmediate:
    case rdmap::Opcode::kSendSolicitedWithImmediate:
    case rdmap::Opcode::kImmediate:
    case rdmap::Opcode::kImmediateSolicited:
    case rdmap::Opcode::kAtomicRequest:
    case rdmap::Opcode::kAtomicResponse:
      break;
  }
  return {.kind = Kind::kOther, .what = "a Read Response, though nothing was read"};
}

}  // namespace

std::string FirstMessage::to_string() const {
  const std::string with = empty ? " RTR" : " with data";
  switch (kind) {
    case Kind::kNone:
      return "nothing";
    case Kind::kSend:
      return "Send" + with;
    case Kind::kWrite:
      return "Write" + with;
    case Kind::kRead:
      return "Read" + with;
    case Kind::kTerminate: {
      rdmap::TerminateMessage said;
      said.code = code;
      return "Terminate " + said.to_string();
    }
    case Kind::kBadCrc:
      return "an FPDU with a wrong CRC";
    case Kind::kOther:
    case Kind::kNoFpdu:
      break;
  }
  return what;
}

std::optional<FirstMessage> first_message(bool crc, MutBytes octets) {
  mpa::FpduDecoder decoder(crc);
  const mpa::DecodeResult decoded = decoder.decode(octets);
  if (const auto* error = std::get_if<Error>(&decoded)) {
    if (error->code == Errc::kCrcMismatch) return FirstMessage{.kind = Kind::kBadCrc};
    return no_fpdu(std::string("no FPDU: ") + error->why);
  }
  const auto* frame = std::get_if<mpa::FpduFrame>(&decoded);
  if (frame == nullptr) return std::nullopt;
  return of_ulpdu(frame->ulpdu);
}

std::vector<std::byte> read_response(const rdmap::ReadRequest& request, bool crc) {
  std::vector<std::byte> out(mpa::kLengthBytes + ddp::TaggedHeader::kSize);
  const MutBytes at(out);
  mpa::write_length(at.first<mpa::kLengthBytes>(), ddp::TaggedHeader::kSize);
  const ddp::TaggedHeader header{
      .rsvd_ulp = rdmap::control_octet(rdmap::Opcode::kReadResponse), .stag = request.sink_stag, .to = request.sink_to};
  header.write_to(at.subspan<mpa::kLengthBytes, ddp::TaggedHeader::kSize>());
  const mpa::FpduTrailer trailer = mpa::make_trailer(out, {}, crc);
  out.insert(out.end(), trailer.view().begin(), trailer.view().end());
  return out;
}

}  // namespace iwarp::tools::probe
