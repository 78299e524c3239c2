#include "tests/rdmap/transmitter_fixture.h"

namespace iwarp::rdmap {
namespace {

TEST_F(TransmitterTest, NothingToSend) {
  EXPECT_FALSE(next());
  EXPECT_FALSE(error_);
}

TEST_F(TransmitterTest, SendInSegments) {
  COVERS("RFC5041-5.2-8");
  COVERS("RFC5041-5.3-3");
  COVERS("RFC5041-4.1-4");
  COVERS("RFC5041-4.1-5");
  COVERS("RFC5041-4.1-6");
  COVERS("RFC5041-4.1-7");
  COVERS("RFC5041-4.3-5");
  COVERS("RFC5041-4.3-7");
  COVERS("RFC5041-4.3-12");
  COVERS("RFC5041-4.3-13");
  COVERS("RFC5040-4.1-1");
  COVERS("RFC5040-3.1-8");
  COVERS("RFC5041-1.2-4");
  COVERS("RFC5041-1.2-6");
  post(wr(1, SendOp::kSend, sge(0, 250)));
  struct Expected {
    std::uint32_t mo, bytes;
    bool last;
  };
  for (const Expected& e : {Expected{0, 100, false}, Expected{100, 100, false}, Expected{200, 50, true}}) {
    const auto s = next();
    ASSERT_TRUE(s);
    EXPECT_EQ(s->untagged(), (ddp::UntaggedHeader{e.last, 0x43, 0, 0, Msn{1}, e.mo}));
    EXPECT_EQ(s->payload(), content(e.mo, e.bytes));
    EXPECT_FALSE(s->read_response || s->may_change);
    EXPECT_EQ(tx_.mid_message(), !e.last);
    EXPECT_EQ(sends_.poll().has_value(), e.last) << "complete when its last octet is handed over";
  }
  EXPECT_EQ(tx_.counters().sends, 1U);
  EXPECT_EQ(tx_.counters().send_bytes, 250U);
}

TEST_F(TransmitterTest, CopiesSmallPayloadAndPinsTheRest) {
  constexpr auto kCopied = static_cast<std::uint32_t>(Transmitter::kCopied);
  mulpdu_ = 1500;
  SgeList pieces;
  ASSERT_TRUE(pieces.add(sge(7, 100)) && pieces.add(sge(200, kCopied - 100)));
  for (const SgeList& sges : {pieces, SgeList(sge(0, kCopied)), SgeList(sge(0, kCopied + 1))}) {
    const bool copied = sges.total() <= kCopied;
    post(wr(1, SendOp::kSend, sges));
    Transmitter::Segment s;
    std::vector<ddp::Pin> pins;
    ASSERT_TRUE(*tx_.next(mulpdu_, 8, s, pins));
    EXPECT_EQ(s.payload_bytes, sges.total());
    EXPECT_EQ(s.copied_bytes, copied ? sges.total() : 0);
    EXPECT_EQ(pins.empty(), copied);
    Bytes whole;
    for (const Sge& piece : sges.view()) whole.insert(whole.end(), piece.address, piece.address + piece.length);
    const ConstBytes copy = s.head_and_copy().subspan(s.header_bytes);
    EXPECT_EQ(copied ? Bytes(copy.begin(), copy.end()) : Bytes(pins.at(0).bytes().begin(), pins.at(0).bytes().end()),
              whole);
    pins.clear();
    EXPECT_EQ(stags_.quiescent(stag_), !copied) << "held for the next one";
    s.source.release();
    EXPECT_TRUE(stags_.quiescent(stag_));
    tx_.segment_sent(s.done);
    EXPECT_TRUE(sends_.poll());
  }
}

TEST_F(TransmitterTest, InlineOctetsNeedNoRegistration) {
  mulpdu_ = 400;
  sends_ = SendQueue(16, 500);
  for (const std::uint32_t n : {1U, 256U, 257U, 500U}) {
    Bytes octets = pattern(n, n);
    SendWr w = wr(1, SendOp::kSend, Sge{octets.data(), n, Stag{}});
    w.inline_data = true;
    post(w);
    octets.assign(n, std::byte{});
    Bytes sent;
    for (auto s = next(); s; s = next()) sent = sent | s->payload();
    EXPECT_EQ(sent, pattern(n, n));
    EXPECT_FALSE(error_);
    EXPECT_EQ(sends_.poll()->status, Errc::kOk);
  }
}

TEST_F(TransmitterTest, MsnRisesPerMessage) {
  COVERS("RFC5041-4.3-9");
  COVERS("RFC5041-4.3-10");
  COVERS("RFC5040-5.5-20");
  COVERS("RFC5040-5.3-10");
  COVERS("RFC5041-5.3-2");
  post(wr(1, SendOp::kSend, {}));
  post(wr(2, SendOp::kSend, sge(0, 1)));
  post(wr(3, SendOp::kRead, sge(0, 1)));
  post(wr(4, SendOp::kSend, sge(0, 1)));
  post(wr(5, SendOp::kRead, sge(0, 1)));
  EXPECT_EQ(next()->untagged().msn, Msn{1});
  EXPECT_EQ(next()->untagged().msn, Msn{2});
  const auto read = next()->untagged();
  EXPECT_EQ(read.qn, kReadRequestQn);
  EXPECT_EQ(read.msn, Msn{1});
  EXPECT_EQ(next()->untagged().msn, Msn{3});
  EXPECT_EQ(next()->untagged().msn, Msn{2});
}

TEST_F(TransmitterTest, OpcodesOfSends) {
  COVERS("RFC5040-4.1-4");
  COVERS("RFC5040-4.1-14");
  COVERS("RFC5040-4.6-1");
  COVERS("RFC5040-4.7-1");
  COVERS("RFC5040-5.3-13");
  COVERS("RFC5040-A.4-1");
  COVERS("RFC5040-A.5-1");
  COVERS("RFC5040-3.2-1");
  COVERS("RFC5040-4-1");
  COVERS("RFC5040-4.1-5");
  for (const bool solicited : {false, true}) {
    for (const bool invalidate : {false, true}) {
      SendWr w = wr(1, invalidate ? SendOp::kSendInvalidate : SendOp::kSend, sge(0, 150));
      w.solicited = solicited;
      w.remote_stag = Stag{0x11223344};
      post(w);
      for (int segment = 0; segment < 2; ++segment) {
        const auto h = next()->untagged();
        EXPECT_EQ(h.rsvd_ulp, invalidate ? (solicited ? 0x46 : 0x44) : (solicited ? 0x45 : 0x43));
        EXPECT_EQ(h.rsvd_ulp_tail, invalidate ? 0x11223344U : 0U);
      }
    }
  }
}

TEST_F(TransmitterTest, WriteInSegments) {
  COVERS("RFC5041-5.2-11");
  COVERS("RFC5041-5.3-4");
  COVERS("RFC5041-4.2-6");
  COVERS("RFC5041-4.2-10");
  COVERS("RFC5041-4.2-11");
  COVERS("RFC5041-5.2-10");
  COVERS("RFC5040-4.3-1");
  COVERS("RFC5040-5.1-6");
  COVERS("RFC5040-5.1-7");
  COVERS("RFC5040-A.1-1");
  COVERS("RFC5040-3.2-5");
  COVERS("RFC5040-4.1-5");
  COVERS("RFC5040-5.1-9");
  COVERS("RFC5041-1.2-6");
  SgeList pieces = sge(10, 50);
  EXPECT_TRUE(pieces.add(sge(300, 0)));
  EXPECT_TRUE(pieces.add(sge(100, 80)));
  SendWr w = wr(1, SendOp::kWrite, pieces);
  w.remote_stag = Stag{0x700};
  w.remote_to = 0xFFFF'0000'0000;
  post(w);
  const auto first = next(), second = next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->tagged(), (ddp::TaggedHeader{false, 0x40, Stag{0x700}, 0xFFFF'0000'0000}));
  EXPECT_EQ(second->tagged(), (ddp::TaggedHeader{true, 0x40, Stag{0x700}, 0xFFFF'0000'0000 + 104}));
  EXPECT_EQ(first->payload() | second->payload(), content(10, 50) | content(100, 80));
  EXPECT_FALSE(next());
  EXPECT_EQ(tx_.counters().write_bytes, 130U);
}

TEST_F(TransmitterTest, ReadRequest) {
  COVERS("RFC5040-4.4-1");
  COVERS("RFC5040-4.4-7");
  COVERS("RFC5040-3.2-8");
  COVERS("RFC5040-5.2.1-7");
  COVERS("RFC5040-4-2");
  COVERS("RFC5040-5.2.1-9");
  SendWr w = wr(1, SendOp::kRead, sge(40, 60));
  w.remote_stag = Stag{0x800};
  w.remote_to = 77;
  post(w);
  const auto s = next();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->untagged(), (ddp::UntaggedHeader{true, 0x41, 0, 1, Msn{1}, 0}));
  EXPECT_EQ(*ReadRequest::parse(s->payload()), (ReadRequest{stag_, kBase + 40, 60, Stag{0x800}, 77}));
  EXPECT_FALSE(sends_.poll()) << "it waits for its Response";
  EXPECT_EQ(sends_.outstanding_reads(), 1U);
}

