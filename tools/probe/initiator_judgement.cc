#include "tools/probe/initiator_judgement.h"

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/private_data.h"
#include "tools/probe/stranger.h"

namespace iwarp::tools::probe {
namespace {

using Kind = FirstMessage::Kind;
using Answer = Trial::Answer;

constexpr TerminateCode kNoCommonForm{2, 0, 7}, kLowIrd{2, 0, 6};

bool same(const TerminateCode& a, const TerminateCode& b) {
  return a.layer == b.layer && a.type == b.type && a.code == b.code;
}

class Judge {
 public:
  explicit Judge(const Encounter& e) : e_(e), said_(e.first.to_string()) {}

  Deviations verdict() {
    if (const auto request = e_.parsed_request()) {
      form(*request);
      if (const auto reply = e_.parsed_reply()) behaviour(*request, *reply);
    } else if (!e_.request.empty()) {
      const auto who = stranger(e_.request);
      add(Rule::kRequestKey, who ? "no MPA but " + to_string(*who) : "what came is no MPA Request");
    }
    return std::move(found_);
  }

 private:
  void add(Rule rule, std::string what) { found_.push_back({rule, std::move(what)}); }

  // The Request by itself.
  void form(const RawFrame& r) {
    if (r.private_data_length > mpa::kMaxPrivateDataBytes) {
      add(Rule::kPrivateDataLimit, "PD_Length " + std::to_string(r.private_data_length));
    } else if (!r.complete()) {
      add(Rule::kPrivateDataLength, "PD_Length " + std::to_string(r.private_data_length) + ", but only " +
                                        std::to_string(r.field.size()) + " octets came");
    }
    if (!r.behind.empty()) add(Rule::kWaitForReply, std::to_string(r.behind.size()) + " octets behind the Request");
    if (r.reserved_bits != 0) add(Rule::kReservedBits, "reserved bits " + std::to_string(r.reserved_bits) + " are set");
    if (r.revision == 0 || r.revision > 2) add(Rule::kRequestRevision, "revision " + std::to_string(r.revision));
    if (r.reject) add(Rule::kRequestReject, "R=1 in a Request");
    if (r.s_bit && r.revision < 2) add(Rule::kEnhancedRevision, "S=1 with revision " + std::to_string(r.revision));
    if (r.s_bit && r.private_data_length < mpa::kEnhancedDataBytes)
      add(Rule::kEnhancedData, "S=1 with PD_Length " + std::to_string(r.private_data_length));
    if (r.enhanced) {
      const mpa::EnhancedData& data = *r.enhanced;
      const bool offers = data.rtr_send || data.rtr_write || data.rtr_read;
      if (data.peer_to_peer && !offers) add(Rule::kOfferAForm, "A=1 with B=C=D=0");
      if (!data.peer_to_peer && offers) add(Rule::kNoFlagsWithoutA, "B, C or D set with A=0");
    }
    rpc_private_data(r.private_data());
  }

  void rpc_private_data(ConstBytes data) {
    for (std::size_t at = 0; at + rpcrdma::PrivateData::kSize <= data.size(); ++at) {
      if (load_be<std::uint32_t>(data.subspan(at)) != rpcrdma::PrivateData::kMagic) continue;
      if (std::to_integer<unsigned>(data[at + 4]) == 1 && (std::to_integer<unsigned>(data[at + 5]) & 0xFE) != 0)
        add(Rule::kRpcReservedBits, "reserved bits of the RPC-over-RDMA private data are set");
      return;
    }
  }

