// ONC RPC messages (RFC 5531) as Client and Server make them: what is called, with which credential, and how it was
// taken. The octets of arguments and results are the program's own.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpc {

using Octets = std::vector<std::byte>;  // owned, where a span is not enough

// What is called.
struct Procedure {
  std::uint32_t program = 0;    // such as 0x20000042
  std::uint32_t version = 0;    // of the program
  std::uint32_t procedure = 0;  // of that version
  friend constexpr bool operator==(const Procedure&, const Procedure&) = default;
};

// Who calls, as an opaque_auth. By default AUTH_NONE.
struct Credential {
  std::uint32_t flavor = rpcrdma::kAuthNone;  // any that the server knows
  Octets body{};                              // at most 400 octets

  // AUTH_SYS, which proves nothing (RFC 5531 appendix A). `host`: at most 255 octets, cut there; `groups`: at most 16,
  // likewise.
  [[nodiscard]] static Credential sys(const std::string& host, std::uint32_t uid, std::uint32_t gid,
                                      const std::vector<std::uint32_t>& groups = {});
};

// A whole RPC Call. The xid is 0: the Client sets it. A credential or verifier of more than 400 octets is cut there.
[[nodiscard]] Octets encode_call(const Procedure& what, const Credential& credential, const Credential& verifier,
                                 ConstBytes arguments);
// A whole accepted RPC Reply, with an AUTH_NONE verifier. `results`: of the procedure if kSuccess; of kProgMismatch the
// lowest and highest version, a word each; else none.
[[nodiscard]] Octets encode_reply(std::uint32_t xid, rpcrdma::AcceptStat stat, ConstBytes results);

}  // namespace iwarp::rpc
