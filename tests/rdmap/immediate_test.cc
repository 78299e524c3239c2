// Immediate Data (RFC 7306 s6) in the receiving and the transmitting half.
#include "tests/rdmap/receiver_fixture.h"
#include "tests/rdmap/transmitter_fixture.h"

namespace iwarp::rdmap {
namespace {

Bytes immediate_segment(const Bytes& octets, test::SegmentAt at = {}, Opcode op = Opcode::kImmediate) {
  return send_segment(octets, at, op);
}

class ImmediateReceiver : public ReceiverTest {
 protected:
  // The fixture's, but for the extension.
  Receiver rfc7306_{stags_, kMe, recvs_, sends_, reads_, Extensions::kRfc7306};

  Result<void> take(const Bytes& ulpdu) {
    if (auto ok = rfc7306_.begin(ulpdu, ulpdu.size()); !ok) return ok;
    if (auto ok = rfc7306_.place(ConstBytes(ulpdu).subspan(rfc7306_.header_bytes())); !ok) return ok;
    return rfc7306_.end();
  }
  // The Terminate owed: L/E/C, and always the DDP header alone.
  void expect_refused(const Bytes& ulpdu, TerminateCode code) {
    const auto ok = take(ulpdu);
    ASSERT_FALSE(ok.ok());
    const TerminateMessage m = rfc7306_.terminate_for(ok.error());
    EXPECT_EQ(m.code, code) << m.to_string() << ", " << ok.error().why;
    EXPECT_EQ(m.ddp_header_bytes, 18);
    EXPECT_FALSE(m.has_rdmap_header);
    EXPECT_EQ(m.segment_length, ulpdu.size());
  }
};

TEST_F(ImmediateReceiver, TakesAReceiveAndArrivesInItsCompletion) {
  COVERS("RFC7306-4-1");
  COVERS("RFC7306-4.1-4");
  COVERS("RFC7306-4.2-1");
  COVERS("RFC7306-4.2-2");
  COVERS("RFC7306-6-2");
  COVERS("RFC7306-6.1-2");
  COVERS("RFC7306-6.2-1");
  COVERS("RFC7306-6.3-2");
  COVERS("RFC7306-A.3-1");
  post_recv(1, sge(0, 100));
  post_recv(2, {});
  EXPECT_TRUE(take(hex("4148000000000000000000000001000000000102030405060708")).ok()) << "Figure A.3, 26 octets";
  EXPECT_TRUE(take(immediate_segment(hex("fffffffffffffffe"), {.msn = 2, .tail = raw(stag_)},  // ignored
                                     Opcode::kImmediateSolicited))
                  .ok());
  auto c = recvs_.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->wr_id, 1U);
  EXPECT_EQ(c->op, WcOp::kRecv);
  EXPECT_EQ(c->status, Errc::kOk);
  EXPECT_TRUE(c->has_immediate);
  EXPECT_EQ(c->immediate, 0x0102030405060708U);
  EXPECT_EQ(c->byte_len, 0U);
  EXPECT_FALSE(c->solicited);
  c = recvs_.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->wr_id, 2U);
  EXPECT_EQ(c->immediate, 0xFFFFFFFFFFFFFFFEU);
  EXPECT_TRUE(c->solicited);
  EXPECT_FALSE(c->invalidated);
  EXPECT_TRUE(stags_.valid(stag_));
  EXPECT_EQ(memory_, Bytes(100)) << "the memory of the receive is left alone";
  EXPECT_EQ(rfc7306_.counters().immediates, 2U);
  EXPECT_EQ(rfc7306_.counters().sends, 0U);
}

TEST_F(ImmediateReceiver, InOneSequenceWithSends) {
  COVERS("RFC7306-6.3-3");
  COVERS("RFC7306-6.4-1");
  COVERS("RFC7306-7-1");
  COVERS("RFC7306-7-5");
  for (const std::uint64_t id : {1, 2, 3}) post_recv(id, sge(0, 10));
  EXPECT_TRUE(take(send_segment(pattern(4))).ok());
  EXPECT_TRUE(take(immediate_segment(pattern(8), {.msn = 2})).ok());
  EXPECT_TRUE(take(send_segment(pattern(5), {.msn = 3})).ok());
  auto c = recvs_.poll();
  EXPECT_TRUE(c && c->wr_id == 1 && !c->has_immediate && c->byte_len == 4);
  c = recvs_.poll();
  EXPECT_TRUE(c && c->wr_id == 2 && c->has_immediate);
  c = recvs_.poll();
  EXPECT_TRUE(c && c->wr_id == 3 && !c->has_immediate && c->byte_len == 5);
}

TEST_F(ImmediateReceiver, OfOtherThanEightOctets) {
  COVERS("RFC7306-6.1-3");
  COVERS("RFC7306-6.3-5");
  COVERS("RFC7306-6.3-7");
  COVERS("RFC7306-8.1-1");
  COVERS("RFC7306-8.1-3");
  COVERS("RFC7306-8.2-2");
  post_recv(1, sge(0, 100));
  expect_refused(immediate_segment(pattern(9)), {1, 2, 5});
  expect_refused(immediate_segment(pattern(8), {.msn = 2}), {1, 2, 3});
  EXPECT_FALSE(recvs_.poll());
  expect_refused(immediate_segment(pattern(7)), {0, 2, 0xFF});
  auto c = recvs_.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->status, Errc::kMalformedImmediate) << "the receiver is told as well";
  EXPECT_FALSE(c->has_immediate);
  post_recv(2, {});
  expect_refused(immediate_segment({}, {.msn = 2}), {0, 2, 0xFF});
}

