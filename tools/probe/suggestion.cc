#include "tools/probe/suggestion.h"

#include <algorithm>

#include "iwarp/base/wire.h"

namespace iwarp::tools::probe {
namespace {

constexpr std::uint16_t kMostOfSiw = 128;  // its IRD and ORD end there

// What a responder answered, by the name of the question.
class Answers {
 public:
  explicit Answers(std::span<const Record> records) : records_(records) {}

  [[nodiscard]] std::optional<RawFrame> reply(std::string_view name) const {
    const Record* const r = to(name);
    auto frame = r == nullptr ? std::nullopt : RawFrame::parse(r->answer.octets);
    return frame && frame->is_reply() ? frame : std::nullopt;
  }
  // The enhanced data of an accepting Reply.
  [[nodiscard]] std::optional<mpa::EnhancedData> agreed(std::string_view name) const {
    const auto r = reply(name);
    return r && !r->reject ? r->enhanced : std::nullopt;
  }
  [[nodiscard]] bool accepted(std::string_view name) const {
    const auto r = reply(name);
    return r && !r->reject;
  }
  // Ended by the peer without an octet of a Reply.
  [[nodiscard]] bool hung_up(std::string_view name) const {
    const Record* const r = to(name);
    return r != nullptr && r->answer.octets.empty() &&
           (r->answer.after_reply == TcpState::kClosed || r->answer.after_reply == TcpState::kReset);
  }

 private:
  [[nodiscard]] const Record* to(std::string_view name) const {
    const auto found = std::ranges::find_if(records_, [&](const Record& r) { return r.question->name == name; });
    return found == records_.end() ? nullptr : &*found;
  }

  std::span<const Record> records_;
};

bool only_write(const std::optional<mpa::EnhancedData>& e) {
  return e && e->peer_to_peer && e->rtr_write && !e->rtr_read && !e->rtr_send;
}
bool only_read(const std::optional<mpa::EnhancedData>& e) {
  return e && e->peer_to_peer && e->rtr_read && !e->rtr_write && !e->rtr_send;
}
bool ends_at_128(const std::optional<mpa::EnhancedData>& e) {
  return e && e->ird == kMostOfSiw && e->ord == kMostOfSiw;
}

// "Left to the ULP" is a number to these peers, if it is asked.
bool counts_to_the_ulp(const Answers& all) {
  const auto e = all.agreed("depth-ulp");
  return e && e->ird != mpa::kNoIrdOrdNegotiation && e->ord != mpa::kNoIrdOrdNegotiation;
}

Suggestion of_responder(const Answers& all) {
  const bool much_private_data = all.accepted("private-data-max");
  if (!much_private_data) {
    if (const auto odd = all.reply("reserved-bits"); odd && odd->reserved_bits == 0x0F)
      return {"linux-siw", "it repeats the reserved bits of the Request"};
    if (only_write(all.agreed("enhanced")) &&
        (ends_at_128(all.agreed("depth-max")) || ends_at_128(all.agreed("depth-ulp"))))
      return {"linux-siw", "it names Write of Write and Read, and its IRD and ORD end at 128"};
    // iwarp with Read alone does the same, but takes 508 octets and knows what is left to the ULP.
    if (only_read(all.agreed("rtr-write")) && (all.hung_up("private-data-max") || counts_to_the_ulp(all)))
      return {"linux-cxgb4", "it names Read where only Write is offered"};
  }
  if (all.agreed("enhanced") && all.agreed("enhanced")->peer_to_peer && all.hung_up("client-server"))
    return {"linux-irdma", "it accepts A=1, and hangs up on A=0"};
  return {};
}

bool all_requests(std::span<const Encounter> encounters, bool (*are)(const RawFrame&)) {
  bool any = false;
  for (const Encounter& e : encounters) {
    const auto request = e.parsed_request();
    if (!request) continue;
    any = true;
    if (!are(*request)) return false;
  }
  return any;
}

bool like_siw(const RawFrame& r) {
  return r.revision == 2 && !r.crc && r.enhanced && !r.enhanced->peer_to_peer;
}
bool offers_read_alone(const RawFrame& r) {
  return r.crc && only_read(r.enhanced);
}

// IRD and ORD of SMB Direct over revision 1 ([MS-SMBD] Appendix A): 32 bits each, both above 0.
bool has_smb_direct(const RawFrame& r) {
  constexpr std::size_t kOctets = 8;
  if (r.s_bit || r.revision != 1 || r.private_data().size() != kOctets) return false;
  const auto count = [&](std::size_t at) { return load_be<std::uint32_t>(r.private_data().subspan(at)); };
  return count(0) >= 1 && count(0) <= mpa::kMaxIrdOrd && count(4) >= 1 && count(4) <= mpa::kMaxIrdOrd;
}

// Against siw: it takes no more than 256 octets of private data, and does not try again in another way.
bool unlike_siw(const Encounter& e) {
  return !e.next_request.empty() ||
         (e.trial->name == "private-data-max" && !e.reply.empty() && e.at_end == TcpState::kOpen);
}

// The empty Read that opens a peer-to-peer connection has STags and offsets by which drivers can be told.
struct ReadRtr {
  std::uint32_t sink_stag;
  std::uint64_t sink_to;
  std::uint32_t source_stag;
  std::uint64_t source_to;
};
bool sends(std::span<const Encounter> encounters, const ReadRtr& rtr) {
  return std::ranges::any_of(encounters, [&](const Encounter& e) {
    if (e.first.kind != FirstMessage::Kind::kRead || !e.first.empty) return false;
    const rdmap::ReadRequest& r = e.first.read;
    return raw(r.sink_stag) == rtr.sink_stag && r.sink_to == rtr.sink_to && raw(r.source_stag) == rtr.source_stag &&
           r.source_to == rtr.source_to;
  });
}

}  // namespace

std::string Suggestion::to_string() const {
  return std::string(profile) + ": " + std::string(why);
}

Suggestion suggest(std::span<const Record> records) {
  return of_responder(Answers(records));
}

Suggestion suggest(std::span<const Encounter> encounters) {
  if (sends(encounters, {0xABCD, 0, 0x1234, 0})) return {"linux-irdma", "its Read RTR has the STags 0xabcd and 0x1234"};
  if (sends(encounters, {1, 1, 1, 1}) && all_requests(encounters, offers_read_alone))
    return {"linux-cxgb4", "it offers Read alone, and its Read RTR has STag 1 and offset 1"};
  if (sends(encounters, {0, 0, 1, 0})) return {"linux-siw", "its Read RTR has sink STag 0"};
  if (all_requests(encounters, like_siw) && std::ranges::none_of(encounters, unlike_siw))
    return {"linux-siw", "its Requests have C=0 and A=0"};
  if (all_requests(encounters, has_smb_direct))
    return {"windows-smbd", "its Requests are of revision 1 and have the IRD and ORD of SMB Direct"};
  return {};
}

nlohmann::ordered_json to_json(const Suggestion& suggestion) {
  return {{"name", suggestion.profile}, {"why", suggestion.why}};
}

}  // namespace iwarp::tools::probe