  // What it did with the Reply.
  void behaviour(const RawFrame& request, const RawFrame& reply) {
    const bool silent = e_.octets_behind == 0, open = e_.at_end == TcpState::kOpen;
    switch (e_.trial->answer) {
      case Answer::kReject:
        if (!silent) add(Rule::kLeaveAfterReject, "R=1 was answered by " + said_);
        return;
      case Answer::kWrongKey:
      case Answer::kWrongLength: {
        const Rule rule = e_.trial->answer == Answer::kWrongKey ? Rule::kCloseOnWrongKey : Rule::kCloseOnWrongReply;
        if (!silent) add(rule, "it goes on: " + said_);
        if (silent && open) add(rule, "the connection stays open");
        return;
      }
      case Answer::kClose:
        return;
      case Answer::kAccept:
        break;
    }
    if (e_.first.kind == Kind::kBadCrc) return add(Rule::kFpduCrc, said_);
    // A Reply of revision 1 to an enhanced Request is not what it was promised: it may go on or not.
    if (!e_.trial->enhanced && request.enhanced) return;
    if (request.enhanced && reply.enhanced && request.enhanced->peer_to_peer) return ready_to_receive(request, reply);
    if (e_.first.kind == Kind::kTerminate || (silent && !open)) gave_up();
  }

  // RFC 6581 s9.2.
  void ready_to_receive(const RawFrame& request, const RawFrame& reply) {
    const RtrForms common = forms_of(request).common(forms_of(reply));
    if (!common.any()) return without_form(forms_of(reply));
    switch (e_.first.kind) {
      case Kind::kSend:
      case Kind::kWrite:
      case Kind::kRead:
        return sent(reply, common);
      case Kind::kTerminate:
        if (e_.trial->ord_above_ird) {
          if (!same(e_.first.code, kLowIrd)) add(Rule::kCodeOfLowIrd, said_);
          return;
        }
        // With IRD 0 nothing but a Read may have been common.
        if (reply.enhanced->ird == 0 && !common.write && !common.send) return;
        return gave_up();
      case Kind::kNone:
        return gave_up();
      case Kind::kBadCrc:
      case Kind::kOther:
      case Kind::kNoFpdu:
        add(Rule::kSendNamedRtr, said_ + " in place of the RTR");
    }
  }

  void sent(const RawFrame& reply, const RtrForms& common) {
    const Kind kind = e_.first.kind;
    if (!e_.first.empty) return add(Rule::kRtrFirst, said_ + " in place of the RTR");
    const bool agreed = kind == Kind::kSend ? common.send : kind == Kind::kWrite ? common.write : common.read;
    if (!agreed) add(Rule::kSendNamedRtr, said_ + ", while " + common.to_string() + " is agreed");
    if (kind == Kind::kRead && reply.enhanced->ird == 0) add(Rule::kOrdWithinReplyIrd, said_ + ", while IRD is 0");
  }

  void without_form(const RtrForms& named) {
    const std::string why = "only " + named.to_string() + " is named, which it did not offer: ";
    if (e_.first.kind != Kind::kTerminate) return add(Rule::kTerminateWithoutForm, why + ended());
    if (!same(e_.first.code, kNoCommonForm)) add(Rule::kCodeWithoutForm, why + said_);
    if (e_.at_end == TcpState::kOpen) add(Rule::kCloseWithoutForm, "the connection stays open after " + said_);
  }

  // Did not go on after a Reply that it should take.
  void gave_up() {
    const bool enhanced = e_.parsed_request()->enhanced.has_value();
    if (e_.trial->reserved_bits != 0) {
      add(Rule::kIgnoreReserved, ended());
    } else if (e_.trial->private_data) {
      add(Rule::kPrivateDataBuffer, ended());
    } else if (enhanced && e_.parsed_request()->enhanced->peer_to_peer) {
      add(Rule::kSendNamedRtr, ended());
    } else {
      add(Rule::kGoOn, ended());
    }
  }

  // "Terminate 2/0/5 ..., then closed", "closed", "nothing in time"
  std::string ended() const {
    const char* const end = e_.at_end == TcpState::kClosed ? "closed" : e_.at_end == TcpState::kReset ? "reset" : "";
    if (e_.octets_behind != 0) return said_ + (*end != 0 ? std::string(", then ") + end : "");
    return *end != 0 ? end : "nothing in time";
  }

  const Encounter& e_;
  const std::string said_;
  Deviations found_;
};

}  // namespace

Deviations judge(const Encounter& encounter) {
  return Judge(encounter).verdict();
}

}  // namespace iwarp::tools::probe
