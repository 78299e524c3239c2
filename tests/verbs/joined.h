// Two verbs::QueuePairs joined in memory: the test is their driver. No socket, no engine, no thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "iwarp/stream/connection.h"
#include "iwarp/verbs/memory_region.h"
#include "iwarp/verbs/queue_pair.h"
#include "tests/support/hex.h"

namespace iwarp::test {

// Registers `memory` or fails the test.
[[nodiscard]] verbs::MemoryRegion region(const verbs::ProtectionDomain& pd, MutBytes memory,
                                         ddp::Access access = ddp::Access::kLocalWrite,
                                         ddp::StreamId stream = ddp::StreamId::kAny);
[[nodiscard]] verbs::Sge sge(const verbs::MemoryRegion& of, std::size_t offset, std::size_t length);
[[nodiscard]] inline verbs::Sge sge(const verbs::MemoryRegion& of) {
  return sge(of, 0, of.memory().size());
}
// All completions that wait in `cq`.
[[nodiscard]] std::vector<verbs::Completion> drain(verbs::CompletionQueue& cq);
// A queue pair with both queues on `cq`.
[[nodiscard]] std::shared_ptr<verbs::QueuePair> make_qp(const verbs::ProtectionDomain& pd, verbs::CompletionQueue& cq,
                                                        std::size_t depth = 16);

// Counts the kicks of a queue pair, which it leaves to be driven by pump().
struct CountingDriver final : verbs::Driver {
  explicit CountingDriver(verbs::QueuePair& qp) : core(qp.endpoint(), {}) {}
  void kick() override {
    ++kicks;
    if (on_kick) on_kick();
  }
  [[nodiscard]] std::optional<Agreed> agreed() const override {
    const mpa::Negotiated& n = core.negotiated();
    return Agreed{n.ird, n.ord, core.mulpdu(), n.crc, n.markers_sent, n.markers_received};
  }
  stream::Connection core;
  int kicks = 0;
  std::function<void()> on_kick;  // with the queue pair's lock held
};

// Of one that has such a driver.
[[nodiscard]] stream::Connection& core_of(verbs::QueuePair& qp);

class Joined {
 public:
  // Takes both through MPA startup.
  Joined(std::shared_ptr<verbs::QueuePair> initiator, std::shared_ptr<verbs::QueuePair> responder);
  ~Joined();
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  // Moves octets until nothing moves any more, and completions to the queues.
  void pump();

  std::shared_ptr<verbs::QueuePair> initiator, responder;
  CountingDriver initiator_driver, responder_driver;

 private:
  struct End {
    verbs::QueuePair& qp;
    stream::Connection& core;
  };
  [[nodiscard]] bool move(const End& from, const End& to, Bytes& between);

  TimePoint now_{std::chrono::seconds(1)};
  Bytes scratch_;
  Bytes to_responder_, to_initiator_;  // sent, and not read yet
};

// What most tests of queue pairs begin with: two of one Protection Domain, each with a completion queue and a region.
class TwoQueuePairs : public ::testing::Test {
 protected:
  explicit TwoQueuePairs(std::size_t completions = 64, std::size_t depth = 16)
      : cq_(completions), peer_cq_(completions), qp_(make_qp(pd_, cq_, depth)), peer_(make_qp(pd_, peer_cq_, depth)) {}

  std::shared_ptr<verbs::Context> context_ = std::make_shared<verbs::Context>();
  verbs::ProtectionDomain pd_{context_};
  verbs::CompletionQueue cq_, peer_cq_;
  Bytes memory_ = pattern(4096), peer_memory_ = Bytes(4096);
  verbs::MemoryRegion mr_ = region(pd_, memory_), peer_mr_ = region(pd_, peer_memory_);
  std::shared_ptr<verbs::QueuePair> qp_, peer_;
};

}  // namespace iwarp::test
