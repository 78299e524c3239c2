#include "iwarp/rdmap/terminate_message.h"

#include <algorithm>
#include <cstring>

#include "iwarp/base/wire.h"

namespace iwarp::rdmap {
namespace {

constexpr std::uint8_t kM = 0x80;
constexpr std::uint8_t kD = 0x40;
constexpr std::uint8_t kR = 0x20;
constexpr std::uint8_t kSiwM = 0x01;
constexpr std::uint8_t kSiwD = 0x02;
constexpr std::uint8_t kSiwR = 0x04;

struct Text {
  TerminateCode code;
  const char* text;
};
constexpr std::array kTexts = {
    Text{{0, 0, 0}, "local catastrophic error"},
    Text{{0, 1, 0}, "invalid STag"},
    Text{{0, 1, 1}, "base or bounds violation"},
    Text{{0, 1, 2}, "access rights violation"},
    Text{{0, 1, 3}, "STag not associated with the RDMAP stream"},
    Text{{0, 1, 4}, "TO wrap"},
    Text{{0, 1, 9}, "STag cannot be invalidated"},
    Text{{0, 1, 0xFF}, "unspecified remote protection error"},  // req: RFC5040-4.8-18
    Text{{0, 2, 5}, "invalid RDMAP version"},
    Text{{0, 2, 6}, "unexpected opcode"},
    Text{{0, 2, 7}, "catastrophic error on this stream"},  // req: RFC5040-4.8-21
    Text{{0, 2, 8}, "catastrophic error, global"},         // req: RFC5040-4.8-22
    Text{{0, 2, 9}, "STag cannot be invalidated"},         // req: RFC5040-4.8-23
    Text{{0, 2, 0xFF}, "unspecified remote operation error"},
    Text{{1, 0, 0}, "local catastrophic DDP error"},
    Text{{1, 1, 0}, "tagged: invalid STag"},
    Text{{1, 1, 1}, "tagged: base or bounds violation"},
    Text{{1, 1, 2}, "tagged: STag not associated with the DDP stream"},
    Text{{1, 1, 3}, "tagged: TO wrap"},
    Text{{1, 1, 4}, "tagged: invalid DDP version"},
    Text{{1, 2, 1}, "untagged: invalid queue number"},
    Text{{1, 2, 2}, "untagged: no buffer available"},
    Text{{1, 2, 3}, "untagged: MSN out of range"},
    Text{{1, 2, 4}, "untagged: invalid message offset"},
    Text{{1, 2, 5}, "untagged: message too long for its buffer"},
    Text{{1, 2, 6}, "untagged: invalid DDP version"},
    Text{{2, 0, 1}, "MPA: TCP connection lost"},
    Text{{2, 0, 2}, "MPA: CRC mismatch"},
    Text{{2, 0, 3}, "MPA: marker and ULPDU length mismatch"},
    Text{{2, 0, 4}, "MPA: invalid request or reply frame"},
    Text{{2, 0, 5}, "MPA: local catastrophic error"},
    Text{{2, 0, 6}, "MPA: insufficient IRD resources"},
    Text{{2, 0, 7}, "MPA: no matching RTR option"},
};

// Figure 10: the headers that a Terminate of this layer and type carries.
struct Parts {
  bool ddp;
  bool rdmap;
};
Parts parts_for(TerminateCode c, bool read_request) {
  if (c.layer == 1) return {c.type != 0, false};                 // req: RFC5040-4.8-41
  if (c.layer == 0 && c.type == 1) return {true, read_request};  // req: RFC5040-4.8-39 RFC5040-4.8-34
  if (c.layer == 0 && c.type == 2) return {true, false};         // req: RFC5040-4.8-40
  return {false, false};                                         // req: RFC5040-4.8-38 RFC5040-4.8-42 RFC5040-4.8-32
}

bool is_siw_order(std::uint8_t first, std::uint8_t code, std::uint8_t flags) {
  if ((flags & (kM | kD | kR)) != 0) return false;
  if ((flags & (kSiwM | kSiwD | kSiwR)) != 0) return true;
  // No header follows, so the flags are silent. 02/2..4 can only be siw's LLP (RDMAP remote operation has no such
  // codes); the rest is read as the RFC says.
  return first == 0x02 && code >= 2 && code <= 4;
}

}  // namespace

std::size_t TerminateMessage::size() const {
  return 4 + (segment_length ? 2U : 0U) + ddp_header_bytes + (has_rdmap_header ? rdmap_header.size() : 0);
}

void TerminateMessage::write_to(MutBytes out) const {
  WriteCursor w{out};                                                     // req: RFC5040-4.8-1 RFC5040-4.8-2
  w.be(static_cast<std::uint8_t>(code.layer << 4 | (code.type & 0x0F)));  // req: RFC5040-4.8-5
  w.be(code.code);                                                        // req: RFC5040-4.8-3
  w.be(static_cast<std::uint8_t>((segment_length ? kM : 0) | (ddp_header_bytes != 0 ? kD : 0) |
                                 (has_rdmap_header ? kR : 0)));
  w.be(std::uint8_t{0});  // req: RFC5040-4.8-27
  if (segment_length) w.be(*segment_length);
  w.bytes(ConstBytes{ddp_header}.first(ddp_header_bytes));
  if (has_rdmap_header) w.bytes(rdmap_header);
}

std::optional<TerminateMessage> TerminateMessage::parse(ConstBytes in) {
  const auto v = FixedView<4>::of(in);
  if (!v) return std::nullopt;
  const auto first = v->be<std::uint8_t, 0>();
  const auto flags = v->be<std::uint8_t, 2>();
  TerminateMessage m;
  m.code.code = v->be<std::uint8_t, 1>();
  // req: RFC5040-4.8-28
  const bool siw = is_siw_order(first, m.code.code, flags);
  const auto high = static_cast<std::uint8_t>(first >> 4);
  const auto low = static_cast<std::uint8_t>(first & 0x0F);
  m.order = siw ? TerminateOrder::kSiw : TerminateOrder::kRfc;
  m.code.layer = siw ? low : high;
  m.code.type = siw ? high : low;
  if (m.code.layer == 2) m.code.type = 0;  // Chelsio and Intel write 0x23 for MPA errors; MPA has no other type

  ReadCursor c{in.subspan(4)};
  if ((flags & (siw ? kSiwM : kM)) != 0) {
    const auto length = c.be<std::uint16_t>();
    if (c.ok()) m.segment_length = length;
  }
  if ((flags & (siw ? kSiwD : kD)) != 0 && c.remaining() > 0) {
    const bool tagged = (std::to_integer<std::uint8_t>(c.rest()[0]) & 0x80) != 0;
    const ConstBytes h = c.take(tagged ? 14 : 18);
    std::copy(h.begin(), h.end(), m.ddp_header.begin());
    m.ddp_header_bytes = static_cast<std::uint8_t>(h.size());
  }
  if ((flags & (siw ? kSiwR : kR)) != 0) {
    const ConstBytes h = c.take(m.rdmap_header.size());
    std::copy(h.begin(), h.end(), m.rdmap_header.begin());
    m.has_rdmap_header = !h.empty();
  }
  return m;
}

std::string TerminateMessage::to_string() const {
  return std::to_string(code.layer) + "/" + std::to_string(code.type) + "/" + std::to_string(code.code) + " " +
         describe(code);
}

TerminateMessage make_terminate(const Error& error, ConstBytes ulpdu_head, std::size_t ulpdu_bytes, bool read_request) {
  TerminateMessage m;
  // Whichever layer made it: unchanged. req: RFC5040-4.8-4 RFC5040-4.8-6 RFC5040-4.8-7 RFC5040-4.8-25 RFC5040-4.8-26
  // req: RFC5041-7.2-14; what has no code is local: RFC5040-4.8-11
  m.code = error.tell_peer.value_or(TerminateCode{0, 0, 0});
  // req: RFC5040-4.8-8 RFC5040-4.8-9 RFC5040-4.8-10
  const Parts parts = parts_for(m.code, read_request);
  if (!parts.ddp || ulpdu_head.empty()) return m;
  const std::size_t want = (std::to_integer<std::uint8_t>(ulpdu_head[0]) & 0x80) != 0 ? 14 : 18;
  if (ulpdu_head.size() < want) return m;
  m.segment_length =
      static_cast<std::uint16_t>(std::min<std::size_t>(ulpdu_bytes, 0xFFFF));  // req: RFC5040-4.8-29 RFC5040-4.8-30
  std::memcpy(m.ddp_header.data(), ulpdu_head.data(), want);                   // req: RFC5040-4.8-31
  m.ddp_header_bytes = static_cast<std::uint8_t>(want);
  if (parts.rdmap && ulpdu_head.size() >= want + m.rdmap_header.size()) {  // req: RFC5040-4.8-33 RFC5040-7.1-5
    std::memcpy(m.rdmap_header.data(), ulpdu_head.data() + want, m.rdmap_header.size());
    m.has_rdmap_header = true;
  }
  return m;
}

const char* describe(TerminateCode code) {
  const auto it = std::find_if(kTexts.begin(), kTexts.end(), [&](const Text& t) { return t.code == code; });
  return it == kTexts.end() ? "unknown error" : it->text;
}

}  // namespace iwarp::rdmap
