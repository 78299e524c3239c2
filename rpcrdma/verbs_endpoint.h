// Endpoint and Registrar over one of our queue pairs. Send-side posts are collected and leave together in flush(): the
// RDMA Writes of a Reply and its Send then share one system call. Not thread-safe.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/endpoint.h"
#include "iwarp/verbs/memory_region.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::rpcrdma {

class VerbsEndpoint final : public Endpoint, public Registrar {
 public:
  // `limits`: depths as the queue pair was made with, and the ORD that the MPA exchange settles.
  VerbsEndpoint(std::shared_ptr<verbs::QueuePair> qp, const EndpointLimits& limits)
      : qp_(std::move(qp)), limits_(limits) {}
  // All exposed memory is revoked. The connection must be closed.
  ~VerbsEndpoint() override = default;

  // Hands collected posts to the queue pair. An error obliges the caller to close the connection.
  [[nodiscard]] Result<void> flush();
  // A completion of the queue pair in the protocol's terms.
  [[nodiscard]] static Completion translate(const verbs::Completion& c);

  [[nodiscard]] EndpointLimits limits() const override { return limits_; }
  [[nodiscard]] Result<void> post_recv(std::uint64_t id, LocalSlice into) override;
  [[nodiscard]] Result<void> post_send(std::uint64_t id, std::span<const LocalSlice> from,
                                       std::optional<Stag> invalidate) override;
  [[nodiscard]] Result<void> post_write(std::uint64_t id, std::span<const LocalSlice> from, Stag handle,
                                        std::uint64_t offset) override;
  [[nodiscard]] Result<void> post_read(std::uint64_t id, LocalSlice into, Stag handle, std::uint64_t offset) override;
  [[nodiscard]] Result<ExposedMemory> register_memory(MutBytes memory, RemoteAccess access,
                                                      bool remote_invalidation) override;
  [[nodiscard]] Result<void> invalidate(Stag handle) override;

  [[nodiscard]] Result<Stag> register_local(MutBytes memory) override;
  void deregister_local(Stag lkey) override { regions_.erase(raw(lkey)); }

 private:
  [[nodiscard]] Result<Stag> keep(Result<verbs::MemoryRegion> region);

  std::shared_ptr<verbs::QueuePair> qp_;
  EndpointLimits limits_;
  std::unordered_map<std::uint32_t, verbs::MemoryRegion> regions_;
  std::vector<verbs::SendWr> collected_;
};

}  // namespace iwarp::rpcrdma
