// How a connection opens: who may speak when, and every way in which startup can fail.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::hex;
using test::Pair;
using test::PairOptions;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::send_segment;
using test::operator|;

// A peer-to-peer peer that has not been heard gets a moment behind our Terminate.
void expect_fin_after_the_wait(test::Endpoint& end, TimePoint now) {
  EXPECT_EQ(end.conn().link_action(), LinkAction::kNone);
  end.expire(now + 200ms);
  EXPECT_EQ(end.conn().link_action(), LinkAction::kShutdownWrite);
}

TEST(Responder, WaitsForTheFirstFpduOfAClientServerPeerForEver) {
  for (const bool peer_to_peer : {false, true}) {
    RawPeerOptions o;
    o.peer_to_peer = peer_to_peer;
    RawPeer p(o);
    EXPECT_EQ(p.end.conn().deadline().has_value(), peer_to_peer);
  }
}

TEST(Responder, SendsNothingBeforeTheFirstFpdu) {
  COVERS("RFC5044-7.1.2-18");
  COVERS("RFC6581-3-3");
  COVERS("RFC6581-3-4");
  for (const bool peer_to_peer : {false, true}) {
    RawPeerOptions o;
    o.peer_to_peer = peer_to_peer;
    RawPeer p(o);
    auto& local = p.end.region(100);
    p.end.post(test::send_wr(1, local.sge(0, 10)));
    EXPECT_FALSE(p.end.conn().tx_pending());
    EXPECT_EQ(p.end.established() != nullptr, !peer_to_peer) << "a peer-to-peer Responder is up when the RTR has come";
    const Bytes rtr = test::fpdu(test::write_segment(Stag{0}, 0, {}), true);
    p.feed(Bytes(rtr.begin(), rtr.end() - 1));
    EXPECT_FALSE(p.end.conn().tx_pending());
    p.feed(Bytes(rtr.end() - 1, rtr.end()));
    EXPECT_NE(p.end.established(), nullptr);
    EXPECT_EQ(p.ulpdus().size(), 1U);
  }
}

TEST(Responder, BadFirstFpduIsAnsweredByReset) {
  COVERS("RFC5044-7.1.2-18");
  RawPeer p;
  Bytes bad = test::fpdu(send_segment(pattern(4)), true);
  bad[20] ^= std::byte{1};
  p.feed(bad);
  EXPECT_FALSE(p.end.conn().tx_pending()) << "not even a Terminate may leave";
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
  ASSERT_NE(p.end.disconnected(), nullptr);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kCrcMismatch);
  EXPECT_FALSE(p.end.disconnected()->sent);
}

TEST(Responder, GivesUpWithoutAFirstFpdu) {
  COVERS("RFC5044-7.1.2-32");
  RawPeerOptions o;
  o.peer_to_peer = true;
  RawPeer p(o);
  EXPECT_EQ(*p.end.conn().deadline() - p.now, 10s);
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
  ASSERT_NE(p.end.disconnected(), nullptr);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kStartupTimeout);
  EXPECT_FALSE(p.end.disconnected()->was_established);
}

TEST(Responder, WaitsForEverOnceTheFirstFpduIsThere) {
  RawPeerOptions o;
  o.peer_to_peer = true;
  RawPeer p(o);
  p.now += 9s;
  p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
  EXPECT_NE(p.end.established(), nullptr);
  EXPECT_FALSE(p.end.conn().deadline());
  p.end.expire(p.now + 1h);
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
  EXPECT_EQ(p.end.disconnected(), nullptr);
}

TEST(Responder, ClosesOnlyWhenItsRefusalHasLeft) {
  test::Endpoint end(2);
  const TimePoint now{1000s};
  mpa::Policy policy;
  policy.markers = mpa::Policy::Markers::kRefuse;
  end.start(mpa::Responder(policy, now), now);
  // The Request wants Markers.
  (void)end.receive(hex("4d504120494420526571204672616d65 8001 0000"), now);
  EXPECT_EQ(end.conn().link_action(), LinkAction::kNone);
  EXPECT_EQ(test::to_hex(end.send(~std::size_t{0}, now)), "4d504120494420526570204672616d6560010000");
  EXPECT_EQ(end.conn().link_action(), LinkAction::kClose);
  EXPECT_EQ(end.disconnected()->reason.code, Errc::kMarkersRefused);
}

