#include "iwarp/gateway/rdma_channel.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <sstream>

#include "iwarp/gateway/own_stack.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;
constexpr auto kKeep = 10s;
using Purpose = rpcrdma::BufferPool::Purpose;

class RdmaChannelMemory : public ::testing::Test {
 protected:
  // What a transfer of four Replies of 1 MiB leaves behind.
  void transfer() {
    std::vector<rpcrdma::Buffer> replies;
    for (int i = 0; i < 4; ++i) replies.push_back(std::move(*channel.pool().acquire(1u << 20, Purpose::kReply)));
  }

  [[nodiscard]] std::unique_ptr<RdmaQueues> queues() {
    return std::make_unique<OwnQueues>(std::weak_ptr<OwnStack>(), engine, stream::Options{}, 4);
  }
  [[nodiscard]] static const std::shared_ptr<verbs::QueuePair>& qp(RdmaChannel& of) {
    return static_cast<OwnQueues&>(of.queues()).qp();
  }

  boost::asio::io_context io;
  cm::Engine engine{io};
  RdmaChannel channel{queues(), {}, kKeep};
  Stats stats;
  EventLog log{stats};
  TimePoint now{1000s};
};

TEST_F(RdmaChannelMemory, IsKeptWhileTheConnectionIsUsed) {
  channel.after_turn(now, log);
  EXPECT_FALSE(channel.deadline());  // nothing to free, no wake-up
  transfer();
  channel.after_turn(now, log);
  EXPECT_EQ(channel.deadline(), now + kKeep);
  transfer();
  channel.after_turn(now + 6s, log);
  channel.on_deadline(now + kKeep);
  EXPECT_GE(channel.pool().registered_bytes(), 3u << 20);
  EXPECT_EQ(channel.deadline(), now + 6s + kKeep);
}

TEST_F(RdmaChannelMemory, OfABurstIsFreedWhileTheConnectionIsUsedLittle) {
  transfer();
  for (int i = 0; i <= 3 * 10; ++i, now += 1s) {
    { const auto small = channel.pool().acquire(100, Purpose::kReply); }
    channel.after_turn(now, log);
    channel.on_deadline(now);
  }
  EXPECT_LT(channel.pool().registered_bytes(), 1u << 20);
}

TEST_F(RdmaChannelMemory, IsFreedWhenTheConnectionHasBeenIdle) {
  auto small = channel.pool().acquire(100, Purpose::kControl);  // as posted Receives are
  transfer();
  channel.after_turn(now, log);
  channel.on_deadline(now + kKeep - 1ms);
  channel.after_turn(now + kKeep - 1ms, log);  // in vain, as after every wake-up
  EXPECT_GE(channel.pool().registered_bytes(), 3u << 20);
  channel.on_deadline(now + kKeep);
  EXPECT_LT(channel.pool().registered_bytes(), 1u << 20);
  EXPECT_FALSE(channel.deadline());
  channel.after_turn(now + 60s, log);
  EXPECT_FALSE(channel.deadline());
}

// Where there is no memory: what the log says of it.
class RdmaChannelWant : public RdmaChannelMemory {
 protected:
  ~RdmaChannelWant() override { spdlog::set_default_logger(before_); }
  void wants(RdmaChannel& poor) {
    EXPECT_FALSE(poor.pool().acquire(100, Purpose::kCall));
    poor.after_turn(now, log);
  }
  [[nodiscard]] std::ptrdiff_t lines() const {
    const std::string text = lines_.str();
    return std::count(text.begin(), text.end(), '\n');
  }
  const std::shared_ptr<rpcrdma::MemoryBudget> none = std::make_shared<rpcrdma::MemoryBudget>(0);

 private:
  std::ostringstream lines_;
  const std::shared_ptr<spdlog::logger> before_ = [this] {
    auto old = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(lines_)));
    return old;
  }();
};

// However many connections find none, the log says so five times a second.
TEST_F(RdmaChannelWant, IsToldOfOnlySoOften) {
  for (int i = 0; i < 20; ++i) {
    RdmaChannel poor{queues(), {.budget = none}, kKeep};
    wants(poor);
  }
  EXPECT_EQ(lines(), 5);
}

