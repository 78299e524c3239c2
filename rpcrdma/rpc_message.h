// The head of an ONC RPC message (RFC 5531), as far as a transport and its Upper-Layer Bindings need it: who is called,
// which security service wraps the body, where arguments or results begin. Views only, no decoding of the body, no
// allocation. Spans live as long as the message given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"

namespace iwarp::rpcrdma {

// The second word of any RPC message.
enum class RpcDirection : std::uint32_t { kCall = 0, kReply = 1 };
inline constexpr std::uint32_t kRpcVersion = 2;    // the only one there is
inline constexpr std::size_t kMaxAuthBytes = 400;  // RFC 5531 s8.2
inline constexpr std::uint32_t kAuthNone = 0;      // flavor: no credential
inline constexpr std::uint32_t kAuthSys = 1;       // flavor: user and group ids, unproved
inline constexpr std::uint32_t kRpcsecGss = 6;     // flavor: RFC 2203
inline constexpr std::uint32_t kAuthTls = 7;       // RFC 9289 s4.1: a NULL Call that asks whether the server has TLS

// How the server took an accepted Call (RFC 5531 s9).
enum class AcceptStat : std::uint32_t {
  kSuccess = 0,
  kProgUnavail = 1,
  kProgMismatch = 2,
  kProcUnavail = 3,
  kGarbageArgs = 4,
  kSystemErr = 5,
};

// opaque_auth: flavor | length | up to 400 octets, padded.
struct OpaqueAuth {
  std::uint32_t flavor = kAuthNone;  // kAuthNone, kAuthSys or any other that the peer sent
  ConstBytes body{};                 // without the padding
};

// RPCSEC_GSS credential (RFC 2203 s5): version | gss_proc | seq_num | service | context handle.
struct GssCredential {
  // What is protected besides the head.
  enum class Service : std::uint32_t { kNone = 1, kIntegrity = 2, kPrivacy = 3 };
  std::uint32_t version = 1;    // as received
  std::uint32_t procedure = 0;  // 0 DATA, 1 INIT, 2 CONTINUE_INIT, 3 DESTROY
  std::uint32_t sequence = 0;   // of this Call within its context
  std::uint32_t service = 0;    // a Service, or any other value the peer sent
};

// The head of a Call.
struct RpcCall {
  std::uint32_t xid = 0;                    // chosen by the caller
  std::uint32_t rpc_version = kRpcVersion;  // as received; only version 2 has the fields below
  std::uint32_t program = 0;                // such as 100003, NFS
  std::uint32_t version = 0;                // of the program
  std::uint32_t procedure = 0;              // of that version
  OpaqueAuth credential{};                  // who calls
  OpaqueAuth verifier{};                    // proof of that, by flavor
  std::optional<GssCredential> gss{};       // present when the credential is RPCSEC_GSS
  std::size_t arguments_offset = 0;         // from the start of the message; a multiple of 4

  // Whether the arguments and results travel as the program defines them. False for RPCSEC_GSS integrity, privacy,
  // context control and unknown services: nothing may then be reduced (RFC 8166 s8.2.2.3).
  [[nodiscard]] bool body_is_plain() const;
  // Errc::kMalformedRpc when `message` ends too early, is no Call, is not RPC version 2, or has oversized or malformed
  // credentials.
  [[nodiscard]] static Result<RpcCall> parse(ConstBytes message);
};

// The head of a Reply.
struct RpcReply {
  std::uint32_t xid = 0;                          // of the Call
  bool accepted = false;                          // false: MSG_DENIED, and nothing below is set
  OpaqueAuth verifier{};                          // proof of the server, by flavor
  AcceptStat accept_stat = AcceptStat::kSuccess;  // as received, possibly no named value
  std::size_t results_offset = 0;                 // behind accept_stat; results of the procedure if kSuccess

  // Whether results of the procedure follow.
  [[nodiscard]] bool success() const { return accepted && accept_stat == AcceptStat::kSuccess; }
  // Errc::kMalformedRpc when `message` ends too early, is no Reply, or has an oversized verifier.
  [[nodiscard]] static Result<RpcReply> parse(ConstBytes message);
};

// First and second word of any RPC message; nullopt if absent, or if the second is neither Call nor Reply.
[[nodiscard]] std::optional<std::uint32_t> rpc_xid(ConstBytes message);
// The same for the second word.
[[nodiscard]] std::optional<RpcDirection> rpc_direction(ConstBytes message);

// A complete accepted Reply without results and with an AUTH_NONE verifier: 24 octets. For kGarbageArgs, kSystemErr,
// kProcUnavail, kProgUnavail.
inline constexpr std::size_t kErrorReplyBytes = 24;
// That Reply, to the Call of that xid.
[[nodiscard]] std::array<std::byte, kErrorReplyBytes> make_error_reply(std::uint32_t xid, AcceptStat stat);

// auth_stat (RFC 5531 s9), as far as it is needed.
enum class AuthStat : std::uint32_t { kRejectedCred = 2 };

// A complete denied Reply, AUTH_ERROR: 20 octets.
inline constexpr std::size_t kAuthErrorReplyBytes = 20;
// That Reply, to the Call of that xid.
[[nodiscard]] std::array<std::byte, kAuthErrorReplyBytes> make_auth_error_reply(std::uint32_t xid, AuthStat stat);

}  // namespace iwarp::rpcrdma
