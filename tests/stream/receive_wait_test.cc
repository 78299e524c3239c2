// Messages that wait for a Receive (Options::receive_wait) in place of the Terminate of RFC 5041 s7.1.
#include <gtest/gtest.h>

#include "iwarp/rdmap/shared_receives.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using namespace std::chrono_literals;
using test::operator|;
using test::Bytes;
using test::list;
using test::Pair;
using test::PairOptions;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::send_segment;
using test::write_segment;

RawPeerOptions waiting(std::chrono::milliseconds wait = 1000ms) {
  RawPeerOptions o;
  o.stream.receive_wait = wait;
  return o;
}

void resume(RawPeer& peer) {
  peer.end.conn().resume(peer.now);
  peer.end.collect();
}

TEST(ReceiveWait, AMessageWaitsAndWhatIsBehindItToo) {
  RawPeer peer(waiting());
  auto& sink = peer.end.region(64);
  auto& target = peer.end.region(8, test::kRemoteAll, 0x20000);
  peer.feed(peer.framed(send_segment(pattern(5))) | peer.framed(write_segment(target.stag(), target.to(), pattern(8))));
  EXPECT_TRUE(peer.end.conn().holding());
  EXPECT_EQ(peer.end.conn().phase(), Phase::kFull);
  EXPECT_TRUE(peer.end.recvs.empty());
  EXPECT_EQ(target.bytes(), Bytes(8)) << "it is behind the Send";
  Bytes scratch(64);
  EXPECT_TRUE(peer.end.conn().rx_buffers(scratch).empty()) << "TCP's window is to close";
  resume(peer);
  EXPECT_TRUE(peer.end.conn().holding()) << "there is no Receive still";
  peer.end.post(rdmap::RecvWr{7, list({sink.all()})});
  resume(peer);
  EXPECT_FALSE(peer.end.conn().holding());
  ASSERT_EQ(peer.end.recvs.size(), 1U);
  EXPECT_EQ(peer.end.recvs[0].wr_id, 7U);
  EXPECT_EQ(peer.end.recvs[0].byte_len, 5U);
  EXPECT_TRUE(std::equal(sink.bytes().begin(), sink.bytes().begin() + 5, pattern(5).begin()));
  EXPECT_EQ(target.bytes(), pattern(8));
  EXPECT_FALSE(peer.end.conn().rx_buffers(scratch).empty());
  peer.end.conn().rx_commit(0, peer.now);
  EXPECT_FALSE(peer.end.conn().deadline()) << "nothing waits";
}

// As without the wait, with the header of the message.
TEST(ReceiveWait, EndsWithTheTerminateThatWasPutOff) {
  RawPeer patient(waiting()), impatient;
  for (RawPeer* peer : {&patient, &impatient}) peer->feed_ulpdu(send_segment(pattern(5)));
  EXPECT_EQ(patient.end.conn().deadline(), patient.now + 1000ms);
  patient.now += 999ms;
  patient.end.expire(patient.now);
  EXPECT_TRUE(patient.end.conn().holding());
  patient.expire();
  EXPECT_FALSE(patient.end.conn().holding());
  const std::string terminate = patient.terminate();
  EXPECT_EQ(terminate, impatient.terminate());
  EXPECT_EQ(terminate.substr(0, 4), "1202");
  patient.end.end(TcpEnd::kFin, patient.now);
  ASSERT_NE(patient.end.disconnected(), nullptr);
  EXPECT_EQ(patient.end.disconnected()->reason.code, Errc::kUntaggedNoBuffer);
}

// The limit is of each message, not of all that come too soon, and asking again does not make it longer.
TEST(ReceiveWait, EachMessageHasItsTime) {
  RawPeer peer(waiting());
  auto& sink = peer.end.region(64);
  peer.feed(peer.framed(send_segment(pattern(5))) | peer.framed(send_segment(pattern(6), {.msn = 2})));
  peer.now += 600ms;
  resume(peer);
  EXPECT_EQ(peer.end.conn().deadline(), peer.now + 400ms);
  peer.end.post(rdmap::RecvWr{1, list({sink.all()})});
  resume(peer);
  EXPECT_EQ(peer.end.recvs.size(), 1U);
  EXPECT_EQ(peer.end.conn().deadline(), peer.now + 1000ms);
  peer.end.post(rdmap::RecvWr{2, list({sink.all()})});
  resume(peer);
  EXPECT_EQ(peer.end.recvs.size(), 2U);
  EXPECT_FALSE(peer.end.conn().deadline());
}

TEST(ReceiveWait, ImmediateDataWaits) {
  RawPeerOptions o = waiting();
  o.stream.rfc7306 = true;
  RawPeer peer(o);
  peer.feed_ulpdu(send_segment(pattern(8), {}, rdmap::Opcode::kImmediate));
  EXPECT_TRUE(peer.end.conn().holding());
  peer.end.post(rdmap::RecvWr{3, {}});
  resume(peer);
  ASSERT_EQ(peer.end.recvs.size(), 1U);
  EXPECT_TRUE(peer.end.recvs[0].has_immediate);
}

