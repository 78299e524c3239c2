#include "tests/faults/stages.h"

#include <array>
#include <stdexcept>

#include "iwarp/base/wire.h"
#include "iwarp/ddp/segment_header.h"
#include "iwarp/mpa/startup_frame.h"

namespace iwarp::faults {

std::string Stage::to_string() const {
  static constexpr std::array<const char*, 6> kNames{"startup frame", "length", "header", "payload", "padding", "CRC"};
  std::string text = "octets " + std::to_string(begin) + " to " + std::to_string(end) + ", ";
  text += kNames.at(static_cast<std::size_t>(part));
  if (part != Part::kStartup) text += " of FPDU " + std::to_string(fpdu);
  return text;
}

std::vector<Stage> stages(ConstBytes stream) {
  using Part = Stage::Part;
  std::vector<Stage> out;
  std::size_t at = 0, fpdu = 0;
  const auto add = [&](Part part, std::size_t bytes) {
    if (bytes == 0) return;
    if (stream.size() - at < bytes) throw std::invalid_argument("stream ends inside " + std::to_string(fpdu));
    out.push_back({part, fpdu, at, at + bytes});
    at += bytes;
  };
  add(Part::kStartup, mpa::kStartupHeaderBytes);
  out.back().end = at += load_be<std::uint16_t>(stream.subspan(at - 2));
  for (; at < stream.size(); ++fpdu) {
    const std::size_t ulpdu = load_be<std::uint16_t>(stream.subspan(at));
    const bool tagged = (std::to_integer<unsigned>(stream[at + 2]) & 0x80U) != 0;
    const std::size_t header = tagged ? ddp::TaggedHeader::kSize : ddp::UntaggedHeader::kSize;
    add(Part::kLength, 2);
    add(Part::kHeader, header);
    add(Part::kPayload, ulpdu - header);
    add(Part::kPad, (4 - (2 + ulpdu) % 4) % 4);
    add(Part::kCrc, 4);
  }
  return out;
}

}  // namespace iwarp::faults
