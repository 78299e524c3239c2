#include "iwarp/sctp_cm/packet.h"

#include <array>
#include <cstring>

#include "iwarp/base/wire.h"
#include "iwarp/mpa/crc32c.h"

namespace iwarp::sctp_cm {
namespace {

constexpr std::size_t kChecksumAt = 8;
constexpr std::size_t kChunkHeadBytes = 4;

// With the field taken as zero.
std::array<std::byte, mpa::kCrcBytes> checksum(ConstBytes packet) {
  constexpr std::array<std::byte, mpa::kCrcBytes> kZero{};
  mpa::Crc32c crc;
  crc.update(packet.first(kChecksumAt));
  crc.update(kZero);
  crc.update(packet.subspan(kChecksumAt + mpa::kCrcBytes));
  std::array<std::byte, mpa::kCrcBytes> field{};
  crc.write_to(field);
  return field;
}

}  // namespace

std::optional<PacketHead> PacketHead::parse(ConstBytes packet) {
  const auto head = FixedView<kMinPacketBytes>::of(packet);
  if (!head || packet.size() > kMaxPacketBytes) return std::nullopt;
  PacketHead h;
  h.source = head->be<std::uint16_t, 0>();
  h.destination = head->be<std::uint16_t, 2>();
  h.tag = head->be<std::uint32_t, 4>();
  h.first = static_cast<ChunkType>(head->be<std::uint8_t, 12>());
  const std::size_t chunk_bytes = head->be<std::uint16_t, 14>();
  if (h.source == 0 || h.destination == 0) return std::nullopt;
  if (chunk_bytes < kChunkHeadBytes || chunk_bytes > packet.size() - (kMinPacketBytes - kChunkHeadBytes))
    return std::nullopt;
  return h;
}

bool has_good_checksum(ConstBytes packet) {
  const auto right = checksum(packet);
  return std::memcmp(right.data(), packet.data() + kChecksumAt, right.size()) == 0;
}

void write_checksum(MutBytes packet) {
  const auto field = checksum(packet);
  std::memcpy(packet.data() + kChecksumAt, field.data(), field.size());
}

}  // namespace iwarp::sctp_cm