TEST(Responder, CopesWithACloseBeforeAnyFpdu) {
  COVERS("RFC5044-7.1.2-21");
  RawPeerOptions o;
  o.peer_to_peer = true;
  RawPeer p(o);
  p.end.end(TcpEnd::kFin, p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kClose);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kPeerClosed);
}

TEST(Responder, GivesUpWhenTheReplyIsNotTaken) {
  PairOptions o;
  Pair p(o);
  p.to_initiator.stall = true;
  p.settle();
  ASSERT_TRUE(p.responder.conn().deadline());
  p.responder.expire(*p.responder.conn().deadline());
  ASSERT_NE(p.responder.disconnected(), nullptr);
  EXPECT_EQ(p.responder.disconnected()->reason.code, Errc::kStartupTimeout);
  EXPECT_FALSE(p.responder.conn().tx_pending());
  EXPECT_EQ(p.responder.conn().link_action(), LinkAction::kReset);
}

TEST(Responder, ReceivesMayBePostedBeforeTheReplyLeaves) {
  COVERS("RFC5044-7.1.2-10");
  Pair p;
  auto& a = p.initiator.region(10);
  auto& b = p.responder.region(10);
  p.responder.post(rdmap::RecvWr{1, b.all()});
  p.initiator.post(test::send_wr(2, a.all()));  // waits for the connection
  p.run();
  ASSERT_EQ(p.responder.recvs.size(), 1U) << p.log();
}

TEST(Initiator, SendsNothingBehindTheRequestAndThenTheRtrFirst) {
  COVERS("RFC6581-4.3-1");
  COVERS("RFC6581-5-2");
  test::Endpoint end(1);
  const TimePoint now{1000s};
  auto& local = end.region(10);
  end.start(mpa::Initiator({}, {}, now), now);
  end.post(test::send_wr(1, local.all()));
  EXPECT_EQ(end.send(~std::size_t{0}, now).size(), 24U);
  EXPECT_FALSE(end.conn().tx_pending());
  // The Reply names RTR by Write.
  (void)end.receive(hex("4d504120494420526570204672616d65 5002 0004 8020 8020"), now);
  const Bytes sent = end.send(~std::size_t{0}, now);
  const Bytes rtr = test::fpdu(test::write_segment(Stag{1}, 0, {}), true);
  ASSERT_GT(sent.size(), rtr.size());
  EXPECT_EQ(test::to_hex(ConstBytes(sent).first(rtr.size())), test::to_hex(rtr));
}

TEST(Initiator, MalformedReplyEndsItLikeALoss) {
  COVERS("RFC5044-8-11");
  COVERS("RFC5044-8-5");
  for (const bool malformed : {true, false}) {
    test::Endpoint end(1);
    const TimePoint now{1000s};
    auto& local = end.region(10);
    end.post(rdmap::RecvWr{1, local.all()});
    mpa::Policy policy;
    policy.allow_revision_1_fallback = false;
    end.start(mpa::Initiator(policy, {}, now), now);
    (void)end.send(~std::size_t{0}, now);
    if (malformed) {
      (void)end.receive(hex("48545450"), now);
    } else {
      end.end(TcpEnd::kReset, now);
    }
    ASSERT_NE(end.disconnected(), nullptr);
    EXPECT_EQ(end.disconnected()->reason.code, malformed ? Errc::kMalformedStartupFrame : Errc::kConnectionLost);
    EXPECT_FALSE(end.disconnected()->was_established);
    EXPECT_EQ(end.recvs.at(0).status, Errc::kFlushed);
    EXPECT_FALSE(end.conn().tx_pending());
    EXPECT_EQ(end.conn().link_action(), LinkAction::kClose);
  }
}

