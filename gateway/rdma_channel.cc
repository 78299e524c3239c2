#include "iwarp/gateway/rdma_channel.h"

#include <spdlog/fmt/fmt.h>

namespace iwarp::gateway {
namespace {

constexpr std::chrono::seconds kTellAgain{30};

}  // namespace

RdmaChannel::RdmaChannel(std::unique_ptr<RdmaQueues> queues, const rpcrdma::BufferPool::Options& pool,
                         std::chrono::milliseconds keep_idle_memory)
    : queues_(std::move(queues)), pool_(queues_->registrar(), pool), keep_idle_memory_(keep_idle_memory) {}

// Before the pool's memory goes.
RdmaChannel::~RdmaChannel() {
  queues_->close();
}

void RdmaChannel::after_turn(TimePoint now, EventLog& log) {
  if (pool_.releases() != releases_seen_) last_used_ = now;
  releases_seen_ = pool_.releases();
  if (!trim_at_ && (pool_.idle_bytes() > 0 || pool_.releases() != rested_at_))
    trim_at_ = last_used_ + keep_idle_memory_;
  if (pool_.shortages() == shortages_seen_) return;
  shortages_seen_ = pool_.shortages();
  retry_at_ = now + kRetryMemory;
  if (told_ && now - *told_ < kTellAgain) return;
  told_ = now;
  log.warn(LogKind::kMemory,
           fmt::format("no memory for a message: it waits, with {} KiB in use by its connection",
                       pool_.registered_bytes() / 1024),
           now);
}

void RdmaChannel::on_deadline(TimePoint now) {
  if (retry_at_ && now >= *retry_at_) {
    retry_at_.reset();
    pool_.wake_waiting();
    releases_seen_ = pool_.releases();  // nothing came back
  }
  if (!trim_at_ || now < *trim_at_) return;
  trim_at_ = last_used_ + keep_idle_memory_;  // one wake-up in a while, however busy the connection is
  if (now < *trim_at_) return pool_.trim_unused();
  pool_.trim();
  if (!queues_->pins_memory()) {
    pool_.rest();
    rest_ = true;
  }
  rested_at_ = pool_.releases();
  trim_at_.reset();
}

}  // namespace iwarp::gateway
