// What a queue pair's peer may do with memory that is exposed for RPC-over-RDMA.
#include "iwarp/rpcrdma/verbs_endpoint.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::rpcrdma {
namespace {

using ddp::Access;
using ddp::StagFault;

class VerbsEndpointTest : public ::testing::Test {
 protected:
  verbs::QueuePair::Options options() {
    verbs::QueuePair::Options o;
    o.send_cq = o.recv_cq = &cq_;
    return o;
  }
  ddp::StagTable::PinResult pin(Stag handle, Access need) {
    return context_->stags().pin(handle, {pd_.id(), qp_->stream()}, need, 0, memory_.size());
  }

  std::shared_ptr<verbs::Context> context_ = std::make_shared<verbs::Context>();
  verbs::ProtectionDomain pd_{context_};
  verbs::CompletionQueue cq_{16};
  std::shared_ptr<verbs::QueuePair> qp_ = std::make_shared<verbs::QueuePair>(pd_, options());
  VerbsEndpoint endpoint_{qp_, {}};
  test::Bytes memory_ = test::Bytes(100);
};

TEST_F(VerbsEndpointTest, ReadChunksMayBeReadAndStayAsTheyAre) {
  COVERS("RFC5042-6.3.5-1");
  const auto exposed = endpoint_.register_memory(memory_, RemoteAccess::kRead, false);
  ASSERT_TRUE(exposed.ok());
  const auto read = pin(exposed->handle, Access::kRemoteRead);
  EXPECT_TRUE(read.ok && read.stable);
  EXPECT_EQ(pin(exposed->handle, Access::kRemoteWrite).fault, StagFault::kAccess);
  EXPECT_EQ(pin(exposed->handle, Access::kRemoteInvalidate).fault, StagFault::kAccess);
}

TEST_F(VerbsEndpointTest, WriteAndReplyChunksMayBeWritten) {
  COVERS("RFC5042-6.3.5-1");
  const auto exposed = endpoint_.register_memory(memory_, RemoteAccess::kWrite, true);
  ASSERT_TRUE(exposed.ok());
  EXPECT_TRUE(pin(exposed->handle, Access::kRemoteWrite | Access::kLocalWrite | Access::kRemoteInvalidate).ok);
  EXPECT_EQ(pin(exposed->handle, Access::kRemoteRead).fault, StagFault::kAccess);
}

TEST_F(VerbsEndpointTest, WhatIsInvalidatedIsGone) {
  const auto exposed = endpoint_.register_memory(memory_, RemoteAccess::kRead, false);
  ASSERT_TRUE(exposed.ok());
  ASSERT_TRUE(endpoint_.invalidate(exposed->handle).ok());
  EXPECT_EQ(pin(exposed->handle, Access::kRemoteRead).fault, StagFault::kInvalid);
}

}  // namespace
}  // namespace iwarp::rpcrdma
