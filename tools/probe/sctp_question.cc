#include "tools/probe/sctp_question.h"

#include <algorithm>
#include <array>

#include "iwarp/base/wire.h"

namespace iwarp::tools::probe {
namespace {

using enhanced::EnhancedData;
using Sessions = SctpQuestion::Sessions;

constexpr auto kPlainCode = static_cast<std::uint16_t>(sctp::Function::kInitiate);
constexpr std::uint16_t kNoCode = 0x0100;  // of no RFC, and not the one for experiments

constexpr EnhancedData forms(bool send, bool write, bool read) {
  return {.peer_to_peer = true, .rtr_send = send, .rtr_write = write, .rtr_read = read, .ird = 8, .ord = 8};
}
constexpr EnhancedData depths(std::uint16_t n) {
  return {.ird = n, .ord = n};
}
constexpr EnhancedData kWriteOrRead = forms(false, true, true);

constexpr std::array kSctpQuestions = {
    SctpQuestion{.name = "enhanced", .asks = "enhanced Initiate (RFC 6581), A=0: no RTR"},
    SctpQuestion{.name = "plain", .asks = "plain Initiate (RFC 5043)", .code = kPlainCode, .data = {}},
    SctpQuestion{.name = "peer-to-peer", .asks = "A=1, RTR by Write or Read", .data = kWriteOrRead},
    SctpQuestion{.name = "rtr-write", .asks = "only the Write RTR offered", .data = forms(false, true, false)},
    SctpQuestion{.name = "rtr-read", .asks = "only the Read RTR offered", .data = forms(false, false, true)},
    SctpQuestion{
        .name = "rtr-send", .asks = "only the Send RTR offered (never sent)", .data = forms(true, false, false)},
    SctpQuestion{.name = "rtr-all", .asks = "all three RTRs offered", .data = forms(true, true, true)},
    SctpQuestion{.name = "depth-0", .asks = "IRD and ORD 0", .data = depths(0)},
    SctpQuestion{.name = "depth-1", .asks = "IRD and ORD 1", .data = depths(1)},
    SctpQuestion{
        .name = "depth-max", .asks = "IRD and ORD 16382: the peer's limits", .data = depths(enhanced::kMaxIrdOrd)},
    SctpQuestion{.name = "depth-ulp",
                 .asks = "IRD and ORD 16383: left to the ULP",
                 .data = depths(enhanced::kNoIrdOrdNegotiation)},
    SctpQuestion{
        .name = "private-data", .asks = "64 octets of private data that no ULP knows", .private_data_bytes = 64},
    SctpQuestion{.name = "private-data-max",
                 .asks = "508 octets, the most behind enhanced data",
                 .private_data_bytes = sctp::max_ulp_bytes(sctp::Function::kEnhancedInitiate)},
    SctpQuestion{.name = "private-data-512",
                 .asks = "512 octets with a plain Initiate, the most there can be",
                 .code = kPlainCode,
                 .data = {},
                 .private_data_bytes = sctp::max_ulp_bytes(sctp::Function::kInitiate)},
    SctpQuestion{.name = "two-sessions",
                 .asks = "two sessions, a stream each: does one outlive the other",
                 .data = kWriteOrRead,
                 .sessions = Sessions::kTwo},
    SctpQuestion{
        .name = "stream-again", .asks = "a session on the stream of one that is over", .sessions = Sessions::kAgain},
    SctpQuestion{.name = "unknown-code",
                 .asks = "a Function Code that nobody knows, in place of an Initiate",
                 .code = kNoCode,
                 .data = {}},
};

}  // namespace

std::vector<std::byte> SctpQuestion::initiate(ConstBytes chosen) const {
  std::vector<std::byte> unknown(private_data_bytes.value_or(0));
  for (std::size_t i = 0; i < unknown.size(); ++i) unknown[i] = static_cast<std::byte>(i & 0x7F);
  const ConstBytes ulp = private_data_bytes ? ConstBytes(unknown) : known() ? chosen : ConstBytes{};
  std::vector<std::byte> out(sctp::kControlHeaderBytes + (enhanced() ? enhanced::kEnhancedDataBytes : 0));
  FixedWriter<sctp::kControlHeaderBytes> head{MutBytes(out).first<sctp::kControlHeaderBytes>()};
  head.be<0>(std::uint16_t{0});
  head.be<2>(code);
  if (enhanced()) data.write_to(MutBytes(out).subspan<sctp::kControlHeaderBytes, enhanced::kEnhancedDataBytes>());
  out.insert(out.end(), ulp.begin(), ulp.end());
  return out;
}

std::span<const SctpQuestion> sctp_questions() {
  return kSctpQuestions;
}

const SctpQuestion* sctp_question_named(std::string_view name) {
  const auto* found = std::ranges::find(kSctpQuestions, name, &SctpQuestion::name);
  return found == kSctpQuestions.end() ? nullptr : &*found;
}

}  // namespace iwarp::tools::probe
