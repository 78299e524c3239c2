#include "tools/probe/sctp_judgement.h"

#include <algorithm>

#include "tools/probe/raw_control.h"
#include "tools/probe/terms.h"

namespace iwarp::tools::probe {
namespace {

using sctp::Function;
using sctp::Ppid;

constexpr auto kSegmentPpid = static_cast<std::uint32_t>(Ppid::kDdpSegment);
constexpr auto kControlPpid = static_cast<std::uint32_t>(Ppid::kSessionControl);

std::string kind_of(const SctpMessage& message) {
  const auto control = RawControl::parse(message);
  if (!control) return "a DDP Segment";
  const auto f = control->function();
  return f ? sctp::name(*f) : "Function Code " + std::to_string(control->code);
}

std::string silence(const SctpAnswer& a) {
  switch (a.state) {
    case SctpState::kShutDown:
      return "the association is shut down without an answer";
    case SctpState::kAborted:
      return "the association is aborted without an answer";
    case SctpState::kOpen:
    case SctpState::kUnreachable:
      break;
  }
  return "no answer in time";
}

// Collects what is found about one association.
class SctpJudge {
 public:
  SctpJudge(const SctpRecord& record, const SctpKnown& known)
      : q_(*record.question), a_(record.answer), known_(known) {}

  Deviations verdict() {
    if (!indicates_ddp(a_)) return {};  // then it speaks something else, and was asked nothing
    streams();
    for (const SctpSession& s : a_.sessions) {
      form(s);
      if (numbering(s)) sequence(s);
    }
    if (!a_.strays.empty())
      add(Rule::kLegalSequence, "a message on stream " + std::to_string(a_.strays[0]) + ", which has no session");
    const bool dragged = drags_along();
    for (std::size_t i = 0; i < a_.sessions.size(); ++i) {
      answer(a_.sessions[i], i == 0);
      if (!(dragged && i == 1)) judge_rtr(a_.sessions[i].rtr, found_);
    }
    return std::move(found_);
  }

 private:
  void add(Rule rule, std::string what) { found_.push_back({rule, std::move(what)}); }
  // One and the same fault of several messages is told once.
  void once(Rule rule, std::string what) {
    if (std::ranges::find(found_, rule, &Deviation::rule) == found_.end()) add(rule, std::move(what));
  }

  void streams() {
    if (a_.init->inbound != a_.init->outbound)
      add(Rule::kEqualStreams, std::to_string(a_.init->inbound) + " streams from it, " +
                                   std::to_string(a_.init->outbound) + " to it, where as many were asked for");
  }

  // Each message by itself.
  void form(const SctpSession& s) {
    for (const SctpMessage& m : s.heard) {
      if (m.ordered) once(Rule::kUnordered, "an ordered message");
      if (m.octets.size() < sctp::kSsnBytes)
        once(Rule::kMessageSsn, "a message of " + count_of(m.octets.size(), "octet"));
      if (m.ppid != kSegmentPpid && m.ppid != kControlPpid) once(Rule::kPpid, "PPID " + std::to_string(m.ppid));
      if (m.ppid != kControlPpid) continue;
      const auto control = RawControl::parse(m);
      if (!control) {
        once(Rule::kControlForm, "session control of " + count_of(m.octets.size(), "octet"));
        continue;
      }
      const std::string octets = count_of(control->field.size(), "octet") + " in " + kind_of(m);
      if (!control->function()) once(Rule::kFunctionCode, "Function Code " + std::to_string(control->code));
      if (control->field.size() > sctp::kMaxPrivateDataBytes) once(Rule::kControlDataLimit, octets);
      if (control->is(Function::kTerminate) && !control->field.empty()) once(Rule::kTerminateBare, octets);
      if (control->function() == Function::kEnhancedAccept && !control->enhanced)
        once(Rule::kEnhancedAcceptData, octets);
    }
  }

  // Whether the numbers are sound enough to read the messages in their order.
  bool numbering(const SctpSession& s) {
    const auto all = in_order(s);
    if (all.empty()) return false;
    if (ssn_of(*all.front()) != 0) {  // else the first may still be under way
      if (a_.whole) once(Rule::kFirstSsn, "it begins with DDP-SSN " + std::to_string(ssn_of(*all.front())));
      return false;
    }
    for (std::size_t i = 1; i < all.size(); ++i) {
      const unsigned last = ssn_of(*all[i - 1]), next = ssn_of(*all[i]);
      if (next == last) {
        once(Rule::kSsnCounts, "two messages with DDP-SSN " + std::to_string(next));
        return false;
      }
      if (next != last + 1) {
        if (a_.whole) once(Rule::kSsnGap, "DDP-SSN " + std::to_string(next) + " follows " + std::to_string(last));
        return false;
      }
    }
    return true;
  }

