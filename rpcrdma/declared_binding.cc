#include "iwarp/rpcrdma/declared_binding.h"

#include <algorithm>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/nfs_binding.h"

namespace iwarp::rpcrdma {

bool BulkItem::is_in(ConstBytes body) const {
  if (!arm) return true;
  ReadCursor in(body);
  in.skip(arm->offset);
  const auto discriminant = in.be<std::uint32_t>();
  // The word stays in line, of optional-data as well: its arm is 1. req: RFC8166-3.4.4.3-2 RFC8166-3.4.4.2-1
  // And what it says is there goes into the chunk. req: RFC8166-3.4.4.2-2
  return in.ok() && discriminant == arm->value;
}

Result<void> DeclaredBinding::add(const BulkItem& item) {
  if (item.program == kNfsProgram) return make_error(Errc::kInvalidArgument, "NFS has a binding already");
  if (item.offset % 4 != 0 || (item.arm && item.arm->offset % 4 != 0)) {
    return make_error(Errc::kInvalidArgument, "the offset of an item is no multiple of 4");
  }
  if (item.element_bytes == 0 || (item.element_bytes != 1 && item.element_bytes % 4 != 0)) {
    return make_error(Errc::kInvalidArgument, "elements of an item have 1 octet, or a multiple of 4");
  }
  const auto same = [&](const BulkItem& other) {
    return other.program == item.program && other.version == item.version && other.procedure == item.procedure &&
           other.where == item.where;
  };
  if (std::any_of(items_.begin(), items_.end(), same)) {
    return make_error(Errc::kInvalidArgument, "that procedure has an item already");
  }
  items_.push_back(item);
  return {};
}

const BulkItem* DeclaredBinding::find(const RpcCall& head, BulkItem::Where where) const {
  if (!head.body_is_plain()) return nullptr;  // req: RFC8166-8.2.2.3-2
  const auto found = std::find_if(items_.begin(), items_.end(), [&](const BulkItem& item) {
    return item.program == head.program && item.version == head.version && item.procedure == head.procedure &&
           item.where == where;
  });
  return found == items_.end() ? nullptr : &*found;
}

}  // namespace iwarp::rpcrdma