// However long it lasts, a connection says so every half minute.
TEST_F(RdmaChannelWant, OfOneConnectionIsToldOfOnlySoOften) {
  RdmaChannel poor{queues(), {.budget = none}, kKeep};
  for (int i = 0; i < 30; ++i, now += 1s) wants(poor);
  EXPECT_EQ(lines(), 1);
  wants(poor);
  EXPECT_EQ(lines(), 2);
  poor.after_turn(now + 60s, log);  // found none once, and wants no more
  EXPECT_EQ(lines(), 2);
}

// Neither what is exposed to one client, nor what is not exposed at all, can be reached by another.
TEST_F(RdmaChannelMemory, IsOutOfReachOfOtherClients) {
  COVERS("RFC5042-6.1.1-3");
  COVERS("RFC5042-6.1.1-4");
  COVERS("RFC5042-6.3.5-1");
  COVERS("RFC5042-6.3.6-1");
  COVERS("RFC5042-A-1");
  RdmaChannel other{queues(), {}, kKeep};
  const ddp::StreamKey own{qp(channel)->pd().id(), qp(channel)->stream()};
  const ddp::StreamKey sibling{own.pd, qp(other)->stream()};
  const ddp::StreamKey stranger{qp(other)->pd().id(), qp(other)->stream()};
  EXPECT_NE(own.pd, stranger.pd);
  const auto fault = [&](Stag stag, ddp::StreamKey who, ddp::Access need) {
    const auto p = engine.context()->stags().pin(stag, who, need, 0, 1);
    return p.ok ? std::nullopt : std::optional(p.fault);
  };
  const auto buffer = channel.pool().acquire(100, Purpose::kReply);
  const auto exposed = channel.endpoint().register_memory(buffer->bytes(), rpcrdma::RemoteAccess::kWrite, true);
  ASSERT_TRUE(buffer && exposed.ok());
  EXPECT_EQ(fault(exposed->handle, own, ddp::Access::kRemoteWrite), std::nullopt);
  EXPECT_EQ(fault(exposed->handle, own, ddp::Access::kRemoteRead), ddp::StagFault::kAccess);
  EXPECT_EQ(fault(exposed->handle, sibling, ddp::Access::kRemoteWrite), ddp::StagFault::kNotAssociated);
  EXPECT_EQ(fault(exposed->handle, stranger, ddp::Access::kRemoteWrite), ddp::StagFault::kNotAssociated);
  for (const auto need : {ddp::Access::kRemoteRead, ddp::Access::kRemoteWrite})
    EXPECT_EQ(fault(buffer->lkey(), own, need), ddp::StagFault::kAccess) << "where RDMA Reads of ours land";
}

// A device writes to the pages that were there when they were registered.
TEST_F(RdmaChannelMemory, KeepsItsPagesWhereTheyArePinned) {
  struct Pinned : OwnQueues {
    using OwnQueues::OwnQueues;
    [[nodiscard]] bool pins_memory() const override { return true; }
  };
  RdmaChannel pinned{std::make_unique<Pinned>(std::weak_ptr<OwnStack>(), engine, stream::Options{}, 4), {}, kKeep};
  for (RdmaChannel* of : {&pinned, &channel}) {
    const auto posted = of->pool().acquire(100, Purpose::kControl);  // keeps the slab
    MutBytes octets;
    {
      const auto small = of->pool().acquire(100, Purpose::kControl);
      octets = small->bytes();
      octets[0] = std::byte{77};
    }
    of->after_turn(now, log);
    of->on_deadline(now + kKeep);
    EXPECT_EQ(octets[0], of == &pinned ? std::byte{77} : std::byte{0});
    EXPECT_EQ(of->take_rest(), of != &pinned);
  }
}

TEST_F(RdmaChannelMemory, HoldsACompletionOfEverythingThatCanBePosted) {
  COVERS("RFC5042-6.4.3.2-2");
  std::size_t posted = 0, completed = 0;
  while (qp(channel)->post_recv(verbs::RecvWr{})) ++posted;
  while (qp(channel)->post_send(verbs::SendWr{})) ++posted;
  qp(channel)->abort();
  while (channel.poll([&](const rpcrdma::Completion&) { ++completed; })) {
  }
  EXPECT_EQ(completed, posted);
  EXPECT_GT(posted, 300U);
}

}  // namespace
}  // namespace iwarp::gateway::test
