// RFC 7306 through queue pairs: Write with Immediate Data, and Atomics beside local ones on the same 64 bits.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "iwarp/verbs/queue_pair.h"
#include "tests/support/covers.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using test::Bytes;
using test::drain;
using test::Joined;
using test::region;
using test::sge;

constexpr auto kRemote = ddp::Access::kLocalWrite | ddp::Access::kRemoteRead | ddp::Access::kRemoteWrite;

class Rfc7306Verbs : public ::testing::Test {
 protected:
  std::shared_ptr<QueuePair> make(CompletionQueue& cq) {
    QueuePair::Options o{.send_cq = &cq, .recv_cq = &cq};
    o.stream.rfc7306 = true;
    return std::make_shared<QueuePair>(pd_, o);
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  ProtectionDomain pd_{context_};
  CompletionQueue cq_{256}, peer_cq_{256};
  alignas(8) std::array<std::byte, 8> result_{}, word_{};
  MemoryRegion result_mr_ = region(pd_, result_), word_mr_ = region(pd_, word_, kRemote);
  std::shared_ptr<QueuePair> qp_ = make(cq_), peer_ = make(peer_cq_);
};

TEST_F(Rfc7306Verbs, WriteWithImmediateData) {
  Bytes source = test::pattern(5000), sink(5000);
  const MemoryRegion from = region(pd_, source), to = region(pd_, sink, kRemote);
  Joined joined(qp_, peer_);
  ASSERT_TRUE(peer_->post_recv(RecvWr{.wr_id = 1}).ok());
  ASSERT_TRUE(qp_->post_send(SendWr{.wr_id = 2,
                                    .op = SendOp::kWriteImmediate,
                                    .sges = sge(from),
                                    .remote_stag = to.stag(),
                                    .remote_to = to.base_to(),
                                    .solicited = true,
                                    .immediate = 42})
                  .ok());
  joined.pump();
  const auto got = drain(peer_cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].wr_id, 1U);
  EXPECT_TRUE(got[0].has_immediate && got[0].solicited);
  EXPECT_EQ(got[0].immediate, 42U);
  EXPECT_EQ(sink, source);
  EXPECT_EQ(drain(cq_).size(), 1U);
}

TEST_F(Rfc7306Verbs, AtomicsBesideLocalOnes) {
  COVERS("RFC7306-5.3-1");
  Joined joined(qp_, peer_);
  auto& word = *reinterpret_cast<std::uint64_t*>(word_.data());
  constexpr std::uint64_t kTimes = 500;
  std::atomic<bool> stop{false};
  std::uint64_t own = 0;
  std::thread local([&] {
    for (; !stop.load() || own < kTimes; ++own) std::atomic_ref(word).fetch_add(1);
  });
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    EXPECT_TRUE(qp_->post_send(SendWr{.wr_id = i,
                                      .op = SendOp::kFetchAdd,
                                      .sges = sge(result_mr_),
                                      .remote_stag = word_mr_.stag(),
                                      .remote_to = word_mr_.base_to(),
                                      .atomic = {.data = std::uint64_t{1} << 32}})
                    .ok());
    joined.pump();
    const auto done = drain(cq_);
    EXPECT_EQ(done.size(), 1U);
    if (done.size() != 1) break;
    EXPECT_EQ(done[0].op, WcOp::kFetchAdd);
    EXPECT_EQ(done[0].status, Errc::kOk);
    std::uint64_t was = 0;
    std::memcpy(&was, result_.data(), sizeof was);
    EXPECT_EQ(was >> 32, i);
  }
  stop = true;
  local.join();
  EXPECT_EQ(word >> 32, kTimes);
  EXPECT_EQ(word & 0xFFFFFFFF, own);
}

}  // namespace
}  // namespace iwarp::verbs
