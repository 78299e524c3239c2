#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"

namespace iwarp::stream {
namespace {

using test::Pair;
using test::PairOptions;

struct Variant {
  bool crc;
  bool peer_to_peer;
  mpa::Rtr rtr;
  std::uint8_t revision;
};

class Startup : public ::testing::TestWithParam<Variant> {
 protected:
  static PairOptions options() {
    PairOptions o;
    const Variant& v = GetParam();
    o.initiator_policy.crc = v.crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
    o.responder_policy.crc = o.initiator_policy.crc;
    o.initiator_policy.peer_to_peer = v.peer_to_peer;
    o.initiator_policy.rtr_read = v.rtr != mpa::Rtr::kWrite;
    o.initiator_policy.rtr_write = v.rtr != mpa::Rtr::kRead;
    o.initiator_policy.revision = v.revision;
    return o;
  }
};

TEST_P(Startup, ThenDataFlowsBothWays) {
  COVERS("RFC5044-7.1.2-17");
  COVERS("RFC5041-6.1-1");
  COVERS("RFC6581-5-3");
  PairOptions o = options();
  o.request_private_data = test::hex("0102");
  o.reply_private_data = test::hex("030405");
  Pair p(o);
  auto& a = p.initiator.region(100);
  auto& b = p.responder.region(100);
  p.initiator.post(rdmap::RecvWr{1, a.sge(0, 50)});
  p.responder.post(rdmap::RecvWr{2, b.sge(0, 50)});
  p.settle();
  const auto* up = p.initiator.established();
  ASSERT_NE(up, nullptr) << p.log();
  EXPECT_EQ(up->negotiated.crc, GetParam().crc);
  EXPECT_EQ(up->private_data, test::hex("030405"));
  EXPECT_EQ(up->negotiated.revision, GetParam().revision);

  a.fill(test::pattern(30), 50);
  p.initiator.post(test::send_wr(3, a.sge(50, 30)));
  p.settle();
  ASSERT_NE(p.responder.established(), nullptr) << p.log();
  EXPECT_EQ(p.responder.established()->private_data, test::hex("0102"));
  b.fill(test::pattern(20, 9), 60);
  p.responder.post(test::send_wr(4, b.sge(60, 20)));
  p.settle();
  ASSERT_EQ(p.responder.recvs.size(), 1U) << p.log();
  EXPECT_EQ(p.responder.recvs[0].byte_len, 30U);
  ASSERT_EQ(p.initiator.recvs.size(), 1U) << p.log();
  EXPECT_EQ(p.initiator.recvs[0].byte_len, 20U);
  EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().begin() + 20, b.bytes().begin() + 60));
  EXPECT_TRUE(std::equal(b.bytes().begin(), b.bytes().begin() + 30, a.bytes().begin() + 50));
  ASSERT_EQ(p.initiator.sends.size(), 1U);
  EXPECT_EQ(p.initiator.sends[0].status, Errc::kOk);

  p.initiator.disconnect(p.now);
  p.run();
  ASSERT_NE(p.initiator.disconnected(), nullptr) << p.log();
  ASSERT_NE(p.responder.disconnected(), nullptr) << p.log();
  EXPECT_EQ(p.initiator.disconnected()->reason.code, Errc::kAborted);
  EXPECT_EQ(p.responder.disconnected()->reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(p.initiator_link.closed);
  EXPECT_FALSE(p.initiator_link.reset);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, Startup,
    ::testing::Values(Variant{true, true, mpa::Rtr::kNone, 2}, Variant{true, true, mpa::Rtr::kWrite, 2},
                      Variant{true, true, mpa::Rtr::kRead, 2}, Variant{true, false, mpa::Rtr::kNone, 2},
                      Variant{false, true, mpa::Rtr::kNone, 2}, Variant{false, true, mpa::Rtr::kWrite, 2},
                      Variant{false, false, mpa::Rtr::kNone, 2}, Variant{true, false, mpa::Rtr::kNone, 1},
                      Variant{false, false, mpa::Rtr::kNone, 1}),
    [](const auto& tested) {
      const Variant& v = tested.param;
      return std::string(v.crc ? "Crc" : "NoCrc") + (v.peer_to_peer ? "P2p" : "Client") +
             (v.rtr == mpa::Rtr::kWrite  ? "Write"
              : v.rtr == mpa::Rtr::kRead ? "Read"
                                         : "") +
             "Rev" + std::to_string(v.revision);
    });

}  // namespace
}  // namespace iwarp::stream
