#include "tools/probe/trial.h"

#include <algorithm>
#include <array>

namespace iwarp::tools::probe {
namespace {

using mpa::kNoIrdOrdNegotiation;

constexpr RtrForms kSendOnly{.send = true}, kWriteOnly{.write = true}, kReadOnly{.read = true};
constexpr std::uint16_t kMostOrd = 8;  // of a Reply: no Read is ever sent

constexpr std::array kTrials = {
    Trial{.name = "accept", .asks = "accepted as asked, with each RTR that is offered"},
    Trial{.name = "rtr-write", .asks = "only the Write RTR named", .forms = kWriteOnly},
    Trial{.name = "rtr-read", .asks = "only the Read RTR named", .forms = kReadOnly},
    Trial{.name = "rtr-send", .asks = "only the Send RTR named", .forms = kSendOnly},
    Trial{.name = "crc", .asks = "C=1 in one of the two frames: is CRC used", .other_crc = true},
    Trial{.name = "depth-0", .asks = "IRD 0 in the Reply: no Read may come", .ird = 0},
    Trial{.name = "ord-above", .asks = "an ORD above the IRD that was offered", .ord_above_ird = true},
    Trial{.name = "reserved-bits", .asks = "reserved bits set, to be ignored", .reserved_bits = 0x0F},
    Trial{.name = "private-data", .asks = "64 octets of private data that no ULP knows", .private_data = 64},
    Trial{.name = "private-data-max", .asks = "508 octets, the most there can be", .private_data = 508},
    Trial{.name = "revision-1", .asks = "a Reply of revision 1 to any Request", .enhanced = false},
    Trial{.name = "wrong-key", .asks = "no Reply but another Key, to be closed", .answer = Trial::Answer::kWrongKey},
    Trial{.name = "wrong-length",
          .asks = "more private data than there may be, to be closed",
          .answer = Trial::Answer::kWrongLength},
    Trial{.name = "reject", .asks = "R=1", .answer = Trial::Answer::kReject},
    Trial{.name = "close", .asks = "no Reply: does it try again in another way", .answer = Trial::Answer::kClose},
};

mpa::EnhancedData data_for(const Trial& trial, const RawFrame& request) {
  const mpa::EnhancedData& asked = *request.enhanced;
  mpa::EnhancedData data;
  data.peer_to_peer = asked.peer_to_peer;
  if (asked.peer_to_peer) {
    RtrForms named = trial.forms.value_or(forms_of(request));
    if (!named.any()) named = kWriteOnly;
    enhanced::set_forms(data, named);
  }
  data.ird = trial.ird.value_or(asked.ord);
  if (!trial.ird && data.rtr_read) data.ird = std::max<std::uint16_t>(data.ird, 1);
  if (asked.ird == kNoIrdOrdNegotiation) {
    data.ord = kNoIrdOrdNegotiation;
  } else if (trial.ord_above_ird && asked.ird < mpa::kMaxIrdOrd) {
    data.ord = static_cast<std::uint16_t>(asked.ird + 1);
  } else {
    data.ord = std::min(asked.ird, kMostOrd);
  }
  return data;
}

}  // namespace

RtrForms forms_of(const RawFrame& frame) {
  return frame.enhanced ? enhanced::forms_of(*frame.enhanced) : RtrForms{};
}

std::vector<std::byte> Trial::reply(const RawFrame& request, ConstBytes chosen) const {
  if (answer == Answer::kClose) return {};
  std::vector<std::byte> unknown(private_data.value_or(0));
  for (std::size_t i = 0; i < unknown.size(); ++i) unknown[i] = static_cast<std::byte>(i & 0x7F);
  mpa::StartupFrame f;
  f.is_reply = true;
  f.crc = request.crc != other_crc;
  f.reject = answer == Answer::kReject;
  f.enhanced = enhanced && request.enhanced && request.revision >= 2;
  f.revision = enhanced && request.revision >= 2 ? 2 : 1;
  if (f.enhanced) f.enhanced_data = data_for(*this, request);
  f.private_data = private_data ? ConstBytes(unknown) : f.reject ? ConstBytes{} : chosen;
  std::vector<std::byte> out(f.size());
  f.write_to(out);
  out[mpa::kKeyBytes] |= static_cast<std::byte>(reserved_bits);
  if (answer == Answer::kWrongKey) out[0] = std::byte{'m'};
  if (answer == Answer::kWrongLength) {
    constexpr std::size_t kTooMuch = mpa::kMaxPrivateDataBytes + 8;
    out.resize(mpa::kStartupHeaderBytes + kTooMuch);
    out[18] = static_cast<std::byte>(kTooMuch >> 8);
    out[19] = static_cast<std::byte>(kTooMuch & 0xFF);
  }
  return out;
}

std::span<const Trial> trials() {
  return kTrials;
}

const Trial* trial_named(std::string_view name) {
  const auto* found = std::ranges::find(kTrials, name, &Trial::name);
  return found == kTrials.end() ? nullptr : &*found;
}

}  // namespace iwarp::tools::probe
