// What RFC 7306 adds, between two connections, and what is refused where it is off.
#include <gtest/gtest.h>

#include <cstring>

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

TEST(Rfc7306, WriteWithImmediateDataIsOneCompletionAtEachEnd) {
  COVERS("RFC7306-6-1");
  COVERS("RFC7306-7-6");
  COVERS("RFC7306-6-2");
  PairOptions o;
  o.initiator.rfc7306 = o.responder.rfc7306 = true;
  Pair p(o);
  p.establish();
  auto& source = p.initiator.region(20000);
  auto& sink = p.responder.region(20000, test::kRemoteAll);
  source.fill(pattern(20000));
  for (const std::uint64_t id : {1, 2, 3}) p.responder.post(rdmap::RecvWr{.wr_id = id});
  p.initiator.post({.wr_id = 4, .op = rdmap::SendOp::kImmediate, .immediate = 0x1122334455667788});
  rdmap::SendWr write = test::write_wr(5, source.all(), sink);
  write.op = rdmap::SendOp::kWriteImmediate;
  write.immediate = 99;
  write.solicited = true;
  p.initiator.post(write);
  p.settle();
  ASSERT_EQ(p.responder.recvs.size(), 2U) << p.log();
  EXPECT_EQ(p.responder.recvs[0].immediate, 0x1122334455667788U);
  EXPECT_FALSE(p.responder.recvs[0].solicited);
  EXPECT_TRUE(p.responder.recvs[1].has_immediate);
  EXPECT_EQ(p.responder.recvs[1].immediate, 99U);
  EXPECT_TRUE(p.responder.recvs[1].solicited);
  EXPECT_EQ(sink.bytes(), pattern(20000)) << "all is placed when the Immediate Data completes";
  ASSERT_EQ(p.initiator.sends.size(), 2U);
  EXPECT_EQ(p.initiator.sends[1].op, rdmap::WcOp::kWrite);
}

rdmap::SendWr atomic_wr(std::uint64_t id, rdmap::SendOp op, const rdmap::Sge& sink, const test::Region& remote,
                        const rdmap::AtomicOperands& operands) {
  rdmap::SendWr wr = test::read_wr(id, sink, remote);
  wr.op = op;
  wr.atomic = operands;
  return wr;
}

std::uint64_t word(const test::Region& of, std::size_t index) {
  std::uint64_t out = 0;
  std::memcpy(&out, const_cast<test::Region&>(of).bytes().data() + 8 * index, sizeof out);
  return out;
}

// Atomics, Reads and Immediate Data in one queue, more of them than ORD lets out at a time.
TEST(Rfc7306, AtomicsAmongReads) {
  COVERS("RFC7306-5.2-3");
  COVERS("RFC7306-5.4-8");
  COVERS("RFC7306-7-4");
  COVERS("RFC7306-7-13");
  COVERS("RFC7306-7-14");
  PairOptions o;
  o.initiator.rfc7306 = o.responder.rfc7306 = true;
  o.accept_ird = o.accept_ord = 2;
  Pair p(o);
  p.establish();
  auto& results = p.initiator.region(80);
  auto& counter = p.responder.region(8, test::kRemoteAll);
  p.responder.post(rdmap::RecvWr{.wr_id = 1});
  rdmap::SendWr write = test::write_wr(1, p.initiator.region(8).all(), counter);
  p.initiator.post(write);
  for (std::uint64_t i = 0; i < 4; ++i)
    p.initiator.post(atomic_wr(2 + i, rdmap::SendOp::kFetchAdd, results.sge(8 * i, 8), counter, {.data = 10}));
  p.initiator.post({.wr_id = 6, .op = rdmap::SendOp::kImmediate, .immediate = 1});
  p.initiator.post(test::read_wr(7, results.sge(32, 8), counter));
  p.initiator.post(atomic_wr(8, rdmap::SendOp::kCmpSwap, results.sge(40, 8), counter,
                             {.data = 7, .mask = ~std::uint64_t{0}, .compare = 40}));
  p.initiator.post(atomic_wr(9, rdmap::SendOp::kCmpSwap, results.sge(48, 8), counter,
                             {.data = 8, .mask = ~std::uint64_t{0}, .compare = 40}));
  p.settle();
  ASSERT_EQ(p.initiator.sends.size(), 9U) << p.log();
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(p.initiator.sends[i].wr_id, i + 1);
    EXPECT_EQ(p.initiator.sends[i].status, Errc::kOk);
  }
  EXPECT_EQ(p.initiator.sends[8].op, rdmap::WcOp::kCmpSwap);
  const std::uint64_t seen[] = {0, 10, 20, 30, 40, 40, 7};
  for (std::size_t i = 0; i < std::size(seen); ++i) EXPECT_EQ(word(results, i), seen[i]) << i;
  EXPECT_EQ(word(counter, 0), 7U);
  EXPECT_EQ(p.responder.recvs.size(), 1U);
  EXPECT_EQ(p.responder.conn().rx_counters().atomics, 6U);
}

