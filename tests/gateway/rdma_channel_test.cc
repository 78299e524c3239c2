#include "iwarp/gateway/rdma_channel.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;
using Purpose = rpcrdma::BufferPool::Purpose;

class RdmaChannelMemory : public ::testing::Test {
 protected:
  // What a transfer of four Replies of 1 MiB leaves behind.
  void transfer() {
    std::vector<rpcrdma::Buffer> replies;
    for (int i = 0; i < 4; ++i) replies.push_back(std::move(*channel.pool().acquire(1u << 20, Purpose::kReply)));
  }

  boost::asio::io_context io;
  cm::Engine engine{io};
  RdmaChannel channel{engine, {}, {}, 4};
  TimePoint now{1000s};
};

TEST_F(RdmaChannelMemory, IsKeptWhileTheConnectionIsUsed) {
  channel.touch(now);
  EXPECT_FALSE(channel.deadline());  // nothing to free, no wake-up
  transfer();
  channel.touch(now);
  EXPECT_EQ(channel.deadline(), now + RdmaChannel::kKeepIdleMemory);
  channel.touch(now + 6s);
  channel.on_deadline(now + RdmaChannel::kKeepIdleMemory);
  EXPECT_GE(channel.pool().registered_bytes(), 3u << 20);
  EXPECT_EQ(channel.deadline(), now + 6s + RdmaChannel::kKeepIdleMemory);
}

TEST_F(RdmaChannelMemory, IsFreedWhenTheConnectionHasBeenIdle) {
  auto small = channel.pool().acquire(100, Purpose::kControl);  // as posted Receives are
  transfer();
  channel.touch(now);
  channel.on_deadline(now + RdmaChannel::kKeepIdleMemory - 1ms);
  EXPECT_GE(channel.pool().registered_bytes(), 3u << 20);
  channel.on_deadline(now + RdmaChannel::kKeepIdleMemory);
  EXPECT_LT(channel.pool().registered_bytes(), 1u << 20);
  EXPECT_FALSE(channel.deadline());
  channel.touch(now + 60s);
  EXPECT_FALSE(channel.deadline());
}

}  // namespace
}  // namespace iwarp::gateway::test