// Queue 1 has IRD for its limit, and who goes beyond it breaks a rule.
TEST(ReceiveWait, AReadRequestBeyondTheIrdDoesNot) {
  RawPeer peer(waiting());
  auto& source = peer.end.region(64, test::kRemoteAll);
  const rdmap::ReadRequest request{Stag{1}, 0, 64, source.stag(), source.to()};
  for (std::uint32_t msn = 1; msn <= 100; ++msn) peer.feed_ulpdu(test::read_request_segment(request, msn));
  EXPECT_FALSE(peer.end.conn().holding());
  EXPECT_EQ(peer.end.conn().phase(), Phase::kTerminating);
}

TEST(ReceiveWait, AMessageThatIsWrongDoesNot) {
  RawPeer peer(waiting());
  peer.feed_ulpdu(send_segment(pattern(5), {.msn = 2}));
  EXPECT_FALSE(peer.end.conn().holding());
  EXPECT_EQ(peer.end.conn().phase(), Phase::kTerminating);
}

TEST(ReceiveWait, AnEndOfAnyKindEndsIt) {
  for (const bool reset : {true, false}) {
    RawPeer peer(waiting());
    peer.feed(peer.framed(send_segment(pattern(5))) | peer.framed(send_segment(pattern(6), {.msn = 2})));
    if (reset) {
      peer.end.end(TcpEnd::kReset, peer.now);
    } else {
      peer.end.conn().abort(make_error(Errc::kAborted));
      peer.end.collect();
    }
    EXPECT_FALSE(peer.end.conn().holding());
    EXPECT_FALSE(peer.end.conn().deadline());
    resume(peer);
    EXPECT_TRUE(peer.end.recvs.empty());
    ASSERT_NE(peer.end.disconnected(), nullptr);
    EXPECT_EQ(peer.end.disconnected()->reason.code, reset ? Errc::kConnectionLost : Errc::kAborted);
  }
}

// What the peer has sent before its end is still to be had.
TEST(ReceiveWait, GoesOnWhileTheConnectionClosesInOrder) {
  RawPeer peer(waiting());
  auto& sink = peer.end.region(64);
  peer.feed_ulpdu(send_segment(pattern(5)));
  peer.end.disconnect(peer.now);
  (void)peer.ulpdus();
  EXPECT_EQ(peer.link_action(), LinkAction::kShutdownWrite);
  EXPECT_TRUE(peer.end.conn().holding());
  peer.end.post(rdmap::RecvWr{1, list({sink.all()})});
  resume(peer);
  ASSERT_EQ(peer.end.recvs.size(), 1U);
  EXPECT_EQ(peer.end.recvs[0].status, Errc::kOk);
  peer.end.end(TcpEnd::kFin, peer.now);
  EXPECT_EQ(peer.end.conn().phase(), Phase::kClosed);
}

// The peer waits for this end, and will not wait for ever.
TEST(ReceiveWait, IsShorterOnceThePeerHasEnded) {
  for (const bool comes : {true, false}) {
    RawPeerOptions o = waiting(1h);
    o.stream.close_timeout = 2s;
    RawPeer peer(o);
    auto& sink = peer.end.region(64);
    peer.feed_ulpdu(send_segment(pattern(5)));
    peer.end.conn().fin_is_behind(peer.now);
    EXPECT_EQ(peer.end.conn().deadline(), peer.now + 2s);
    peer.now += 1s;
    peer.end.conn().fin_is_behind(peer.now);
    EXPECT_EQ(peer.end.conn().deadline(), peer.now + 1s) << "from the first time on";
    if (comes) {
      peer.end.post(rdmap::RecvWr{1, list({sink.all()})});
      resume(peer);
      ASSERT_EQ(peer.end.recvs.size(), 1U);
      EXPECT_EQ(peer.end.recvs[0].status, Errc::kOk);
      EXPECT_FALSE(peer.end.conn().deadline());
    } else {
      peer.expire();
      EXPECT_EQ(peer.terminate().substr(0, 4), "1202");
    }
    peer.end.end(TcpEnd::kFin, peer.now);
    ASSERT_NE(peer.end.disconnected(), nullptr);
    EXPECT_EQ(peer.end.disconnected()->reason.code, comes ? Errc::kPeerClosed : Errc::kUntaggedNoBuffer);
  }
}

// Nothing that lies behind such a message comes back.
TEST(ReceiveWait, EndsSoonBehindAnOrderlyEnd) {
  RawPeer peer(waiting(1h));
  auto& target = peer.end.region(8, test::kRemoteAll, 0x20000);
  peer.feed(peer.framed(send_segment(pattern(5))) | peer.framed(write_segment(target.stag(), target.to(), pattern(8))));
  peer.end.disconnect(peer.now);
  (void)peer.ulpdus();
  EXPECT_EQ(peer.link_action(), LinkAction::kShutdownWrite);
  peer.expire();
  EXPECT_FALSE(peer.end.conn().holding());
  EXPECT_EQ(peer.end.conn().phase(), Phase::kEndWait);
  Bytes scratch(64);
  EXPECT_FALSE(peer.end.conn().rx_buffers(scratch).empty()) << "the rest is read, and dropped";
  peer.end.conn().rx_commit(10, peer.now);
  peer.end.end(TcpEnd::kFin, peer.now);
  EXPECT_EQ(peer.link_action(), LinkAction::kClose);
  EXPECT_EQ(target.bytes(), Bytes(8));
}