// A reset in place of a Reply may mean that the peer does not know revision 2. That nobody answers TCP does not.
TEST(Initiator, TriesSomethingElseOnlyWithAPeerThatIsThere) {
  for (const TcpEnd how : {TcpEnd::kReset, TcpEnd::kSilence}) {
    test::Endpoint end(1);
    const TimePoint now{1000s};
    end.start(mpa::Initiator({}, {}, now), now);  // and its Request was not even taken
    end.end(how, now);
    const bool retries = !end.events.empty() && std::holds_alternative<FallBack>(end.events.front());
    EXPECT_EQ(retries, how == TcpEnd::kReset);
    EXPECT_EQ(end.disconnected() != nullptr, how == TcpEnd::kSilence);
    if (how == TcpEnd::kSilence) {
      EXPECT_EQ(end.conn().link_action(), LinkAction::kClose);
    }
  }
}

TEST(Responder, EndsWithAPeerThatTakesNoReply) {
  test::RawPeerOptions o;
  o.finish_startup = false;
  test::RawPeer p(o);
  p.end.end(TcpEnd::kSilence, p.now);
  ASSERT_NE(p.end.disconnected(), nullptr);
  EXPECT_FALSE(p.end.disconnected()->was_established);
  EXPECT_EQ(p.link_action(), LinkAction::kClose);
}

TEST(Initiator, TimesOutWithoutAReply) {
  COVERS("RFC5044-7.1.2-31");
  Pair p;
  p.to_initiator.stall = true;
  p.run();
  ASSERT_NE(p.initiator.disconnected(), nullptr);
  EXPECT_EQ(p.initiator.disconnected()->reason.code, Errc::kStartupTimeout);
  EXPECT_TRUE(p.initiator_link.closed);
}

TEST(Initiator, TerminatesWithInsufficientIrd) {
  COVERS("RFC6581-9.1-17");
  COVERS("RFC6581-9.1-18");
  COVERS("RFC6581-9.1-19");
  COVERS("RFC6581-8-1");
  COVERS("RFC6581-8-2");
  COVERS("RFC6581-8-4");
  COVERS("RFC6581-9.1-14");
  test::Endpoint end(1);
  TimePoint now{1000s};
  mpa::Policy policy;
  policy.ird = 4;
  policy.max_ird = 4;
  end.start(mpa::Initiator(policy, {}, now), now);
  (void)end.send(~std::size_t{0}, now);
  // Reply: C S, revision 2, A=1, IRD 32; RTR by Read, ORD 5.
  (void)end.receive(hex("4d504120494420526570204672616d65 5002 0004 8020 4005"), now);
  const Bytes out = end.send(~std::size_t{0}, now);
  EXPECT_EQ(test::to_hex(out), test::to_hex(test::fpdu(test::terminate_segment(hex("20060000")), true)));
  expect_fin_after_the_wait(end, now);
  end.end(TcpEnd::kFin, now);
  ASSERT_NE(end.disconnected(), nullptr);
  EXPECT_EQ(end.disconnected()->reason.code, Errc::kInsufficientIrd);
  EXPECT_FALSE(end.disconnected()->was_established);
}

TEST(Initiator, TerminatesWithoutACommonRtr) {
  COVERS("RFC6581-9.2-18");
  COVERS("RFC6581-9.2-19");
  COVERS("RFC6581-9.2-20");
  COVERS("RFC6581-8-1");
  COVERS("RFC6581-8-2");
  COVERS("RFC6581-8-5");
  COVERS("RFC6581-9.3-3");
  test::Endpoint end(1);
  TimePoint now{1000s};
  mpa::Policy policy;
  policy.rtr_write = false;
  end.start(mpa::Initiator(policy, {}, now), now);
  (void)end.send(~std::size_t{0}, now);
  // The Reply names RTR by Write only.
  (void)end.receive(hex("4d504120494420526570204672616d65 5002 0004 8020 8020"), now);
  EXPECT_EQ(test::to_hex(end.send(~std::size_t{0}, now)),
            test::to_hex(test::fpdu(test::terminate_segment(hex("20070000")), true)));
  // The peer never closes: the connection is reset in the end.
  expect_fin_after_the_wait(end, now);
  end.expire(now + 5s);
  EXPECT_EQ(end.conn().link_action(), LinkAction::kReset);
  EXPECT_EQ(end.disconnected()->reason.code, Errc::kNoMatchingRtr);
}

