// RDMA Read Responses: what is served, and what the requester is told when it cannot be.
#include "tests/rdmap/transmitter_fixture.h"

namespace iwarp::rdmap {
namespace {

TEST_F(TransmitterTest, ResponseInSegments) {
  COVERS("RFC5040-4.4-3");
  COVERS("RFC5040-4.4-4");
  COVERS("RFC5040-4.5-1");
  COVERS("RFC5040-5.2.1-12");
  COVERS("RFC5040-5.2.2-6");
  COVERS("RFC5040-1.2-5");
  COVERS("RFC5040-A.3-1");
  COVERS("RFC5040-4.4-6");
  request({Stag{0xDEAD0001}, 0xFFFF'FFFF'FFFF'FFF0, 150, stag_, kBase + 10});
  const auto first = next(), second = next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->tagged(), (ddp::TaggedHeader{false, 0x42, Stag{0xDEAD0001}, 0xFFFF'FFFF'FFFF'FFF0}));
  // The sink's wrap is the sink's to find.
  EXPECT_EQ(second->tagged(), (ddp::TaggedHeader{true, 0x42, Stag{0xDEAD0001}, 0xFFFF'FFFF'FFFF'FFF0 + 104}));
  EXPECT_EQ(first->payload() | second->payload(), content(10, 150));
  EXPECT_TRUE(first->read_response && second->read_response);
  EXPECT_TRUE(first->may_change && second->may_change);
  EXPECT_FALSE(next());
  EXPECT_EQ(tx_.counters().read_response_bytes, 150U);
}

TEST_F(TransmitterTest, ResponseFromAStableSource) {
  request({Stag{5}, 0, 150, add(memory_, kAll | ddp::Access::kStableSource), kBase});
  for (int i = 0; i < 2; ++i) {
    const auto s = next();
    ASSERT_TRUE(s);
    EXPECT_TRUE(s->read_response) << "may be revoked all the same";
    EXPECT_FALSE(s->may_change);
  }
}

TEST_F(TransmitterTest, NothingOfAResponseIsLeftInTheSegmentBehindIt) {
  Transmitter::Segment s;
  std::vector<ddp::Pin> pins;
  request({Stag{5}, 6, 50, stag_, kBase});
  post(wr(1, SendOp::kSend, sge(0, 8)));
  ASSERT_TRUE(*tx_.next(mulpdu_, 8, s, pins));
  ASSERT_TRUE(s.read_response && s.may_change);
  ASSERT_TRUE(*tx_.next(mulpdu_, 8, s, pins));
  EXPECT_FALSE(s.read_response);
  EXPECT_FALSE(s.may_change);
}

TEST_F(TransmitterTest, AResponseThatHasLeftMakesRoomForAnotherRequest) {
  for (std::uint32_t i = 1; i <= 8; ++i) request({Stag{i}, 0, i, stag_, kBase}, i);
  EXPECT_TRUE(reads_.full());
  EXPECT_TRUE(next());
  EXPECT_FALSE(reads_.full());
}

TEST_F(TransmitterTest, ResponsesComeInRequestOrder) {
  COVERS("RFC5040-5.2.1-8");
  COVERS("RFC5040-5.2.2-7");
  COVERS("RFC5040-5.5-27");
  COVERS("RFC5040-B-9");
  for (std::uint32_t i = 1; i <= 4; ++i) request({Stag{i}, 0, i, stag_, kBase}, i);
  for (std::uint32_t i = 1; i <= 4; ++i) {
    const auto s = next();
    ASSERT_TRUE(s);
    EXPECT_EQ(s->tagged().stag, Stag{i});
    EXPECT_EQ(s->payload().size(), i);
  }
}

TEST_F(TransmitterTest, ZeroLengthReadIsAnsweredUnchecked) {
  COVERS("RFC5040-5.2.1-16");
  COVERS("RFC5040-5.2.1-17");
  COVERS("RFC5040-5.2.1-13");
  COVERS("RFC5042-6.3.5-2");
  request({Stag{5}, 6, 0, Stag{0xBADBAD00}, 0xFFFF'FFFF'FFFF'FFFF});
  const auto s = next();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->tagged(), (ddp::TaggedHeader{true, 0x42, Stag{5}, 6}));
  EXPECT_TRUE(s->payload().empty());
}

TEST_F(TransmitterTest, RequestCountsAgainstIrdUntilItsResponseIsSent) {
  COVERS("RFC5040-6.1-5");
  InboundReads one(1);
  EXPECT_FALSE(one.full());
  one.push({});
  EXPECT_TRUE(one.full());
  (void)one.start();
  EXPECT_TRUE(one.full());
  one.response_sent();
  EXPECT_FALSE(one.full());
  one.clear();
  one.response_sent();  // of a Response whose last octets left after the end
  EXPECT_FALSE(one.full());
  EXPECT_TRUE(InboundReads(0).full());
}

class ReadError : public TransmitterTest {
 protected:
  void expect_refused(const ReadRequest& r, TerminateCode code) {
    error_.reset();
    request(r, 7);
    EXPECT_FALSE(next());
    ASSERT_TRUE(error_);
    EXPECT_EQ(error_->tell_peer, code) << error_->why;
    const TerminateMessage& m = tx_.error_terminate();
    EXPECT_EQ(m.code, code);
    EXPECT_EQ(m.segment_length, 46);
    const Bytes asked = test::read_request_segment(r, 7);
    ASSERT_EQ(m.ddp_header_bytes, 18);
    EXPECT_TRUE(std::equal(asked.begin(), asked.begin() + 18, m.ddp_header.begin()));
    ASSERT_TRUE(m.has_rdmap_header);
    EXPECT_TRUE(std::equal(asked.begin() + 18, asked.end(), m.rdmap_header.begin()));
  }
};

TEST_F(ReadError, EachWithItsCodeAndTheRequestAsReceived) {
  COVERS("RFC5040-7.2-9");
  COVERS("RFC5040-7.2-10");
  COVERS("RFC5040-7.2-11");
  COVERS("RFC5040-7.2-12");
  COVERS("RFC5040-7.2-13");
  COVERS("RFC5040-5.2.1-14");
  COVERS("RFC5040-5.2.1-15");
  COVERS("RFC5040-5.2.1-10");
  COVERS("RFC5040-4.8-35");
  COVERS("RFC5040-7.1-5");
  COVERS("RFC5040-4.8-39");
  Bytes other(100);
  const Stag no_read = add(other, ddp::Access::kRemoteWrite);
  const Stag foreign = add(other, kAll, PdId{9});
  expect_refused({Stag{5}, 6, 7, Stag{0xBAD00}, kBase}, {0, 1, 0});
  expect_refused({Stag{5}, 6, 7, Stag{raw(stag_) ^ 0x80}, kBase}, {0, 1, 0});
  expect_refused({Stag{5}, 6, 7, foreign, kBase}, {0, 1, 3});
  expect_refused({Stag{5}, 6, 7, no_read, kBase}, {0, 1, 2});
  expect_refused({Stag{5}, 6, 7, stag_, kBase - 1}, {0, 1, 1});
  expect_refused({Stag{5}, 6, 501, stag_, kBase}, {0, 1, 1});
  expect_refused({Stag{5}, 6, 7, stag_, 0xFFFF'FFFF'FFFF'FFFF}, {0, 1, 4});
}

TEST_F(ReadError, LeavingTheBufferIsSeenBeforeTheFirstOctet) {
  COVERS("RFC5040-5.2.1-15");
  // The first segment alone would lie within.
  expect_refused({Stag{5}, 6, 450, stag_, kBase + 100}, {0, 1, 1});
}

TEST_F(ReadError, IsNotThatOfARequestBehindIt) {
  expect_refused({Stag{5}, 6, 7, stag_, kBase - 1}, {0, 1, 1});
  post(wr(1, SendOp::kSend, Sge{memory_.data(), 10, Stag{0x12345678}}));
  EXPECT_FALSE(next());
  EXPECT_EQ(tx_.error_terminate().code, (TerminateCode{0, 0, 0}));
  EXPECT_EQ(tx_.error_terminate().size(), 4U);
}

TEST_F(ReadError, PartlyServedQuotesWhatIsLeft) {
  COVERS("RFC5040-4.8-36");
  request({Stag{5}, 1000, 300, stag_, kBase + 20});
  ASSERT_TRUE(next());
  ASSERT_TRUE(next());
  EXPECT_TRUE(stags_.invalidate(stag_));
  EXPECT_FALSE(next());
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->tell_peer, (TerminateCode{0, 1, 0}));
  const TerminateMessage& m = tx_.error_terminate();
  ASSERT_TRUE(m.has_rdmap_header);
  EXPECT_EQ(*ReadRequest::parse(m.rdmap_header),
            (ReadRequest{Stag{5}, 1000 + 208, 300 - 208, stag_, kBase + 20 + 208}));
}

}  // namespace
}  // namespace iwarp::rdmap
