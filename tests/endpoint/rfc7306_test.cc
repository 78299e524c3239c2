// Immediate Data and Atomics between two endpoints, and the option that admits them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/endpoint/message_half.h"

namespace iwarp::endpoint {
namespace {

Options with_7306() {
  Options o;
  o.rfc7306 = true;
  return o;
}

TEST(EndpointRfc7306, ImmediateDataTakesAReceiveAndAtomicsBringBackWhatWasThere) {
  MessagePair p(with_7306());
  p.establish();
  auto& word = p.b.region(8, test::kRemoteAll);
  auto& before = p.a.region(8);
  const std::uint64_t five = 5;
  std::memcpy(word.bytes().data(), &five, sizeof five);
  p.b.post(rdmap::RecvWr{.wr_id = 1});
  p.a.post({.wr_id = 1, .op = rdmap::SendOp::kImmediate, .immediate = 42});
  rdmap::SendWr add = test::read_wr(2, before.all(), word);
  add.op = rdmap::SendOp::kFetchAdd;
  add.atomic.data = 3;
  p.a.post(add);
  p.settle();
  ASSERT_EQ(p.b.recvs.size(), 1U);
  EXPECT_TRUE(p.b.recvs[0].has_immediate);
  EXPECT_EQ(p.b.recvs[0].immediate, 42U);
  ASSERT_EQ(p.a.sends.size(), 2U);
  EXPECT_EQ(p.a.sends[1].status, Errc::kOk);
  std::uint64_t was = 0, is = 0;
  std::memcpy(&was, before.bytes().data(), sizeof was);
  std::memcpy(&is, word.bytes().data(), sizeof is);
  EXPECT_EQ(was, 5U);
  EXPECT_EQ(is, 8U);
}

TEST(EndpointRfc7306, IsRefusedWhereTheOptionIsOff) {
  MessagePair p;
  p.establish();
  const auto refused = p.a.core().post_send({.wr_id = 1, .op = rdmap::SendOp::kImmediate});
  ASSERT_FALSE(refused);
  EXPECT_NE(std::string(refused.error().why).find("rfc7306"), std::string::npos);
}

TEST(EndpointRfc7306, FromAPeerIsAnUnknownOpcodeWhereTheOptionIsOff) {
  MessagePair p;
  MessageHalf a(3, with_7306());
  a.start(Opening::kAtOnce, p.now);
  p.b.start(Opening::kAtOnce, p.now);
  a.establish(MessagePair::kEight, p.now);
  p.b.establish(MessagePair::kEight, p.now);
  p.b.post(rdmap::RecvWr{.wr_id = 1});
  a.post({.wr_id = 1, .op = rdmap::SendOp::kImmediate});
  EXPECT_TRUE(p.move(a, p.b));
  EXPECT_TRUE(p.move(p.b, a));
  ASSERT_TRUE(a.ended.has_value() || a.core().phase() == Phase::kEndWait);
  EXPECT_TRUE(p.move(p.b, a));
  ASSERT_TRUE(a.ended.has_value());
  EXPECT_EQ(a.ended->reason.code, Errc::kRemoteTerminate);
}

}  // namespace
}  // namespace iwarp::endpoint
