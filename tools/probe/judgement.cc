#include "tools/probe/judgement.h"

#include "tools/probe/terms.h"

namespace iwarp::tools::probe {
namespace {

bool ordinary(const Question& q) {
  return q.enhanced && q.revision == 2 && !q.markers && q.reserved_bits == 0 && !q.private_data_bytes;
}

std::string ended(const Answer& a) {
  switch (a.after_reply) {
    case TcpState::kClosed:
      return "closed without a Reply";
    case TcpState::kReset:
      return "reset without a Reply";
    case TcpState::kUnreachable:
      return "no connection: " + a.why;
    case TcpState::kOpen:
      break;
  }
  return a.octets.empty() ? "no answer in time" : "no whole Reply in time";
}

// Collects what is found about one connection.
class Judge {
 public:
  Judge(const Record& record, const Known& known) : q_(*record.question), a_(record.answer), known_(known) {}

  Deviations verdict() {
    const auto reply = RawFrame::parse(a_.octets);
    if (reply && !reply->is_reply()) {
      add(Rule::kReplyKey, reply->key == RawFrame::Key::kRequest ? "a Request came back: both ends play Initiator"
                                                                 : "what came is no MPA Reply");
    } else if (reply) {
      form(*reply);
      if (q_.revision <= 2) {
        content(*reply);
        judge_rtr(a_.rtr, found_);
        judge_private_data(reply->private_data(), found_);
      }
    } else if (known_.replies) {
      no_reply();
    }
    return std::move(found_);
  }

 private:
  void add(Rule rule, std::string what) { found_.push_back({rule, std::move(what)}); }

  void no_reply() {
    if (a_.after_reply == TcpState::kUnreachable) return;  // then it is not known what it would have said
    const bool gone = a_.after_reply == TcpState::kClosed || a_.after_reply == TcpState::kReset;
    if (q_.revision > 2) {
      if (!gone) add(Rule::kUnknownRevision, ended(a_));
    } else if (q_.enhanced && !known_.enhanced && gone) {
      // A responder without RFC 6581 has to do just this (RFC 6581 s10).
    } else if (q_.revision == 1) {
      add(Rule::kTakeRevision1, ended(a_));
    } else if (!q_.enhanced) {
      add(Rule::kTakeUnenhanced, ended(a_));
    } else if (q_.markers) {
      add(Rule::kMarkers, ended(a_));
    } else if (q_.reserved_bits != 0) {
      add(Rule::kIgnoreReserved, ended(a_));
    } else if (q_.private_data_bytes) {
      add(Rule::kPrivateDataBuffer, ended(a_));
    } else if (q_.crc && !known_.accepts && known_.accepts_without_crc) {
      add(Rule::kCrc, ended(a_) + ", while C=0 is accepted");
    } else {
      add(Rule::kAnswerRequest, ended(a_));
    }
  }

  // The frame by itself, and its revision.
  void form(const RawFrame& r) {
    if (r.private_data_length > mpa::kMaxPrivateDataBytes) {
      add(Rule::kPrivateDataLimit, "PD_Length " + std::to_string(r.private_data_length));
    } else if (!r.complete()) {
      add(Rule::kPrivateDataLength, "PD_Length " + std::to_string(r.private_data_length) + ", but only " +
                                        std::to_string(r.field.size()) + " octets came");
    }
    if (!r.behind.empty()) add(Rule::kFpduBeforeOurs, std::to_string(r.behind.size()) + " octets behind the Reply");
    if (r.reserved_bits != 0) add(Rule::kReservedBits, "reserved bits " + std::to_string(r.reserved_bits) + " are set");
    if (q_.revision > 2 && r.revision > 2) {
      add(Rule::kUnknownRevision, "answered in revision " + std::to_string(r.revision));
    } else if (r.revision == 0 || r.revision > q_.revision) {
      add(Rule::kRevisionField,
          "revision " + std::to_string(r.revision) + " in answer to " + std::to_string(q_.revision));
    }
    if (r.s_bit && r.revision < 2) add(Rule::kEnhancedRevision, "S=1 with revision " + std::to_string(r.revision));
    if (r.s_bit && r.private_data_length < mpa::kEnhancedDataBytes)
      add(Rule::kEnhancedData, "S=1 with PD_Length " + std::to_string(r.private_data_length));
  }

  // What it says, compared with the Request.
  void content(const RawFrame& r) {
    if (q_.enhanced && !r.s_bit) add(Rule::kAnswerEnhanced, "S=0 in answer to S=1");
    if (!q_.enhanced && r.s_bit) add(Rule::kAnswerUnenhanced, "S=1 in answer to S=0");
    if (r.reject && known_.accepts && q_.markers) add(Rule::kMarkers, "M=1 is refused by R=1");
    if (r.reject && known_.accepts && q_.reserved_bits != 0)
      add(Rule::kIgnoreReserved, "refused by R=1 for reserved bits");
    if (r.reject && q_.crc && ordinary(q_) && !known_.accepts && known_.accepts_without_crc)
      add(Rule::kCrc, "C=1 is refused by R=1, while C=0 is accepted");
    if (!q_.enhanced || !r.enhanced) return;
    judge_terms(q_.data, *r.enhanced, r.reject, {known_.names_send, known_.names_write, known_.names_read}, found_);
  }

  const Question& q_;
  const Answer& a_;
  const Known& known_;
  Deviations found_;
};

}  // namespace

Known learn(std::span<const Record> records) {
  Known k;
  for (const Record& r : records) {
    const auto reply = RawFrame::parse(r.answer.octets);
    if (!reply || !reply->is_reply()) continue;
    k.replies = true;
    const Question& q = *r.question;
    if (!reply->enhanced || !q.enhanced) continue;
    k.enhanced = true;
    if (reply->reject || !ordinary(q)) continue;
    (q.crc ? k.accepts : k.accepts_without_crc) = true;
    if (!reply->enhanced->peer_to_peer) continue;
    k.names_send |= reply->enhanced->rtr_send;
    k.names_write |= reply->enhanced->rtr_write;
    k.names_read |= reply->enhanced->rtr_read;
  }
  return k;
}

Deviations judge(const Record& record, const Known& known) {
  return Judge(record, known).verdict();
}

}  // namespace iwarp::tools::probe