// RFC 7306 s7 promises of a Read and an Atomic behind it only the order of their Responses. What the Read brings may be
// the later value, as it may with a Write behind it (RFC 5040 s5.5): its octets are looked at when they leave. So with
// CRC on, where they are copied before, it is the value before, and with CRC off the later one. Nobody may rely on
// either; on a fence everybody may.
TEST(Rfc7306, AReadMayBringWhatALaterAtomicPutsThereUnlessThatIsFenced) {
  COVERS("RFC7306-7-15");
  for (const bool crc : {false, true}) {
    for (const bool fence : {false, true}) {
      SCOPED_TRACE(std::string(crc ? "crc" : "no crc") + (fence ? ", fence" : ""));
      PairOptions o;
      o.initiator.rfc7306 = o.responder.rfc7306 = true;
      o.initiator_policy.crc = o.responder_policy.crc = crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kOff;
      Pair p(o);
      p.establish();
      auto& brought = p.initiator.region(16);
      auto& memory = p.responder.region(2000, test::kRemoteAll);
      auto& sink = p.initiator.region(2000);
      const std::uint64_t five = 5;
      std::memcpy(memory.bytes().data(), &five, sizeof five);
      p.initiator.post(test::read_wr(1, sink.all(), memory));
      rdmap::SendWr add = atomic_wr(2, rdmap::SendOp::kFetchAdd, brought.sge(0, 8), memory, {.data = 3});
      add.fence = fence;
      p.initiator.post(add);
      p.settle();
      ASSERT_EQ(p.initiator.sends.size(), 2U) << p.log();
      EXPECT_EQ(word(brought, 0), 5U);
      EXPECT_EQ(word(memory, 0), 8U);
      if (fence) {
        EXPECT_EQ(word(sink, 0), 5U);
      } else {
        EXPECT_TRUE(word(sink, 0) == 5U || word(sink, 0) == 8U) << word(sink, 0);
      }
    }
  }
}

TEST(Rfc7306, OnlyAFenceHoldsBackWhatIsPostedBehindAnAtomic) {
  COVERS("RFC7306-7-2");
  COVERS("RFC7306-7-7");
  COVERS("RFC7306-7-8");
  COVERS("RFC7306-7-9");
  COVERS("RFC7306-7-10");
  RawPeerOptions o;
  o.we_initiate = true;
  o.stream.rfc7306 = true;
  RawPeer p(o);
  auto& r = p.end.region(32);
  p.end.post(test::read_wr(1, r.sge(0, 8), r));
  p.end.post({.wr_id = 2, .op = rdmap::SendOp::kImmediate});
  p.end.post(atomic_wr(3, rdmap::SendOp::kFetchAdd, r.sge(8, 8), r, {}));
  p.end.post({.wr_id = 4, .op = rdmap::SendOp::kImmediate});
  p.end.post(test::write_wr(5, r.sge(16, 8), r));
  p.end.post(test::send_wr(6, r.sge(16, 8)));
  rdmap::SendWr fenced = test::send_wr(7, r.sge(16, 8));
  fenced.fence = true;
  p.end.post(fenced);
  std::string kinds;
  for (const Bytes& u : p.ulpdus()) kinds += "WrRSIsiTdDaA"[std::to_integer<unsigned>(u[1]) & 0xF];
  EXPECT_EQ(kinds, "rdadWS");
  EXPECT_TRUE(p.end.sends.empty()) << "completions follow posting";
  p.feed_ulpdu(test::tagged_segment(rdmap::Opcode::kReadResponse, r.stag(), r.to(), pattern(8)));
  EXPECT_TRUE(p.ulpdus().empty()) << "the fence waits for the Atomic as well";
  p.feed_ulpdu(send_segment(hex("00000001"
                                "0000000000000000"),
                            {}, rdmap::Opcode::kAtomicResponse, rdmap::kAtomicResponseQn));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  EXPECT_EQ(p.end.sends.size(), 7U);
}

