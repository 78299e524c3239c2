// rpcrdma::Endpoint and Registrar over a queue pair of a device. Posts of the send side are collected and leave
// together in flush(). All requests are signalled and numbered: a completion with an error says nothing else. They are
// told in the order posted, though siw completes what was posted behind a Read before it. Not thread-safe; registering
// and deregistering memory are one thing, which one thread may do while another one does the rest.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "iwarp/device/resources.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/endpoint.h"

namespace iwarp::device {

// What this end has seen of its own requests. A device tells nothing of what the peer reads and writes.
struct Traffic {
  std::uint64_t sends = 0, send_bytes = 0;
  std::uint64_t writes = 0, write_bytes = 0;
  std::uint64_t reads = 0, read_bytes = 0;        // what came for them
  std::uint64_t receives = 0, receive_bytes = 0;  // messages of the peer
};

class Endpoint final : public rpcrdma::Endpoint, public rpcrdma::Registrar {
 public:
  // `ord`: RDMA Reads that may be outstanding.
  Endpoint(std::shared_ptr<Resources> resources, std::size_t ord);
  // Exposed memory is revoked, and local registrations end. The queue pair must be gone.
  ~Endpoint() override;

  // Hands collected posts to the queue pair. An error obliges the caller to close the connection.
  [[nodiscard]] Result<void> flush();
  // What has completed, oldest first; how many.
  [[nodiscard]] std::size_t poll(std::span<rpcrdma::Completion> to);
  // Takes what has completed, for poll() to give, and destroys the queue pair: from here on nothing reaches memory.
  // Posts fail with kNotConnected.
  void close();
  // The same where somebody else still has the queue pair in hand and will destroy it: nothing was posted to it.
  void abandon() { closed_ = true; }
  // Behind either of these: what was posted and never completed is flushed, for poll() to give.
  void flush_rest();

  // Posted on the send side, collected posts included, and not completed.
  [[nodiscard]] std::size_t unfinished_sends() const { return collected_.size() + sends_.size(); }
  // Of a completion that is neither a success nor flushed: why the connection is about to end.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // Something was flushed: the queue pair is in its error state, or was closed.
  [[nodiscard]] bool flushed() const { return flushed_; }
  // A Send, Write or Read among it.
  [[nodiscard]] bool sends_flushed() const { return sends_flushed_; }
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

  [[nodiscard]] rpcrdma::EndpointLimits limits() const override { return limits_; }
  [[nodiscard]] Result<void> post_recv(std::uint64_t id, rpcrdma::LocalSlice into) override;
  [[nodiscard]] Result<void> post_send(std::uint64_t id, std::span<const rpcrdma::LocalSlice> from,
                                       std::optional<Stag> invalidate) override;
  [[nodiscard]] Result<void> post_write(std::uint64_t id, std::span<const rpcrdma::LocalSlice> from, Stag handle,
                                        std::uint64_t offset) override;
  [[nodiscard]] Result<void> post_read(std::uint64_t id, rpcrdma::LocalSlice into, Stag handle,
                                       std::uint64_t offset) override;
  // `remote_invalidation` changes nothing: memory regions of a program cannot be invalidated by a peer. The offset is
  // the memory's address, as all programs of verbs tell it.
  [[nodiscard]] Result<rpcrdma::ExposedMemory> register_memory(MutBytes memory, rpcrdma::RemoteAccess access,
                                                               bool remote_invalidation) override;
  [[nodiscard]] Result<void> invalidate(Stag handle) override;

  [[nodiscard]] Result<Stag> register_local(MutBytes memory) override;
  void deregister_local(Stag lkey) override;

 private:
  static constexpr std::size_t kMostSges = 16;
  struct Posted {
    std::uint64_t id = 0;
    rpcrdma::OpKind op{};
    std::uint64_t bytes = 0;
    ibv_mr* sink = nullptr;  // of a Read, where the device wants one that the peer may write to
    std::optional<rpcrdma::Completion> done{};
  };
  struct Collected {
    ibv_send_wr wr{};
    std::array<ibv_sge, kMostSges> sges{};
    Posted posted{};
  };

  [[nodiscard]] Result<Collected*> collect(Posted posted, ibv_wr_opcode opcode,
                                           std::span<const rpcrdma::LocalSlice> from);
  [[nodiscard]] Result<ibv_mr*> register_region(MutBytes memory, int access);
  void take(const ibv_wc& wc);
  [[nodiscard]] rpcrdma::Completion translate(const ibv_wc& wc, const Posted& posted);
  void count(const Posted& done, std::uint32_t byte_len);
  void fail(const Error& why);
  void free_sink(Posted& of);
  // How many completions the queue had.
  std::size_t poll_queue();

  std::shared_ptr<Resources> resources_;
  const VerbsTable& verbs_;
  rpcrdma::EndpointLimits limits_;
  std::unordered_map<std::uint32_t, ibv_mr*> local_, exposed_;  // by lkey, by rkey
  std::vector<Collected> collected_;
  std::vector<Posted> dropped_;                     // that were collected, and never reached the queue pair
  std::deque<Posted> sends_, receives_;             // oldest first
  std::uint64_t next_send_ = 0, next_receive_ = 0;  // sequence numbers: of the oldest
  std::deque<rpcrdma::Completion> ready_;           // for poll() to give
  std::optional<Error> failure_;
  Traffic traffic_;
  bool flushed_ = false;
  bool sends_flushed_ = false;
  bool closed_ = false;
};

}  // namespace iwarp::device