TEST_F(TransmitterTest, ReadRequestForEachPieceOfTheSink) {
  COVERS("RFC5040-5.2.1-7");
  COVERS("RFC5040-5.2.1-9");
  SendWr w = wr(1, SendOp::kRead, sge(40, 60));
  ASSERT_TRUE(w.sges.add(sge(7, 0)) && w.sges.add(sge(300, 5)));
  w.remote_stag = Stag{0x800};
  w.remote_to = 77;
  post(w);
  const auto first = next();
  ASSERT_TRUE(first);
  EXPECT_FALSE(tx_.mid_message());
  EXPECT_EQ(*ReadRequest::parse(first->payload()), (ReadRequest{stag_, kBase + 40, 60, Stag{0x800}, 77}));
  const auto second = next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->untagged(), (ddp::UntaggedHeader{true, 0x41, 0, 1, Msn{2}, 0}));
  EXPECT_EQ(*ReadRequest::parse(second->payload()), (ReadRequest{stag_, kBase + 300, 5, Stag{0x800}, 137}));
  EXPECT_FALSE(next());
  EXPECT_EQ(sends_.outstanding_reads(), 2U);
  EXPECT_EQ(tx_.counters().reads, 2U);
}

// Both ends may be waiting for Responses before they can go on: these must not wait for the rest of a list.
TEST_F(TransmitterTest, ResponsesLeaveBetweenTheRequestsOfARead) {
  SendWr w = wr(1, SendOp::kRead, sge(0, 1));
  ASSERT_TRUE(w.sges.add(sge(1, 1)));
  post(w);
  ASSERT_TRUE(next(1));
  request({Stag{9}, 0, 50, stag_, kBase});
  EXPECT_TRUE(next(1)->read_response);
  EXPECT_FALSE(next(1));
}

