#include "iwarp/rpcrdma/reply_bounds.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "iwarp/rpcrdma/compound_bound.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/nfs_compound.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {
namespace {

// The longest result of the procedures below is RENAME's of version 3: status and two wcc_data of 28 + 88 octets;
// LOOKUP and CREATE add a file handle of 72. With the head and a transport header of 28 octets: below 1024 (RFC 1813,
// RFC 1094).
constexpr std::size_t kShort = 1024 - 28;

// Procedures by number, one bit each.
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

constexpr std::uint32_t kRead = 6;
constexpr std::uint32_t kCompound = 1;

// READ of versions 2 and 3, where `before` precedes the count: status, attributes, count, eof, and the data, never more
// than asked for (RFC 1813 s3.3.6, RFC 1094 s2.2.7).
std::optional<std::size_t> read_bound(ReadCursor in, std::string_view before) {
  constexpr std::size_t kBeforeData = 4 + 4 + 84 + 4 + 4 + 4;
  if (!skip_xdr(in, before)) return std::nullopt;
  const std::size_t count = in.be<std::uint32_t>();
  if (!in.ok()) return std::nullopt;
  return kReplyHead + kBeforeData + (count + 3) / 4 * 4;
}

}  // namespace

std::optional<std::size_t> reply_bound(ConstBytes call) {
  const Result<RpcCall> head = RpcCall::parse(call);
  // req: RFC8166-8.2.2.2-1 RFC8166-8.2.2.3-3
  if (!head || head->gss || head->credential.flavor == kRpcsecGss) return std::nullopt;
  if (head->procedure == 0) return kShort;  // NULL, in every program
  // req: RFC8267-5.2-3
  if (head->program != kNfsProgram || head->procedure > 31) return std::nullopt;
  const ReadCursor arguments(call.subspan(head->arguments_offset));
  const std::uint32_t bit = 1u << head->procedure;
  switch (head->version) {
    case 2:
      if (head->procedure == kRead) return read_bound(arguments, "ssw");
      if ((kShortV2 & bit) != 0) return kShort;
      return std::nullopt;
    case 3:
      if (head->procedure == kRead) return read_bound(arguments, "od");
      if ((kShortV3 & bit) != 0) return kShort;
      return std::nullopt;
    case 4: {
      if (head->procedure != kCompound) return std::nullopt;
      const auto bound = compound_reply_bound(arguments);  // req: RFC8267-6.2-1
      if (!bound) return std::nullopt;
      return kReplyHead + *bound;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace iwarp::rpcrdma
