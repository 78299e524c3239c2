#include "tools/probe/question.h"

#include <algorithm>
#include <array>

namespace iwarp::tools::probe {
namespace {

constexpr mpa::EnhancedData kBoth{.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 8, .ord = 8};
constexpr mpa::EnhancedData kPlain{.ird = 8, .ord = 8};

constexpr mpa::EnhancedData offering(bool send, bool write, bool read) {
  return {.peer_to_peer = true, .rtr_send = send, .rtr_write = write, .rtr_read = read, .ird = 8, .ord = 8};
}
constexpr mpa::EnhancedData depth(std::uint16_t n) {
  mpa::EnhancedData data = kBoth;
  data.ird = data.ord = n;
  return data;
}

constexpr std::array kQuestions = {
    Question{.name = "enhanced", .asks = "revision 2, CRC, peer-to-peer, RTR by Write or Read"},
    Question{.name = "revision-1", .asks = "revision 1", .revision = 1, .enhanced = false, .data = {}},
    Question{.name = "unenhanced", .asks = "revision 2 without enhanced data", .enhanced = false, .data = {}},
    Question{.name = "client-server", .asks = "A=0: no RTR", .data = kPlain},
    Question{.name = "crc-off", .asks = "C=0: is CRC demanded", .crc = false},
    Question{.name = "rtr-write", .asks = "only the Write RTR offered", .data = offering(false, true, false)},
    Question{.name = "rtr-read", .asks = "only the Read RTR offered", .data = offering(false, false, true)},
    Question{
        .name = "rtr-send", .asks = "only the Send RTR offered (never sent)", .data = offering(true, false, false)},
    Question{.name = "rtr-all", .asks = "all three RTRs offered", .data = offering(true, true, true)},
    Question{.name = "depth-0", .asks = "IRD and ORD 0", .data = depth(0)},
    Question{.name = "depth-1", .asks = "IRD and ORD 1", .data = depth(1)},
    Question{.name = "depth-max", .asks = "IRD and ORD 16382: the peer's limits", .data = depth(mpa::kMaxIrdOrd)},
    Question{
        .name = "depth-ulp", .asks = "IRD and ORD 16383: left to the ULP", .data = depth(mpa::kNoIrdOrdNegotiation)},
    Question{.name = "markers", .asks = "M=1: will it send Markers", .markers = true},
    Question{.name = "private-data", .asks = "64 octets of private data that no ULP knows", .private_data_bytes = 64},
    Question{.name = "private-data-max", .asks = "508 octets, the most there can be", .private_data_bytes = 508},
    Question{.name = "reserved-bits", .asks = "reserved bits set, to be ignored", .reserved_bits = 0x0F},
    Question{.name = "revision-3", .asks = "a revision that nobody knows, to be closed", .revision = 3},
};

}  // namespace

std::vector<std::byte> Question::request(ConstBytes private_data) const {
  std::vector<std::byte> unknown(private_data_bytes.value_or(0));
  for (std::size_t i = 0; i < unknown.size(); ++i) unknown[i] = static_cast<std::byte>(i & 0x7F);
  mpa::StartupFrame frame;
  frame.markers = markers;
  frame.crc = crc;
  frame.enhanced = enhanced;
  frame.revision = revision;
  frame.enhanced_data = data;
  frame.private_data = private_data_bytes ? ConstBytes(unknown) : private_data;
  std::vector<std::byte> out(frame.size());
  frame.write_to(out);
  out[mpa::kKeyBytes] |= static_cast<std::byte>(reserved_bits);
  return out;
}

std::span<const Question> questions() {
  return kQuestions;
}

const Question* question_named(std::string_view name) {
  const auto* found = std::ranges::find(kQuestions, name, &Question::name);
  return found == kQuestions.end() ? nullptr : &*found;
}

}  // namespace iwarp::tools::probe