TEST_F(TransmitterTest, SecondPieceOfAReadIsNotRegistered) {
  SendWr w = wr(1, SendOp::kRead, sge(0, 1));
  ASSERT_TRUE(w.sges.add({memory_.data(), 1, Stag{0xBAD}}));
  post(w);
  EXPECT_TRUE(next());
  EXPECT_FALSE(next());
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code, Errc::kLocalProtection);
  EXPECT_EQ(sends_.poll()->status, Errc::kLocalProtection);
  EXPECT_EQ(sends_.outstanding_reads(), 0U);
}

TEST_F(TransmitterTest, LocalInvalidateSendsNothingAndComesInItsTurn) {
  Bytes other(10);
  const Stag gone = add(other), also_gone = add(other);
  post(wr(1, SendOp::kSend, Sge{other.data(), 10, gone}));
  for (const Stag stag : {gone, also_gone}) {
    SendWr w = wr(2, SendOp::kLocalInvalidate, {});
    w.local_stag = stag;
    post(w);
  }
  post(wr(3, SendOp::kSend, sge(0, 1)));
  EXPECT_EQ(next()->payload(), other) << "the Send before it was cut while the STag was valid";
  EXPECT_TRUE(stags_.valid(gone));
  EXPECT_EQ(next()->payload(), content(0, 1));
  EXPECT_FALSE(stags_.valid(gone));
  EXPECT_FALSE(stags_.valid(also_gone));
  for (const std::uint64_t id : {1, 2, 2, 3}) EXPECT_EQ(sends_.poll()->wr_id, id);
}

