#include "iwarp/rpcrdma/nfs_pnfs.h"

#include <algorithm>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/nfs_compound.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {
namespace {

constexpr std::uint32_t kCompound = 1;
constexpr std::uint32_t kExchangeId = 42;
constexpr std::uint32_t kUseNonPnfs = 0x00010000;
constexpr std::uint32_t kUsePnfsMds = 0x00020000;
constexpr std::uint32_t kUsePnfsDs = 0x00040000;
constexpr std::size_t kBeforeFlags = 12;  // eir_clientid, eir_sequenceid

constexpr std::uint32_t kGetattr = 9;
constexpr std::uint32_t kReaddir = 26;
constexpr std::size_t kBeforeReaddirBitmap = 24;  // cookie, cookieverf, dircount, maxcount
// FATTR4_FS_LAYOUT_TYPES (62); LAYOUT_TYPES, LAYOUT_BLKSIZE, LAYOUT_ALIGNMENT (64 to 66) and MDSTHRESHOLD (68).
// LAYOUT_HINT (63) can be set only.
constexpr std::uint32_t kLayoutsOfWord1 = 1u << 30;
constexpr std::uint32_t kLayoutsOfWord2 = 0x17;

// Calls `visit` with each operation's number and what follows it, as far as the walk gets; until it returns false.
template <class Visit>
void each_operation(ConstBytes call, Visit visit) {
  const Result<RpcCall> head = RpcCall::parse(call);
  if (!head || head->program != kNfsProgram || head->version != 4 || head->procedure != kCompound ||
      !head->body_is_plain())
    return;
  ReadCursor in(call.subspan(head->arguments_offset));
  if (!skip_xdr(in, "o")) return;  // tag
  const auto minor_version = in.be<std::uint32_t>();
  const auto operations = in.be<std::uint32_t>();
  if (!in.ok() || minor_version < 1 || minor_version > 2 || operations > in.remaining() / 4) return;
  for (std::uint32_t i = 0; i < operations; ++i) {
    const auto op = in.be<std::uint32_t>();
    if (!in.ok() || !visit(op, call.last(in.remaining())) || !skip_arguments(in, op)) return;
  }
}

// Clears `attributes` in a word of the bitmap4 at the front of `in`. Whether any was there.
bool take_out(MutBytes in, std::size_t word, std::uint32_t attributes) {
  if (in.size() < 4 || load_be<std::uint32_t>(in) <= word || in.size() / 4 < word + 2) return false;
  const MutBytes at = in.subspan(4 * (word + 1), 4);
  const auto asked = load_be<std::uint32_t>(at);
  if ((asked & attributes) == 0) return false;
  store_be<std::uint32_t>(at, asked & ~attributes);
  return true;
}

}  // namespace

bool has_exchange_id(ConstBytes call) {
  bool found = false;
  each_operation(call, [&](std::uint32_t op, ConstBytes) { return !(found = op == kExchangeId); });
  return found;
}

bool hide_layout_attributes(MutBytes call) {
  bool hidden = false;
  each_operation(call, [&](std::uint32_t op, ConstBytes arguments) {
    if (op != kGetattr && op != kReaddir) return true;
    const std::size_t bitmap_at = call.size() - arguments.size() + (op == kReaddir ? kBeforeReaddirBitmap : 0);
    const MutBytes bitmap = call.subspan(std::min(bitmap_at, call.size()));
    hidden = take_out(bitmap, 1, kLayoutsOfWord1) || hidden;
    hidden = take_out(bitmap, 2, kLayoutsOfWord2) || hidden;
    return true;
  });
  return hidden;
}

bool hide_layouts(MutBytes reply) {
  const Result<RpcReply> head = RpcReply::parse(reply);
  if (!head || !head->success()) return false;
  ReadCursor in(ConstBytes(reply).subspan(head->results_offset));
  if (!skip_xdr(in, "wo")) return false;  // status, tag
  const auto results = in.be<std::uint32_t>();
  if (!in.ok() || results > in.remaining() / 8) return false;
  bool hidden = false;
  for (std::uint32_t i = 0; i < results; ++i) {
    const auto op = in.be<std::uint32_t>();
    const auto status = in.be<std::uint32_t>();
    if (!in.ok() || status != 0) break;
    if (op == kExchangeId && in.remaining() >= kBeforeFlags + 4) {
      const MutBytes word = reply.subspan(reply.size() - in.remaining() + kBeforeFlags, 4);
      const auto flags = load_be<std::uint32_t>(word);
      if ((flags & (kUsePnfsMds | kUsePnfsDs)) != 0) {
        store_be<std::uint32_t>(word, (flags & ~(kUsePnfsMds | kUsePnfsDs)) | kUseNonPnfs);
        hidden = true;
      }
    }
    if (!skip_results(in, op)) break;
  }
  return hidden;
}

}  // namespace iwarp::rpcrdma