mpa::Policy with_forms(unsigned bits) {
  mpa::Policy p;
  p.rtr_send = (bits & 1) != 0;
  p.rtr_write = (bits & 2) != 0;
  p.rtr_read = (bits & 4) != 0;
  return p;
}

// Every set of forms at either end: the one that both have opens the connection, or the Initiator says 2/0/7. The
// receives of both applications take their own messages and no RTR.
TEST(Rtr, EveryOfferAgainstEverySupport) {
  COVERS("RFC6581-1.1-1");
  COVERS("RFC6581-9.2-5");
  COVERS("RFC6581-9.2-7");
  COVERS("RFC6581-9.2-17");
  COVERS("RFC6581-9.2-18");
  COVERS("RFC6581-9.2-19");
  for (unsigned offered = 1; offered < 8; ++offered) {
    for (unsigned supported = 1; supported < 8; ++supported) {
      SCOPED_TRACE("offered " + std::to_string(offered) + " supported " + std::to_string(supported));
      PairOptions o;
      o.initiator_policy = with_forms(offered);
      o.responder_policy = with_forms(supported);
      Pair p(o);
      auto& a = p.initiator.region(10);
      auto& b = p.responder.region(10);
      p.initiator.post(rdmap::RecvWr{1, a.all()});
      p.responder.post(rdmap::RecvWr{1, b.all()});
      p.settle();
      if ((offered & supported) == 0) {
        p.run();
        ASSERT_NE(p.initiator.disconnected(), nullptr);
        EXPECT_EQ(p.initiator.disconnected()->reason.code, Errc::kNoMatchingRtr);
        ASSERT_TRUE(p.initiator.disconnected()->sent);
        EXPECT_EQ(p.initiator.disconnected()->sent->code, (TerminateCode{2, 0, 7}));
        ASSERT_NE(p.responder.disconnected(), nullptr);
        ASSERT_TRUE(p.responder.disconnected()->received);
        EXPECT_EQ(p.responder.disconnected()->received->code, (TerminateCode{2, 0, 7}));
        continue;
      }
      ASSERT_NE(p.initiator.established(), nullptr);
      ASSERT_NE(p.responder.established(), nullptr);
      const unsigned common = offered & supported;
      const mpa::Rtr want = (common & 4) != 0   ? mpa::Rtr::kRead
                            : (common & 2) != 0 ? mpa::Rtr::kWrite
                                                : mpa::Rtr::kSend;
      EXPECT_EQ(p.initiator.established()->negotiated.rtr, want);
      EXPECT_EQ(p.responder.established()->negotiated.rtr, want);
      EXPECT_TRUE(p.responder.recvs.empty());
      p.responder.post(test::send_wr(1, b.sge(0, 5)));  // the Responder may speak first
      p.settle();
      p.initiator.post(test::send_wr(2, a.sge(0, 7)));
      p.settle();
      ASSERT_EQ(p.initiator.recvs.size(), 1U);
      EXPECT_EQ(p.initiator.recvs[0].byte_len, 5U);
      ASSERT_EQ(p.responder.recvs.size(), 1U);
      EXPECT_EQ(p.responder.recvs[0].byte_len, 7U);
      EXPECT_EQ(p.initiator.disconnected(), nullptr);
    }
  }
}

// In octets: no peer that does this is known, so there is no capture.
TEST(Rtr, BySendIsAnEmptySend) {
  COVERS("RFC6581-9.2-5");
  test::Endpoint end(1);
  const TimePoint now{1000s};
  end.start(mpa::Initiator(with_forms(1), {}, now), now);
  EXPECT_EQ(test::to_hex(end.send(~std::size_t{0}, now)), "4d504120494420526571204672616d6550020004c0200020");
  (void)end.receive(hex("4d504120494420526570204672616d65 5002 0004 c020 0020"), now);
  EXPECT_EQ(test::to_hex(end.send(~std::size_t{0}, now)), "0012414300000000000000000000000100000000587be8c4");
}

