#include "dropin/verbs/rendezvous_message.h"

#include <algorithm>
#include <array>
#include <span>

#include "iwarp/base/wire.h"

namespace iwarp::dropin {
namespace {

constexpr std::size_t kMagicBytes = 8;
constexpr std::array<char, kMagicBytes> kMagic{'i', 'w', 'R', 'e', 'n', 'd', 'e', 'z'};
constexpr std::byte kVersion{1};
constexpr std::size_t kKindAt = 9, kFromAt = 12, kToAt = 16, kFromPsnAt = 20, kToPsnAt = 24;
constexpr std::size_t kRefusalBytes = 10;
constexpr std::uint32_t kMost = 0xffffff;

bool is_of_this_version(ConstBytes octets) {
  return std::ranges::equal(octets.first(kMagicBytes), std::as_bytes(std::span{kMagic})) &&
         octets[kMagicBytes] == kVersion;
}

void put_head(std::span<std::byte> octets) {
  std::ranges::copy(std::as_bytes(std::span{kMagic}), octets.begin());
  octets[kMagicBytes] = kVersion;
}

}  // namespace

std::optional<RendezvousMessage> RendezvousMessage::parse(ConstBytes octets) {
  if (octets.size() != kSize || !is_of_this_version(octets)) return std::nullopt;
  const auto fixed = octets.first<kSize>();
  RendezvousMessage m;
  m.kind = static_cast<Kind>(fixed[kKindAt]);
  if (m.kind != Kind::kConnect && m.kind != Kind::kKnock) return std::nullopt;
  m.from = load_be<std::uint32_t>(fixed.subspan<kFromAt, 4>());
  m.to = load_be<std::uint32_t>(fixed.subspan<kToAt, 4>());
  m.from_psn = load_be<std::uint32_t>(fixed.subspan<kFromPsnAt, 4>());
  m.to_psn = load_be<std::uint32_t>(fixed.subspan<kToPsnAt, 4>());
  if (std::max({m.from, m.to, m.from_psn, m.to_psn}) > kMost) return std::nullopt;
  return m;
}

std::vector<std::byte> RendezvousMessage::octets() const {
  std::vector<std::byte> all(kSize);
  const auto fixed = std::span{all}.first<kSize>();
  put_head(fixed);
  fixed[kKindAt] = static_cast<std::byte>(kind);
  store_be(fixed.subspan<kFromAt, 4>(), from);
  store_be(fixed.subspan<kToAt, 4>(), to);
  store_be(fixed.subspan<kFromPsnAt, 4>(), from_psn);
  store_be(fixed.subspan<kToPsnAt, 4>(), to_psn);
  return all;
}

std::vector<std::byte> octets_of(Refusal why) {
  std::vector<std::byte> all(kRefusalBytes);
  put_head(all);
  all[kKindAt] = static_cast<std::byte>(why);
  return all;
}

std::optional<Refusal> parse_refusal(ConstBytes octets) {
  if (octets.size() != kRefusalBytes || !is_of_this_version(octets)) return std::nullopt;
  const auto why = static_cast<Refusal>(octets[kKindAt]);
  if (why < Refusal::kHeard || why > Refusal::kTooMany) return std::nullopt;
  return why;
}

}  // namespace iwarp::dropin
