#include "iwarp/rpcrdma/rpc_message.h"

#include "iwarp/base/wire.h"

namespace iwarp::rpcrdma {
namespace {

constexpr std::uint32_t kMsgAccepted = 0;
constexpr std::uint32_t kMsgDenied = 1;
constexpr std::uint32_t kAuthError = 1;  // reject_stat

Error malformed(const char* why) {
  return make_error(Errc::kMalformedRpc, why);
}

// False when the cursor ends early or the body is longer than RFC 5531 allows.
bool read_auth(ReadCursor& in, OpaqueAuth& out) {
  out.flavor = in.be<std::uint32_t>();
  const std::uint32_t length = in.be<std::uint32_t>();
  if (length > kMaxAuthBytes) return false;
  out.body = in.take(length);
  in.skip((4 - length % 4) % 4);
  return in.ok();
}

std::optional<GssCredential> read_gss(ConstBytes body) {
  ReadCursor in(body);
  GssCredential out;
  out.version = in.be<std::uint32_t>();
  out.procedure = in.be<std::uint32_t>();
  out.sequence = in.be<std::uint32_t>();
  out.service = in.be<std::uint32_t>();
  in.skip(in.be<std::uint32_t>());  // context handle
  if (!in.ok()) return std::nullopt;
  return out;
}

}  // namespace

bool RpcCall::body_is_plain() const {
  if (!gss) return credential.flavor != kRpcsecGss;
  constexpr std::uint32_t kData = 0;
  constexpr std::uint32_t kNewestVersion = 3;  // RFC 7861; RFC 5403 is 2. All three have this credential
  // req: RFC8166-8.2.2-1 RFC8166-8.2.2.3-2 D2005-11-1
  return gss->version >= 1 && gss->version <= kNewestVersion && gss->procedure == kData &&
         gss->service == static_cast<std::uint32_t>(GssCredential::Service::kNone);
}

Result<RpcCall> RpcCall::parse(ConstBytes message) {
  ReadCursor in(message);
  RpcCall out;
  out.xid = in.be<std::uint32_t>();
  const std::uint32_t direction = in.be<std::uint32_t>();
  out.rpc_version = in.be<std::uint32_t>();
  out.program = in.be<std::uint32_t>();
  out.version = in.be<std::uint32_t>();
  out.procedure = in.be<std::uint32_t>();
  if (!in.ok()) return malformed("RPC call shorter than its fixed words");
  if (direction != static_cast<std::uint32_t>(RpcDirection::kCall)) return malformed("RPC message is not a call");
  if (out.rpc_version != kRpcVersion) return malformed("RPC version is not 2");
  if (!read_auth(in, out.credential)) return malformed("RPC credential too long or truncated");
  if (!read_auth(in, out.verifier)) return malformed("RPC verifier too long or truncated");
  if (out.credential.flavor == kRpcsecGss) {
    out.gss = read_gss(out.credential.body);
    if (!out.gss) return malformed("RPCSEC_GSS credential truncated");
  }
  out.arguments_offset = message.size() - in.remaining();
  return out;
}

Result<RpcReply> RpcReply::parse(ConstBytes message) {
  ReadCursor in(message);
  RpcReply out;
  out.xid = in.be<std::uint32_t>();
  const std::uint32_t direction = in.be<std::uint32_t>();
  const std::uint32_t reply_stat = in.be<std::uint32_t>();
  if (!in.ok()) return malformed("RPC reply shorter than its fixed words");
  if (direction != static_cast<std::uint32_t>(RpcDirection::kReply)) return malformed("RPC message is not a reply");
  if (reply_stat == kMsgDenied) return out;
  if (reply_stat != kMsgAccepted) return malformed("RPC reply is neither accepted nor denied");
  out.accepted = true;
  if (!read_auth(in, out.verifier)) return malformed("RPC verifier too long or truncated");
  out.accept_stat = static_cast<AcceptStat>(in.be<std::uint32_t>());
  if (!in.ok()) return malformed("RPC reply ends before accept_stat");
  out.results_offset = message.size() - in.remaining();
  return out;
}

std::optional<std::uint32_t> rpc_xid(ConstBytes message) {
  const auto head = FixedView<4>::of(message);
  if (!head) return std::nullopt;
  return head->be<std::uint32_t, 0>();
}

std::optional<RpcDirection> rpc_direction(ConstBytes message) {
  const auto head = FixedView<8>::of(message);
  if (!head) return std::nullopt;
  const auto word = head->be<std::uint32_t, 4>();
  if (word > static_cast<std::uint32_t>(RpcDirection::kReply)) return std::nullopt;
  return static_cast<RpcDirection>(word);  // req: RFC8166-2.2.2-1
}

std::array<std::byte, kErrorReplyBytes> make_error_reply(std::uint32_t xid, AcceptStat stat) {
  std::array<std::byte, kErrorReplyBytes> out{};
  FixedWriter<kErrorReplyBytes> w{out};
  w.be<0>(xid);  // req: RFC8166-2.2.2-2
  w.be<4>(static_cast<std::uint32_t>(RpcDirection::kReply));
  w.be<8>(kMsgAccepted);
  w.be<12>(kAuthNone);  // verifier: flavor, and no body at 16
  w.be<20>(static_cast<std::uint32_t>(stat));
  return out;
}

std::array<std::byte, kAuthErrorReplyBytes> make_auth_error_reply(std::uint32_t xid, AuthStat stat) {
  std::array<std::byte, kAuthErrorReplyBytes> out{};
  FixedWriter<kAuthErrorReplyBytes> w{out};
  w.be<0>(xid);
  w.be<4>(static_cast<std::uint32_t>(RpcDirection::kReply));
  w.be<8>(kMsgDenied);
  w.be<12>(kAuthError);
  w.be<16>(static_cast<std::uint32_t>(stat));
  return out;
}

}  // namespace iwarp::rpcrdma