TEST(Initiator, TerminatesWhenAPostedReadCanNeverBeSent) {
  COVERS("RFC6581-9.3-4");
  COVERS("RFC6581-8-3");
  COVERS("RFC6581-11-2");
  test::Endpoint end(1);
  const TimePoint now{1000s};
  auto& local = end.region(10);
  rdmap::SendWr read = test::send_wr(7, local.all());
  read.op = rdmap::SendOp::kRead;
  end.post(read);
  end.start(mpa::Initiator({}, {}, now), now);
  (void)end.send(~std::size_t{0}, now);
  // The Reply: IRD 0, RTR by Write.
  (void)end.receive(hex("4d504120494420526570204672616d65 5002 0004 8000 8020"), now);
  EXPECT_EQ(test::to_hex(end.send(~std::size_t{0}, now)),
            test::to_hex(test::fpdu(test::terminate_segment(hex("20050000")), true)));
  ASSERT_EQ(end.sends.size(), 1U);
  EXPECT_EQ(end.sends[0].status, Errc::kInvalidArgument);
  expect_fin_after_the_wait(end, now);
  end.end(TcpEnd::kFin, now);
  ASSERT_NE(end.disconnected(), nullptr);
  EXPECT_EQ(end.disconnected()->reason.code, Errc::kStartupLocal);
}

TEST(Initiator, SendsAPostedReadIfThePeerAdmitsOne) {
  test::Endpoint end(1);
  const TimePoint now{1000s};
  auto& local = end.region(10);
  rdmap::SendWr read = test::send_wr(7, local.all());
  read.op = rdmap::SendOp::kRead;
  end.post(read);
  end.start(mpa::Initiator({}, {}, now), now);
  (void)end.send(~std::size_t{0}, now);
  // The Reply: IRD 1, RTR by Write.
  (void)end.receive(hex("4d504120494420526570204672616d65 5002 0004 8001 8020"), now);
  const auto rtr = test::fpdu(test::write_segment(Stag{1}, 0, {}), true);
  const Bytes request = end.send(~std::size_t{0}, now);
  ASSERT_EQ(request.size(), rtr.size() + 2 + 18 + 28 + 4);
  EXPECT_EQ(request[rtr.size() + 3], std::byte{0x41}) << "a Read Request";
  EXPECT_TRUE(end.sends.empty());
}

TEST(Initiator, ReportsARejection) {
  COVERS("RFC5044-7.1.2-16");
  COVERS("RFC6581-9.1-20");
  test::Endpoint end(1);
  const TimePoint now{1000s};
  end.start(mpa::Initiator({}, {}, now), now);
  (void)end.send(~std::size_t{0}, now);
  (void)end.receive(hex("4d504120494420526570204672616d65 7002 0006 8003 4004 abcd"), now);
  const auto* down = end.disconnected();
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->reason.code, Errc::kPeerRejected);
  EXPECT_EQ(down->private_data, hex("abcd"));
  ASSERT_TRUE(down->rejected_with);
  EXPECT_EQ(down->rejected_with->ird, 3);
  EXPECT_EQ(down->rejected_with->ord, 4);
  EXPECT_FALSE(end.conn().tx_pending());
}

TEST(Initiator, KeepsWhatComesBehindARejection) {
  COVERS("RFC5044-7.1.2-16");
  const Bytes reply = hex("4d504120494420526570204672616d65 7002 0006 8003 4004 abcd");
  const TimePoint now{1000s};
  for (const std::size_t behind : {0U, 1U, 9U}) {
    test::Endpoint end(1);
    end.start(mpa::Initiator({}, {}, now), now);
    (void)end.send(~std::size_t{0}, now);
    EXPECT_EQ(end.conn().behind_reject(), nullptr);
    (void)end.receive(reply | pattern(behind), now);
    ASSERT_NE(end.conn().behind_reject(), nullptr);
    EXPECT_EQ(*end.conn().behind_reject(), pattern(behind));
  }
}

