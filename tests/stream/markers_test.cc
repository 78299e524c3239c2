// Connections with MPA Markers (RFC 5044 s4.3) in one direction, in both or in none: what an application sees must be
// the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/support/covers.h"
#include "tests/support/mixed_scenario.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::Pair;
using test::PairOptions;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::run_mixed_scenario;

struct Combination {
  bool crc, to_responder, to_initiator;
  mpa::FpduPolicy fpdu;
};

PairOptions options_of(const Combination& c) {
  PairOptions o;
  o.initiator_policy.crc = o.responder_policy.crc = c.crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
  if (c.to_responder) o.responder_policy.markers = mpa::Policy::Markers::kAsk;
  if (c.to_initiator) o.initiator_policy.markers = mpa::Policy::Markers::kAsk;
  o.initiator.fpdu = o.responder.fpdu = c.fpdu;
  o.max_steps = 1'000'000;
  return o;
}

// The lengths of the FPDUs in what one direction carried behind its startup frame; all of it must be good FPDUs.
std::vector<std::size_t> fpdus_of(const test::Wire& wire, bool crc, bool markers) {
  Bytes octets(wire.recorded.begin() + 24, wire.recorded.end());  // no private data
  std::vector<std::size_t> sizes;
  mpa::FpduDecoder decoder(crc, markers);
  for (MutBytes rest = octets; !rest.empty();) {
    const auto result = decoder.decode(rest);
    const auto* frame = std::get_if<mpa::FpduFrame>(&result);
    if (frame == nullptr) {
      ADD_FAILURE() << "no good FPDU at " << octets.size() - rest.size();
      return sizes;
    }
    sizes.push_back(frame->fpdu_bytes);
    rest = rest.subspan(frame->fpdu_bytes);
  }
  return sizes;
}

// What the negotiation says of itself differs; nothing else may.
std::string outcome(Pair& p) {
  std::string log = run_mixed_scenario(p);
  for (const char* word : {" markers=both", " markers=sent", " markers=received"}) {
    for (auto at = log.find(word); at != std::string::npos; at = log.find(word)) log.erase(at, std::strlen(word));
  }
  return log;
}

class MarkedConnection : public ::testing::TestWithParam<Combination> {
 protected:
  MarkedConnection() {
    Combination plain = GetParam();
    plain.to_responder = plain.to_initiator = false;
    Pair p(options_of(plain));
    expected_ = outcome(p);
  }

  PairOptions options_ = options_of(GetParam());
  std::string expected_;
};

TEST_P(MarkedConnection, CarriesTheSameMessages) {
  COVERS("RFC5044-4.3-2");
  COVERS("RFC5044-7.1.1-9");
  COVERS("RFC5044-7.1.1-10");
  COVERS("RFC5044-7.1.1-11");
  COVERS("RFC5044-7.1.1-12");
  COVERS("RFC5044-7.1.2-23");
  COVERS("RFC5044-C.3-1");
  COVERS("RFC5044-7.1.1-13");
  const Combination& c = GetParam();
  Pair p(options_);
  EXPECT_EQ(outcome(p), expected_);
  EXPECT_EQ(p.initiator.conn().negotiated().markers_sent, c.to_responder);
  EXPECT_EQ(p.initiator.conn().negotiated().markers_received, c.to_initiator);
  EXPECT_EQ(p.responder.conn().negotiated().markers_sent, c.to_initiator);
  EXPECT_EQ(p.responder.conn().negotiated().markers_received, c.to_responder);
  EXPECT_GT(fpdus_of(p.to_responder, c.crc, c.to_responder).size(), 5U);
  EXPECT_GT(fpdus_of(p.to_initiator, c.crc, c.to_initiator).size(), 5U);
}

TEST_P(MarkedConnection, FitsItsFpdusIntoSegments) {
  COVERS("RFC5044-4.5-2");
  const Combination& c = GetParam();
  for (const std::size_t emss : {536U, 1448U, 8948U}) {
    options_.emss = emss;
    Pair p(options_);
    EXPECT_EQ(outcome(p), expected_) << emss;
    const auto sizes = fpdus_of(p.to_responder, c.crc, c.to_responder);
    if (c.fpdu == mpa::FpduPolicy::kEmss) {
      EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), emss);
    }
  }
}