TEST_F(ImmediateReceiver, WithoutAReceive) {
  COVERS("RFC7306-6.3-2");
  expect_refused(immediate_segment(pattern(8)), {1, 2, 2});
}

TEST_F(ImmediateReceiver, TaggedOrOnAnotherQueue) {
  COVERS("RFC7306-6.3-1");
  COVERS("RFC7306-6.3-4");
  post_recv(1, {});
  expect_refused(send_segment(pattern(8), {}, Opcode::kImmediate, kReadRequestQn), {0, 2, 6});
  EXPECT_FALSE(take(test::tagged_segment(Opcode::kImmediate, stag_, kBase, pattern(8))).ok());
}

TEST_F(ImmediateReceiver, InTwoSegments) {
  post_recv(1, {});
  post_recv(2, sge(0, 100));
  EXPECT_TRUE(take(immediate_segment(hex("010203"), {.last = false})).ok());
  EXPECT_TRUE(take(immediate_segment(hex("0405060708"), {.mo = 3})).ok());
  EXPECT_EQ(recvs_.poll()->immediate, 0x0102030405060708U);
  EXPECT_TRUE(take(send_segment(pattern(4), {.msn = 2, .last = false})).ok());
  expect_refused(immediate_segment(pattern(4), {.msn = 2, .mo = 4}), {0, 2, 6});
}

TEST_F(ImmediateReceiver, ASendCannotContinueIt) {
  post_recv(1, sge(0, 100));
  EXPECT_TRUE(take(immediate_segment(pattern(4), {.last = false})).ok());
  expect_refused(send_segment(pattern(4), {.mo = 4}), {0, 2, 6});
}

TEST_F(ReceiverTest, ImmediateDataIsAReservedOpcodeByDefault) {
  COVERS("RFC7306-1.1-4");
  post_recv(1, sge(0, 100));
  expect_refused(immediate_segment(pattern(8)), {0, 2, 6}, 18);
}

TEST_F(TransmitterTest, ImmediateDataOfEitherKind) {
  COVERS("RFC7306-4-1");
  COVERS("RFC7306-4.1-3");
  COVERS("RFC7306-4.1-10");
  COVERS("RFC7306-4.2-1");
  COVERS("RFC7306-4.2-2");
  COVERS("RFC7306-6.1-1");
  COVERS("RFC7306-6.2-1");
  COVERS("RFC7306-6.3-1");
  COVERS("RFC7306-6.3-4");
  COVERS("RFC7306-6.3-5");
  COVERS("RFC7306-6.3-6");
  COVERS("RFC7306-A.3-1");
  post({.wr_id = 1, .op = SendOp::kImmediate, .immediate = 0x0102030405060708});
  post(wr(2, SendOp::kSend, sge(0, 4)));
  post({.wr_id = 3, .op = SendOp::kImmediate, .solicited = true, .immediate = 9});
  EXPECT_EQ(next()->ulpdu, hex("4148000000000000000000000001000000000102030405060708"));
  EXPECT_EQ(next()->untagged().msn.value, 2U);
  EXPECT_EQ(next()->ulpdu, hex("4149000000000000000000000003000000000000000000000009"));
  EXPECT_FALSE(next());
  for (const std::uint64_t id : {1, 2, 3}) {
    const auto c = sends_.poll();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->wr_id, id);
    EXPECT_EQ(c->op, WcOp::kSend);
  }
  EXPECT_EQ(tx_.counters().immediates, 2U);
  EXPECT_EQ(tx_.counters().sends, 1U);
}

TEST_F(TransmitterTest, WriteWithImmediateDataBehindIt) {
  COVERS("RFC7306-6-1");
  COVERS("RFC7306-7-6");
  SendWr both = wr(1, SendOp::kWriteImmediate, sge(0, 130));
  both.remote_stag = Stag{0x700};
  both.remote_to = 50;
  both.immediate = 7;
  post(both);
  request({Stag{0x500}, 0, 4, stag_, kBase});  // its Response waits for the end of both
  EXPECT_TRUE(tx_.ready(8));
  reads_.clear();
  EXPECT_EQ(next()->tagged(), (ddp::TaggedHeader{false, 0x40, Stag{0x700}, 50}));
  request({Stag{0x500}, 0, 4, stag_, kBase});
  EXPECT_EQ(next()->tagged(), (ddp::TaggedHeader{true, 0x40, Stag{0x700}, 154}));
  EXPECT_TRUE(tx_.mid_message());
  EXPECT_FALSE(sends_.poll()) << "one completion, for both";
  EXPECT_EQ(next()->ulpdu, hex("4148000000000000000000000001000000000000000000000007"));
  const auto c = sends_.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->op, WcOp::kWrite);
  EXPECT_FALSE(sends_.poll());
  EXPECT_TRUE(next()->read_response);
  EXPECT_EQ(tx_.counters().writes, 1U);
}

TEST_F(TransmitterTest, EmptyWriteWithImmediateData) {
  post({.wr_id = 1, .op = SendOp::kWriteImmediate, .remote_stag = Stag{0x700}, .solicited = true, .immediate = 7});
  EXPECT_EQ(next()->tagged(), (ddp::TaggedHeader{true, 0x40, Stag{0x700}, 0}));
  EXPECT_EQ(next()->untagged().rsvd_ulp, 0x49);
  EXPECT_FALSE(next());
}

}  // namespace
}  // namespace iwarp::rdmap