TEST(ReceiveWait, SharedReceivesAreAskedAgain) {
  rdmap::SharedReceives shared(4);
  RawPeerOptions o = waiting();
  o.shared = &shared;
  RawPeer peer(o);
  auto& sink = peer.end.region(64);
  peer.feed_ulpdu(send_segment(pattern(5)));
  EXPECT_TRUE(peer.end.conn().holding());
  ASSERT_TRUE(shared.post(rdmap::RecvWr{9, list({sink.all()})}));
  resume(peer);
  ASSERT_EQ(peer.end.recvs.size(), 1U);
  EXPECT_EQ(peer.end.recvs[0].wr_id, 9U);
}

TEST(ReceiveWait, ItsLimitIsNotBelowZero) {
  Options o;
  o.receive_wait = -1ms;
  const auto invalid = validate(o);
  ASSERT_FALSE(invalid);
  EXPECT_NE(std::string(invalid.error().why).find("receive_wait"), std::string::npos);
}

struct WaitShape {
  bool crc, markers;
  std::size_t scratch;
};

class ReceiveWaitTransfer : public ::testing::TestWithParam<WaitShape> {};

// However the octets come, and wherever the messages begin in them: what arrives is what would have come without a
// wait.
TEST_P(ReceiveWaitTransfer, LosesNothing) {
  PairOptions o;
  const auto crc = GetParam().crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
  const auto markers = GetParam().markers ? mpa::Policy::Markers::kAsk : mpa::Policy::Markers::kServe;
  o.initiator_policy.crc = o.responder_policy.crc = crc;
  o.initiator_policy.markers = o.responder_policy.markers = markers;
  o.responder.receive_wait = 1h;
  o.scratch_bytes = GetParam().scratch;
  constexpr std::size_t kMessages = 60, kMost = 70'000;
  for (unsigned seed = 0; seed < 4; ++seed) {
    Pair p(o);
    if (seed > 0) p.to_responder.random_seed = seed;
    p.establish();
    auto& source = p.initiator.region(kMost);
    auto& target = p.responder.region(kMessages * 8, test::kRemoteAll, 0x30000);
    auto& sink = p.responder.region(kMost);
    source.fill(pattern(kMost, 3));
    std::mt19937 random(seed);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < kMessages; ++i) {
      const std::size_t sizes_of[] = {0, 1 + random() % 100, random() % 3000, random() % kMost};
      sizes.push_back(sizes_of[random() % 4]);
    }
    std::size_t posted = 0;
    for (std::size_t i = 0; i < kMessages; ++i) {
      while (posted < kMessages && posted - p.initiator.sends.size() / 2 < 20) {
        p.initiator.post(test::send_wr(posted, list({source.sge(kMost - sizes[posted], sizes[posted])})));
        p.initiator.post(test::write_wr(1000 + posted, list({source.sge(posted, 8)}), target, posted * 8));
        ++posted;
      }
      p.settle();
      ASSERT_TRUE(p.responder.conn().holding()) << i;
      ASSERT_EQ(p.responder.recvs.size(), i);
      ASSERT_EQ(Bytes(target.bytes().begin() + static_cast<std::ptrdiff_t>(i * 8), target.bytes().end()),
                Bytes((kMessages - i) * 8))
          << "Writes behind it";
      std::ranges::fill(sink.bytes(), std::byte{0});
      p.responder.post(rdmap::RecvWr{i, list({sink.all()})});
      p.responder.conn().resume(p.now);
      p.responder.collect();
      p.settle();
      ASSERT_EQ(p.responder.recvs.size(), i + 1) << p.log();
      ASSERT_EQ(p.responder.recvs[i].byte_len, sizes[i]);
      ASSERT_TRUE(std::equal(source.bytes().end() - static_cast<std::ptrdiff_t>(sizes[i]), source.bytes().end(),
                             sink.bytes().begin()));
      ASSERT_TRUE(std::equal(source.bytes().begin() + static_cast<std::ptrdiff_t>(i),
                             source.bytes().begin() + static_cast<std::ptrdiff_t>(i + 8),
                             target.bytes().begin() + static_cast<std::ptrdiff_t>(i * 8)));
    }
    p.settle();
    EXPECT_FALSE(p.responder.conn().holding());
    EXPECT_EQ(p.initiator.sends.size(), 2 * kMessages);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ReceiveWaitTransfer,
                         ::testing::Values(WaitShape{true, false, 65536}, WaitShape{false, false, 65536},
                                           WaitShape{false, false, 300}, WaitShape{true, true, 65536},
                                           WaitShape{true, false, 300}),
                         [](const auto& shape) {
                           return std::string(shape.param.crc ? "crc" : "no_crc") +
                                  (shape.param.markers ? "_markers" : "") + "_" + std::to_string(shape.param.scratch);
                         });

}  // namespace
}  // namespace iwarp::stream
