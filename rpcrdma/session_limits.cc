#include "iwarp/rpcrdma/session_limits.h"

#include <algorithm>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/nfs_compound.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {
namespace {

constexpr std::uint32_t kSequence = 53;
// Less cannot hold an error Reply: not to be believed.
constexpr std::uint32_t kLeastResponse = 1024;

std::optional<SessionId> read_id(ReadCursor& in) {
  const ConstBytes bytes = in.take(SessionId{}.size());
  if (!in.ok()) return std::nullopt;
  SessionId out{};
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

}  // namespace

void SessionLimits::learn(ConstBytes reply) {
  const Result<RpcReply> head = RpcReply::parse(reply);
  if (!head || !head->success()) return;
  ReadCursor in(reply.subspan(head->results_offset));
  if (!skip_xdr(in, "wo")) return;  // status, tag
  const auto results = in.be<std::uint32_t>();
  if (!in.ok() || results > in.remaining() / 8) return;
  for (std::uint32_t i = 0; i < results; ++i) {
    const auto op = in.be<std::uint32_t>();
    const auto status = in.be<std::uint32_t>();
    if (!in.ok() || status != 0) return;
    if (op != static_cast<std::uint32_t>(NfsOp::kCreateSession)) {
      if (!skip_results(in, op)) return;
      continue;
    }
    const auto id = read_id(in);
    // Sequence and flags; headerpadsize and maxrequestsize of the fore channel.
    if (!id || !skip_xdr(in, "wwww")) return;
    const auto max_response = in.be<std::uint32_t>();
    if (!in.ok()) return;
    auto* session = std::find_if(sessions_.begin(), sessions_.end(), [&](const Session& s) { return s.id == *id; });
    if (session == sessions_.end()) {
      session = &sessions_[next_];
      next_ = (next_ + 1) % kMaxSessions;
    }
    *session = {*id, std::max(max_response, kLeastResponse)};
    return;
  }
}

std::optional<std::size_t> SessionLimits::limit(ConstBytes call) const {
  if (program_word(call) != kNfsProgram) return std::nullopt;
  const Result<RpcCall> head = RpcCall::parse(call);
  if (!head || head->version != 4 || head->procedure != 1 || !head->body_is_plain()) return std::nullopt;
  ReadCursor in(call.subspan(head->arguments_offset));
  if (!skip_xdr(in, "oww")) return std::nullopt;  // tag, minor version, operations
  // SEQUENCE is the first of them (RFC 8881 s2.10.6.1).
  if (in.be<std::uint32_t>() != kSequence) return std::nullopt;
  const auto id = read_id(in);
  if (!id) return std::nullopt;
  const auto* const session = std::find_if(sessions_.begin(), sessions_.end(),
                                           [&](const Session& s) { return s.max_response != 0 && s.id == *id; });
  if (session == sessions_.end()) return std::nullopt;
  return session->max_response;
}

}  // namespace iwarp::rpcrdma
