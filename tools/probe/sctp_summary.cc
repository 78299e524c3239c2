#include "tools/probe/sctp_summary.h"

#include <algorithm>

#include "iwarp/rpcrdma/private_data.h"
#include "tools/probe/raw_control.h"

namespace iwarp::tools::probe {
namespace {

using sctp::Function;

constexpr const char* kUnknown = "not known";

// How one question ended, by name.
class SctpAnswers {
 public:
  explicit SctpAnswers(std::span<const SctpRecord> records) : records_(records) {}

  [[nodiscard]] const SctpRecord* to(std::string_view name) const {
    const auto found = std::ranges::find_if(records_, [&](const SctpRecord& r) { return r.question->name == name; });
    return found == records_.end() || !found->answer.init ? nullptr : &*found;
  }
  // "accepted", "rejected", "Terminate", ...
  [[nodiscard]] std::string fate(std::string_view name, std::size_t session = 0) const {
    const SctpRecord* r = to(name);
    if (r == nullptr) return kUnknown;
    if (session >= r->answer.sessions.size()) return "not begun";
    const auto said = answer_to(r->answer.sessions[session]);
    if (said) {
      const auto f = said->function();
      if (!f) return "unknown Function Code";
      return said->is(Function::kAccept) ? "accepted" : said->is(Function::kReject) ? "rejected" : sctp::name(*f);
    }
    switch (r->answer.state) {
      case SctpState::kShutDown:
        return "association shut down";
      case SctpState::kAborted:
        return "association aborted";
      case SctpState::kOpen:
      case SctpState::kUnreachable:
        break;
    }
    return "no answer";
  }
  // Of an enhanced Accept to the first session.
  [[nodiscard]] std::optional<enhanced::EnhancedData> terms(std::string_view name) const {
    const SctpRecord* r = to(name);
    if (r == nullptr || r->answer.sessions.empty() || !accepted(r->answer.sessions[0])) return std::nullopt;
    return answer_to(r->answer.sessions[0])->enhanced;
  }

 private:
  std::span<const SctpRecord> records_;
};

std::string association(std::span<const SctpRecord> records) {
  for (const SctpRecord& r : records) {
    if (!r.answer.init) continue;
    const SctpInit& i = *r.answer.init;
    return (i.indication ? "adaptation indication " + std::to_string(*i.indication) : "no adaptation indication") +
           "; streams " + std::to_string(i.inbound) + " from it, " + std::to_string(i.outbound) + " to it; " +
           std::to_string(i.fragmentation_point) + " octets of a message in a packet";
  }
  return kUnknown;
}

std::string rtr(const SctpAnswers& all) {
  const auto of = [&](std::string_view name) {
    const auto terms = all.terms(name);
    return terms ? enhanced::forms_of(*terms).to_string() : all.fate(name);
  };
  return "of all: " + of("rtr-all") + "; of Write and Read: " + of("peer-to-peer") + "; of Write: " + of("rtr-write") +
         "; of Read: " + of("rtr-read") + "; of Send: " + of("rtr-send");
}

std::string depth(const SctpAnswers& all) {
  const auto count = [](std::uint16_t n) {
    return n == enhanced::kNoIrdOrdNegotiation ? std::string("left to the ULP") : std::to_string(n);
  };
  const auto of = [&](std::string_view name) {
    const auto terms = all.terms(name);
    return terms ? count(terms->ird) + "/" + count(terms->ord) : all.fate(name);
  };
  return "IRD/ORD at most " + of("depth-max") + "; asked for 0/0: " + of("depth-0") + "; for 1/1: " + of("depth-1") +
         "; left to the ULP: " + of("depth-ulp");
}

std::string two(const SctpAnswers& all) {
  const std::string first = all.fate("two-sessions"), second = all.fate("two-sessions", 1);
  if (first != "accepted" || second != first) return first == second ? first : first + ", then " + second;
  const SctpAnswer& a = all.to("two-sessions")->answer;
  if (a.sessions[0].left) return "accepted, but it ended the first at once";
  return a.sessions[1].left ? "accepted, but they end together" : "accepted, and each ends by itself";
}

std::string again(const SctpAnswers& all) {
  const std::string second = all.fate("stream-again", 1);
  return second == "not begun" && all.fate("stream-again") == "accepted"
             ? "not asked: it sent no Terminate behind the first session"
             : second;
}

std::string inline_sizes(std::span<const SctpRecord> records) {
  bool answers = false;
  for (const SctpRecord& r : records) {
    for (const SctpSession& s : r.answer.sessions) {
      const auto answer = answer_to(s);
      if (!answer) continue;
      answers = true;
      if (const auto said = rpcrdma::PrivateData::find(answer->private_data()))
        return "sends " + std::to_string(said->send_bytes) + ", receives " + std::to_string(said->receive_bytes) +
               " octets; remote invalidation " + (said->remote_invalidation ? "yes" : "no") + " (RFC 8797)";
    }
  }
  return answers ? "not stated (RFC 8797): 1024 octets if this is RPC-over-RDMA" : kUnknown;
}

}  // namespace

std::vector<Fact> summarise(std::span<const SctpRecord> records) {
  const SctpAnswers all(records);
  return {{"association", association(records)},
          {"sessions", "enhanced: " + all.fate("enhanced") + "; plain: " + all.fate("plain") +
                           "; unknown Function Code: " + all.fate("unknown-code")},
          {"several", "two on an association: " + two(all) + "; a stream again: " + again(all)},
          {"peer_to_peer", "A=1: " + all.fate("peer-to-peer") + "; A=0: " + all.fate("enhanced")},
          {"rtr", rtr(all)},
          {"ird_ord", depth(all)},
          {"private_data", "64 octets: " + all.fate("private-data") + "; 508 octets: " + all.fate("private-data-max") +
                               "; 512 octets, plain: " + all.fate("private-data-512")},
          {"inline", inline_sizes(records)}};
}

}  // namespace iwarp::tools::probe
