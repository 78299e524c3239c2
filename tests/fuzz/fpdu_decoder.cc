// FPDU decoder (RFC 5044 s4 to s6): any octets, or whole FPDUs around any ULPDUs; a stream in two chunkings gives the
// same frames, NeedMore never lies, and what the encoder closes the decoder opens.
//
// Input: flags (1 CRC on, 2 CRC checked, 4 well-formed FPDUs, 8 Markers) | the stream, or ULPDUs of one length octet
// each.
#include "iwarp/mpa/fpdu_decoder.h"

#include "tests/fuzz/check.h"
#include "tests/support/segments.h"

namespace iwarp::fuzz {
namespace {

using test::Bytes;

struct Outcome {
  std::vector<Bytes> ulpdus;
  std::uint64_t position = 0;
  std::size_t left = 0;  // octets of an incomplete FPDU
  bool error = false;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome decode(ConstBytes stream, bool crc, bool markers, bool skip_check, Chunking chunking) {
  mpa::FpduDecoder decoder(crc, markers, skip_check);
  Outcome out;
  Bytes held;
  std::size_t need = 1;
  while (!stream.empty() && !out.error) {
    const std::size_t n = chunking.next(stream.size());
    held.insert(held.end(), stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(n));
    stream = stream.subspan(n);
    while (held.size() >= need) {
      const auto layout = mpa::FpduDecoder::peek(held);
      Bytes exact = held;  // no room behind it
      const auto result = decoder.decode(exact);
      if (const auto* frame = std::get_if<mpa::FpduFrame>(&result)) {
        FUZZ_CHECK(markers ||
                   (layout && layout->fpdu_bytes == frame->fpdu_bytes && layout->ulpdu_bytes == frame->ulpdu.size()));
        FUZZ_CHECK(frame->fpdu_bytes % 4 == 0 && frame->fpdu_bytes <= held.size());
        out.ulpdus.emplace_back(frame->ulpdu.begin(), frame->ulpdu.end());
        held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(frame->fpdu_bytes));
        need = 1;
      } else if (const auto* more = std::get_if<mpa::NeedMore>(&result)) {
        FUZZ_CHECK(more->at_least > held.size());
        need = more->at_least;
      } else {
        FUZZ_CHECK(std::holds_alternative<Error>(decoder.decode(exact)));  // final
        out.error = true;
        break;
      }
    }
  }
  out.position = decoder.stream_position();
  out.left = held.size();
  return out;
}

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  Script script(as_input(data, size));
  const std::uint8_t flags = script.u8();
  const bool crc = (flags & 1) != 0, markers = (flags & 8) != 0, skip_check = (flags & 2) == 0;
  if ((flags & 4) == 0) {
    const Outcome whole = decode(script.rest(), crc, markers, skip_check, Chunking::whole());
    Outcome pieces = decode(script.rest(), crc, markers, skip_check, Chunking::pieces());
    if (whole.error) pieces.left = whole.left;  // what had arrived when the error was seen
    FUZZ_CHECK(pieces == whole);
    return 0;
  }
  std::vector<Bytes> ulpdus;
  Bytes stream;
  while (!script.done()) {
    const auto content = script.bytes(script.u8());
    ulpdus.emplace_back(content.begin(), content.end());
    const std::size_t position = stream.size();
    stream = iwarp::test::operator|(std::move(stream), markers ? iwarp::test::marked_fpdu(ulpdus.back(), position, crc)
                                                               : iwarp::test::fpdu(ulpdus.back(), crc));
  }
  const Outcome out = decode(stream, crc, markers, false, Chunking::pieces());
  FUZZ_CHECK(!out.error && out.left == 0 && out.ulpdus == ulpdus && out.position == stream.size());
  return 0;
}