TEST(Rfc7306, ResponsesFollowWhatCameBeforeAndMayFollowWhatCameBehind) {
  COVERS("RFC7306-5.4-5");
  COVERS("RFC7306-5.4-7");
  COVERS("RFC7306-7-3");
  COVERS("RFC7306-7-4");
  COVERS("RFC7306-7-13");
  COVERS("RFC7306-7-14");
  RawPeerOptions o;
  o.stream.rfc7306 = true;
  RawPeer p(o);
  auto& open = p.end.region(16, test::kRemoteAll);
  for (const std::uint64_t id : {1, 2}) p.end.post(rdmap::RecvWr{.wr_id = id});
  rdmap::AtomicRequest add{.id = 9, .stag = open.stag(), .to = open.to(), .operands = {.data = 1}};
  Bytes header(rdmap::AtomicRequest::kSize);
  add.write_to(std::span<std::byte, rdmap::AtomicRequest::kSize>(header));
  p.feed_ulpdu(test::write_segment(open.stag(), open.to(), Bytes(8)));
  p.feed_ulpdu(send_segment(pattern(8), {}, rdmap::Opcode::kImmediate));
  p.feed_ulpdu(send_segment(header, {}, rdmap::Opcode::kAtomicRequest, rdmap::kReadRequestQn));
  p.feed_ulpdu(test::read_request_segment({Stag{5}, 0, 8, open.stag(), open.to()}, 2));
  p.feed_ulpdu(send_segment({}, {.msn = 2}));
  EXPECT_EQ(p.end.recvs.size(), 2U) << "the Send behind the Requests, before any Response";
  const auto sent = p.ulpdus();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(test::to_hex(sent[0]),
            "414b"
            "00000000"
            "00000003"
            "00000001"
            "00000000"
            "00000009"
            "0000000000000000");
  EXPECT_EQ(word(open, 0), 1U);
  EXPECT_EQ(Bytes(sent[1].begin() + 14, sent[1].end()), Bytes(open.bytes().begin(), open.bytes().begin() + 8));
}

TEST(Rfc7306, AddOfZeroProbesAndChangesNothing) {
  COVERS("RFC7306-1.1-3");
  COVERS("RFC7306-1.1-4");
  PairOptions o;
  o.initiator.rfc7306 = true;  // the responder does not know of it
  Pair p(o);
  p.establish();
  auto& counter = p.responder.region(8, test::kRemoteAll);
  counter.fill(pattern(8));
  p.initiator.post(atomic_wr(1, rdmap::SendOp::kFetchAdd, p.initiator.region(8).all(), counter, {}));
  p.run();
  ASSERT_TRUE(p.initiator.disconnected() != nullptr);
  ASSERT_TRUE(p.initiator.disconnected()->received.has_value());
  EXPECT_EQ(p.initiator.disconnected()->received->code, (TerminateCode{0, 2, 6}));
  EXPECT_EQ(p.initiator.sends[0].status, Errc::kFlushed);
  EXPECT_EQ(counter.bytes(), pattern(8));
}

TEST(Rfc7306, MisalignedAtomicEndsTheConnectionAtBothEnds) {
  COVERS("RFC7306-5.1.1-6");
  COVERS("RFC7306-5.1.2-8");
  COVERS("RFC7306-8.2-7");
  for (const auto op : {rdmap::SendOp::kFetchAdd, rdmap::SendOp::kCmpSwap}) {
    PairOptions o;
    o.initiator.rfc7306 = o.responder.rfc7306 = true;
    Pair p(o);
    p.establish();
    auto& counter = p.responder.region(16, test::kRemoteAll);
    rdmap::SendWr wr = atomic_wr(1, op, p.initiator.region(8).all(), counter,
                                 {.data = 1, .mask = ~std::uint64_t{0}, .compare_mask = 0});
    wr.remote_to += 4;
    p.initiator.post(wr);
    p.run();
    ASSERT_TRUE(p.initiator.disconnected() != nullptr && p.responder.disconnected() != nullptr);
    EXPECT_EQ(p.initiator.disconnected()->received->code, (TerminateCode{0, 2, 7}));
    EXPECT_EQ(p.responder.disconnected()->reason.code, Errc::kMisalignedAtomic);
    EXPECT_EQ(p.initiator.sends[0].status, Errc::kFlushed);
    EXPECT_EQ(counter.bytes(), Bytes(16));
  }
}

