#include "dropin/verbs/agreement.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "iwarp/base/wire.h"

namespace iwarp::dropin {
namespace {

constexpr std::array<char, kMagicBytes> kMagic{'i', 'w', 'D', 'r', 'o', 'p', 'I', 'n'};
constexpr std::uint8_t kVersion = 1;
enum Flag : std::uint8_t { kRfc7306 = 1, kRoce = 2, kSendImmediate = 4 };

}  // namespace

Agreement wanted(const Settings& from) {
  const bool roce = from.present == Present::kRoce;
  return {.rfc7306 = from.rfc7306 || roce, .roce = roce, .send_immediate = roce};
}

std::vector<std::byte> with_trailer(ConstBytes own, const Agreement& what) {
  assert(own.size() <= most_private_data(true));
  std::vector<std::byte> all(own.begin(), own.end());
  all.resize(own.size() + kTrailerBytes);
  const auto trailer = std::span{all}.last<kTrailerBytes>();
  trailer[0] = std::byte{kVersion};
  trailer[1] = static_cast<std::byte>((what.rfc7306 ? kRfc7306 : 0) | (what.roce ? kRoce : 0) |
                                      (what.send_immediate ? kSendImmediate : 0));
  store_be(trailer.subspan<2, 2>(), static_cast<std::uint16_t>(own.size()));
  std::ranges::copy(std::as_bytes(std::span{kMagic}), trailer.last<kMagicBytes>().begin());
  return all;
}

PrivateData parse_private_data(ConstBytes all) {
  if (all.size() < kTrailerBytes) return {.own = all, .trailer = std::nullopt};
  const auto trailer = all.last<kTrailerBytes>();
  if (!std::ranges::equal(trailer.last<kMagicBytes>(), std::as_bytes(std::span{kMagic})))
    return {.own = all, .trailer = std::nullopt};
  const std::size_t own = load_be<std::uint16_t>(trailer.subspan<2, 2>());
  const std::size_t room = all.size() - kTrailerBytes;
  const auto version = std::to_integer<std::uint8_t>(trailer[0]);
  if (own > room || (version == kVersion && own != room))
    return {.own = all, .trailer = std::nullopt};  // not of this library's making
  PrivateData parsed{.own = all.first(own), .trailer = Agreement{}};
  if (version != kVersion) return parsed;
  const auto flags = std::to_integer<std::uint8_t>(trailer[1]);
  parsed.trailer = {.rfc7306 = (flags & kRfc7306) != 0,
                    .roce = (flags & kRoce) != 0,
                    .send_immediate = (flags & kSendImmediate) != 0};
  return parsed;
}

Agreement both(const Agreement& here, const Agreement& there) {
  return {.rfc7306 = here.rfc7306 && there.rfc7306,
          .roce = here.roce && there.roce,
          .send_immediate = here.send_immediate && there.send_immediate};
}

rdmap::Extensions extensions_of(const Agreement& agreed) {
  if (!agreed.rfc7306) return rdmap::Extensions::kNone;
  return agreed.send_immediate ? rdmap::Extensions::kSendWithImmediate : rdmap::Extensions::kRfc7306;
}

Result<rdmap::Extensions> judge_reply(const Agreement& offer, ConstBytes private_data) {
  const Agreement agreed = both(offer, parse_private_data(private_data).trailer.value_or(Agreement{}));
  if (offer.roce && !agreed.roce)
    return make_error(Errc::kPeerRejected, "the peer does not present itself as RoCE: its Reply says nothing of it");
  return extensions_of(agreed);
}

}  // namespace iwarp::dropin
