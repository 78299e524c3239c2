// Memory that changes or is revoked while the network still works on it (RFC 5042 s5; RFC 5040 s5.5 rule 8).
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::hex;
using test::Pair;
using test::PairOptions;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::send_segment;
using test::operator|;

PairOptions long_fpdus(bool crc) {
  PairOptions o;
  o.initiator_policy.crc = o.responder_policy.crc = crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
  o.initiator.fpdu = o.responder.fpdu = mpa::FpduPolicy::kMax;
  return o;
}

RawPeerOptions raw(bool crc, mpa::FpduPolicy fpdu = mpa::FpduPolicy::kMax) {
  RawPeerOptions o;
  o.crc = crc;
  o.stream.fpdu = fpdu;
  return o;
}

// The source of a Read may legally change at any time, also between the CRC and the last octet of an FPDU.
TEST(ReadSource, MayChangeWhileItIsRead) {
  COVERS("RFC5040-5.5-18");
  COVERS("RFC5040-5.5-9");
  for (const bool crc : {true, false}) {
    Pair p(long_fpdus(crc));
    p.establish();
    auto& sink = p.initiator.region(300000);
    auto& source = p.responder.region(300000, test::kRemoteAll);
    p.initiator.post(test::read_wr(1, sink.all(), source));
    p.to_initiator.stall_after = p.to_initiator.recorded.size() + 40000;
    p.to_initiator.max_write_bytes = 10000;
    p.settle();
    ASSERT_TRUE(p.initiator.sends.empty());
    for (int round = 0; round < 100 && p.initiator.sends.empty(); ++round) {
      source.fill(pattern(300000, static_cast<unsigned>(round)));
      *p.to_initiator.stall_after += 5000;
      p.settle();
    }
    ASSERT_EQ(p.initiator.sends.size(), 1U) << p.log();
    EXPECT_EQ(p.initiator.sends[0].status, Errc::kOk) << p.log();
  }
}

// With CRC on it is copied, unless its owner has promised to leave it alone.
TEST(ReadSource, IsCopiedOnlyWhereItMay) {
  for (const bool crc : {true, false}) {
    for (const bool stable : {true, false}) {
      RawPeer p(raw(crc));
      auto& source = p.end.region(200000, stable ? test::kRemoteAll | ddp::Access::kStableSource : test::kRemoteAll);
      source.fill(pattern(200000, 6));
      p.feed_ulpdu(test::read_request_segment({Stag{0x500}, 0, 200000, source.stag(), source.to()}));
      std::size_t in_place = 0;
      for (const ConstBytes run : p.end.conn().tx_buffers(p.now)) {
        if (run.data() >= source.bytes().data() && run.data() < source.bytes().data() + source.bytes().size())
          in_place += run.size();
      }
      EXPECT_EQ(in_place, crc && !stable ? 0U : 200000U);
      Bytes served;
      for (const Bytes& ulpdu : p.ulpdus()) served.insert(served.end(), ulpdu.begin() + 14, ulpdu.end());
      EXPECT_EQ(served, pattern(200000, 6));
    }
  }
}

TEST(WriteTarget, RevokedBetweenTwoFpdus) {
  COVERS("RFC5041-8.3.1-7");
  COVERS("RFC5040-8.1.1-7");
  for (const bool crc : {true, false}) {
    RawPeer p(raw(crc));
    auto& open = p.end.region(100, test::kRemoteAll);
    p.feed_ulpdu(test::write_segment(open.stag(), 0x10000, pattern(50), false));
    open.revoke();
    open.bytes() = Bytes(100);
    p.feed_ulpdu(test::write_segment(open.stag(), 0x10000 + 50, pattern(50)));
    EXPECT_EQ(p.terminate().substr(0, 8), "1100c000");
    EXPECT_EQ(open.bytes(), Bytes(100));
  }
}