TEST(Rfc7306, AtomicsThatCannotBe) {
  RawPeerOptions o;
  o.stream.rfc7306 = true;
  RawPeer p(o);
  auto& r = p.end.region(16);
  const auto refused = [&](const rdmap::SgeList& sink) {
    return p.end.conn().post_send({.wr_id = 1, .op = rdmap::SendOp::kFetchAdd, .sges = sink}).error().code;
  };
  EXPECT_EQ(refused({}), Errc::kInvalidArgument);
  EXPECT_EQ(refused(r.sge(0, 4)), Errc::kInvalidArgument);
  EXPECT_EQ(refused(r.sge(0, 16)), Errc::kInvalidArgument);
  EXPECT_EQ(refused(test::list({r.sge(0, 4), r.sge(4, 4)})), Errc::kInvalidArgument);
  o.ord = o.ird = 0;
  RawPeer none(o);
  EXPECT_EQ(none.end.conn()
                .post_send({.wr_id = 1, .op = rdmap::SendOp::kCmpSwap, .sges = none.end.region(8).all()})
                .error()
                .code,
            Errc::kInvalidArgument)
      << "ORD is 0";
}

TEST(Rfc7306, IsNeverSentWhereItIsOff) {
  COVERS("RFC7306-1.1-1");
  COVERS("RFC7306-1.1-2");
  RawPeer p;
  for (const auto op :
       {rdmap::SendOp::kImmediate, rdmap::SendOp::kWriteImmediate, rdmap::SendOp::kFetchAdd, rdmap::SendOp::kCmpSwap}) {
    const auto refused = p.end.conn().post_send({.wr_id = 1, .op = op});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
    EXPECT_NE(std::string(refused.error().why).find("the option rfc7306"), std::string::npos);
  }
  EXPECT_TRUE(p.ulpdus().empty());
}

TEST(Rfc7306, IsRefusedAsAnUnknownOpcodeWhereItIsOff) {
  COVERS("RFC7306-1.1-4");
  COVERS("RFC7306-8.1-3");
  RawPeer p;
  p.end.post(rdmap::RecvWr{.wr_id = 1});
  const Bytes ulpdu = send_segment(pattern(8), {}, rdmap::Opcode::kImmediate);
  p.feed_ulpdu(ulpdu);
  EXPECT_EQ(p.terminate(), "0206c000001a" + test::to_hex(Bytes(ulpdu.begin(), ulpdu.begin() + 18)));
  ASSERT_EQ(p.end.recvs.size(), 1U);
  EXPECT_EQ(p.end.recvs[0].status, Errc::kFlushed);
}

TEST(Rfc7306, ImmediateDataThatIsTooShortEndsTheConnection) {
  COVERS("RFC7306-6.1-3");
  COVERS("RFC7306-8.1-1");
  COVERS("RFC7306-8.1-3");
  RawPeerOptions o;
  o.stream.rfc7306 = true;
  RawPeer p(o);
  p.end.post(rdmap::RecvWr{.wr_id = 1});
  p.end.post(rdmap::RecvWr{.wr_id = 2});
  const Bytes ulpdu = send_segment(pattern(7), {}, rdmap::Opcode::kImmediate);
  p.feed_ulpdu(ulpdu);
  EXPECT_EQ(p.terminate(), "02ffc0000019" + test::to_hex(Bytes(ulpdu.begin(), ulpdu.begin() + 18)));
  ASSERT_EQ(p.end.recvs.size(), 2U);
  EXPECT_EQ(p.end.recvs[0].status, Errc::kMalformedImmediate);
  EXPECT_EQ(p.end.recvs[1].status, Errc::kFlushed);
}

TEST(Rfc7306, ImmediateDataHasNoMemory) {
  RawPeerOptions o;
  o.stream.rfc7306 = true;
  RawPeer p(o);
  rdmap::SendWr wr = test::send_wr(1, p.end.region(8).all());
  wr.op = rdmap::SendOp::kImmediate;
  EXPECT_EQ(p.end.conn().post_send(wr).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace iwarp::stream