TEST_P(MarkedConnection, MayBeCutAnywhere) {
  COVERS("RFC5044-5.1-6");
  COVERS("RFC5044-4.3-23");
  Pair whole(options_);
  (void)outcome(whole);
  for (const bool forward : {true, false}) {
    const std::uint64_t end = (forward ? whole.to_responder : whole.to_initiator).recorded.size();
    for (std::uint64_t at = 1; at < end; at += at < 200 ? 1 : 499) {
      Pair p(options_);
      (forward ? p.to_responder : p.to_initiator).cut_at = at;
      ASSERT_EQ(outcome(p), expected_) << at;
    }
  }
  for (const std::size_t chunk : {1U, 3U, 7U}) {
    Pair p(options_);
    p.to_responder.max_chunk_bytes = p.to_initiator.max_chunk_bytes = chunk;
    ASSERT_EQ(outcome(p), expected_) << chunk;
  }
  for (const std::size_t scratch : {64U, 100U, 1024U, 262144U}) {
    options_.scratch_bytes = scratch;
    Pair p(options_);
    ASSERT_EQ(outcome(p), expected_) << scratch;
  }
}

TEST_P(MarkedConnection, MayBeWrittenInAnyPieces) {
  Pair octets(options_);
  octets.to_responder.max_write_bytes = octets.to_initiator.max_write_bytes = 1;
  ASSERT_EQ(outcome(octets), expected_);
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    Pair p(options_);
    p.to_responder.random_seed = seed;
    p.to_initiator.random_seed = seed + 100;
    p.to_initiator.max_write_bytes = seed % 2 == 0 ? 11 : test::Wire::kUnlimited;
    p.to_responder.max_write_bytes = seed % 3 == 0 ? 1000 : test::Wire::kUnlimited;
    ASSERT_EQ(outcome(p), expected_) << seed;
  }
}

