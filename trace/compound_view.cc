#include "iwarp/trace/compound_view.h"

#include <algorithm>
#include <array>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/nfs_compound.h"
#include "iwarp/rpcrdma/padding.h"
#include "iwarp/trace/nfs_names.h"

namespace iwarp::trace {
namespace {

using rpcrdma::NfsOp;
using rpcrdma::skip_xdr;

constexpr std::size_t kMaxTagBytes = 1024;
constexpr std::uint32_t kSymlinkType = 5;  // NF4LNK
constexpr std::uint32_t kFirstCallbackOp = 3;

// Schemas (nfs_compound.h) of callback operations, from CB_GETATTR on (RFC 7863).
struct CallbackSchema {
  std::string_view arguments, results;
};
constexpr std::array kCallbackOps = {
    CallbackSchema{"ob", "A"},                                               // CB_GETATTR
    CallbackSchema{"swo", ""},                                               // CB_RECALL
    CallbackSchema{"www{1=odds;2=dd;3=}", ""},                               // CB_LAYOUTRECALL
    CallbackSchema{"so[bo]", ""},                                            // CB_NOTIFY
    CallbackSchema{"o{0=;1=swwwwo;2=sw{1=d;2=ww}wwwo;3={1=w;2=w;*=}}", ""},  // CB_PUSH_DELEG
    CallbackSchema{"wb", ""},                                                // CB_RECALL_ANY
    CallbackSchema{"wb", ""},                                                // CB_RECALLABLE_OBJ_AVAIL
    CallbackSchema{"w", ""},                                                 // CB_RECALL_SLOT
    CallbackSchema{"swwww[s[ww]]", "swwww"},                                 // CB_SEQUENCE
    CallbackSchema{"ww", ""},                                                // CB_WANTS_CANCELLED
    CallbackSchema{"odo", ""},                                               // CB_NOTIFY_LOCK
    CallbackSchema{"[bo]", ""},                                              // CB_NOTIFY_DEVICEID
    CallbackSchema{"os{0=[s]dwd;*=d}", ""},                                  // CB_OFFLOAD
};

const CallbackSchema* find_callback(std::uint32_t op) {
  const std::size_t i = op - kFirstCallbackOp;
  return op >= kFirstCallbackOp && i < kCallbackOps.size() ? &kCallbackOps[i] : nullptr;
}

std::uint64_t padded(std::uint32_t length) {
  return (std::uint64_t{length} + 3) & ~std::uint64_t{3};
}

bool skip_padded(ReadCursor& in, std::uint32_t length) {
  if (padded(length) > in.remaining()) return false;
  in.skip(static_cast<std::size_t>(padded(length)));
  return true;
}

std::optional<std::string> read_tag(ReadCursor& in) {
  const auto length = in.be<std::uint32_t>();
  if (!in.ok() || length > kMaxTagBytes) return std::nullopt;
  const ConstBytes bytes = in.take(length);
  in.skip(static_cast<std::size_t>(padded(length) - length));
  if (!in.ok()) return std::nullopt;
  std::string out;
  for (const std::byte b : bytes) out += static_cast<char>(b);
  return out;
}

// The arguments or results of a message, operation by operation.
class Body {
 public:
  Body(ConstBytes message, std::size_t offset, const DataPlaces& places)
      : in(message.subspan(offset)), size_(message.size()), places_(places) {}

  // Arguments, behind the operation number. False: what follows cannot be found.
  bool skip_arguments(std::uint32_t op) {
    if (op == static_cast<std::uint32_t>(NfsOp::kWrite)) return skip_xdr(in, "sdw") && skip_data();
    if (op == static_cast<std::uint32_t>(NfsOp::kCreate)) {
      ReadCursor type = in;
      if (type.be<std::uint32_t>() == kSymlinkType && type.ok()) {
        in = type;
        return skip_data() && skip_xdr(in, "oA");
      }
    }
    return rpcrdma::skip_arguments(in, op);
  }

  // Results, behind the status 0.
  bool skip_results(std::uint32_t op) {
    const bool read = op == static_cast<std::uint32_t>(NfsOp::kRead);
    if (!read && op != static_cast<std::uint32_t>(NfsOp::kReadlink)) return rpcrdma::skip_results(in, op);
    if (read) in.skip(4);  // eof
    const bool written = item_ < places_.write_chunks.size() && places_.write_chunks[item_];
    ++item_;
    return skip_data(written);
  }

