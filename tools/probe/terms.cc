#include "tools/probe/terms.h"

#include "iwarp/base/wire.h"
#include "iwarp/rdmap/terminate_message.h"
#include "iwarp/rpcrdma/private_data.h"

namespace iwarp::tools::probe {
namespace {

using enhanced::EnhancedData;
using enhanced::kNoIrdOrdNegotiation;
using Json = nlohmann::ordered_json;

void add(Deviations& found, Rule rule, std::string what) {
  found.push_back({rule, std::move(what)});
}

// Connection model and RTR forms, RFC 6581 s9.2.
void judge_model(const EnhancedData& asked, const EnhancedData& said, bool rejected,
                 const enhanced::RtrForms& elsewhere, Deviations& found) {
  if (asked.peer_to_peer != said.peer_to_peer) {
    add(found, said.peer_to_peer ? Rule::kEchoClientServer : Rule::kEchoPeerToPeer,
        said.peer_to_peer ? "A=1 in answer to A=0" : "A=0 in answer to A=1");
  }
  const bool named = said.rtr_send || said.rtr_write || said.rtr_read;
  if (!said.peer_to_peer) {
    if (named) add(found, Rule::kNoFlagsWithoutA, "B, C or D set with A=0");
    return;
  }
  if (!named) add(found, Rule::kNameAForm, "A=1 with B=C=D=0");
  if (rejected || !asked.peer_to_peer) return;
  const auto omitted = [&](bool offered, bool in_answer, bool ever, const char* form) {
    if (named && offered && !in_answer && ever)
      add(found, Rule::kNameOfferedForm, std::string("does not name ") + form + ", which it names elsewhere");
  };
  omitted(asked.rtr_send, said.rtr_send, elsewhere.send, "Send");
  omitted(asked.rtr_write, said.rtr_write, elsewhere.write, "Write");
  omitted(asked.rtr_read, said.rtr_read, elsewhere.read, "Read");
  const bool only_read =
      asked.rtr_read && said.rtr_read && !(asked.rtr_write && said.rtr_write) && !(asked.rtr_send && said.rtr_send);
  if (only_read && said.ird == 0 && asked.ord > 0)
    add(found, Rule::kReadRtrNeedsIrd, "Read is the only RTR left, but the answer has IRD 0");
}

// IRD and ORD of an accepting answer, RFC 6581 s9.1. An IRD below the ORD that was asked for is no deviation: the
// Initiator then lowers its ORD.
void judge_depth(const EnhancedData& asked, const EnhancedData& said, Deviations& found) {
  if (asked.ird == kNoIrdOrdNegotiation) {
    if (said.ord != kNoIrdOrdNegotiation)
      add(found, Rule::kOrdLeftToUlp, "ORD " + std::to_string(said.ord) + " in answer to IRD 16383");
  } else if (said.ord > asked.ird && said.ord != kNoIrdOrdNegotiation) {
    add(found, Rule::kOrdAtMostIrd,
        "ORD " + std::to_string(said.ord) + " in answer to IRD " + std::to_string(asked.ird));
  }
  if (asked.ord == kNoIrdOrdNegotiation && said.ird != kNoIrdOrdNegotiation)
    add(found, Rule::kIrdLeftToUlp, "IRD " + std::to_string(said.ird) + " in answer to ORD 16383");
}

}  // namespace

std::string to_string(const EnhancedData& e) {
  const auto bit = [](const char* name, bool set) { return std::string(name) + (set ? "=1 " : "=0 "); };
  return bit("A", e.peer_to_peer) + bit("B", e.rtr_send) + bit("C_write", e.rtr_write) + bit("D", e.rtr_read) +
         "IRD=" + std::to_string(e.ird) + " ORD=" + std::to_string(e.ord);
}

void put(Json& into, const EnhancedData& e) {
  into.update({{"A", e.peer_to_peer}, {"B", e.rtr_send}, {"C_write", e.rtr_write}, {"D", e.rtr_read}});
  into.update({{"ird", e.ird}, {"ord", e.ord}});
}

void put_private_data(Json& into, ConstBytes private_data) {
  into["private_data_hex"] = hex(private_data);
  if (const auto said = rpcrdma::PrivateData::find(private_data)) {
    into["rpcrdma"] = {{"send_bytes", said->send_bytes},
                       {"receive_bytes", said->receive_bytes},
                       {"remote_invalidation", said->remote_invalidation}};
  }
}

const char* form_name(mpa::Rtr form) {
  return form == mpa::Rtr::kRead ? "Read" : form == mpa::Rtr::kWrite ? "Write" : "none";
}

const char* name(RtrResult::Fate fate) {
  switch (fate) {
    case RtrResult::Fate::kNotSent:
      return "not sent";
    case RtrResult::Fate::kTaken:
      return "taken";
    case RtrResult::Fate::kNoResponse:
      return "no Read Response";
    case RtrResult::Fate::kTerminated:
      return "Terminate";
    case RtrResult::Fate::kEnded:
      return "end of the connection";
    case RtrResult::Fate::kBadCrc:
      return "wrong CRC";
    case RtrResult::Fate::kOdd:
      break;
  }
  return "odd answer";
}

std::string to_string(const RtrResult& rtr) {
  if (rtr.fate == RtrResult::Fate::kNotSent) return {};
  return std::string(", ") + form_name(rtr.form) + " RTR: " + name(rtr.fate);
}

void put(Json& into, const RtrResult& rtr) {
  if (rtr.fate != RtrResult::Fate::kNotSent) into["rtr"] = {{"form", form_name(rtr.form)}, {"fate", name(rtr.fate)}};
}

void judge_terms(const EnhancedData& asked, const EnhancedData& said, bool rejected,
                 const enhanced::RtrForms& elsewhere, Deviations& found) {
  judge_model(asked, said, rejected, elsewhere, found);
  if (!rejected) judge_depth(asked, said, found);
}

void judge_rtr(const RtrResult& rtr, Deviations& found) {
  const std::string form = rtr.form == mpa::Rtr::kRead ? "the Read RTR " : "the Write RTR ";
  switch (rtr.fate) {
    case RtrResult::Fate::kNotSent:
    case RtrResult::Fate::kTaken:
      break;
    case RtrResult::Fate::kNoResponse:
      add(found, Rule::kReadRtrNeedsIrd, "no Read Response in time");
      break;
    case RtrResult::Fate::kTerminated: {
      rdmap::TerminateMessage said;
      said.code = rtr.code.value_or(TerminateCode{});
      add(found, Rule::kTakeNamedRtr, form + "was answered by Terminate " + said.to_string());
      break;
    }
    case RtrResult::Fate::kEnded:
      add(found, Rule::kTakeNamedRtr,
          form + "was answered by " + (rtr.what.empty() ? "the end of the connection" : rtr.what));
      break;
    case RtrResult::Fate::kBadCrc:
      add(found, Rule::kFpduCrc, "the FPDU that answers " + form + "has a wrong CRC");
      break;
    case RtrResult::Fate::kOdd:
      add(found, rtr.form == mpa::Rtr::kRead ? Rule::kReadRtrNeedsIrd : Rule::kTakeNamedRtr,
          form + "was answered by " + rtr.what);
      break;
  }
}

void judge_private_data(ConstBytes data, Deviations& found) {
  for (std::size_t at = 0; at + rpcrdma::PrivateData::kSize <= data.size(); ++at) {
    if (load_be<std::uint32_t>(data.subspan(at)) != rpcrdma::PrivateData::kMagic) continue;
    if (std::to_integer<unsigned>(data[at + 4]) == 1 && (std::to_integer<unsigned>(data[at + 5]) & 0xFE) != 0)
      add(found, Rule::kRpcReservedBits, "reserved bits of the RPC-over-RDMA private data are set");
    return;
  }
}

}  // namespace iwarp::tools::probe
