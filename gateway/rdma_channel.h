// The RDMA half of one gateway connection: its queues, registered buffers, and the wake-up on the event loop. Every
// connection has a Protection Domain of its own. One thread: that of the io_context.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "iwarp/base/time.h"
#include "iwarp/gateway/deadline_timer.h"
#include "iwarp/gateway/event_log.h"
#include "iwarp/gateway/rdma_provider.h"

namespace iwarp::gateway {

class RdmaChannel final {
 public:
  RdmaChannel(std::unique_ptr<RdmaQueues> queues, const rpcrdma::BufferPool::Options& pool,
              std::chrono::milliseconds keep_idle_memory);
  ~RdmaChannel();
  RdmaChannel(const RdmaChannel&) = delete;
  RdmaChannel& operator=(const RdmaChannel&) = delete;

  [[nodiscard]] RdmaQueues& queues() { return *queues_; }
  [[nodiscard]] rpcrdma::Endpoint& endpoint() { return queues_->endpoint(); }
  [[nodiscard]] Result<void> flush() { return queues_->flush(); }
  [[nodiscard]] rpcrdma::BufferPool& pool() { return pool_; }
  [[nodiscard]] std::size_t registered_bytes() const { return pool_.registered_bytes(); }

  // Feeds what has completed to `each`; false when nothing had.
  template <class Each>
  bool poll(Each each) {
    std::array<rpcrdma::Completion, 32> batch;
    const std::size_t n = queues_->poll(batch);
    for (std::size_t i = 0; i < n; ++i) each(batch[i]);
    return n > 0;
  }
  // Calls `wake` once, on the event loop, when something completes: in the handler that moved the octets, if it was
  // one. Poll again after arming.
  void arm(std::function<void()> wake) { queues_->arm(std::move(wake)); }
  // Until the next arm(): the owner is at work and polls by itself, what its own posts complete need not wake it.
  void disarm() { queues_->disarm(); }

  // Of the memory that a burst needed, an idle connection keeps pieces of 4 KiB only: on_deadline(), at deadline() or
  // later, frees the rest when no buffer has come back for `keep_idle_memory`; of a connection in use, what it has not
  // needed for about that long. To be called after every turn of work, which need not have found any.
  void after_turn(TimePoint now, EventLog& log);
  // When the system refuses memory, what needs it waits, and tries again every kRetryMemory.
  static constexpr std::chrono::milliseconds kRetryMemory{100};
  [[nodiscard]] std::optional<TimePoint> deadline() const { return earliest({trim_at_, retry_at_}); }
  void on_deadline(TimePoint now);
  // Once, after on_deadline() found the connection idle: with it go the pages of what is posted. Never where they are
  // pinned. To be asked when all
  // completions were taken.
  [[nodiscard]] bool take_rest() { return std::exchange(rest_, false); }

 private:
  std::unique_ptr<RdmaQueues> queues_;
  rpcrdma::BufferPool pool_;
  const std::chrono::milliseconds keep_idle_memory_;
  TimePoint last_used_{};
  std::optional<TimePoint> trim_at_, retry_at_, told_;
  std::uint64_t releases_seen_ = 0;
  std::uint64_t shortages_seen_ = 0;
  std::uint64_t rested_at_ = 0;  // releases() then
  bool rest_ = false;
};

}  // namespace iwarp::gateway
