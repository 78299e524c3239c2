#include "tools/probe/raw_frame.h"

#include <algorithm>
#include <string_view>

#include "iwarp/base/wire.h"
#include "tools/probe/terms.h"

namespace iwarp::tools::probe {
namespace {

bool starts_with(ConstBytes octets, std::string_view key) {
  return std::equal(key.begin(), key.end(), octets.begin(),
                    [](char want, std::byte got) { return static_cast<std::byte>(want) == got; });
}

}  // namespace

std::optional<RawFrame> RawFrame::parse(ConstBytes octets) {
  const auto head = FixedView<mpa::kStartupHeaderBytes>::of(octets);
  if (!head) return std::nullopt;
  RawFrame r;
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
  if (r.s_bit && r.field.size() >= mpa::kEnhancedDataBytes)
    r.enhanced = mpa::EnhancedData::parse(r.field.first<mpa::kEnhancedDataBytes>());
  return r;
}

std::string RawFrame::to_string() const {
  const auto bit = [](const char* name, bool set) { return std::string(name) + (set ? "=1 " : "=0 "); };
  std::string s = bit("M", markers) + bit("C", crc) + bit("R", reject) + bit("S", s_bit);
  s += "rev=" + std::to_string(revision);
  if (reserved_bits != 0) s += " reserved=" + std::to_string(reserved_bits);
  if (enhanced) s += " " + probe::to_string(*enhanced);
  if (!complete()) {
    s += ", " + std::to_string(field.size()) + " of " + std::to_string(private_data_length) +
         " octets that it announced";
  } else if (!private_data().empty()) {
    s += ", " + std::to_string(private_data().size()) + " octets of private data";
  }
  return s;
}

nlohmann::ordered_json to_json(const RawFrame& r) {
  nlohmann::ordered_json j = {{"M", r.markers},
                              {"C", r.crc},
                              {"R", r.reject},
                              {"S", r.s_bit},
                              {"revision", r.revision},
                              {"reserved", r.reserved_bits},
                              {"pd_length", r.private_data_length}};
  if (r.enhanced) put(j, *r.enhanced);
  put_private_data(j, r.private_data());
  return j;
}

}  // namespace iwarp::tools::probe
