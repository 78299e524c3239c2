#include "iwarp/enhanced/private_depths.h"

#include <algorithm>

#include "iwarp/base/wire.h"

namespace iwarp::enhanced {
namespace {

constexpr std::uint32_t reversed(std::uint32_t v) {
  return v << 24 | (v & 0xFF00) << 8 | (v >> 8 & 0xFF00) | v >> 24;
}

std::optional<Depths> valid(std::uint32_t ird, std::uint32_t ord) {
  if (ird == 0 || ird > kMaxIrdOrd || ord == 0 || ord > kMaxIrdOrd) return std::nullopt;
  return Depths{static_cast<std::uint16_t>(ird), static_cast<std::uint16_t>(ord)};
}

}  // namespace

std::optional<Depths> parse_private_depths(ConstBytes private_data) {
  const auto view = FixedView<kPrivateDepthsBytes>::of(private_data);
  if (!view) return std::nullopt;
  const auto ird = view->be<std::uint32_t, 0>(), ord = view->be<std::uint32_t, 4>();
  const auto as_specified = valid(ird, ord);
  return as_specified ? as_specified : valid(reversed(ird), reversed(ord));
}

std::array<std::byte, kPrivateDepthsBytes> write_private_depths(const Depths& depths) {
  std::array<std::byte, kPrivateDepthsBytes> out{};
  FixedWriter<kPrivateDepthsBytes> words{out};
  words.be<0>(std::uint32_t{depths.ird});
  words.be<4>(std::uint32_t{depths.ord});
  return out;
}

Depths answer_private_depths(const Depths& own, const Depths& asked) {
  return {std::min(own.ord, asked.ird), std::min(own.ird, asked.ord)};
}

}  // namespace iwarp::enhanced