// Enough to have Markers at every place of FPDUs of every shape, and to pass 64 KiB.
TEST_P(MarkedConnection, CarriesMessagesOfRandomSizes) {
  const Combination& c = GetParam();
  std::mt19937 random(7);
  Pair p(options_);
  p.to_responder.random_seed = 3;
  p.establish();
  for (int round = 0; round < 150; ++round) {
    const std::size_t size = random() % (round % 10 == 0 ? 70'000 : 1200);
    const bool forward = random() % 2 == 0;
    auto& from = forward ? p.initiator : p.responder;
    auto& to = forward ? p.responder : p.initiator;
    auto& source = from.region(size + 1, test::kRemoteAll);
    auto& sink = to.region(size + 1, test::kRemoteAll);
    source.fill(pattern(size, static_cast<unsigned>(round)));
    switch (random() % 3) {
      case 0:
        to.post(rdmap::RecvWr{1, sink.sge(0, size)});
        from.post(test::send_wr(2, source.sge(0, size)));
        break;
      case 1:
        from.post(test::write_wr(2, source.sge(0, size), sink));
        break;
      default:
        to.post(test::read_wr(2, sink.sge(0, size), source));
        break;
    }
    p.settle();
    ASSERT_EQ(sink.bytes(), source.bytes()) << round << "\n" << p.log();
    source.revoke();
    sink.revoke();
  }
  EXPECT_EQ(p.log().find("flushed"), std::string::npos);
  (void)fpdus_of(p.to_responder, c.crc, c.to_responder);
  (void)fpdus_of(p.to_initiator, c.crc, c.to_initiator);
}

std::vector<Combination> combinations() {
  std::vector<Combination> out;
  for (const auto fpdu : {mpa::FpduPolicy::kEmss, mpa::FpduPolicy::kMax}) {
    for (const bool crc : {true, false}) {
      for (const int m : {0, 1, 2, 3}) out.push_back({crc, (m & 1) != 0, (m & 2) != 0, fpdu});
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, MarkedConnection, ::testing::ValuesIn(combinations()), [](const auto& tested) {
  const Combination& c = tested.param;
  return std::string(c.crc ? "Crc" : "NoCrc") + (c.to_responder ? "ToResponder" : "") +
         (c.to_initiator ? "ToInitiator" : "") + (c.fpdu == mpa::FpduPolicy::kEmss ? "Emss" : "Max");
});

TEST(Markers, StandBeforeTheFirstFpdu) {
  COVERS("RFC5044-7.1.2-23");
  COVERS("RFC5044-4.3-12");
  COVERS("RFC5044-4.3-14");
  Pair p(options_of({true, true, false, mpa::FpduPolicy::kEmss}));
  p.establish();
  // Request, Marker, then the RTR.
  EXPECT_EQ(test::to_hex(ConstBytes(p.to_responder.recorded).subspan(24, 8)), "00000000002e4141");
  EXPECT_EQ(test::to_hex(ConstBytes(p.to_initiator.recorded).subspan(24, 4)), "000ec142") << "none the other way";
}

RawPeerOptions marked(bool crc) {
  RawPeerOptions o;
  o.crc = crc;
  o.markers = true;
  return o;
}

TEST(Markers, ThatPointElsewhereEndTheConnectionWithATerminate) {
  COVERS("RFC5044-8-3");
  COVERS("RFC5044-8-6");
  COVERS("RFC5044-8-8");
  RawPeer p(marked(false));
  auto& local = p.end.region(2000);
  for (std::uint64_t i = 1; i <= 3; ++i) p.end.post(rdmap::RecvWr{i, local.all()});
  p.feed_ulpdu(test::send_segment(pattern(900)));
  ASSERT_EQ(p.end.recvs.size(), 1U);
  Bytes bad = p.framed(test::send_segment(pattern(900), {.msn = 2}));
  // The first FPDU has 932 octets: the next Marker stands 92 behind.
  ASSERT_EQ(test::to_hex(ConstBytes(bad).subspan(92, 4)), "0000005c");
  bad[95] ^= std::byte{4};
  p.feed(bad);
  p.feed(p.framed(test::send_segment(pattern(900), {.msn = 3})));
  EXPECT_EQ(p.terminate(), "20030000");
  EXPECT_EQ(p.end.recvs.size(), 3U);
  EXPECT_EQ(p.end.recvs[1].status, Errc::kFlushed);
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite) << "in order, behind the Terminate";
  p.end.end(TcpEnd::kFin, p.now);
  ASSERT_NE(p.end.disconnected(), nullptr);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kMarkerMismatch);
}

TEST(Markers, AreCoveredByTheCrc) {
  COVERS("RFC5044-4.3-1");
  RawPeer p(marked(true));
  Bytes bad = p.framed(test::write_segment(Stag{1}, 0, {}));
  bad[1] ^= std::byte{1};  // RESERVED
  p.feed(bad);
  p.end.end(TcpEnd::kFin, p.now);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kCrcMismatch);
}

TEST(Markers, AloneAreNoPartOfAnFpduWhenTheStreamEnds) {
  COVERS("RFC5044-4.3-8");
  for (const std::size_t extra : {0U, 3U, 4U, 5U}) {
    RawPeer p(marked(true));
    auto& local = p.end.region(2000);
    p.end.post(rdmap::RecvWr{1, local.all()});
    p.feed_ulpdu(test::send_segment(pattern(484)));  // up to the next Marker
    ASSERT_EQ(p.end.recvs.size(), 1U) << "complete without it";
    p.feed(Bytes(extra));
    p.end.end(TcpEnd::kFin, p.now);
    ASSERT_NE(p.end.disconnected(), nullptr);
    EXPECT_EQ(p.end.disconnected()->reason.code, extra > 4 ? Errc::kConnectionLost : Errc::kPeerClosed) << extra;
  }
}

}  // namespace
}  // namespace iwarp::stream
