#include "tools/probe/judgement.h"

#include "iwarp/base/wire.h"
#include "iwarp/rdmap/terminate_message.h"
#include "iwarp/rpcrdma/private_data.h"

namespace iwarp::tools::probe {
namespace {

using mpa::kNoIrdOrdNegotiation;

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
        rtr();
        private_data(reply->private_data());
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
    model(r, *r.enhanced);
    if (!r.reject) depth(*r.enhanced);
  }

  // Connection model and RTR forms, RFC 6581 s9.2.
  void model(const RawFrame& r, const mpa::EnhancedData& e) {
    if (q_.data.peer_to_peer != e.peer_to_peer) {
      add(e.peer_to_peer ? Rule::kEchoClientServer : Rule::kEchoPeerToPeer,
          e.peer_to_peer ? "A=1 in answer to A=0" : "A=0 in answer to A=1");
    }
    const bool named = e.rtr_send || e.rtr_write || e.rtr_read;
    if (!e.peer_to_peer) {
      if (named) add(Rule::kNoFlagsWithoutA, "B, C or D set with A=0");
      return;
    }
    if (!named) add(Rule::kNameAForm, "A=1 with B=C=D=0");
    if (r.reject || !q_.data.peer_to_peer) return;
    const auto omitted = [&](bool offered, bool in_reply, bool elsewhere, const char* form) {
      if (named && offered && !in_reply && elsewhere)
        add(Rule::kNameOfferedForm, std::string("does not name ") + form + ", which it names elsewhere");
    };
    omitted(q_.data.rtr_send, e.rtr_send, known_.names_send, "Send");
    omitted(q_.data.rtr_write, e.rtr_write, known_.names_write, "Write");
    omitted(q_.data.rtr_read, e.rtr_read, known_.names_read, "Read");
    const bool only_read =
        q_.data.rtr_read && e.rtr_read && !(q_.data.rtr_write && e.rtr_write) && !(q_.data.rtr_send && e.rtr_send);
    if (only_read && e.ird == 0 && q_.data.ord > 0)
      add(Rule::kReadRtrNeedsIrd, "Read is the only RTR left, but the Reply has IRD 0");
  }

  // IRD and ORD of an accepting Reply, RFC 6581 s9.1. A Reply IRD below the Request's ORD is no deviation: the
  // Initiator then lowers its ORD.
  void depth(const mpa::EnhancedData& e) {
    if (q_.data.ird == kNoIrdOrdNegotiation) {
      if (e.ord != kNoIrdOrdNegotiation)
        add(Rule::kOrdLeftToUlp, "ORD " + std::to_string(e.ord) + " in answer to IRD 16383");
    } else if (e.ord > q_.data.ird && e.ord != kNoIrdOrdNegotiation) {
      add(Rule::kOrdAtMostIrd, "ORD " + std::to_string(e.ord) + " in answer to IRD " + std::to_string(q_.data.ird));
    }
    if (q_.data.ord == kNoIrdOrdNegotiation && e.ird != kNoIrdOrdNegotiation)
      add(Rule::kIrdLeftToUlp, "IRD " + std::to_string(e.ird) + " in answer to ORD 16383");
  }

  void rtr() {
    const std::string form = a_.rtr.form == mpa::Rtr::kRead ? "the Read RTR " : "the Write RTR ";
    switch (a_.rtr.fate) {
      case RtrResult::Fate::kNotSent:
      case RtrResult::Fate::kTaken:
        break;
      case RtrResult::Fate::kNoResponse:
        add(Rule::kReadRtrNeedsIrd, "no Read Response in time");
        break;
      case RtrResult::Fate::kTerminated: {
        rdmap::TerminateMessage said;
        said.code = a_.rtr.code.value_or(TerminateCode{});
        add(Rule::kTakeNamedRtr, form + "was answered by Terminate " + said.to_string());
        break;
      }
      case RtrResult::Fate::kEnded:
        add(Rule::kTakeNamedRtr, form + "was answered by the end of the connection");
        break;
      case RtrResult::Fate::kBadCrc:
        add(Rule::kFpduCrc, "the FPDU that answers " + form + "has a wrong CRC");
        break;
      case RtrResult::Fate::kOdd:
        add(a_.rtr.form == mpa::Rtr::kRead ? Rule::kReadRtrNeedsIrd : Rule::kTakeNamedRtr,
            form + "was answered by " + a_.rtr.what);
        break;
    }
  }

  void private_data(ConstBytes data) {
    for (std::size_t at = 0; at + rpcrdma::PrivateData::kSize <= data.size(); ++at) {
      if (load_be<std::uint32_t>(data.subspan(at)) != rpcrdma::PrivateData::kMagic) continue;
      if (std::to_integer<unsigned>(data[at + 4]) == 1 && (std::to_integer<unsigned>(data[at + 5]) & 0xFE) != 0)
        add(Rule::kRpcReservedBits, "reserved bits of the RPC-over-RDMA private data are set");
      return;
    }
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
