#include "tools/probe/reply.h"

#include <algorithm>
#include <string_view>

#include "iwarp/base/wire.h"

namespace iwarp::tools::probe {
namespace {

bool starts_with(ConstBytes octets, std::string_view key) {
  return std::equal(key.begin(), key.end(), octets.begin(),
                    [](char want, std::byte got) { return static_cast<std::byte>(want) == got; });
}

mpa::EnhancedData enhanced_data(const FixedView<mpa::kEnhancedDataBytes>& view) {
  const auto first = view.be<std::uint16_t, 0>(), second = view.be<std::uint16_t, 2>();
  mpa::EnhancedData data;
  data.peer_to_peer = (first & 0x8000) != 0;
  data.rtr_send = (first & 0x4000) != 0;
  data.rtr_write = (second & 0x8000) != 0;
  data.rtr_read = (second & 0x4000) != 0;
  data.ird = first & 0x3FFF;
  data.ord = second & 0x3FFF;
  return data;
}

}  // namespace

std::optional<RawReply> RawReply::parse(ConstBytes octets) {
  const auto head = FixedView<mpa::kStartupHeaderBytes>::of(octets);
  if (!head) return std::nullopt;
  RawReply r;
  r.key = starts_with(octets, "MPA ID Rep Frame")   ? Key::kReply
          : starts_with(octets, "MPA ID Req Frame") ? Key::kRequest
                                                    : Key::kOther;
  const auto flags = head->be<std::uint8_t, 16>();
  r.markers = (flags & 0x80) != 0;
  r.crc = (flags & 0x40) != 0;
  r.reject = (flags & 0x20) != 0;
  r.s_bit = (flags & 0x10) != 0;
  r.reserved_bits = flags & 0x0F;
  r.revision = head->be<std::uint8_t, 17>();
  r.private_data_length = head->be<std::uint16_t, 18>();
  const ConstBytes rest = octets.subspan(mpa::kStartupHeaderBytes);
  r.field = rest.first(std::min<std::size_t>(rest.size(), r.private_data_length));
  r.behind = rest.subspan(r.field.size());
  if (const auto data = FixedView<mpa::kEnhancedDataBytes>::of(r.field); r.s_bit && data)
    r.enhanced = enhanced_data(*data);
  return r;
}

std::string RawReply::to_string() const {
  const auto bit = [](const char* name, bool set) { return std::string(name) + (set ? "=1 " : "=0 "); };
  std::string s = bit("M", markers) + bit("C", crc) + bit("R", reject) + bit("S", s_bit);
  s += "rev=" + std::to_string(revision);
  if (reserved_bits != 0) s += " reserved=" + std::to_string(reserved_bits);
  if (enhanced) {
    const mpa::EnhancedData& e = *enhanced;
    s += " " + bit("A", e.peer_to_peer) + bit("B", e.rtr_send) + bit("C", e.rtr_write) + bit("D", e.rtr_read);
    s += "IRD=" + std::to_string(e.ird) + " ORD=" + std::to_string(e.ord);
  }
  if (!complete()) {
    s += ", " + std::to_string(field.size()) + " of " + std::to_string(private_data_length) +
         " octets that it announced";
  } else if (!private_data().empty()) {
    s += ", " + std::to_string(private_data().size()) + " octets of private data";
  }
  return s;
}

}  // namespace iwarp::tools::probe