TEST_F(TransmitterTest, LocalInvalidateAloneIsDone) {
  SendWr w = wr(1, SendOp::kLocalInvalidate, {});
  w.local_stag = stag_;
  post(w);
  EXPECT_FALSE(next());
  EXPECT_FALSE(error_);
  EXPECT_FALSE(stags_.valid(stag_));
  EXPECT_TRUE(sends_.poll()->invalidated);
  EXPECT_FALSE(tx_.ready(8));
}

TEST_F(TransmitterTest, LocalInvalidateOfAnStagThatIsNotItsOwn) {
  Bytes other(10);
  const Stag foreign = add(other, kAll, PdId{2});
  SendWr w = wr(1, SendOp::kLocalInvalidate, {});
  w.local_stag = foreign;
  post(w);
  EXPECT_FALSE(next());
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code, Errc::kLocalProtection);
  EXPECT_TRUE(stags_.valid(foreign));
  const auto c = sends_.poll();
  EXPECT_EQ(c->status, Errc::kLocalProtection);
  EXPECT_FALSE(c->invalidated);
}

TEST_F(TransmitterTest, ReadWithLocalInvalidateIsAReadOnTheWire) {
  SendWr w = wr(1, SendOp::kReadInvalidate, sge(40, 60));
  w.remote_stag = Stag{0x800};
  w.remote_to = 77;
  post(w);
  const auto s = next();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->untagged(), (ddp::UntaggedHeader{true, 0x41, 0, 1, Msn{1}, 0}));
  EXPECT_EQ(*ReadRequest::parse(s->payload()), (ReadRequest{stag_, kBase + 40, 60, Stag{0x800}, 77}));
  EXPECT_EQ(sends_.outstanding_reads(), 1U);
  EXPECT_TRUE(stags_.valid(stag_));
}

// What is to be revoked must be this queue pair's, though nothing is read into it.
TEST_F(TransmitterTest, EmptyReadWithLocalInvalidateNeedsItsStag) {
  Bytes other(10);
  post(wr(1, SendOp::kReadInvalidate, Sge{other.data(), 0, add(other, kAll, PdId{2})}));
  EXPECT_FALSE(next());
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code, Errc::kLocalProtection);
}

TEST_F(TransmitterTest, ZeroLengthReadNamesNoMemoryAndNoStagZero) {
  COVERS("RFC5040-5.2.1-13");
  post(wr(1, SendOp::kRead, {}));
  const auto r = ReadRequest::parse(next()->payload());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->size, 0U);
  EXPECT_NE(raw(r->sink_stag), 0U);
}

TEST_F(TransmitterTest, OrdHoldsReadsBack) {
  COVERS("RFC5040-6.1-9");
  for (std::uint64_t i = 1; i <= 3; ++i) post(wr(i, SendOp::kRead, sge(0, 1)));
  EXPECT_TRUE(next(2));
  EXPECT_TRUE(next(2));
  EXPECT_FALSE(next(2));
  sends_.read_done();
  EXPECT_TRUE(next(2));
}

