#include "iwarp/mpa/startup_frame.h"

#include <algorithm>
#include <cassert>
#include <string_view>

#include "iwarp/base/result.h"
#include "iwarp/base/wire.h"

namespace iwarp::mpa {
namespace {

constexpr std::string_view kRequestKey = "MPA ID Req Frame";  // req: RFC5044-7.1.1-2, RFC6581-6-2
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";    // req: RFC5044-7.1.1-5
static_assert(kRequestKey.size() == kKeyBytes && kReplyKey.size() == kKeyBytes);

constexpr std::uint8_t kM = 0x80;
constexpr std::uint8_t kC = 0x40;
constexpr std::uint8_t kR = 0x20;
constexpr std::uint8_t kS = 0x10;
constexpr std::uint8_t kReserved = 0x0F;
constexpr std::uint8_t kFirstEnhancedRevision = 2;

bool starts_like(ConstBytes bytes, std::string_view key) {
  const std::size_t n = std::min(bytes.size(), key.size());
  return std::equal(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(n), bytes.begin(),
                    [](char want, std::byte got) { return static_cast<std::byte>(want) == got; });
}

// Length of the Private Data field, or why the header cannot be right.
Result<std::size_t> check_lengths(std::uint8_t flags, std::uint8_t revision, std::size_t field_bytes, std::size_t max) {
  if (field_bytes > std::min(max, kMaxPrivateDataBytes)) {  // req: RFC6581-9-2
    return make_error(Errc::kPrivateDataTooLong);           // req: RFC5044-7.1.1-32, RFC5044-7.1.2-27
  }
  if ((flags & kS) != 0 && revision >= kFirstEnhancedRevision && field_bytes < kEnhancedDataBytes) {
    return make_error(Errc::kMalformedStartupFrame,
                      "S=1 but PD_Length has no room for the enhanced data");  // req: RFC6581-6-11
  }
  return field_bytes;
}

StartupParse parse(ConstBytes bytes, bool is_reply, std::size_t max_private_data_bytes) {
  // req: RFC5044-7.1.1-3, RFC5044-7.1.1-4, RFC5044-7.1.1-6, RFC5044-7.1.1-7, RFC5044-7.1.2-19
  if (!starts_like(bytes, is_reply ? kReplyKey : kRequestKey)) {
    // req: RFC5044-7.1-10, RFC5044-7.1.2-20, RFC5044-7.1.2-25
    const bool other = bytes.size() >= kKeyBytes && starts_like(bytes, is_reply ? kRequestKey : kReplyKey);
    return make_error(Errc::kMalformedStartupFrame,
                      other ? "both ends play the same MPA role" : "not an MPA startup frame: wrong Key");
  }
  const auto head = FixedView<kStartupHeaderBytes>::of(bytes);
  if (!head) return NeedMore{kStartupHeaderBytes};
  const auto flags = head->be<std::uint8_t, 16>();  // req: RFC5044-7.1.1-1, RFC6581-6-1
  StartupFrame f;
  f.is_reply = is_reply;
  f.markers = (flags & kM) != 0;
  f.crc = (flags & kC) != 0;
  f.reject = (flags & kR) != 0;
  f.revision = head->be<std::uint8_t, 17>();
  f.enhanced = (flags & kS) != 0 && f.revision >= kFirstEnhancedRevision;  // req: RFC6581-10-7
  // req: RFC5044-7.1.1-23, RFC6581-6-5  kept for the trace, looked at by nobody
  f.reserved_bits = flags & (f.revision >= kFirstEnhancedRevision ? kReserved : kReserved | kS);
  const auto field = check_lengths(flags, f.revision, head->be<std::uint16_t, 18>(), max_private_data_bytes);
  if (!field.ok()) return field.error();                   // req: RFC5044-7.1.2-30, RFC5044-8-4
  const std::size_t total = kStartupHeaderBytes + *field;  // req: RFC5044-7.1.1-30
  if (bytes.size() < total) return NeedMore{total};        // req: RFC5044-7.1.2-28, RFC5044-7.1.2-29
  f.private_data = bytes.subspan(kStartupHeaderBytes, *field);
  if (f.enhanced) {  // req: RFC6581-6-6, RFC6581-9-1
    f.enhanced_data = EnhancedData::parse(f.private_data.first<kEnhancedDataBytes>());
    f.private_data = f.private_data.subspan(kEnhancedDataBytes);  // req: RFC6581-6-10
  }
  return StartupFrame::Parsed{f, total};
}

}  // namespace

void StartupFrame::write_to(MutBytes out) const {
  assert(!enhanced || revision >= kFirstEnhancedRevision);  // req: RFC6581-6-7
  const std::size_t field_bytes = size() - kStartupHeaderBytes;
  assert(out.size() >= size() && field_bytes <= kMaxPrivateDataBytes);
  const std::string_view key = is_reply ? kReplyKey : kRequestKey;
  std::transform(key.begin(), key.end(), out.begin(), [](char c) { return static_cast<std::byte>(c); });
  FixedWriter<kStartupHeaderBytes> head{out.first<kStartupHeaderBytes>()};
  // The reserved bits are written zero, whatever was received. req: RFC5044-7.1.1-22, RFC6581-6-4, RFC6581-6-3
  head.be<16>(static_cast<std::uint8_t>((markers ? kM : 0) | (crc ? kC : 0) | (reject ? kR : 0) | (enhanced ? kS : 0)));
  head.be<17>(revision);
  head.be<18>(static_cast<std::uint16_t>(field_bytes));  // req: RFC5044-7.1.1-29
  MutBytes rest = out.subspan(kStartupHeaderBytes);
  if (enhanced) {
    enhanced_data.write_to(rest.first<kEnhancedDataBytes>());
    rest = rest.subspan(kEnhancedDataBytes);
  }
  std::copy(private_data.begin(), private_data.end(), rest.begin());
}

std::string StartupFrame::to_string() const {
  const auto flag = [](const char* name, bool b) { return std::string(", ") + name + (b ? "=1" : "=0"); };
  std::string s = is_reply ? "Reply(" : "Request(";
  s += "rev=" + std::to_string(revision);
  if (is_reply || reject) s += flag("reject", reject);
  s += flag("crc", crc) + flag("markers", markers) + flag("enhanced", enhanced);
  if (enhanced) {
    const EnhancedData& e = enhanced_data;
    s += flag("p2p", e.peer_to_peer) + flag("rtr_send", e.rtr_send) + flag("rtr_write", e.rtr_write);
    s += flag("rtr_read", e.rtr_read) + ", ird=" + std::to_string(e.ird) + ", ord=" + std::to_string(e.ord);
  }
  if (reserved_bits != 0) s += ", res=" + std::to_string(reserved_bits);
  return s + ", pd=" + std::to_string(private_data.size()) + ")";
}

StartupParse parse_request(ConstBytes bytes, std::size_t max_private_data_bytes) {
  return parse(bytes, false, max_private_data_bytes);
}
StartupParse parse_reply(ConstBytes bytes, std::size_t max_private_data_bytes) {
  return parse(bytes, true, max_private_data_bytes);
}

}  // namespace iwarp::mpa