// With CRC off the rest of a long FPDU goes straight to its place: there the peer may stall for ever in the middle of
// it.
TEST(WriteTarget, RevokedUnderAHalfReceivedFpdu) {
  COVERS("RFC5041-8.3.1-7");
  RawPeer p(raw(false));
  auto& open = p.end.region(30000, test::kRemoteAll);
  p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));  // the first FPDU is always taken whole
  const Bytes ulpdu = test::write_segment(open.stag(), 0x10000, pattern(30000, 1));
  const Bytes bytes = test::fpdu(ulpdu, false);
  p.feed(Bytes(bytes.begin(), bytes.begin() + 10000));
  EXPECT_TRUE(std::equal(open.bytes().begin(), open.bytes().begin() + 9984, pattern(9984, 1).begin()))
      << "placed at once";
  open.revoke();
  const Bytes mine(30000, std::byte{0x33});
  open.bytes() = mine;
  p.feed(Bytes(bytes.begin() + 10000, bytes.end()));
  EXPECT_EQ(open.bytes(), mine) << "not one octet may arrive any more";
  EXPECT_EQ(p.terminate(), "1100c000" + test::to_hex(hex("753e") | Bytes(ulpdu.begin(), ulpdu.begin() + 14)));
}

TEST(WriteTarget, RevokedBeforeTheHeaderOfAHalfReceivedFpduIsSeen) {
  RawPeer p(raw(false));
  auto& open = p.end.region(30000, test::kRemoteAll);
  p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
  const Bytes bytes = test::fpdu(test::write_segment(open.stag(), 0x10000, pattern(30000, 1)), false);
  p.feed(Bytes(bytes.begin(), bytes.begin() + 9));
  open.revoke();
  p.feed(Bytes(bytes.begin() + 9, bytes.end()), 1000);
  EXPECT_EQ(open.bytes(), Bytes(30000));
  EXPECT_EQ(p.terminate().substr(0, 8), "1100c000");
}

TEST(ReceiveBuffer, RevokedUnderAHalfReceivedSend) {
  RawPeer p(raw(false));
  auto& local = p.end.region(30000);
  p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
  p.end.post(rdmap::RecvWr{1, local.all()});
  const Bytes bytes = test::fpdu(send_segment(pattern(30000)), false);
  p.feed(Bytes(bytes.begin(), bytes.begin() + 10000));
  local.revoke();
  local.bytes() = Bytes(30000);
  p.feed(Bytes(bytes.begin() + 10000, bytes.end()));
  EXPECT_EQ(local.bytes(), Bytes(30000));
  EXPECT_EQ(p.terminate(), "10000000");
}

TEST(ReadSink, RevokedUnderAHalfReceivedResponse) {
  RawPeerOptions o = raw(false);
  o.we_initiate = true;
  RawPeer p(o);
  auto& sink = p.end.region(30000);
  p.end.post([&] {
    rdmap::SendWr wr = test::send_wr(1, sink.all());
    wr.op = rdmap::SendOp::kRead;
    return wr;
  }());
  ASSERT_EQ(p.ulpdus().size(), 1U);
  const Bytes bytes =
      test::fpdu(test::tagged_segment(rdmap::Opcode::kReadResponse, sink.stag(), sink.to(), pattern(30000)), false);
  p.feed(Bytes(bytes.begin(), bytes.begin() + 10000));
  sink.revoke();
  sink.bytes() = Bytes(30000);
  p.feed(Bytes(bytes.begin() + 10000, bytes.end()));
  EXPECT_EQ(sink.bytes(), Bytes(30000));
  EXPECT_EQ(p.terminate().substr(0, 8), "1100c000");
  EXPECT_EQ(p.end.sends.at(0).status, Errc::kFlushed);
}