TEST_F(TransmitterTest, MessagesAreNotInterleaved) {
  COVERS("RFC5041-5.3-2");
  post(wr(1, SendOp::kSend, sge(0, 250)));
  post(wr(2, SendOp::kSend, sge(0, 250)));
  EXPECT_EQ(next()->untagged().mo, 0U);
  request({Stag{9}, 0, 150, stag_, kBase});
  EXPECT_EQ(next()->untagged().mo, 100U);
  EXPECT_EQ(next()->untagged().mo, 200U);
  // Now the Response, which may not be starved by the send queue, nor starve it.
  EXPECT_EQ(next()->tagged().to, 0U);
  EXPECT_EQ(next()->tagged().to, 104U);
  EXPECT_EQ(next()->untagged().msn, Msn{2});
}

TEST_F(TransmitterTest, ResponsesAndRequestsTakeTurns) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    post(wr(i, SendOp::kSend, sge(0, 1)));
    request({Stag{9}, i, 1, stag_, kBase}, i + 1);
  }
  std::string order;
  while (const auto s = next()) order += std::holds_alternative<ddp::TaggedHeader>(s->header()) ? 'R' : 'S';
  EXPECT_EQ(order, "RSRSRS");
}

TEST_F(TransmitterTest, RtrLeavesFirst) {
  COVERS("RFC6581-9.2-6");
  COVERS("RFC5041-5.2-15");
  post(wr(1, SendOp::kSend, {}));
  tx_.queue_rtr(Rtr::kWrite);
  const auto rtr = next();
  ASSERT_TRUE(rtr);
  EXPECT_EQ(rtr->tagged().rsvd_ulp, 0x40);
  EXPECT_NE(raw(rtr->tagged().stag), 0U) << "some hardware refuses STag 0 even without octets";
  EXPECT_TRUE(rtr->payload().empty());
  EXPECT_EQ(next()->untagged().msn, Msn{1});
}

TEST_F(TransmitterTest, RtrLeavesThoughNothingIsPosted) {
  for (const Rtr rtr : {Rtr::kSend, Rtr::kWrite, Rtr::kRead}) {
    tx_.queue_rtr(rtr);
    EXPECT_TRUE(next());
    EXPECT_FALSE(next());
  }
}

TEST_F(TransmitterTest, RtrByReadTakesTheFirstMsn) {
  COVERS("RFC6581-9.2-6");
  post(wr(1, SendOp::kRead, sge(0, 1)));
  tx_.queue_rtr(Rtr::kRead);
  const auto rtr = next();
  ASSERT_TRUE(rtr);
  EXPECT_EQ(rtr->untagged(), (ddp::UntaggedHeader{true, 0x41, 0, 1, Msn{1}, 0}));
  const auto r = ReadRequest::parse(rtr->payload());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->size, 0U);
  EXPECT_NE(raw(r->sink_stag), 0U);
  EXPECT_EQ(next()->untagged().msn, Msn{2});
}

TEST_F(TransmitterTest, RtrBySendTakesTheFirstMsn) {
  COVERS("RFC6581-9.2-5");
  COVERS("RFC6581-9.2-7");
  post(wr(1, SendOp::kSend, {}));
  tx_.queue_rtr(Rtr::kSend);
  const auto rtr = next();
  ASSERT_TRUE(rtr);
  EXPECT_EQ(rtr->untagged(), (ddp::UntaggedHeader{true, 0x43, 0, 0, Msn{1}, 0}));
  EXPECT_TRUE(rtr->payload().empty());
  EXPECT_EQ(tx_.counters().sends, 0U) << "no message of the application";
  EXPECT_EQ(next()->untagged().msn, Msn{2});
  EXPECT_EQ(tx_.counters().sends, 1U);
}

