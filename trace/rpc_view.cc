#include "iwarp/trace/rpc_view.h"

#include "iwarp/rpcrdma/private_data.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::trace {
namespace {

using rpcrdma::Header;
using rpcrdma::Proc;

constexpr unsigned kMaxGuesses = 4;
constexpr std::size_t kMaxCalls = 4096;  // far above any credit limit

// Strict, because a wrong guess mislabels everything that follows.
bool looks_like_rpc(const Header& h, ConstBytes payload) {
  if (h.version != rpcrdma::kVersion1) return false;
  if (h.proc == Proc::kMsg) return rpcrdma::xid_matches(h, payload) && rpcrdma::rpc_direction(payload).has_value();
  return h.proc == Proc::kNomsg && h.has_chunks();
}

// What `seen` of `bytes` octets is that could not be read: nobody's fault if the capture lacks the rest.
std::string unreadable(const char* why, std::uint64_t seen, std::uint64_t bytes, bool& malformed) {
  if (seen < bytes) return Pdu("Cut").number("bytes", bytes).number("captured", seen).str();
  malformed = true;
  return Pdu("Malformed").number("bytes", bytes).text("why", why).str();
}

const char* stat_name(rpcrdma::AcceptStat stat) {
  switch (stat) {
    case rpcrdma::AcceptStat::kSuccess:
      return "SUCCESS";
    case rpcrdma::AcceptStat::kProgUnavail:
      return "PROG_UNAVAIL";
    case rpcrdma::AcceptStat::kProgMismatch:
      return "PROG_MISMATCH";
    case rpcrdma::AcceptStat::kProcUnavail:
      return "PROC_UNAVAIL";
    case rpcrdma::AcceptStat::kGarbageArgs:
      return "GARBAGE_ARGS";
    case rpcrdma::AcceptStat::kSystemErr:
      return "SYSTEM_ERR";
  }
  return "unknown";
}

}  // namespace

std::optional<std::string> RpcView::on_private_data(ConstBytes private_data) {
  const auto found = rpcrdma::PrivateData::find(private_data);
  if (!found) return std::nullopt;
  if (guess_ == RpcGuess::kUnknown) guess_ = RpcGuess::kYes;
  return found->to_string();
}

RpcView::Decoded RpcView::on_send(Direction direction, const Message& message) {
  if (guess_ == RpcGuess::kNo) return {};
  const rpcrdma::ParseResult result = Header::parse(message.head);
  const auto* parsed = std::get_if<rpcrdma::ParsedHeader>(&result);
  const ConstBytes payload =
      parsed != nullptr ? ConstBytes(message.head).subspan(parsed->payload_offset) : ConstBytes{};
  if (guess_ == RpcGuess::kUnknown) {
    if (parsed == nullptr || !looks_like_rpc(parsed->header, payload)) {
      if (++guesses_ == kMaxGuesses) guess_ = RpcGuess::kNo;
      return {};
    }
    guess_ = RpcGuess::kYes;
  }
  Decoded out;
  if (parsed == nullptr) {
    const char* why = std::get<rpcrdma::ParseError>(result).why;
    out.header = unreadable(why, message.head.size(), message.length, out.malformed);
    return out;
  }
  out.header = parsed->header.to_string();
  if (parsed->header.proc == Proc::kMsg) {
    out.rpc = rpc_line(direction, payload, message.length - parsed->payload_offset, out.malformed);
  }
  return out;
}

std::string RpcView::rpc_line(Direction direction, ConstBytes message, std::uint64_t bytes, bool& malformed) {
  const auto kind = rpcrdma::rpc_direction(message);
  if (kind == rpcrdma::RpcDirection::kCall) {
    const auto call = rpcrdma::RpcCall::parse(message);
    if (call) {
      if (calls_.size() >= kMaxCalls) calls_.clear();
      calls_[{direction, call->xid}] = {call->program, call->version, call->procedure};
      return Pdu("Call")
          .hex("xid", call->xid)
          .number("prog", call->program)
          .number("vers", call->version)
          .number("proc", call->procedure)
          .number("cred", call->credential.flavor)
          .number("bytes", bytes)
          .str();
    }
  } else if (kind == rpcrdma::RpcDirection::kReply) {
    if (const auto reply = rpcrdma::RpcReply::parse(message)) {
      Pdu pdu("Reply");
      pdu.hex("xid", reply->xid).word("stat", reply->accepted ? stat_name(reply->accept_stat) : "DENIED");
      if (const auto call = calls_.extract({opposite(direction), reply->xid})) {
        const Procedure& p = call.mapped();
        pdu.number("prog", p.program).number("vers", p.version).number("proc", p.procedure);
      }
      return pdu.number("bytes", bytes).str();
    }
  }
  return unreadable("neither an RPC Call nor a Reply", message.size(), bytes, malformed);
}

}  // namespace iwarp::trace
