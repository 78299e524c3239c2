#include "iwarp/rpcrdma/verbs_shared_receives.h"

namespace iwarp::rpcrdma {

Result<void> VerbsSharedReceives::post_recv(std::uint64_t id, LocalSlice into) {
  const rdmap::RecvWr wr{
      .wr_id = id, .sges = rdmap::Sge{into.bytes.data(), static_cast<std::uint32_t>(into.bytes.size()), into.lkey}};
  return queue_.post_recv(wr);
}

Result<Stag> VerbsSharedReceives::register_local(MutBytes memory) {
  auto region = verbs::MemoryRegion::register_memory(pd_, memory, {.access = ddp::Access::kLocalWrite, .base_to = 0});
  if (!region) return region.error();
  const Stag stag = region->stag();
  regions_.insert_or_assign(raw(stag), std::move(*region));
  return stag;
}

}  // namespace iwarp::rpcrdma
