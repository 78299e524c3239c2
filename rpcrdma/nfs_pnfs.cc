#include "iwarp/rpcrdma/nfs_pnfs.h"

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

}  // namespace

bool has_exchange_id(ConstBytes call) {
  const Result<RpcCall> head = RpcCall::parse(call);
  if (!head || head->program != kNfsProgram || head->version != 4 || head->procedure != kCompound ||
      !head->body_is_plain())
    return false;
  ReadCursor in(call.subspan(head->arguments_offset));
  if (!skip_xdr(in, "o")) return false;  // tag
  const auto minor_version = in.be<std::uint32_t>();
  const auto operations = in.be<std::uint32_t>();
  if (!in.ok() || minor_version < 1 || minor_version > 2 || operations > in.remaining() / 4) return false;
  for (std::uint32_t i = 0; i < operations; ++i) {
    const auto op = in.be<std::uint32_t>();
    if (in.ok() && op == kExchangeId) return true;
    if (!in.ok() || !skip_arguments(in, op)) return false;
  }
  return false;
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