TEST(Initiator, KeepsWhatComesBehindAReplyThatItRefuses) {
  COVERS("RFC5044-7.1.2-15");
  const Bytes reply = hex("4d504120494420526570204672616d65 5002 0006 8001 8020 abcd");
  const TimePoint now{1000s};
  for (const std::size_t behind : {0U, 1U, 9U}) {
    test::Endpoint end(1);
    end.conn().start(mpa::Initiator({}, {}, now), now, [](ConstBytes private_data) -> Result<rdmap::Extensions> {
      EXPECT_EQ(Bytes(private_data.begin(), private_data.end()), hex("abcd"));
      return make_error(Errc::kResource, "not acceptable");
    });
    (void)end.send(~std::size_t{0}, now);
    EXPECT_EQ(end.conn().behind_reject(), nullptr);
    (void)end.receive(reply | pattern(behind), now);
    const auto* down = end.disconnected();
    ASSERT_NE(down, nullptr);
    EXPECT_EQ(down->reason.code, Errc::kResource);
    EXPECT_EQ(down->private_data, hex("abcd"));
    ASSERT_NE(end.conn().behind_reject(), nullptr);
    EXPECT_EQ(*end.conn().behind_reject(), pattern(behind));
    EXPECT_FALSE(end.conn().tx_pending()) << "neither an RTR nor a Terminate";
    EXPECT_EQ(end.conn().link_action(), LinkAction::kClose);
  }
}

class Depths : public ::testing::Test {
 protected:
  // The connection under test has sent a Request of revision 1, or one that leaves the depths open.
  void establish(bool revision_1, const char* reply) {
    mpa::Policy policy;
    policy.revision = revision_1 ? 1 : 2;
    policy.peer_to_peer = policy.negotiate_depths = false;
    end_.start(mpa::Initiator(policy, {}, now_), now_);
    (void)end_.send(~std::size_t{0}, now_);
    (void)end_.receive(hex(std::string("4d504120494420526570204672616d65") + reply), now_);
    ASSERT_NE(end_.established(), nullptr);
  }
  [[nodiscard]] std::pair<int, int> depths() { return {end_.conn().negotiated().ird, end_.conn().negotiated().ord}; }

  test::Endpoint end_{1};
  const TimePoint now_{1000s};
};