  void sequence(const SctpSession& s) {
    std::string before;  // which the next one stands behind; empty: the next one is the first
    bool over = false;
    for (const SctpMessage* m : in_order(s)) {
      const auto control = RawControl::parse(*m);
      if (m->ppid != kSegmentPpid && !control) return;  // told
      if (control && !control->function()) return;      // told
      const bool terminates = control && control->is(Function::kTerminate);
      const bool answers = control && (control->is(Function::kAccept) || control->is(Function::kReject));
      const bool fits = !over && (before.empty() ? answers || terminates : !control || terminates);
      if (!fits) {
        once(Rule::kLegalSequence, kind_of(*m) + (before.empty() ? " as first message" : " behind " + before));
        return;
      }
      over = terminates || (control && control->is(Function::kReject));
      before = kind_of(*m);
    }
  }

  // What it says, compared with the Initiate.
  void answer(const SctpSession& s, bool first) {
    const auto said = answer_to(s);
    if (!q_.known()) {
      if (said && !said->is(Function::kTerminate) && said->function())
        add(Rule::kEndUnknownCode,
            "Function Code " + std::to_string(q_.code) + " is answered by " + name(*said->function()));
      return;
    }
    if (!said) {
      if (first) not_taken(silence(a_), a_.state == SctpState::kOpen);
      return;
    }
    if (said->is(Function::kTerminate)) {
      if (first) not_taken("answered by Terminate", false);
      return;
    }
    const bool rejects = said->is(Function::kReject);
    if (!rejects && !said->is(Function::kAccept)) return;  // told
    if (q_.enhanced() != said->has_enhanced_code())
      add(rejects && q_.enhanced() ? Rule::kEnhancedReject : Rule::kLikeWithLike,
          std::string(q_.enhanced() ? "EnhancedInitiate" : "Initiate") + " is answered by " + name(*said->function()));
    if (q_.enhanced() && said->enhanced) judge_terms(q_.data, *said->enhanced, rejects, known_.names, found_);
    judge_private_data(said->private_data(), found_);
  }

  // Neither accepted nor rejected. A Terminate may be for want of room, which there was for another Initiate.
  void not_taken(const std::string& how, bool silent) {
    if (!known_.answers) return;
    const bool takes_like = q_.enhanced() ? known_.accepts : known_.accepts_plain;
    if (q_.private_data_bytes && takes_like) {
      add(Rule::kControlDataRoom, how + ": " + std::to_string(*q_.private_data_bytes) + " octets");
    } else if (!q_.enhanced() && known_.accepts) {
      add(Rule::kTakePlain, how);
    } else if (silent || (answer_missing() && (!q_.enhanced() || known_.enhanced))) {
      add(Rule::kAnswerInitiate, how);
    }
  }
  [[nodiscard]] bool answer_missing() const { return !a_.sessions.empty() && !answer_to(a_.sessions[0]); }

  // Whether the end of the first session has ended the second.
  bool drags_along() {
    if (q_.sessions != SctpQuestion::Sessions::kTwo || a_.sessions.size() != 2) return false;
    if (!accepted(a_.sessions[0]) || !accepted(a_.sessions[1]) || a_.sessions[0].left || !a_.sessions[1].left)
      return false;
    add(Rule::kOtherSessionsGoOn, has_terminate(a_.sessions[1]) ? "the second session ended with the first"
                                                                : "the association ended with the first session");
    return true;
  }

  const SctpQuestion& q_;
  const SctpAnswer& a_;
  const SctpKnown& known_;
  Deviations found_;
};

}  // namespace

SctpKnown learn(std::span<const SctpRecord> records) {
  SctpKnown k;
  for (const SctpRecord& r : records) {
    const SctpQuestion& q = *r.question;
    for (const SctpSession& s : r.answer.sessions) {
      const auto said = answer_to(s);
      if (!said || !said->function()) continue;
      k.answers = true;
      k.enhanced |= said->has_enhanced_code();
      if (!said->is(Function::kAccept) || !q.known()) continue;
      if (!q.private_data_bytes && said->has_enhanced_code() == q.enhanced())
        (q.enhanced() ? k.accepts : k.accepts_plain) = true;
      if (!said->enhanced) continue;
      const enhanced::RtrForms named = enhanced::forms_of(*said->enhanced);
      k.names = {k.names.send || named.send, k.names.write || named.write, k.names.read || named.read};
    }
  }
  return k;
}

bool indicates_ddp(const SctpAnswer& answer) {
  return answer.init && answer.init->indication == sctp::kDdpIndication;
}

Deviations judge(const SctpRecord& record, const SctpKnown& known) {
  return SctpJudge(record, known).verdict();
}

}  // namespace iwarp::tools::probe