  ReadCursor in;

 private:
  bool skip_data(bool written = false) {
    const auto length = in.be<std::uint32_t>();
    if (!in.ok()) return false;
    const std::uint64_t at = size_ - in.remaining();
    const auto& reads = places_.read_positions;
    if (written || std::find(reads.begin(), reads.end(), at - pads_ + absent_) != reads.end()) {
      absent_ += padded(length);
      return true;
    }
    const rpcrdma::Padding& padding = places_.padding;
    if (padding.align > 0 && length > padding.threshold) {
      const std::size_t pad = rpcrdma::pad_octets(places_.header_bytes + at, padding.align);
      if (pad > in.remaining()) return false;
      in.skip(pad);
      pads_ += pad;
    }
    return skip_padded(in, length);
  }

  std::size_t size_;
  const DataPlaces& places_;
  std::size_t item_ = 0;
  std::uint64_t absent_ = 0, pads_ = 0;  // octets that the message lacks so far, and that it has too many
};

}  // namespace

std::string CompoundView::ops_list(bool callback) const {
  std::string out = "[";
  for (const std::uint32_t op : ops) {
    if (out.size() > 1) out += ' ';
    out += nfs4_op_name(op, callback);
  }
  if (ops.size() < count) out += ops.empty() ? "..." : " ...";
  return out + ']';
}

std::optional<std::uint32_t> CompoundView::main_op(bool callback) const {
  // PUTFH, PUTPUBFH, PUTROOTFH, RESTOREFH, SAVEFH, SEQUENCE
  constexpr std::array<std::uint32_t, 6> kPreparing = {22, 23, 24, 31, 32, 53};
  constexpr std::uint32_t kCallbackSequence = 11;
  for (const std::uint32_t op : ops) {
    const bool prepares =
        callback ? op == kCallbackSequence : std::find(kPreparing.begin(), kPreparing.end(), op) != kPreparing.end();
    if (!prepares) return op;
  }
  return ops.empty() ? std::nullopt : std::optional(ops.back());
}

CompoundView view_compound_call(ConstBytes message, std::size_t offset, bool callback, const DataPlaces& places) {
  CompoundView out;
  Body arguments(message, offset, places);
  ReadCursor& in = arguments.in;
  out.tag = read_tag(in);
  if (!out.tag) return out;
  const auto minor_version = in.be<std::uint32_t>();
  if (!in.ok()) return out;
  out.minor_version = minor_version;
  if (callback) in.skip(4);  // callback_ident
  const auto count = in.be<std::uint32_t>();
  if (!in.ok()) return out;
  out.count = count;
  while (out.ops.size() < count) {
    const auto op = in.be<std::uint32_t>();
    if (!in.ok()) break;
    out.ops.push_back(op);
    const CallbackSchema* schema = callback ? find_callback(op) : nullptr;
    if (callback ? schema == nullptr || !skip_xdr(in, schema->arguments) : !arguments.skip_arguments(op)) break;
  }
  return out;
}

CompoundView view_compound_reply(ConstBytes message, std::size_t offset, bool callback, const DataPlaces& places) {
  CompoundView out;
  Body results(message, offset, places);
  ReadCursor& in = results.in;
  const auto status = in.be<std::uint32_t>();
  if (!in.ok()) return out;
  out.status = status;
  out.tag = read_tag(in);
  if (!out.tag) return out;
  const auto count = in.be<std::uint32_t>();
  if (!in.ok()) return out;
  out.count = count;
  while (out.ops.size() < count) {
    const auto op = in.be<std::uint32_t>();
    if (!in.ok()) break;
    out.ops.push_back(op);
    const auto op_status = in.be<std::uint32_t>();
    if (!in.ok() || op_status != 0) break;
    const CallbackSchema* schema = callback ? find_callback(op) : nullptr;
    if (callback ? schema == nullptr || !skip_xdr(in, schema->results) : !results.skip_results(op)) break;
  }
  return out;
}

}  // namespace iwarp::trace
