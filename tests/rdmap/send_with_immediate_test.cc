// Sends with Immediate, by opcodes of no RFC that both ends have agreed on, and the length of a Write that Immediate
// Data follows.
#include "tests/rdmap/receiver_fixture.h"
#include "tests/rdmap/transmitter_fixture.h"

namespace iwarp::rdmap {
namespace {

constexpr TerminateCode kUnexpectedOpcode{0, 2, 6};

class SendImmediateReceiver : public ReceiverTest {
 protected:
  SendImmediateReceiver() { rx_.set_known(Extensions::kSendWithImmediate); }
  static Bytes segment(const Bytes& payload, std::uint32_t immediate, test::SegmentAt at = {},
                       Opcode op = Opcode::kSendWithImmediate) {
    at.tail = immediate;
    return send_segment(payload, at, op);
  }
};

TEST_F(SendImmediateReceiver, BringsPayloadAndImmediate) {
  post_recv(1, sge(0, 100));
  post_recv(2, sge(50, 50));
  expect_taken(segment(pattern(5), 0xFFFFFFFE));
  expect_taken(segment(pattern(3), stag_ == Stag{} ? 1 : raw(stag_), {.msn = 2}, Opcode::kSendSolicitedWithImmediate));
  auto c = recvs_.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->byte_len, 5U);
  EXPECT_TRUE(c->has_immediate && c->sent_immediate);
  EXPECT_EQ(c->immediate, 0xFFFFFFFEU);
  EXPECT_FALSE(c->solicited);
  EXPECT_FALSE(c->invalidated);
  EXPECT_EQ(Bytes(memory_.begin(), memory_.begin() + 5), pattern(5));
  c = recvs_.poll();
  ASSERT_TRUE(c);
  EXPECT_TRUE(c->solicited);
  EXPECT_FALSE(c->invalidated);
  EXPECT_TRUE(stags_.valid(stag_)) << "its number is no STag to revoke";
}

TEST_F(SendImmediateReceiver, InTwoSegments) {
  post_recv(1, sge(0, 100));
  expect_taken(segment(pattern(4), 7, {.last = false}));
  EXPECT_FALSE(recvs_.poll());
  expect_taken(segment(pattern(4), 7, {.mo = 4}));
  const auto c = recvs_.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->byte_len, 8U);
  EXPECT_EQ(c->immediate, 7U);
}

TEST_F(SendImmediateReceiver, IsCheckedAsASend) {
  expect_refused(segment(pattern(1), 7), {1, 2, 2}, 18);  // no receive
  post_recv(1, sge(0, 10));
  expect_refused(segment(pattern(11), 7), {1, 2, 5}, 18);
  expect_refused(segment(pattern(1), 7, {.msn = 3}), {1, 2, 3}, 18);
  expect_refused(send_segment(pattern(1), {}, Opcode::kSendWithImmediate, kReadRequestQn), kUnexpectedOpcode, 18);
  const auto tagged = take(test::tagged_segment(Opcode::kSendWithImmediate, stag_, kBase, pattern(8)));
  ASSERT_FALSE(tagged.ok());
  EXPECT_EQ(tagged.error().code, Errc::kRdmapOpcode);
  EXPECT_FALSE(recvs_.poll());
}

TEST_F(ReceiverTest, SendsWithImmediateAreReservedUnlessAgreedOn) {
  for (const auto known : {Extensions::kNone, Extensions::kRfc7306}) {
    rx_.set_known(known);
    post_recv(1, sge(0, 100));
    for (const auto op : {Opcode::kSendWithImmediate, Opcode::kSendSolicitedWithImmediate})
      expect_refused(send_segment(pattern(8), {}, op), kUnexpectedOpcode, 18);
    EXPECT_FALSE(recvs_.poll());
  }
}

TEST_F(ReceiverTest, OtherOpcodesStayReserved) {
  rx_.set_known(Extensions::kSendWithImmediate);
  post_recv(1, sge(0, 100));
  for (const unsigned op : {12U, 13U})
    expect_refused(send_segment(pattern(8), {}, static_cast<Opcode>(op)), kUnexpectedOpcode, 18);
}

TEST_F(ReceiverTest, ImmediateDataHasTheLengthOfTheWriteBeforeIt) {
  rx_.set_known(Extensions::kRfc7306);
  for (std::uint64_t id = 1; id <= 5; ++id) post_recv(id, sge(0, 100));
  std::uint32_t msn = 0;
  const auto immediate = [&] {
    expect_taken(send_segment(pattern(8), {.msn = ++msn}, Opcode::kImmediate));
    const auto c = recvs_.poll();
    return c ? std::optional(c->byte_len) : std::nullopt;
  };
  expect_taken(write_segment(stag_, kBase, pattern(10), false));
  expect_taken(write_segment(stag_, kBase + 10, pattern(7)));
  EXPECT_EQ(immediate(), 17U);
  EXPECT_EQ(immediate(), 0U) << "there is no other Write";
  expect_taken(write_segment(stag_, kBase, pattern(10)));
  expect_taken(write_segment(stag_, kBase, pattern(3)));
  EXPECT_EQ(immediate(), 3U) << "that of the last Write";
  expect_taken(write_segment(stag_, kBase, {}));
  EXPECT_EQ(immediate(), 0U);
  expect_taken(write_segment(stag_, kBase, pattern(10)));
  expect_taken(send_segment(pattern(2), {.msn = ++msn}));
  EXPECT_EQ(recvs_.poll()->byte_len, 2U);
  post_recv(6, {});
  EXPECT_EQ(immediate(), 0U) << "a Send came between";
}

TEST_F(TransmitterTest, SendsWithImmediateOfEitherKind) {
  SendWr loud = wr(2, SendOp::kSendImmediate, sge(0, 4));
  loud.immediate = 0x01020304;
  loud.solicited = true;
  post({.wr_id = 1, .op = SendOp::kSendImmediate, .immediate = 0xFFFFFFFF});
  post(loud);
  EXPECT_EQ(next()->ulpdu, hex("414fffffffff000000000000000100000000"));
  const auto second = next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->untagged().rsvd_ulp, 0x4E);
  EXPECT_EQ(second->untagged().rsvd_ulp_tail, 0x01020304U);
  EXPECT_EQ(second->payload(), content(0, 4));
  EXPECT_FALSE(next());
  for (const std::uint64_t id : {1, 2}) {
    const auto c = sends_.poll();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->wr_id, id);
    EXPECT_EQ(c->op, WcOp::kSend);
  }
  EXPECT_EQ(tx_.counters().sends, 2U);
}

}  // namespace
}  // namespace iwarp::rdmap
