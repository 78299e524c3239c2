// Sends, RDMA Writes and RDMA Reads between two endpoints, without any MPA.
#include <gtest/gtest.h>

#include "tests/endpoint/message_half.h"

namespace iwarp::endpoint {
namespace {

using rdmap::WcOp;
using test::Bytes;

Bytes pattern(std::size_t n) {
  Bytes out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251);
  return out;
}

// Whether the endpoint copies payload to its place or says where that is.
class Transfers : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(CopiedAndDirect, Transfers, testing::Bool());

TEST_P(Transfers, ManySegmentsOfEachKindArriveInPlace) {
  MessagePair p;
  p.direct = GetParam();
  p.mulpdu = 516;
  p.establish();
  EXPECT_TRUE(p.a.established && p.b.established);
  auto& source = p.a.region(20000);
  auto& sink = p.b.region(20000, test::kRemoteAll);
  auto& back = p.a.region(20000);
  auto& mailbox = p.b.region(20000);
  source.fill(pattern(20000));
  p.b.post(rdmap::RecvWr{7, test::list({mailbox.sge(0, 300), mailbox.sge(300, 19700)})});
  p.a.post(test::write_wr(1, source.all(), sink));
  p.a.post(test::read_wr(2, back.all(), sink));
  p.a.post(test::send_wr(3, test::list({source.sge(0, 19999), source.sge(19999, 1)})));
  p.settle();
  EXPECT_EQ(sink.bytes(), pattern(20000));
  EXPECT_EQ(back.bytes(), pattern(20000)) << "the Read came behind the Write";
  EXPECT_EQ(mailbox.bytes(), pattern(20000));
  ASSERT_EQ(p.a.sends.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(p.a.sends[i].wr_id, i + 1);
    EXPECT_EQ(p.a.sends[i].status, Errc::kOk);
  }
  ASSERT_EQ(p.b.recvs.size(), 1U);
  EXPECT_EQ(p.b.recvs[0].byte_len, 20000U);
  EXPECT_EQ(p.a.core().tx_counters().write_bytes, 20000U);
  EXPECT_EQ(p.b.core().rx_counters().sends, 1U);
}

TEST(Transfer, WhatIsPostedBeforeTheStartupGoesBehindIt) {
  MessagePair p;
  auto& text = p.a.region(8);
  auto& mailbox = p.b.region(8);
  p.a.post(test::send_wr(1, text.all()));
  p.b.post(rdmap::RecvWr{1, mailbox.all()});
  p.a.start(Opening::kAtOnce, p.now);
  p.b.start(Opening::kAtOnce, p.now);
  p.settle();
  EXPECT_EQ(p.a.sent_segments, 0U);
  p.a.establish(MessagePair::kEight, p.now);
  p.b.establish(MessagePair::kEight, p.now);
  p.settle();
  EXPECT_EQ(p.b.recvs.size(), 1U);
}

TEST(Transfer, KeepsToTheOrd) {
  MessagePair p;
  p.establish({.ird = 0, .ord = 2}, {.ird = 2, .ord = 0});
  auto& sink = p.a.region(8);
  auto& source = p.b.region(8, test::kRemoteAll);
  for (const std::uint64_t id : {1, 2, 3}) p.a.post(test::read_wr(id, sink.all(), source));
  while (p.move(p.a, p.b)) {
  }
  EXPECT_EQ(p.a.sent_segments, 2U) << "two Read Requests, and no third before a Response";
  p.settle();
  EXPECT_EQ(p.a.sends.size(), 3U);
  EXPECT_EQ(p.b.core().post_send(test::read_wr(9, source.all(), sink)).error().code, Errc::kInvalidArgument)
      << "an ORD of 0 admits none";
}

TEST(Transfer, AFailedStartupThatIsTriedAgainKeepsWhatWasPosted) {
  MessagePair p;
  auto& mailbox = p.a.region(8);
  p.a.post(rdmap::RecvWr{1, mailbox.all()});
  p.a.start(Opening::kAtOnce, p.now);
  p.a.core().retry_startup();
  EXPECT_EQ(p.a.core().phase(), Phase::kIdle);
  p.establish();
  auto& text = p.b.region(8);
  p.b.post(test::send_wr(1, text.all()));
  p.settle();
  EXPECT_EQ(p.a.recvs.size(), 1U);
}

}  // namespace
}  // namespace iwarp::endpoint
