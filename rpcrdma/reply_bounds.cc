#include "iwarp/rpcrdma/reply_bounds.h"

#include <cstdint>
#include <initializer_list>

#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {
namespace {

// Procedures by number, one bit each. The longest result among them is RENAME's of version 3: status and two wcc_data
// of 28 + 88 octets; LOOKUP and CREATE add a file handle of 72. The rest of the Reply is at most 28 octets of transport
// header, 24 fixed ones and a verifier of 400: below 1024 (RFC 1813, RFC 1094, RFC 5531 s8.2).
constexpr std::uint32_t bits(std::initializer_list<unsigned> procedures) {
  std::uint32_t out = 0;
  for (const unsigned p : procedures) out |= 1u << p;
  return out;
}
// All but READLINK 5, READ 6, READDIR 16, READDIRPLUS 17.
// req: RFC8267-3-3
constexpr std::uint32_t kShortV3 = bits({0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 19, 20, 21});
// All but READLINK 5, READ 6, READDIR 16.
constexpr std::uint32_t kShortV2 = bits({0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17});

}  // namespace

bool reply_is_short(ConstBytes call) {
  const Result<RpcCall> head = RpcCall::parse(call);
  // req: RFC8166-8.2.2.2-1 RFC8166-8.2.2.3-3
  if (!head || head->gss || head->credential.flavor == kRpcsecGss) return false;
  if (head->procedure == 0) return true;                                   // NULL, in every program
  if (head->program != kNfsProgram || head->procedure > 31) return false;  // req: RFC8267-5.2-3
  const std::uint32_t bit = 1u << head->procedure;
  // req: RFC8267-6.2-1
  return (head->version == 3 && (kShortV3 & bit) != 0) || (head->version == 2 && (kShortV2 & bit) != 0);
}

}  // namespace iwarp::rpcrdma
