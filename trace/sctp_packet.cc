#include "iwarp/trace/sctp_packet.h"

#include <algorithm>

#include "iwarp/base/wire.h"
#include "iwarp/sctp/chunk.h"

namespace iwarp::trace {
namespace {

constexpr std::size_t kCommonHeaderBytes = 12, kChunkHeaderBytes = 4, kDataHeaderBytes = 12, kInitBytes = 16;
constexpr std::uint8_t kEnds = 1, kBegins = 2, kUnordered = 4;

constexpr std::size_t padded(std::size_t n) {
  return (n + 3) / 4 * 4;
}

ConstBytes behind(ConstBytes bytes, std::size_t n) {
  return bytes.subspan(std::min(n, bytes.size()));
}

}  // namespace

SctpChunks::SctpChunks(ConstBytes packet, std::size_t wire_bytes)
    : rest_(behind(packet, kCommonHeaderBytes)), wire_(wire_bytes - std::min(wire_bytes, kCommonHeaderBytes)) {}

// The length of a chunk, its header included, has a floor as well as a ceiling.
std::optional<SctpChunk> SctpChunks::next() {
  const auto head = FixedView<kChunkHeaderBytes>::of(rest_);
  if (!head) return std::nullopt;
  const std::size_t length = head->be<std::uint16_t, 2>();
  if (length < kChunkHeaderBytes || length > wire_) return std::nullopt;
  SctpChunk c;
  c.type = static_cast<SctpType>(head->be<std::uint8_t, 0>());
  c.flags = head->be<std::uint8_t, 1>();
  c.value_bytes = length - kChunkHeaderBytes;
  const ConstBytes value = rest_.subspan(kChunkHeaderBytes);
  c.value = value.first(std::min(c.value_bytes, value.size()));
  const std::size_t taken = std::min(padded(length), wire_);
  rest_ = behind(rest_, taken);
  wire_ -= taken;
  return c;
}

std::optional<SctpData> parse_data(const SctpChunk& chunk) {
  const auto head = FixedView<kDataHeaderBytes>::of(chunk.value);
  if (!head) return std::nullopt;
  SctpData d;
  d.unordered = (chunk.flags & kUnordered) != 0;
  d.begins = (chunk.flags & kBegins) != 0;
  d.ends = (chunk.flags & kEnds) != 0;
  d.tsn = head->be<std::uint32_t, 0>();
  d.stream = head->be<std::uint16_t, 4>();
  d.ppid = head->be<std::uint32_t, 8>();
  d.bytes = chunk.value.subspan(kDataHeaderBytes);
  d.wire_bytes = chunk.value_bytes - kDataHeaderBytes;
  return d;
}

std::optional<SctpInit> parse_init(const SctpChunk& chunk) {
  const auto head = FixedView<kInitBytes>::of(chunk.value);
  if (!head) return std::nullopt;
  SctpInit out;
  out.tag = head->be<std::uint32_t, 0>();
  out.outbound = head->be<std::uint16_t, 8>();
  out.inbound = head->be<std::uint16_t, 10>();
  out.first_tsn = head->be<std::uint32_t, 12>();
  out.cut = chunk.value.size() < chunk.value_bytes;
  ConstBytes rest = chunk.value.subspan(kInitBytes);
  while (const auto parameter = FixedView<4>::of(rest)) {
    const std::size_t length = parameter->be<std::uint16_t, 2>();
    if (length < 4) break;
    const auto value = FixedView<4>::of(rest.subspan(4));
    if (parameter->be<std::uint16_t, 0>() == sctp::kAdaptationParameter && length == 8 && value)
      out.indication = value->be<std::uint32_t, 0>();
    rest = behind(rest, padded(length));
  }
  return out;
}

}  // namespace iwarp::trace