TEST_F(Depths, AreSettledByTheApplicationWhereStartupDoesNot) {
  COVERS("RFC6581-9.1-22");
  EXPECT_EQ(end_.conn().settle_depths(1, 1, now_).error().code, Errc::kNotConnected);
  establish(true, "40010000");
  EXPECT_EQ(depths(), std::pair(32, 32));
  EXPECT_EQ(end_.conn().settle_depths(16383, 1, now_).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(end_.conn().settle_depths(1, 16383, now_).error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(end_.conn().settle_depths(1, 40, now_));
  EXPECT_EQ(depths(), std::pair(40, 1));
  // The raised queue takes as many Requests: 64, as siw rounds.
  auto& region = end_.region(4, test::kRemoteAll);
  for (std::uint32_t msn = 1; msn <= 64; ++msn) {
    (void)end_.receive(test::fpdu(test::read_request_segment({Stag{9}, 0, 4, region.stag(), region.to()}, msn), true),
                       now_);
    ASSERT_EQ(end_.conn().phase(), Phase::kFull) << msn;
  }
  (void)end_.receive(test::fpdu(test::read_request_segment({Stag{9}, 0, 4, region.stag(), region.to()}, 65), true),
                     now_);
  EXPECT_NE(end_.conn().phase(), Phase::kFull);
}

// Requests that wait are answered though the queue grows.
TEST_F(Depths, MayBeRaisedWhileReadsWait) {
  establish(true, "40010000");
  auto& region = end_.region(4, test::kRemoteAll);
  region.fill(pattern(4));
  for (std::uint32_t msn = 1; msn <= 2; ++msn)
    (void)end_.receive(
        test::fpdu(test::read_request_segment({Stag{9}, 10 * msn, 4, region.stag(), region.to()}, msn), true), now_);
  ASSERT_TRUE(end_.conn().settle_depths(32, 100, now_));
  const auto answer = [](std::uint64_t to) {
    return test::fpdu(test::tagged_segment(rdmap::Opcode::kReadResponse, Stag{9}, to, pattern(4)), true);
  };
  EXPECT_EQ(test::to_hex(end_.send(~std::size_t{0}, now_)), test::to_hex(answer(10) | answer(20)));
}

TEST_F(Depths, LeftOpenByTheFramesAreSettledOnce) {
  establish(false, "50020004 3fff 0008");
  EXPECT_EQ(depths(), std::pair(32, 32));
  ASSERT_TRUE(end_.conn().settle_depths(4, 100, now_));
  EXPECT_EQ(depths(), std::pair(32, 4)) << "the IRD was settled: the Reply has an ORD";
}

TEST_F(Depths, SettledByTheFramesStay) {
  establish(false, "50020004 0005 0008");
  EXPECT_EQ(end_.conn().settle_depths(1, 1, now_).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(depths(), std::pair(32, 5));
}

TEST_F(Depths, AReadThatIsPostedInVainEndsTheConnection) {
  COVERS("RFC6581-9.3-4");
  establish(true, "40010000");
  for (std::uint64_t id = 1; id <= 33; ++id) {  // more than the ORD: the last one waits
    rdmap::SendWr read = test::send_wr(id, end_.region(1).all());
    read.op = rdmap::SendOp::kRead;
    end_.post(read);
  }
  (void)end_.send(~std::size_t{0}, now_);
  EXPECT_EQ(end_.conn().settle_depths(0, 0, now_).error().code, Errc::kStartupLocal);
  EXPECT_EQ(test::to_hex(end_.send(~std::size_t{0}, now_)),
            test::to_hex(test::fpdu(test::terminate_segment(hex("20050000")), true)));
}

// Else the owner of the connection would start again, and hear of the end of the first one, too.
TEST(Initiator, ThatIsAbortedBeforeItsFallBackIsToldOnlyEnds) {
  test::Endpoint end(1);
  const TimePoint now{1000s};
  end.start(mpa::Initiator({}, {}, now), now);
  (void)end.send(~std::size_t{0}, now);
  Connection& core = end.conn();
  core.rx_end(TcpEnd::kReset, now);
  core.abort(make_error(Errc::kAborted, "enough"));
  const auto event = core.poll_event();
  ASSERT_TRUE(event);
  ASSERT_TRUE(std::holds_alternative<Disconnected>(*event));
  EXPECT_STREQ(std::get<Disconnected>(*event).reason.why, "enough");
  EXPECT_FALSE(core.poll_event());
}

TEST(Initiator, StartsAgainWithRevisionOneWhenThePeerHangsUp) {
  COVERS("RFC6581-10-12");
  for (const TcpEnd how : {TcpEnd::kFin, TcpEnd::kReset}) {
    test::Endpoint end(1);
    const TimePoint now{1000s};
    auto& local = end.region(10);
    end.post(rdmap::RecvWr{1, local.all()});
    end.start(mpa::Initiator({}, {}, now), now);
    (void)end.send(~std::size_t{0}, now);
    end.end(how, now);
    ASSERT_EQ(end.events.size(), 1U);
    EXPECT_EQ(std::get<FallBack>(end.events[0]).reason.code, Errc::kConnectionLost);
    EXPECT_EQ(std::get<FallBack>(end.events[0]).to, mpa::Fallback::kRevision1);
    EXPECT_EQ(end.conn().phase(), Phase::kIdle);
    EXPECT_FALSE(end.conn().deadline());
    EXPECT_FALSE(end.conn().tx_pending());
    EXPECT_TRUE(end.recvs.empty()) << "what was posted stays posted";
    mpa::Policy policy;
    policy.revision = 1;
    end.start(mpa::Initiator(policy, {}, now), now);
    (void)end.send(~std::size_t{0}, now);
    (void)end.receive(hex("4d504120494420526570204672616d65 4001 0000") | test::fpdu(send_segment(pattern(4)), true),
                      now);
    ASSERT_NE(end.established(), nullptr);
    EXPECT_EQ(end.established()->negotiated.revision, 1);
    EXPECT_EQ(end.recvs.size(), 1U);
  }
}

// What the owner of the connection says to a rejection, and to a peer that hangs up.
TEST(Initiator, StartsAgainWhereItsRetryJudgeSaysSo) {
  for (const bool rejected : {true, false}) {
    for (const bool again : {true, false}) {
      test::Endpoint end(1);
      const TimePoint now{1000s};
      end.post(rdmap::RecvWr{1, end.region(10).all()});
      mpa::Policy policy;
      policy.revision = 1;
      std::optional<Error> asked;
      Bytes told;
      end.conn().start(mpa::Initiator(policy, {}, now), now, {},
                       [&](const Error& failed, ConstBytes data) -> std::optional<std::vector<std::byte>> {
                         asked = failed;
                         told.assign(data.begin(), data.end());
                         if (!again) return std::nullopt;
                         return pattern(3);
                       });
      (void)end.send(~std::size_t{0}, now);
      if (rejected) {
        (void)end.receive(hex("4d504120494420526570204672616d65 6001 0002 abcd"), now);
      } else {
        end.end(TcpEnd::kReset, now);
      }
      ASSERT_TRUE(asked);
      EXPECT_EQ(asked->code, rejected ? Errc::kPeerRejected : Errc::kConnectionLost);
      EXPECT_EQ(told, rejected ? hex("abcd") : Bytes());
      ASSERT_EQ(end.events.size(), 1U);
      if (!again) {
        EXPECT_EQ(end.recvs.size(), 1U);
        ASSERT_NE(end.disconnected(), nullptr);
        EXPECT_EQ(end.disconnected()->private_data, told);
        continue;
      }
      const auto& fall_back = std::get<FallBack>(end.events[0]);
      EXPECT_EQ(fall_back.reason.code, asked->code);
      EXPECT_EQ(fall_back.to, mpa::Fallback::kNone);
      EXPECT_EQ(fall_back.private_data, pattern(3));
      EXPECT_EQ(end.conn().phase(), Phase::kIdle);
      EXPECT_EQ(end.conn().behind_reject(), nullptr);
      EXPECT_TRUE(end.recvs.empty()) << "what was posted stays posted";
    }
  }
}

TEST(Initiator, DisconnectDuringStartupLeavesNothingToSend) {
  for (const bool abortive : {false, true}) {
    test::Endpoint end(1);
    const TimePoint now{1000s};
    end.start(mpa::Initiator({}, {}, now), now);
    EXPECT_TRUE(end.conn().tx_pending());
    if (abortive) {
      end.conn().abort(make_error(Errc::kAborted));
    } else {
      end.disconnect(now);
    }
    end.collect();
    EXPECT_FALSE(end.conn().tx_pending());
    EXPECT_FALSE(end.conn().deadline());
    EXPECT_TRUE(end.conn().is_consistent());
    EXPECT_EQ(end.conn().link_action(), abortive ? LinkAction::kReset : LinkAction::kClose);
    EXPECT_NE(end.disconnected(), nullptr);
  }
}

TEST(Initiator, TakesFpdusThatFollowTheReplyAtOnce) {
  COVERS("RFC5044-7.1-6");
  COVERS("RFC5044-7.1-7");
  COVERS("RFC5044-7.1.5-1");
  test::Endpoint end(1);
  const TimePoint now{1000s};
  mpa::Policy policy;
  policy.peer_to_peer = false;
  auto& local = end.region(10);
  end.post(rdmap::RecvWr{1, local.all()});
  end.start(mpa::Initiator(policy, {}, now), now);
  (void)end.send(~std::size_t{0}, now);
  (void)end.receive(
      hex("4d504120494420526570204672616d65 5002 0004 0020 0020") | test::fpdu(send_segment(pattern(4)), true), now);
  ASSERT_EQ(end.recvs.size(), 1U);
  EXPECT_EQ(end.recvs[0].byte_len, 4U);
}

}  // namespace
}  // namespace iwarp::stream
