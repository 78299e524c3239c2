#include "dropin/rsocket/wire.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "iwarp/base/wire.h"

namespace iwarp::dropin::rsockets {
namespace {

constexpr unsigned kOpShift = 29;
constexpr std::uint32_t kValueMask = (1U << kOpShift) - 1;

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kBigEndian = 1, kHasMappings = 2;  // flags
constexpr bool kThisIsBigEndian = std::endian::native == std::endian::big;

constexpr std::uint32_t kPlain = 128, kStep = 256, kMostSteps = 127;

std::uint8_t to_scale(std::uint32_t entries) {
  const std::uint32_t said = sayable(entries);
  return static_cast<std::uint8_t>(said <= kPlain ? said : kPlain | (said / kStep));
}

std::uint32_t from_scale(std::uint8_t scale) {
  return scale <= kPlain ? scale : (scale & ~kPlain) * kStep;
}

template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
T get(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

// In network order.
template <std::size_t At, std::size_t N>
void store(FixedWriter<N>& out, const Buffer& buffer) {
  out.template be<At>(buffer.address);
  out.template be<At + 8>(buffer.key);
  out.template be<At + 12>(buffer.length);
}

template <std::size_t At, std::size_t N>
Buffer load(const FixedView<N>& in) {
  return {.address = in.template be<std::uint64_t, At>(),
          .key = in.template be<std::uint32_t, At + 8>(),
          .length = in.template be<std::uint32_t, At + 12>()};
}

}  // namespace

std::uint32_t Message::word() const {
  return static_cast<std::uint32_t>(op) << kOpShift | (value & kValueMask);
}

std::optional<Message> Message::parse(std::uint32_t word) {
  const auto op = static_cast<Op>(word >> kOpShift);
  if (op != Op::kData && op != Op::kGrant && op != Op::kMapped && op != Op::kControl) return std::nullopt;
  return Message{op, word & kValueMask};
}

void Buffer::write_to(std::span<std::byte, kSize> out) const {
  put(out.data(), address);
  put(out.data() + 8, key);
  put(out.data() + kLengthOffset, length);
}

Buffer Buffer::parse(std::span<const std::byte, kSize> in) {
  return {.address = get<std::uint64_t>(in.data()),
          .key = get<std::uint32_t>(in.data() + 8),
          .length = get<std::uint32_t>(in.data() + kLengthOffset)};
}

void Mapping::write_to(std::span<std::byte, kSize> out) const {
  put(out.data(), offset);
  buffer.write_to(out.subspan<8>());
}

Mapping Mapping::parse(std::span<const std::byte, kSize> in) {
  return {.offset = get<std::uint64_t>(in.data()), .buffer = Buffer::parse(in.subspan<8>())};
}

// Octets: 0 version, 1 flags, 2 credits, 4 reserved, 7 entries of mapped memory, 8 table of buffers, 24 first buffer.
std::array<std::byte, ConnectionData::kSize> ConnectionData::to_bytes() const {
  std::array<std::byte, kSize> bytes{};
  FixedWriter<kSize> out{bytes};
  out.be<0>(kVersion);
  out.be<1>(static_cast<std::uint8_t>(kHasMappings | (kThisIsBigEndian ? kBigEndian : 0)));
  out.be<2>(credits);
  out.be<7>(to_scale(mappings));
  store<8>(out, grants);
  store<24>(out, first);
  return bytes;
}

std::optional<ConnectionData> ConnectionData::parse(ConstBytes in) {
  const auto view = FixedView<kSize>::of(in);
  if (!view || view->be<std::uint8_t, 0>() != kVersion) return std::nullopt;
  const auto flags = view->be<std::uint8_t, 1>();
  if (((flags & kBigEndian) != 0) != kThisIsBigEndian) return std::nullopt;
  ConnectionData data;
  data.credits = view->be<std::uint16_t, 2>();
  if ((flags & kHasMappings) != 0) data.mappings = from_scale(view->be<std::uint8_t, 7>());
  data.grants = load<8>(*view);
  data.first = load<24>(*view);
  if (data.grants.length < kGrants || data.grants.length > UINT16_MAX) return std::nullopt;
  return data;
}

std::uint32_t sayable(std::uint32_t entries) {
  if (entries <= kPlain) return entries;
  return std::max(kPlain, std::min(entries / kStep, kMostSteps) * kStep);
}

}  // namespace iwarp::dropin::rsockets