TEST_F(TransmitterTest, TerminateIsTheNextAndTheLast) {
  COVERS("RFC5040-5.4-1");
  COVERS("RFC5040-5.4-3");
  COVERS("RFC5040-5.4-10");
  COVERS("RFC5040-7.1-6");
  COVERS("RFC5040-A.6-1");
  COVERS("RFC5040-4.8-1");
  post(wr(1, SendOp::kSend, sge(0, 250)));
  request({Stag{9}, 0, 150, stag_, kBase});
  (void)next();
  TerminateMessage first, second;
  first.code = {2, 0, 2};
  second.code = {1, 1, 1};
  tx_.queue_terminate(first);
  tx_.queue_terminate(second);
  const auto s = next();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->untagged(), (ddp::UntaggedHeader{true, 0x47, 0, 2, Msn{1}, 0}));
  EXPECT_EQ(s->payload(), hex("20020000"));
  EXPECT_EQ(s->done.what, Transmitter::Done::What::kTerminate);
  EXPECT_FALSE(next());
  EXPECT_FALSE(tx_.ready(8));
}

TEST_F(TransmitterTest, LongestTerminateFitsTheSmallestMulpdu) {
  mulpdu_ = mpa::kMinMulpduBytes;
  tx_.queue_terminate(make_terminate(make_error(Errc::kReadBounds), test::read_request_segment({}), 46, true));
  EXPECT_EQ(next()->ulpdu.size(), 18U + 52U);
}

TEST_F(TransmitterTest, MemoryOfARequestThatIsNotRegistered) {
  COVERS("RFC5040-7.1-3");
  COVERS("RFC5040-4.8-38");
  for (const SendOp op : {SendOp::kSend, SendOp::kWrite, SendOp::kRead}) {
    error_.reset();
    post(wr(1, op, Sge{memory_.data(), 10, Stag{0x12345678}}));
    EXPECT_FALSE(next());
    ASSERT_TRUE(error_);
    EXPECT_EQ(error_->code, Errc::kLocalProtection);
    EXPECT_EQ(tx_.error_terminate().code, (TerminateCode{0, 0, 0}));
    EXPECT_EQ(tx_.error_terminate().size(), 4U);
    EXPECT_EQ(sends_.poll()->status, Errc::kLocalProtection);
    EXPECT_EQ(sends_.outstanding_reads(), 0U);
  }
}

TEST_F(TransmitterTest, MemoryRevokedInTheMiddle) {
  post(wr(1, SendOp::kSend, sge(0, 250)));
  EXPECT_TRUE(next());
  EXPECT_TRUE(stags_.invalidate(stag_));
  EXPECT_FALSE(next());
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code, Errc::kLocalProtection);
  EXPECT_FALSE(tx_.mid_message());
}

TEST_F(TransmitterTest, SecondPieceOfALongSendIsNotRegistered) {
  mulpdu_ = 1000;
  SgeList pieces = sge(0, 300);
  ASSERT_TRUE(pieces.add({memory_.data(), 10, Stag{0x12345678}}));
  post(wr(1, SendOp::kSend, pieces));
  EXPECT_FALSE(next());  // which sees that no pin was given
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code, Errc::kLocalProtection);
  EXPECT_TRUE(stags_.quiescent(stag_));
}

TEST_F(TransmitterTest, MemoryRevokedInTheMidstOfABatchOfCopies) {
  Transmitter::Segment s;
  std::vector<ddp::Pin> pins;
  for (std::uint64_t i = 0; i < 2; ++i) post(wr(i, SendOp::kSend, sge(0, 8)));
  ASSERT_TRUE(*tx_.next(mulpdu_, 8, s, pins));
  EXPECT_TRUE(stags_.invalidate(stag_));
  const auto refused = tx_.next(mulpdu_, 8, s, pins);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kLocalProtection);
  EXPECT_EQ(tx_.error_terminate().code, (TerminateCode{0, 0, 0}));
  EXPECT_TRUE(stags_.quiescent(stag_));
}

TEST_F(TransmitterTest, ReadSinkNeedsLocalWrite) {
  Bytes other(10);
  const Stag s = add(other, ddp::Access::kLocalRead);
  post(wr(1, SendOp::kRead, Sge{other.data(), 10, s}));
  EXPECT_FALSE(next());
  ASSERT_TRUE(error_);
}

}  // namespace
}  // namespace iwarp::rdmap