// A Response that is partly out: the begun FPDU ends as it was, then comes the Terminate. Nobody waits for the peer.
TEST(ReadSource, RevokedUnderAHalfSentResponse) {
  COVERS("RFC5041-8.3.1-7");
  constexpr std::uint32_t kBytes = 3'000'000;  // several batches
  struct Case {
    bool crc, stable;
  };
  for (const auto [crc, stable] : {Case{true, false}, Case{true, true}, Case{false, false}}) {
    RawPeer p(raw(crc));
    auto& source = p.end.region(kBytes, stable ? test::kRemoteAll | ddp::Access::kStableSource : test::kRemoteAll);
    source.fill(pattern(kBytes, 5));
    p.feed_ulpdu(test::read_request_segment({Stag{0x500}, 0, kBytes, source.stag(), source.to()}));
    EXPECT_EQ(p.drain(10000), 10000U);
    source.revoke();
    source.bytes() = Bytes(kBytes, std::byte{0x44});
    const auto sent = p.ulpdus();
    // What was copied, because of its CRC, is a whole batch that may leave; else only the FPDU that had begun.
    ASSERT_GE(sent.size(), 2U);
    EXPECT_EQ(sent.size() > 2, crc && !stable);
    std::size_t served = 0;
    for (std::size_t i = 0; i + 1 < sent.size(); ++i) {
      ASSERT_EQ(sent[i][1], std::byte{0x42});
      const Bytes payload(sent[i].begin() + 14, sent[i].end());
      EXPECT_TRUE(
          std::equal(payload.begin(), payload.end(), pattern(kBytes, 5).begin() + static_cast<std::ptrdiff_t>(served)))
          << "no octet of the new owner may leave";
      served += payload.size();
    }
    EXPECT_LT(served, kBytes);
    EXPECT_EQ(test::to_hex(ConstBytes(sent.back()).subspan(1, 1)), "47");
    EXPECT_EQ(test::to_hex(ConstBytes(sent.back()).subspan(18, 2)), "0100");
    EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  }
}

TEST(ReadSource, RevokedUnderAnUnsentResponse) {
  RawPeer p(raw(false));
  auto& source = p.end.region(200000, test::kRemoteAll);
  p.feed_ulpdu(test::read_request_segment({Stag{0x500}, 0, 200000, source.stag(), source.to()}));
  (void)p.end.conn().tx_buffers(p.now);
  p.end.conn().tx_commit(0, p.now);
  source.revoke();
  EXPECT_EQ(p.terminate().substr(0, 4), "0100");
}

// The application has broken its promise to leave a Send alone until it completes. The stream cannot go on: RST.
TEST(SendSource, RevokedUnderAHalfSentFpdu) {
  RawPeer p(raw(false));
  auto& source = p.end.region(100000);
  p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
  p.end.post(test::send_wr(1, source.all()));
  EXPECT_EQ(p.drain(10000), 10000U);
  source.revoke();
  EXPECT_EQ(p.drain(10000), 0U);
  p.end.collect();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
  EXPECT_EQ(p.end.sends.at(0).status, Errc::kFlushed);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kLocalProtection);
}

TEST(SendSource, RevokedBeforeAnyOctetIsSent) {
  COVERS("RFC5040-7.1-3");
  RawPeer p(raw(true));
  auto& source = p.end.region(1000);
  p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
  p.end.post(test::send_wr(1, source.all()));
  source.revoke();
  EXPECT_EQ(p.terminate(), "00000000");
  EXPECT_EQ(p.end.sends.at(0).status, Errc::kLocalProtection);
}

// The Terminate finds room though as much as may be staged stood behind the Send, and was dropped with it.
TEST(SendSource, RevokedInFrontOfABatchOfCopies) {
  RawPeer p(raw(true));
  auto& source = p.end.region(1000);
  auto& read_source = p.end.region(3'000'000, test::kRemoteAll);
  const auto encode = [&] {
    EXPECT_FALSE(p.end.conn().tx_buffers(p.now).empty());
    p.end.conn().tx_commit(0, p.now);
  };
  p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
  p.end.post(test::send_wr(1, source.all()));
  encode();
  p.feed_ulpdu(test::read_request_segment({Stag{0x500}, 0, 3'000'000, read_source.stag(), read_source.to()}));
  encode();
  source.revoke();
  EXPECT_EQ(p.terminate(), "00000000");
}

// Nor does a violation that comes after the revocation let octets of the new owner out.
TEST(SendSource, RevokedUnderAHalfSentFpduBeforeAFlush) {
  for (const bool crc : {true, false}) {
    RawPeer p(raw(crc));
    auto& source = p.end.region(60000);
    source.fill(pattern(60000, 8));
    p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
    p.end.post(test::send_wr(1, source.all()));
    EXPECT_EQ(p.drain(10000), 10000U);
    source.revoke();
    source.bytes() = Bytes(60000, std::byte{0x55});
    p.feed_ulpdu(send_segment(pattern(4)));  // no receive is posted
    EXPECT_EQ(p.drain(100000), 0U) << "the FPDU cannot end as it began";
    p.end.collect();
    EXPECT_EQ(p.link_action(), LinkAction::kReset);
    EXPECT_EQ(p.end.sends.at(0).status, Errc::kFlushed);
  }
}

