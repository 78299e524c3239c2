#include "iwarp/gateway/rdma_channel.h"

#include <spdlog/fmt/fmt.h>

#include "iwarp/cm/after_drive.h"

namespace iwarp::gateway {
namespace {

constexpr std::chrono::seconds kTellAgain{30};

verbs::QueuePair::Options qp_options(verbs::CompletionQueue& cq, stream::Options stream, std::size_t sends,
                                     std::size_t receives) {
  stream.sq_depth = sends;
  stream.rq_depth = receives;
  return {.send_cq = &cq, .recv_cq = &cq, .stream = stream};
}

}  // namespace

RdmaChannel::RdmaChannel(cm::Engine& engine, const stream::Options& stream, const rpcrdma::BufferPool::Options& pool,
                         std::size_t ord, std::chrono::milliseconds keep_idle_memory)
    : io_(engine.io()),
      // req: RFC5042-6.4.3.2-2
      cq_(kSendDepth + kReceiveDepth, &engine),
      // req: RFC5042-6.1.1-3
      qp_(std::make_shared<verbs::QueuePair>(verbs::ProtectionDomain(engine.context()),
                                             qp_options(cq_, stream, kSendDepth, kReceiveDepth))),
      endpoint_(qp_,
                {.max_outstanding_reads = ord, .send_queue_depth = kSendDepth, .receive_queue_depth = kReceiveDepth}),
      pool_(endpoint_, pool),
      keep_idle_memory_(keep_idle_memory) {}

RdmaChannel::~RdmaChannel() {
  cq_.disarm();
}

void RdmaChannel::arm(std::function<void()> wake) {
  wake_ = std::move(wake);
  cq_.arm(verbs::CompletionQueue::Notify::kNext, *this);
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
  pool_.rest();
  rest_ = true;
  rested_at_ = pool_.releases();
  trim_at_.reset();
}

void RdmaChannel::notify(verbs::CompletionQueue&) noexcept {
  if (wake_) cm::AfterDrive::add(io_, std::exchange(wake_, {}));
}

}  // namespace iwarp::gateway
