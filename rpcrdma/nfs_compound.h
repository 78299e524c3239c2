// Stepping over NFSv4 operations (RFC 7531, RFC 5662, RFC 7863, RFC 8276) without decoding them. Internal to the NFS
// binding: all operations of minor versions 0, 1 and 2 are described by one table of schemas.
#pragma once

#include <cstdint>
#include <string_view>

#include "iwarp/base/wire.h"

namespace iwarp::rpcrdma {

// nfs_opnum4, as far as the binding names them.
enum class NfsOp : std::uint32_t { kCreate = 6, kRead = 25, kReadlink = 27, kWrite = 38, kCreateSession = 43 };

// Moves `in` behind the XDR value that `schema` describes; false, with `in` somewhere inside, if the value is truncated
// or malformed. No length or count of the peer is used before it was compared with the octets left; recursion follows
// the schema, never the data.
//   w d s     word, double word, 16 octets      o      opaque or string      b      array of words (bitmap4)
//   A         fattr4                            t      nfstime4              c      change_info4
//   [x]       counted array of x                <x>    linked list of x, each behind a word 1, closed by 0
//   {k=x;..}  union on a word: arm k, or *=x for any other; no arm is an error
[[nodiscard]] bool skip_xdr(ReadCursor& in, std::string_view schema);

// Moves `in` from behind the operation number to behind its arguments. False if the operation is unknown or malformed.
[[nodiscard]] bool skip_arguments(ReadCursor& in, std::uint32_t op);
// Moves `in` from behind the status NFS4_OK to behind the operation's result.
[[nodiscard]] bool skip_results(ReadCursor& in, std::uint32_t op);

// The word of a Call that names its program, whatever else is wrong with it; 0: it ends before.
[[nodiscard]] inline std::uint32_t program_word(ConstBytes call) {
  const auto head = FixedView<16>::of(call);
  return head ? head->be<std::uint32_t, 12>() : 0;
}

// Schema of channel_attrs4, and what precedes the back channel's in CREATE_SESSION4args.
inline constexpr std::string_view kChannelAttrs = "wwwwwwb";
inline constexpr std::string_view kBeforeBackChannelArguments = "dwwwwwwwwb";

}  // namespace iwarp::rpcrdma
