#include "iwarp/rpcrdma/reply_bounds.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "iwarp/rpcrdma/compound_bound.h"
#include "iwarp/rpcrdma/nfs_auxiliary.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/nfs_compound.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/rpcrdma/xdr_padding.h"

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

constexpr std::uint32_t kReadlink = 5;
constexpr std::uint32_t kRead = 6;
constexpr std::uint32_t kReaddir = 16;
constexpr std::uint32_t kReaddirplus = 17;
constexpr std::uint32_t kCompound = 1;
constexpr std::size_t kMaxPathV2 = 1024;  // MAXPATHLEN of RFC 1094

// READ of versions 2 and 3, where `before` precedes the count: status, attributes, count, eof, and the data, never more
// than asked for (RFC 1813 s3.3.6, RFC 1094 s2.2.7).
std::optional<std::size_t> read_bound(ReadCursor in, std::string_view before) {
  constexpr std::size_t kBeforeData = 4 + 4 + 84 + 4 + 4 + 4;
  if (!skip_xdr(in, before)) return std::nullopt;
  const std::size_t count = in.be<std::uint32_t>();
  if (!in.ok()) return std::nullopt;
  return kReplyHead + kBeforeData + (count + 3) / 4 * 4;
}

// READDIR and READDIRPLUS, where `before` precedes the count of octets that is their limit. req: RFC8267-3-3
std::optional<std::size_t> directory_bound(ReadCursor in, std::string_view before) {
  if (!skip_xdr(in, before)) return std::nullopt;
  const auto count = in.be<std::uint32_t>();
  if (!in.ok()) return std::nullopt;
  return kReplyHead + counted_bound(count);
}

std::optional<std::size_t> bound_v2(std::uint32_t procedure, const ReadCursor& arguments) {
  if (procedure == kRead) return read_bound(arguments, "ssw");
  if (procedure == kReaddir) return directory_bound(arguments, "ssw");
  if (procedure == kReadlink) return kReplyHead + 4 + 4 + kMaxPathV2;
  if ((kShortV2 >> procedure & 1) != 0) return kShort;
  return std::nullopt;
}

std::optional<std::size_t> bound_v3(std::uint32_t procedure, const ReadCursor& arguments, std::uint32_t path_bytes) {
  if (procedure == kRead) return read_bound(arguments, "od");
  if (procedure == kReaddir) return directory_bound(arguments, "odd");
  if (procedure == kReaddirplus) return directory_bound(arguments, "oddw");
  if (procedure == kReadlink && path_bytes > 0) {  // status, attributes, path
    return kReplyHead + 4 + (4 + 84) + 4 + static_cast<std::size_t>(padded(path_bytes));
  }
  if ((kShortV3 >> procedure & 1) != 0) return kShort;
  return std::nullopt;
}

// The Call, if it may be looked into: neither malformed nor wrapped by RPCSEC_GSS. One that RPCSEC_GSS only
// authenticates is as good as any: there is room for the longest verifier.
std::optional<RpcCall> open_call(ConstBytes call) {
  const Result<RpcCall> head = RpcCall::parse(call);
  if (!head || !head->body_is_plain()) return std::nullopt;  // req: RFC8166-8.2.2.2-1 RFC8166-8.2.2.3-3
  return *head;
}

std::optional<std::size_t> behind_head(std::optional<std::size_t> results) {
  if (results) *results += kReplyHead;
  return results;
}

}  // namespace

std::optional<std::size_t> reply_bound(ConstBytes call, std::uint32_t path_bytes) {
  const auto head = open_call(call);
  if (!head) return std::nullopt;
  if (head->procedure == 0) return kShort;  // NULL, in every program
  // req: RFC8267-5.2-3
  if (head->program != kNfsProgram)
    return behind_head(auxiliary_results_bound(head->program, head->version, head->procedure));
  if (head->procedure > 31) return std::nullopt;
  const ReadCursor arguments(call.subspan(head->arguments_offset));
  switch (head->version) {
    case 2:
      return bound_v2(head->procedure, arguments);
    case 3:
      return bound_v3(head->procedure, arguments, path_bytes);
    case 4:
      if (head->procedure != kCompound) return std::nullopt;
      return behind_head(compound_reply_bound(arguments, path_bytes));  // req: RFC8267-6.2-1
    default:
      return std::nullopt;
  }
}

std::optional<std::size_t> reply_guess(ConstBytes call) {
  const auto head = open_call(call);
  if (!head || head->gss) return std::nullopt;  // its verifier covers the xid
  // No operation of versions 2 and 3 of NFS. req: RFC8267-4.1-1
  if (head->program != kNfsProgram)
    return behind_head(auxiliary_results_guess(head->program, head->version, head->procedure));  // req: RFC8267-5.2-4
  if (head->version != 4 || head->procedure != kCompound) return std::nullopt;
  return behind_head(compound_reply_guess(ReadCursor(call.subspan(head->arguments_offset))));  // req: RFC8267-6.2.1-1
}

}  // namespace iwarp::rpcrdma
