// Everything that a peer can get wrong, with the Terminate code and the quote that it is owed (RFC 5040 s4.8, s7.2, RFC
// 5041 s7).
#include "tests/rdmap/receiver_fixture.h"

namespace iwarp::rdmap {
namespace {

TEST_F(ReceiverTest, ShorterThanItsHeader) {
  COVERS("RFC5041-4.4-1");
  expect_refused({}, {2, 0, 3}, 0);
  expect_refused(hex("c140000001"), {2, 0, 3}, 0);
  expect_refused(hex("4143000000000000000000000001000000"), {2, 0, 3}, 0);
}

TEST_F(ReceiverTest, Versions) {
  COVERS("RFC5041-7.2-7");
  COVERS("RFC5041-7.2-13");
  COVERS("RFC5040-7.2-3");
  Bytes bad = write_segment(stag_, kBase, {});
  bad[0] = std::byte{0xC0};
  expect_refused(bad, {1, 1, 4}, 14);
  bad = send_segment({});
  bad[0] = std::byte{0x42};
  expect_refused(bad, {1, 2, 6}, 18);
  bad = send_segment({});
  bad[1] = std::byte{0x83};
  expect_refused(bad, {0, 2, 5}, 18);
}

TEST_F(ReceiverTest, OpcodesOutOfPlace) {
  COVERS("RFC5040-5.1-1");
  COVERS("RFC5040-5.2.1-1");
  COVERS("RFC5040-5.2.1-6");
  COVERS("RFC5040-5.2.2-2");
  COVERS("RFC5040-5.3-1");
  COVERS("RFC5040-5.4-2");
  expect_refused(test::tagged_segment(Opcode::kSend, stag_, kBase, pattern(4)), {0, 2, 6}, 14);
  expect_refused(test::tagged_segment(Opcode::kTerminate, stag_, kBase, pattern(4)), {0, 2, 6}, 14);
  expect_refused(send_segment(pattern(4), {}, Opcode::kWrite), {0, 2, 6}, 18);
  expect_refused(send_segment(pattern(4), {}, Opcode::kReadResponse), {0, 2, 6}, 18);
  expect_refused(send_segment(pattern(28), {}, Opcode::kReadRequest, kSendQn), {0, 2, 6}, 18);
  expect_refused(send_segment(pattern(4), {}, Opcode::kSend, kTerminateQn), {0, 2, 6}, 18);
  expect_refused(send_segment(pattern(4), {}, static_cast<Opcode>(9)), {0, 2, 6}, 18);
  expect_refused(send_segment(pattern(4), {}, Opcode::kSend, 3), {1, 2, 1}, 18);
}

TEST_F(ReceiverTest, SendsThatFitNoBuffer) {
  COVERS("RFC5041-7.1-2");
  COVERS("RFC5041-7.1-3");
  COVERS("RFC5041-7.1-4");
  COVERS("RFC5041-7.1-5");
  COVERS("RFC5040-5.3-5");
  COVERS("RFC5040-5.3-7");
  COVERS("RFC5041-7.1-17");
  expect_refused(send_segment(pattern(4)), {1, 2, 2}, 18);
  expect_refused(send_segment({}), {1, 2, 2}, 18);
  post_recv(1, sge(0, 10));
  expect_refused(send_segment(pattern(11)), {1, 2, 5}, 18);
  expect_refused(send_segment(pattern(4), {.msn = 2}), {1, 2, 3}, 18);
  expect_refused(send_segment(pattern(4), {.msn = 0}), {1, 2, 3}, 18);
  expect_refused(send_segment(pattern(4), {.mo = 1}), {1, 2, 4}, 18);
  EXPECT_EQ(memory_, Bytes(100)) << "nothing may be placed";
  EXPECT_FALSE(recvs_.poll());
}

TEST_F(ReceiverTest, ReceiveBufferThatIsNotRegistered) {
  COVERS("RFC5041-7.2-2");
  post_recv(1, Sge{memory_.data(), 10, Stag{0x99999999}});
  expect_refused(send_segment(pattern(4)), {1, 0, 0}, 0);
  Bytes read_only(10);
  const Stag s = add(read_only, ddp::Access::kLocalRead);
  ReceiveQueue q(1);
  EXPECT_TRUE(q.post({2, Sge{read_only.data(), 10, s}}));
  Receiver other(stags_, kMe, q, sends_, reads_);
  const Bytes ulpdu = send_segment(pattern(4));
  ASSERT_TRUE(other.begin(ulpdu, ulpdu.size()).ok());
  EXPECT_EQ(other.place(ConstBytes(ulpdu).subspan(18)).error().code, Errc::kDdpCatastrophic);
}

TEST_F(ReceiverTest, ReceiveBufferRevokedInTheMidstOfABatch) {
  Bytes other(10);
  const Stag revoked = add(other);
  for (const std::uint64_t id : {1, 2, 3}) post_recv(id, {{other.data(), 10, revoked}});
  expect_taken(send_segment(pattern(10)));
  EXPECT_FALSE(stags_.quiescent(revoked)) << "held for the next one";
  rx_.let_go();
  EXPECT_TRUE(stags_.quiescent(revoked));
  expect_taken(send_segment(pattern(10), {.msn = 2}));
  EXPECT_TRUE(stags_.invalidate(revoked));
  std::fill(other.begin(), other.end(), std::byte{0xAA});
  expect_refused(send_segment(pattern(10), {.msn = 3}), {1, 0, 0}, 0);
  EXPECT_EQ(other, Bytes(10, std::byte{0xAA}));
  EXPECT_TRUE(stags_.quiescent(revoked)) << "let go of when it was found revoked";
}

TEST_F(ReceiverTest, SecondPieceOfAReceiveRevoked) {
  Bytes other(10, std::byte{0xAA});
  const Stag revoked = add(other);
  SgeList pieces = sge(0, 5);
  ASSERT_TRUE(pieces.add({other.data(), 5, revoked}));
  post_recv(1, pieces);
  EXPECT_TRUE(stags_.invalidate(revoked));
  expect_refused(send_segment(pattern(10)), {1, 0, 0}, 0);
  EXPECT_EQ(other, Bytes(10, std::byte{0xAA}));
  EXPECT_TRUE(std::equal(memory_.begin(), memory_.begin() + 5, pattern(5).begin())) << "the piece before it was there";
}

TEST_F(ReceiverTest, WritesToWhereTheyMayNot) {
  COVERS("RFC5041-7.1-11");
  COVERS("RFC5041-7.1-12");
  COVERS("RFC5041-7.1-13");
  COVERS("RFC5041-7.1-14");
  COVERS("RFC5041-7.1-15");
  COVERS("RFC5041-7.1-16");
  COVERS("RFC5041-8.2-1");
  COVERS("RFC5041-8.3-5");
  COVERS("RFC5041-4.2-7");
  COVERS("RFC5040-5.1-3");
  Bytes other(100);
  const Stag no_write = add(other, ddp::Access::kRemoteRead);
  const Stag foreign = add(other, kAll, PdId{9});
  expect_refused(write_segment(Stag{0}, kBase, pattern(4)), {1, 1, 0}, 14);
  expect_refused(write_segment(Stag{raw(stag_) ^ 1}, kBase, pattern(4)), {1, 1, 0}, 14);
  expect_refused(write_segment(no_write, kBase, pattern(4)), {1, 1, 0}, 14);
  expect_refused(write_segment(foreign, kBase, pattern(4)), {1, 1, 2}, 14);
  expect_refused(write_segment(stag_, kBase - 1, pattern(4)), {1, 1, 1}, 14);
  expect_refused(write_segment(stag_, kBase + 97, pattern(4)), {1, 1, 1}, 14);
  expect_refused(write_segment(stag_, 0xFFFF'FFFF'FFFF'FFFE, pattern(4)), {1, 1, 3}, 14);
  EXPECT_TRUE(stags_.invalidate(stag_));
  expect_refused(write_segment(stag_, kBase, pattern(4)), {1, 1, 0}, 14);
  EXPECT_EQ(memory_, Bytes(100));
  EXPECT_EQ(other, Bytes(100));
}

TEST_F(ReceiverTest, ReadResponsesThatNobodyAskedFor) {
  COVERS("RFC5040-5.2-1");
  COVERS("RFC5040-5.2.2-5");
  expect_refused(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, pattern(4)), {0, 2, 6}, 14);
  expect_refused(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, {}), {0, 2, 6}, 14);
}

TEST_F(ReceiverTest, ReadResponsesThatDoNotAnswerTheRequest) {
  COVERS("RFC5040-5.2.2-8");
  COVERS("RFC5040-4.4-3");
  COVERS("RFC5040-4.4-4");
  COVERS("RFC5040-5.2.2-9");
  COVERS("RFC5041-4.2-9");
  Bytes other(100);
  const Stag elsewhere = add(other);
  const auto response = [&](Stag stag, std::uint64_t to, std::size_t bytes, bool last) {
    return test::tagged_segment(Opcode::kReadResponse, stag, to, pattern(bytes), last);
  };
  start_read(1, 30, 10);
  expect_refused(response(elsewhere, kBase + 10, 30, true), {1, 1, 0}, 14);
  expect_refused(response(stag_, kBase + 11, 30, true), {1, 1, 1}, 14);
  expect_refused(response(stag_, kBase + 10, 31, true), {1, 1, 1}, 14);
  expect_refused(response(stag_, kBase + 10, 31, false), {1, 1, 1}, 14);
  expect_refused(response(stag_, kBase + 10, 29, true), {1, 1, 1}, 14);
  expect_refused(response(stag_, kBase + 10, 0, true), {1, 1, 1}, 14);
  expect_taken(response(stag_, kBase + 10, 20, false));
  expect_refused(response(stag_, kBase + 10, 10, true), {1, 1, 1}, 14);
  expect_refused(response(stag_, kBase + 30, 11, true), {1, 1, 1}, 14);
  expect_refused(response(stag_, kBase + 30, 11, false), {1, 1, 1}, 14);
  expect_refused(response(stag_, kBase + 30, 30, false), {1, 1, 1}, 14);
  EXPECT_EQ(Bytes(memory_.begin() + 40, memory_.end()), Bytes(60)) << "nothing is placed behind the sink";
  expect_taken(response(stag_, kBase + 30, 10, true));
}

TEST_F(ReceiverTest, DataInTheResponseToAZeroLengthRead) {
  start_read(1, 0);
  expect_refused(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, pattern(4)), {1, 1, 1}, 14);
  rx_.expect_rtr_response();
  expect_refused(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, pattern(4)), {1, 1, 1}, 14);
  expect_refused(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, {}, false), {1, 1, 1}, 14);
}