// A violation flushes: from then on the memory of a half-sent Send is the application's, yet its FPDU has to end as it
// began.
TEST(SendSource, ReusedAfterAFlush) {
  for (const bool revoke : {false, true}) {
    for (const bool crc : {true, false}) {
      RawPeer p(raw(crc));
      auto& source = p.end.region(60000);
      source.fill(pattern(60000, 8));
      p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
      p.end.post(test::send_wr(1, source.all()));
      EXPECT_EQ(p.drain(10000), 10000U);
      p.feed_ulpdu(send_segment(pattern(4)));  // no receive is posted
      EXPECT_EQ(p.end.sends.at(0).status, Errc::kFlushed);
      if (revoke) source.revoke();
      source.bytes() = Bytes(60000, std::byte{0x55});
      const auto sent = p.ulpdus();
      ASSERT_EQ(sent.size(), 2U);
      EXPECT_EQ(Bytes(sent[0].begin() + 18, sent[0].end()), pattern(60000, 8));
      EXPECT_EQ(test::to_hex(ConstBytes(sent[1]).subspan(18, 4)), "1202c000");
    }
  }
}

// Small messages of a batch keep their region from one to the next, but not from batch to batch.
TEST(Pins, OfSmallMessagesAreHeldOnlyDuringACall) {
  for (const bool crc : {true, false}) {
    Pair p(long_fpdus(crc));
    p.establish();
    auto& from = p.initiator.region(1000);
    auto& into = p.responder.region(1000);
    from.fill(pattern(1000, 4));
    for (std::uint64_t i = 0; i < 10; ++i) {
      p.responder.post(rdmap::RecvWr{i, rdmap::Sge{into.bytes().data() + 100 * i, 100, into.stag()}});
      p.initiator.post(test::send_wr(i, rdmap::Sge{from.bytes().data() + 100 * i, 100, from.stag()}));
    }
    const auto batch = p.initiator.conn().tx_buffers(p.now);
    EXPECT_FALSE(batch.empty());
    EXPECT_TRUE(p.initiator.stags().quiescent(from.stag())) << "what is copied is not pinned";
    p.initiator.conn().tx_commit(0, p.now);
    p.settle();
    EXPECT_EQ(p.responder.recvs.size(), 10U) << p.log();
    EXPECT_TRUE(p.responder.stags().quiescent(into.stag()));
    EXPECT_EQ(into.bytes(), from.bytes());
    into.revoke();
    p.responder.post(rdmap::RecvWr{11, rdmap::Sge{into.bytes().data(), 100, into.stag()}});
    p.initiator.post(test::send_wr(11, rdmap::Sge{from.bytes().data() + 500, 100, from.stag()}));
    p.settle();
    EXPECT_EQ(into.bytes(), from.bytes()) << "nothing was placed any more";
    ASSERT_TRUE(p.responder.disconnected() != nullptr) << p.log();
    EXPECT_EQ(p.responder.disconnected()->reason.code, Errc::kDdpCatastrophic);
  }
}

// Deregistration must not wait for the network: no pin is held between two calls of the driver.
TEST(Pins, AreHeldOnlyDuringACall) {
  Pair p(long_fpdus(false));
  p.establish();
  auto& a = p.initiator.region(300000);
  auto& b = p.responder.region(300000, test::kRemoteAll);
  p.initiator.post(test::write_wr(1, a.all(), b));
  p.to_responder.max_write_bytes = 777;
  p.to_responder.stall_after = p.to_responder.recorded.size() + 100000;
  p.settle();
  EXPECT_TRUE(p.initiator.stags().quiescent(a.stag()));
  EXPECT_TRUE(p.responder.stags().quiescent(b.stag()));
  EXPECT_FALSE(p.responder.conn().rx_buffers({}).empty());
  EXPECT_FALSE(p.responder.stags().quiescent(b.stag())) << "a read straight into it is under way";
  p.responder.conn().rx_commit(0, p.now);
  EXPECT_TRUE(p.responder.stags().quiescent(b.stag()));
}

}  // namespace
}  // namespace iwarp::stream
