#include "tests/rdmap/receiver_fixture.h"

namespace iwarp::rdmap {
namespace {

TEST_F(ReceiverTest, SendOfOneSegment) {
  COVERS("RFC5040-5.3-4");
  COVERS("RFC5040-3.2-2");
  COVERS("RFC5040-5.5-11");
  COVERS("RFC5040-5.5-23");
  COVERS("RFC5040-4.2-2");
  COVERS("RFC5041-4.1-3");
  COVERS("RFC5041-4.4-2");
  post_recv(7, sge(10, 50));
  expect_taken(send_segment(pattern(20)));
  const auto c = recvs_.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->wr_id, 7U);
  EXPECT_EQ(c->byte_len, 20U);
  EXPECT_FALSE(c->solicited);
  EXPECT_TRUE(std::equal(memory_.begin() + 10, memory_.begin() + 30, pattern(20).begin()));
  EXPECT_EQ(rx_.counters().sends, 1U);
  EXPECT_EQ(rx_.counters().send_bytes, 20U);
}

TEST_F(ReceiverTest, SendOfSeveralSegmentsOverSeveralPieces) {
  COVERS("RFC5040-5.3-2");
  COVERS("RFC5041-5.2-5");
  COVERS("RFC5041-5.4-3");
  COVERS("RFC5040-4-2");
  SgeList list = sge(0, 7);
  EXPECT_TRUE(list.add(sge(50, 0)));
  EXPECT_TRUE(list.add(sge(20, 13)));
  EXPECT_TRUE(list.add(sge(60, 40)));
  post_recv(1, list);
  const Bytes message = pattern(30);
  expect_taken(send_segment(Bytes(message.begin(), message.begin() + 10), {.mo = 0, .last = false}));
  EXPECT_FALSE(recvs_.poll()) << "not delivered before its last segment";
  expect_taken(send_segment(Bytes(message.begin() + 10, message.begin() + 22), {.mo = 10, .last = false}));
  expect_taken(send_segment(Bytes(message.begin() + 22, message.end()), {.mo = 22}));
  EXPECT_EQ(recvs_.poll()->byte_len, 30U);
  EXPECT_TRUE(std::equal(message.begin(), message.begin() + 7, memory_.begin()));
  EXPECT_TRUE(std::equal(message.begin() + 7, message.begin() + 20, memory_.begin() + 20));
  EXPECT_TRUE(std::equal(message.begin() + 20, message.end(), memory_.begin() + 60));
}

TEST_F(ReceiverTest, ShortAndEmptySendsUseUpABufferEach) {
  COVERS("RFC5040-5.3-3");
  COVERS("RFC5040-5.3-11");
  COVERS("RFC5040-5.3-12");
  COVERS("RFC5041-1.2-1");
  COVERS("RFC5041-1.2-3");
  COVERS("RFC5041-5.2-6");
  post_recv(1, sge(0, 50));
  post_recv(2, {});
  post_recv(3, sge(50, 50));
  expect_taken(send_segment({}, {.msn = 1}));
  expect_taken(send_segment({}, {.msn = 2}));
  expect_taken(send_segment(pattern(1), {.msn = 3}));
  for (const std::uint32_t expected : {0U, 0U, 1U}) EXPECT_EQ(recvs_.poll()->byte_len, expected);
}

TEST_F(ReceiverTest, SolicitedIsForSolicitedOpcodesOnly) {
  COVERS("RFC5040-2.4-2");
  std::uint32_t msn = 1;
  for (const auto& [op, solicited] : {std::pair{Opcode::kSend, false}, {Opcode::kSendSolicited, true}}) {
    post_recv(1, sge(0, 50));
    expect_taken(send_segment({}, {.msn = msn++}, op));
    EXPECT_EQ(recvs_.poll()->solicited, solicited);
  }
}

TEST_F(ReceiverTest, SendWithInvalidate) {
  COVERS("RFC5040-1.2-2");
  COVERS("RFC5040-5.3-15");
  COVERS("RFC5040-3.1-9");
  COVERS("RFC5041-4.3-4");
  COVERS("RFC5041-5.4-8");
  for (const Opcode op : {Opcode::kSendInvalidate, Opcode::kSendSolicitedInvalidate}) {
    Bytes other(10);
    const Stag victim = add(other, kAll, kMe.pd, kMe.stream);
    const std::uint32_t msn = op == Opcode::kSendInvalidate ? 1 : 2;
    post_recv(1, sge(0, 50));
    expect_taken(send_segment(pattern(4), {.msn = msn, .last = false, .tail = raw(victim)}, op));
    EXPECT_TRUE(stags_.valid(victim)) << "not before delivery";
    expect_taken(send_segment({}, {.msn = msn, .mo = 4, .tail = raw(victim)}, op));
    const auto c = recvs_.poll();
    ASSERT_TRUE(c);
    EXPECT_TRUE(c->invalidated);
    EXPECT_EQ(c->invalidated_stag, victim);
    EXPECT_EQ(c->solicited, op == Opcode::kSendSolicitedInvalidate);
    EXPECT_FALSE(stags_.valid(victim));
  }
}

TEST_F(ReceiverTest, InvalidateFieldOfOtherOpcodesIsNotLookedAt) {
  COVERS("RFC5040-4.1-13");
  COVERS("RFC5040-4.1-15");
  post_recv(1, sge(0, 50));
  post_recv(2, sge(0, 50));
  expect_taken(send_segment({}, {.msn = 1, .tail = raw(stag_)}));
  expect_taken(send_segment({}, {.msn = 2, .tail = raw(stag_)}, Opcode::kSendSolicited));
  Bytes request = test::read_request_segment({.size = 0});
  std::copy_n(hex("ffffffff").begin(), 4, request.begin() + 2);
  expect_taken(request);
  EXPECT_TRUE(stags_.valid(stag_));
  EXPECT_FALSE(recvs_.poll()->invalidated);
}

TEST_F(ReceiverTest, WriteIsPlacedAndNotDelivered) {
  COVERS("RFC5040-5.1-2");
  COVERS("RFC5040-3.2-6");
  COVERS("RFC5041-5.1.1-1");
  COVERS("RFC5041-4.1-2");
  COVERS("RFC5042-2.2.6-1");
  post_recv(1, sge(0, 10));
  for (int twice = 0; twice < 2; ++twice) {
    expect_taken(write_segment(stag_, kBase + 50, pattern(30), false));
    expect_taken(write_segment(stag_, kBase + 80, pattern(20)));
  }
  EXPECT_TRUE(std::equal(memory_.begin() + 50, memory_.begin() + 80, pattern(30).begin()));
  EXPECT_FALSE(recvs_.poll());
  EXPECT_EQ(rx_.counters().writes, 2U);
  EXPECT_EQ(rx_.counters().write_bytes, 100U);
}

TEST_F(ReceiverTest, ZeroLengthWriteIsNotChecked) {
  COVERS("RFC5041-5.2-16");
  COVERS("RFC5040-5.1-10");
  expect_taken(write_segment(Stag{0}, 0, {}));
  expect_taken(write_segment(Stag{0xFFFFFFFF}, 0xFFFF'FFFF'FFFF'FFFF, {}));
}

TEST_F(ReceiverTest, ReadResponseCompletesTheOldestRead) {
  COVERS("RFC5040-5.2.2-4");
  COVERS("RFC5040-5.5-14");
  COVERS("RFC5040-5.5-29");
  COVERS("RFC5040-1.2-4");
  start_read(1, 30);
  start_read(2, 10, 50);
  const auto response = [&](std::size_t offset, const Bytes& data, bool last) {
    return test::tagged_segment(Opcode::kReadResponse, stag_, kBase + offset, data, last);
  };
  expect_taken(response(0, pattern(20), false));
  EXPECT_FALSE(sends_.poll());
  expect_taken(response(20, pattern(10, 100), true));
  expect_taken(response(50, pattern(10), true));
  EXPECT_EQ(sends_.poll()->wr_id, 1U);
  EXPECT_EQ(sends_.poll()->wr_id, 2U);
  EXPECT_TRUE(std::equal(memory_.begin() + 20, memory_.begin() + 30, pattern(10, 100).begin()));
  EXPECT_TRUE(stags_.valid(stag_)) << "the sink STag is not used up";
}

TEST_F(ReceiverTest, EachResponseToAReadOfSeveralPiecesFillsOne) {
  COVERS("RFC5040-5.2.2-4");
  COVERS("RFC5040-5.5-29");
  SendWr wr{.wr_id = 1, .op = SendOp::kRead, .sges = sge(60, 30)};
  ASSERT_TRUE(wr.sges.add(sge(10, 5)));
  ASSERT_TRUE(sends_.post(wr));
  sends_.sent(sends_.start());
  sends_.sent(sends_.start());
  const auto response = [&](std::size_t offset, const Bytes& data, bool last) {
    return test::tagged_segment(Opcode::kReadResponse, stag_, kBase + offset, data, last);
  };
  expect_taken(response(60, pattern(20), false));
  expect_taken(response(80, pattern(10, 100), true));
  EXPECT_FALSE(sends_.poll());
  expect_taken(response(10, pattern(5, 50), true));
  EXPECT_EQ(sends_.poll()->byte_len, 35U);
  EXPECT_TRUE(std::equal(memory_.begin() + 80, memory_.begin() + 90, pattern(10, 100).begin()));
  EXPECT_TRUE(std::equal(memory_.begin() + 10, memory_.begin() + 15, pattern(5, 50).begin()));
}

TEST_F(ReceiverTest, ResponseMayNotSpanTwoPiecesOfARead) {
  SendWr wr{.wr_id = 1, .op = SendOp::kRead, .sges = sge(0, 10)};
  ASSERT_TRUE(wr.sges.add(sge(10, 10)));
  ASSERT_TRUE(sends_.post(wr));
  sends_.sent(sends_.start());
  sends_.sent(sends_.start());
  expect_refused(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, pattern(20)), {1, 1, 1}, 14);
}

TEST_F(ReceiverTest, ReadWithLocalInvalidateRevokesItsSinkWithTheLastOctet) {
  for (const std::size_t length : {30U, 0U}) {
    Bytes sink(30);
    const Stag stag = add(sink);
    ASSERT_TRUE(sends_.post({.wr_id = 1,
                             .op = SendOp::kReadInvalidate,
                             .sges = Sge{sink.data(), static_cast<std::uint32_t>(length), stag}}));
    sends_.sent(sends_.start());
    if (length > 0) {
      expect_taken(test::tagged_segment(Opcode::kReadResponse, stag, kBase, pattern(20), false));
      EXPECT_TRUE(stags_.valid(stag));
      expect_taken(test::tagged_segment(Opcode::kReadResponse, stag, kBase + 20, pattern(10, 140), true));
      EXPECT_EQ(sink, pattern(30));
    } else {
      expect_taken(test::tagged_segment(Opcode::kReadResponse, stag, 0, {}));
    }
    EXPECT_FALSE(stags_.valid(stag));
    const auto c = sends_.poll();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->op, WcOp::kRead);
    EXPECT_TRUE(c->invalidated);
    EXPECT_EQ(c->invalidated_stag, stag);
    EXPECT_EQ(c->byte_len, length);
  }
}

TEST_F(ReceiverTest, ZeroLengthReadResponse) {
  COVERS("RFC5041-5.2-16");
  start_read(1, 0);
  expect_taken(test::tagged_segment(Opcode::kReadResponse, Stag{0x1234}, 99, {}));
  EXPECT_EQ(sends_.poll()->byte_len, 0U);
}

TEST_F(ReceiverTest, ResponseToTheRtrComesFirst) {
  COVERS("RFC6581-9.2-6");
  rx_.expect_rtr_response();
  start_read(1, 10);
  EXPECT_TRUE(rx_.rtr_response_due());
  expect_taken(test::tagged_segment(Opcode::kReadResponse, Stag{0}, 0, {}));
  EXPECT_FALSE(rx_.rtr_response_due());
  EXPECT_FALSE(sends_.poll());
  expect_taken(test::tagged_segment(Opcode::kReadResponse, stag_, kBase, pattern(10)));
  EXPECT_EQ(sends_.poll()->wr_id, 1U);
}

TEST_F(ReceiverTest, RtrBySendTakesNoReceive) {
  COVERS("RFC6581-9.2-7");
  rx_.expect_rtr_send();
  expect_taken(send_segment({}));  // though none is posted
  EXPECT_FALSE(recvs_.poll());
  EXPECT_EQ(rx_.counters().sends, 0U);
  post_recv(1, sge(0, 50));
  expect_taken(send_segment(pattern(3), {.msn = 2}));
  EXPECT_EQ(recvs_.poll()->byte_len, 3U);
  EXPECT_EQ(rx_.counters().sends, 1U);
}

TEST_F(ReceiverTest, OnlyTheFirstMessageIsTheRtr) {
  COVERS("RFC6581-9.2-7");
  rx_.expect_rtr_send();
  for (std::uint64_t id = 1; id <= 2; ++id) post_recv(id, sge(0, 50));
  expect_taken(test::tagged_segment(Opcode::kWrite, Stag{1}, 0, {}));  // another form, against what was agreed
  expect_taken(send_segment({}));
  EXPECT_EQ(recvs_.poll()->wr_id, 1U);
  expect_taken(send_segment({}, {.msn = 2}));
  EXPECT_EQ(recvs_.poll()->wr_id, 2U);
}

TEST_F(ReceiverTest, ASendOfMoreThanNothingIsNoRtr) {
  struct {
    Bytes segment;
    const char* what;
  } const kOthers[] = {{send_segment(pattern(1)), "data"},
                       {send_segment({}, {}, Opcode::kSendSolicited), "solicited event"},
                       {send_segment({}, {.last = false}), "more to come"}};
  for (const auto& other : kOthers) {
    ReceiveQueue recvs(1);
    SendQueue sends(1);
    InboundReads reads(1);
    Receiver rx(stags_, kMe, recvs, sends, reads);
    rx.expect_rtr_send();
    const auto taken = rx.begin(other.segment, other.segment.size());
    ASSERT_FALSE(taken) << other.what << ": it needs a receive";
    EXPECT_EQ(taken.error().code, Errc::kUntaggedNoBuffer) << other.what;
  }
}

TEST_F(ReceiverTest, ReadRequestsWaitInOrder) {
  COVERS("RFC5040-5.2.1-2");
  COVERS("RFC5040-5.2.1-8");
  COVERS("RFC5040-3.2-9");
  COVERS("RFC5040-5.2.1-3");
  COVERS("RFC5040-5.2.1-4");
  const ReadRequest one{Stag{5}, 6, 7, stag_, kBase}, two{Stag{8}, 9, 10, stag_, kBase};
  post_recv(1, sge(0, 50));
  expect_taken(test::read_request_segment(one, 1));
  expect_taken(test::read_request_segment(two, 2));
  EXPECT_TRUE(reads_.full());
  EXPECT_EQ(rx_.counters().read_requests, 2U);
  EXPECT_FALSE(recvs_.poll()) << "the application hears nothing of them";
  EXPECT_FALSE(sends_.poll());
  EXPECT_EQ(std::get<ReadRequest>(reads_.start().request), one);
  const InboundRead second = reads_.start();
  EXPECT_EQ(std::get<ReadRequest>(second.request), two);
  EXPECT_EQ(Bytes(second.ulpdu.begin(), second.ulpdu.end()), test::read_request_segment(two, 2));
}

TEST_F(ReceiverTest, ReadRequestMayComeInSeveralSegments) {
  COVERS("RFC5040-5.5-16");
  const ReadRequest r{Stag{5}, 6, 7, stag_, kBase};
  const Bytes body = test::header_bytes(r);
  expect_taken(
      send_segment(Bytes(body.begin(), body.begin() + 9), {.last = false}, Opcode::kReadRequest, kReadRequestQn));
  EXPECT_TRUE(reads_.empty());
  expect_taken(send_segment(Bytes(body.begin() + 9, body.end()), {.mo = 9}, Opcode::kReadRequest, kReadRequestQn));
  const InboundRead read = reads_.start();
  EXPECT_EQ(std::get<ReadRequest>(read.request), r);
  EXPECT_EQ(Bytes(read.ulpdu.begin(), read.ulpdu.end()), test::read_request_segment(r)) << "quoted as one segment";
}

TEST_F(ReceiverTest, QueuesCountTheirMessagesApart) {
  COVERS("RFC5041-4.3-9");
  COVERS("RFC5041-5.2-7");
  COVERS("RFC5041-5.1.2-1");
  post_recv(1, sge(0, 50));
  post_recv(2, sge(0, 50));
  expect_taken(send_segment({}, {.msn = 1}));
  expect_taken(test::read_request_segment({.size = 0}, 1));
  expect_taken(send_segment({}, {.msn = 2}));
  expect_taken(test::read_request_segment({.size = 0}, 2));
  expect_taken(test::terminate_segment(hex("20020000")));
}

TEST_F(ReceiverTest, TerminateIsAlwaysTaken) {
  COVERS("RFC5040-5.4-4");
  COVERS("RFC5040-5.4-5");
  COVERS("RFC5040-5.4-6");
  COVERS("RFC5040-5.4-7");
  COVERS("RFC5040-4.8-1");
  expect_taken(
      test::terminate_segment(hex("1202c000 0020") | hex("4143 00000000 00000000 00000001 00000000") | Bytes(28)));
  ASSERT_TRUE(rx_.peer_terminate());
  EXPECT_EQ(rx_.peer_terminate()->code, (TerminateCode{1, 2, 2}));
  EXPECT_EQ(rx_.peer_terminate()->segment_length, 32);
}

TEST_F(ReceiverTest, TerminateMayHaveTrailingOctets) {
  expect_taken(test::terminate_segment(hex("20020000") | Bytes(124)));
  ASSERT_TRUE(rx_.peer_terminate());
  EXPECT_EQ(rx_.peer_terminate()->code, (TerminateCode{2, 0, 2}));
}

TEST_F(ReceiverTest, TerminateWithoutContentIsOneAllTheSame) {
  COVERS("RFC5040-5.4-8");
  expect_taken(test::terminate_segment({}));
  EXPECT_TRUE(rx_.peer_terminate());
}

// As a driver with CRC off does: part by copy, the rest straight into place.
TEST_F(ReceiverTest, PartsOfASegmentMayBeReceivedInPlace) {
  post_recv(1, sge(10, 60));
  const Bytes ulpdu = send_segment(pattern(50));
  ASSERT_TRUE(rx_.begin(ConstBytes(ulpdu).first(25), ulpdu.size()).ok());
  EXPECT_TRUE(rx_.direct());
  ASSERT_TRUE(rx_.place(ConstBytes(ulpdu).subspan(18, 7)).ok());
  EXPECT_EQ(rx_.payload_remaining(), 43U);
  std::vector<ddp::Pin> pins;
  ASSERT_TRUE(rx_.targets(pins).ok());
  ASSERT_EQ(pins.size(), 1U);
  EXPECT_EQ(pins[0].bytes().data(), memory_.data() + 17);
  EXPECT_EQ(pins[0].bytes().size(), 43U);
  std::copy_n(ulpdu.begin() + 25, 43, pins[0].bytes().begin());
  rx_.placed(43);
  ASSERT_TRUE(rx_.end().ok());
  EXPECT_TRUE(std::equal(memory_.begin() + 10, memory_.begin() + 60, pattern(50).begin()));
}

TEST_F(ReceiverTest, TargetsOfAWriteBeginWhereThePlacingHasCome) {
  const Bytes ulpdu = write_segment(stag_, kBase + 10, pattern(50));
  ASSERT_TRUE(rx_.begin(ConstBytes(ulpdu).first(20), ulpdu.size()).ok());
  ASSERT_TRUE(rx_.place(ConstBytes(ulpdu).subspan(14, 6)).ok());
  std::vector<ddp::Pin> pins;
  ASSERT_TRUE(rx_.targets(pins).ok());
  ASSERT_EQ(pins.size(), 1U);
  EXPECT_EQ(pins[0].bytes().data(), memory_.data() + 16);
  EXPECT_EQ(pins[0].bytes().size(), 44U);
}

// A piece that is full already is not asked for: its memory may be gone.
TEST_F(ReceiverTest, TargetsBeginBehindAFullPiece) {
  Bytes other(10);
  const Stag full = add(other);
  SgeList list = Sge{other.data(), 10, full};
  EXPECT_TRUE(list.add(sge(0, 50)));
  post_recv(1, list);
  const Bytes message = pattern(40);
  expect_taken(send_segment(Bytes(message.begin(), message.begin() + 10), {.last = false}));
  EXPECT_TRUE(stags_.invalidate(full));
  const Bytes ulpdu = send_segment(Bytes(message.begin() + 10, message.end()), {.mo = 10});
  ASSERT_TRUE(rx_.begin(ConstBytes(ulpdu).first(18), ulpdu.size()).ok());
  std::vector<ddp::Pin> pins;
  ASSERT_TRUE(rx_.targets(pins).ok());
  ASSERT_EQ(pins.size(), 1U);
  EXPECT_EQ(pins[0].bytes().data(), memory_.data());
}

TEST_F(ReceiverTest, TargetsAreAllOrNone) {
  Bytes other(10);
  const Stag gone = add(other);
  SgeList list = sge(0, 20);
  EXPECT_TRUE(list.add(Sge{other.data(), 10, gone}));
  post_recv(1, list);
  EXPECT_TRUE(stags_.invalidate(gone));
  const Bytes ulpdu = send_segment(pattern(30));
  ASSERT_TRUE(rx_.begin(ConstBytes(ulpdu).first(18), ulpdu.size()).ok());
  std::vector<ddp::Pin> pins;
  EXPECT_FALSE(rx_.targets(pins).ok());
  EXPECT_TRUE(pins.empty());
}

TEST_F(ReceiverTest, TargetsAreCheckedAnewEachTime) {
  COVERS("RFC5041-8.3.1-7");
  const Bytes ulpdu = write_segment(stag_, kBase, pattern(50));
  ASSERT_TRUE(rx_.begin(ConstBytes(ulpdu).first(20), ulpdu.size()).ok());
  ASSERT_TRUE(rx_.place(ConstBytes(ulpdu).subspan(14, 6)).ok());
  EXPECT_TRUE(stags_.invalidate(stag_));
  std::vector<ddp::Pin> pins;
  const auto refused = rx_.targets(pins);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(pins.empty());
  EXPECT_EQ(rx_.terminate_for(refused.error()).code, (TerminateCode{1, 1, 0}));
  EXPECT_FALSE(rx_.place(ConstBytes(ulpdu).subspan(20)).ok());
}

}  // namespace
}  // namespace iwarp::rdmap