TEST_F(ReceiverTest, ReadSinkThatWasRevoked) {
  start_read(1, 30);
  EXPECT_TRUE(stags_.invalidate(stag_));
  expect_refused(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, pattern(30)), {1, 1, 0}, 14);
}

TEST_F(ReceiverTest, ReadRequestsThatDoNotFitTheirQueue) {
  COVERS("RFC5040-5.2.2-3");
  COVERS("RFC5040-6.1-10");
  COVERS("RFC5040-7.2-6");
  const ReadRequest r{Stag{5}, 6, 7, stag_, kBase};
  expect_refused(test::read_request_segment(r, 2), {1, 2, 3}, 18);
  expect_refused(test::read_request_segment(r) | hex("00"), {1, 2, 5}, 18);
  expect_taken(test::read_request_segment(r, 1));
  expect_taken(test::read_request_segment(r, 2));
  expect_refused(test::read_request_segment(r, 3), {1, 2, 2}, 18);
  (void)reads_.start();
  expect_refused(test::read_request_segment(r, 3), {1, 2, 2}, 18);  // it counts until its Response is sent
  reads_.response_sent();
  expect_taken(test::read_request_segment(r, 3));
}

TEST_F(ReceiverTest, ReadRequestTooShort) {
  COVERS("RFC5040-4.2-3");
  COVERS("RFC5040-5.2.1-5");
  COVERS("RFC5040-4.8-24");
  expect_refused(send_segment(pattern(27), {}, Opcode::kReadRequest, kReadRequestQn), {0, 2, 0xFF}, 18);
}

TEST_F(ReceiverTest, InvalidateOfWhatThePeerMayNotInvalidate) {
  COVERS("RFC5040-5.3-16");
  COVERS("RFC5040-3.2-3");
  Bytes other(10);
  const Stag foreign = add(other, kAll, PdId{9});
  const Stag forbidden = add(other, ddp::Access::kRemoteWrite, kMe.pd, kMe.stream);
  std::uint32_t msn = 1;
  for (const Stag s : {foreign, forbidden, Stag{0x12345600}}) {
    post_recv(msn, sge(0, 10));
    expect_refused(send_segment({}, {.msn = msn, .tail = raw(s)}, Opcode::kSendInvalidate), {0, 1, 9}, 18);
    EXPECT_EQ(recvs_.poll()->status, Errc::kCannotInvalidate) << "the receive completes in error";
    ++msn;
  }
  EXPECT_TRUE(stags_.valid(foreign));
  EXPECT_TRUE(stags_.valid(forbidden));
}

TEST_F(ReceiverTest, TerminateOfImpossibleLength) {
  COVERS("RFC5040-4.2-4");
  expect_refused(test::terminate_segment(pattern(129)), {1, 2, 5}, 18);
}

}  // namespace
}  // namespace iwarp::rdmap
