// ReceiveQueue and Registrar over a shared receive queue: for a ReceiveRing that several Requesters or Responders
// share, each with a queue pair that was made with that queue (QueuePair::Options::srq). Not thread-safe.
#pragma once

#include <unordered_map>

#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/endpoint.h"
#include "iwarp/verbs/memory_region.h"
#include "iwarp/verbs/shared_receive_queue.h"

namespace iwarp::rpcrdma {

class VerbsSharedReceives final : public ReceiveQueue, public Registrar {
 public:
  // `queue` outlives it. Memory is registered for every queue pair of `pd`, which is that of the queue: a pool over
  // this Registrar is for what all of these clients may share.
  VerbsSharedReceives(verbs::SharedReceiveQueue& queue, const verbs::ProtectionDomain& pd) : queue_(queue), pd_(pd) {}

  [[nodiscard]] Result<void> post_recv(std::uint64_t id, LocalSlice into) override;
  [[nodiscard]] Result<Stag> register_local(MutBytes memory) override;
  void deregister_local(Stag lkey) override { regions_.erase(raw(lkey)); }

 private:
  verbs::SharedReceiveQueue& queue_;
  verbs::ProtectionDomain pd_;
  std::unordered_map<std::uint32_t, verbs::MemoryRegion> regions_;
};

}  // namespace iwarp::rpcrdma
