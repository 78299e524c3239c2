// Captures of DDP over SCTP.
#include <gmock/gmock.h>

#include "iwarp/trace/capture.h"
#include "iwarp/trace/summary.h"
#include "tests/support/covers.h"
#include "tests/trace/lines.h"
#include "tests/trace/sctp_packets.h"

namespace iwarp::trace {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::send_segment;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kTx = Direction::kTx;
constexpr auto kRx = Direction::kRx;

class TraceSctp : public ::testing::Test {
 protected:
  void give(Direction d, const SctpBytes& chunks) {
    const Packet p = maker_.make(d, chunks);
    capture_.packet(milliseconds(++ms_), LinkType::kEthernet, p, p.size());
  }
  void data(Direction d, std::uint32_t tsn, std::uint16_t stream, std::uint32_t ppid, const Bytes& message) {
    give(d, SctpBytes().data(tsn, stream, ppid, message));
  }
  void establish() {
    give(kTx, SctpBytes().init(1, 100, 1));
    give(kRx, SctpBytes().init(2, 200, 1));
  }
  // And a session on a stream, after `tsn` messages each way.
  void begin(std::uint16_t stream = 0, std::uint32_t tsn = 0) {
    data(kTx, 100 + tsn, stream, 17, control(0, "0001 0102"));
    data(kRx, 200 + tsn, stream, 17, control(0, "0002"));
  }
  // Everything but the times.
  std::vector<std::string> lines() {
    std::vector<std::string> out;
    for (const std::string& l : lines_of(capture_.take())) out.push_back(l.substr(l.find(' ') + 1));
    return out;
  }
  std::vector<std::string> finish() {
    capture_.finish(milliseconds(++ms_));
    return lines();
  }

  Capture capture_{{}};
  SctpPacketMaker maker_{kClient4, kServer4, 40000};
  int ms_ = -1;
};

TEST_F(TraceSctp, OneSessionOverUdp) {
  establish();
  data(kTx, 100, 0, 17, control(0, "0005 8020c010 0102"));
  data(kRx, 200, 0, 17, control(0, "0006 8010 4020"));
  data(kTx, 101, 0, 16, numbered(1, send_segment(test::pattern(8))));
  data(kRx, 201, 0, 16, numbered(1, test::write_segment(Stag{5}, 0x1000, test::pattern(20))));
  data(kTx, 102, 0, 17, control(2, "0004"));
  data(kRx, 202, 0, 17, control(2, "0004"));
  give(kTx, SctpBytes().chunk(7, 0, test::hex("00000000")));
  give(kTx, SctpBytes().chunk(14, 0, {}));
  EXPECT_THAT(
      lines(),
      ElementsAre("1 tx sctp Open(frame=1, client=10.0.0.1:4000, server=10.0.0.2:7174, udp=40000:9899, init=1)",
                  "1 tx sctp Init(frame=1, outbound=8, inbound=8, indication=0x1)",
                  "1 rx sctp InitAck(frame=2, outbound=8, inbound=8, indication=0x1)",
                  "1/0 tx sctp Open(frame=3, client=10.0.0.1:4000, server=10.0.0.2:7174, udp=40000:9899)",
                  "1/0 tx sctp EnhancedInitiate(frame=3, ssn=0, p2p=1, rtr_send=0, rtr_write=1, rtr_read=1, ird=32, "
                  "ord=16, pd=2, private_data=0102)",
                  "1/0 rx sctp EnhancedAccept(frame=4, ssn=0, p2p=1, rtr_send=0, rtr_write=0, rtr_read=1, ird=16, "
                  "ord=32, pd=0)",
                  "1/0 tx rdmap Send(frame=5, msn=1, length=8, segments=1)",
                  "1/0 rx rdmap Write(frame=6, stag=0x5, to=0x1000, length=20, segments=1)",
                  "1/0 tx sctp Terminate(frame=7, ssn=2, pd=0)", "1/0 rx sctp Terminate(frame=8, ssn=2, pd=0)",
                  "1 tx sctp Shutdown(frame=9)", "1 tx sctp ShutdownComplete(frame=10)",
                  "1/0 tx sctp Total(bytes=26, fpdus=1, messages=1, undecoded=0, lost=0, bad_crc=0, malformed=0)",
                  "1/0 rx sctp Total(bytes=34, fpdus=1, messages=1, undecoded=0, lost=0, bad_crc=0, malformed=0)"));
  EXPECT_THAT(finish(), IsEmpty());
  EXPECT_EQ(capture_.counts().connections, 1U);
  EXPECT_TRUE(capture_.counts().totals.all_decoded());
}

TEST_F(TraceSctp, PlainSctpOverEitherIp) {
  for (const bool v6 : {false, true}) {
    capture_ = Capture({});
    maker_ = v6 ? SctpPacketMaker(kClient6, kServer6, 0) : SctpPacketMaker(kClient4, kServer4, 0);
    establish();
    begin();
    const auto all = lines();
    EXPECT_EQ(all.front().find("udp="), std::string::npos);
    EXPECT_THAT(all, Contains(HasSubstr("1/0 tx sctp Initiate(frame=3, ssn=0, pd=2, private_data=0102)")));
    EXPECT_THAT(all, Contains(HasSubstr("1/0 rx sctp Accept(frame=4, ssn=0, pd=0)")));
  }
}

TEST_F(TraceSctp, SeveralChunksOfSeveralStreamsInAPacket) {
  establish();
  give(kTx, SctpBytes()
                .data(100, 0, 17, control(0, "0001"))
                .chunk(3, 0, test::hex("000000c7 00010000 00000000"))
                .data(101, 2, 17, control(0, "0001 aabbcc")));
  const auto all = lines();
  EXPECT_THAT(all, Contains(HasSubstr("1/0 tx sctp Initiate(frame=3, ssn=0, pd=0)")));
  EXPECT_THAT(all, Contains(HasSubstr("1/2 tx sctp Initiate(frame=3, ssn=0, pd=3, private_data=aabbcc)")));
}

TEST_F(TraceSctp, MessagesThatOvertakeEachOtherAreShownInTheOrderOfTheSession) {
  establish();
  begin();
  (void)lines();
  data(kTx, 103, 0, 16, numbered(3, send_segment({}, {.msn = 3})));
  data(kTx, 104, 0, 17, control(4, "0004"));
  data(kTx, 102, 0, 16, numbered(2, send_segment({}, {.msn = 2})));
  EXPECT_THAT(lines(), IsEmpty());
  data(kTx, 101, 0, 16, numbered(1, send_segment({}, {.msn = 1})));
  data(kTx, 101, 0, 16, numbered(1, send_segment({}, {.msn = 1})));  // retransmitted
  EXPECT_THAT(lines(), ElementsAre("1/0 tx rdmap Send(frame=8, msn=1, length=0, segments=1)",
                                   "1/0 tx rdmap Send(frame=8, msn=2, length=0, segments=1)",
                                   "1/0 tx rdmap Send(frame=8, msn=3, length=0, segments=1)",
                                   "1/0 tx sctp Terminate(frame=8, ssn=4, pd=0)"));
}

TEST_F(TraceSctp, FragmentsInAnyOrderMakeOneMessage) {
  COVERS("RFC5043-9-5");
  establish();
  begin();
  (void)lines();
  const Bytes whole = numbered(1, send_segment(test::pattern(100)));
  const auto part = [&](std::uint32_t tsn, std::size_t at, std::size_t n, std::uint8_t flags) {
    return SctpBytes().data(tsn, 0, 16, ConstBytes(whole).subspan(at, n), flags);
  };
  give(kTx, part(103, 80, whole.size() - 80, kLastPart));
  give(kTx, part(101, 0, 50, kFirstPart));
  EXPECT_THAT(lines(), IsEmpty());
  give(kTx, part(102, 50, 30, kMiddlePart));
  EXPECT_THAT(lines(), ElementsAre("1/0 tx rdmap Send(frame=7, msn=1, length=100, segments=1)"));
}

TEST_F(TraceSctp, FragmentsWithoutTheRestAreUndecoded) {
  establish();
  begin();
  give(kTx, SctpBytes().data(101, 0, 16, test::pattern(50), kFirstPart));
  (void)lines();
  EXPECT_THAT(finish(), Contains(HasSubstr("1 tx sctp Undecoded(bytes=50, why=\"fragments of messages")));
  EXPECT_EQ(capture_.counts().totals.undecoded, 50U);
  EXPECT_FALSE(capture_.counts().totals.all_decoded());
}

TEST_F(TraceSctp, WhatTheCaptureLost) {
  establish();
  begin();
  (void)lines();
  data(kTx, 103, 0, 16, numbered(3, send_segment({}, {.msn = 3})));
  EXPECT_THAT(lines(), IsEmpty());
  const auto all = finish();
  EXPECT_THAT(all, Contains(HasSubstr("1/0 tx sctp Lost(messages=2)")));
  EXPECT_THAT(all, Contains(HasSubstr("1/0 tx rdmap Send(msn=3, ")));
}

TEST_F(TraceSctp, SessionsOneBehindTheOther) {
  establish();
  begin();
  data(kTx, 102, 0, 16, numbered(2, send_segment({}, {.msn = 2})));  // one is missing
  (void)lines();
  begin(0, 10);
  data(kTx, 111, 0, 16, numbered(1, send_segment({}, {.msn = 1})));
  EXPECT_THAT(lines(), ElementsAre("1/0 tx sctp Lost(frame=6, messages=1)",
                                   "1/0 tx rdmap Send(frame=6, msn=2, length=0, segments=1)",
                                   "1/0 tx sctp Initiate(frame=6, ssn=0, pd=2, private_data=0102)",
                                   "1/0 rx sctp Accept(frame=7, ssn=0, pd=0)",
                                   "1/0 tx rdmap Send(frame=8, msn=1, length=0, segments=1)"));
}

TEST_F(TraceSctp, BeganTooLate) {
  data(kRx, 207, 4, 16, numbered(9, send_segment({}, {.msn = 4})));
  data(kTx, 107, 4, 16, numbered(3, send_segment({}, {.msn = 1})));
  const auto all = lines();
  EXPECT_THAT(all[0], HasSubstr("1 tx sctp Open(frame=1, client=10.0.0.2:7174, server=10.0.0.1:4000"));
  EXPECT_THAT(all[0], HasSubstr("init=0"));
  EXPECT_THAT(all, Contains(HasSubstr("1/4 tx rdmap Send(frame=1, msn=4, ")));
  EXPECT_THAT(all, Contains(HasSubstr("1/4 rx rdmap Send(frame=2, msn=1, ")));
}

TEST_F(TraceSctp, OtherAssociationsAreLeftAlone) {
  COVERS("RFC5043-11.1-3");
  give(kTx, SctpBytes().init(1, 100, std::nullopt));
  data(kTx, 100, 0, 17, control(0, "0001"));
  EXPECT_THAT(finish(),
              ElementsAre(HasSubstr("1 tx sctp Open("), HasSubstr("1 tx sctp Init("), "1 tx sctp NotDdp(frame=1)"));
  EXPECT_EQ(capture_.counts().connections, 0U);
  maker_ = SctpPacketMaker(kClient6, kServer6, 0);
  data(kTx, 1, 0, 46, test::hex("00000000"));  // Diameter
  EXPECT_THAT(finish(), Contains(HasSubstr("2 tx sctp NotDdp(frame=3)")));
}

TEST_F(TraceSctp, WhatMakesNoSense) {
  establish();
  begin();
  (void)lines();
  data(kTx, 101, 0, 17, control(1, "0008"));
  data(kTx, 102, 0, 99, control(2, "00000000"));
  data(kTx, 103, 0, 16, numbered(3, test::hex("4143")));
  data(kTx, 104, 0, 16, numbered(3, test::hex("4143")));
  data(kTx, 105, 0, 16, test::hex("00"));
  give(kTx, SctpBytes().data(106, 0, 16, numbered(4, send_segment({})), kWholeOrdered));
  const auto all = lines();
  EXPECT_THAT(all, Contains(HasSubstr("1/0 tx sctp Segment(frame=10, ssn=4, chunks=1, ordered=1, length=18)")));
  EXPECT_THAT(all, Contains(HasSubstr("1/0 tx sctp Undecoded(frame=10, bytes=17, why=")));
  (void)finish();
  EXPECT_EQ(capture_.counts().totals.undecoded, 17U);
}

TEST_F(TraceSctp, RejectedAndAborted) {
  establish();
  data(kTx, 100, 0, 17, control(0, "0001"));
  data(kRx, 200, 0, 17, control(0, "0003"));
  data(kTx, 101, 2, 17, control(0, "0001"));
  give(kRx, SctpBytes().chunk(6, 0, {}));
  Summary summary;
  std::vector<std::string> errors;
  for (const Record& r : capture_.take()) {
    summary.see(r);
    summary.add(r);
    if (r.error) errors.push_back(r.connection + " " + std::string(r.pdu.name()));
  }
  EXPECT_THAT(errors, ElementsAre("1/0 Reject", "1/0 Abort", "1/2 Abort", "1 Abort"));
  ASSERT_EQ(summary.connections().size(), 2U) << "sessions, not the association";
  EXPECT_EQ(summary.connections().front().second.end, "rejected");
  EXPECT_EQ(summary.connections().back().second.end, "reset");
  EXPECT_EQ(summary.connections().back().second.client, "10.0.0.1:4000");
  EXPECT_TRUE(summary.connections().back().second.over);
}

TEST_F(TraceSctp, AnAssociationBetweenTheSameEndsIsAnotherOne) {
  establish();
  give(kTx, SctpBytes().init(1, 100, 1));  // retransmitted
  begin();
  give(kRx, SctpBytes().init(1, 200, 1));  // the other way round
  data(kRx, 200, 1, 17, control(0, "0001"));
  const auto all = lines();
  EXPECT_THAT(all, Contains(HasSubstr("2/1 tx sctp Initiate(frame=7")));
  (void)finish();
  EXPECT_EQ(capture_.counts().connections, 2U);
}

TEST_F(TraceSctp, OnlyOnePortOrNumber) {
  for (const unsigned port : {4000U, 7174U, 40000U, 9899U}) {
    CaptureOptions o;
    o.port = static_cast<std::uint16_t>(port);
    capture_ = Capture(o);
    establish();
    EXPECT_EQ(lines().size(), 3U) << port;
  }
  CaptureOptions o;
  o.port = 7175;
  capture_ = Capture(o);
  establish();
  EXPECT_THAT(lines(), IsEmpty());
  o = {};
  o.stream = 2;
  capture_ = Capture(o);
  establish();
  maker_ = SctpPacketMaker(kClient4, kServer4, 40001);
  establish();
  for (const std::string& l : lines()) EXPECT_THAT(l, HasSubstr("2 "));
}

TEST_F(TraceSctp, VerboseShowsChunksAndSegments) {
  CaptureOptions o;
  o.verbose = true;
  capture_ = Capture(o);
  establish();
  begin();
  (void)lines();
  data(kTx, 101, 0, 16, numbered(1, send_segment(test::pattern(4))));
  EXPECT_THAT(lines(), ElementsAre("1 tx sctp Data(frame=5, tsn=101, stream=0, ppid=16, flags=UBE, length=24)",
                                   "1/0 tx sctp Segment(frame=5, ssn=1, chunks=1, length=22)",
                                   "1/0 tx ddp Untagged(frame=5, last=1, qn=0, msn=1, mo=0, length=4)",
                                   "1/0 tx rdmap Send(frame=5, msn=1, length=4, segments=1)"));
}

TEST_F(TraceSctp, ShortSnapLength) {
  establish();
  begin();
  (void)lines();
  const Packet p = maker_.make(kTx, SctpBytes().data(101, 0, 16, numbered(1, send_segment(test::pattern(500)))));
  capture_.packet(milliseconds(++ms_), LinkType::kEthernet, ConstBytes(p).first(110), p.size());
  EXPECT_THAT(lines(), ElementsAre("1/0 tx rdmap Send(frame=5, msn=1, length=500, segments=1)"));
  (void)finish();
  EXPECT_GT(capture_.counts().totals.lost, 400U);
  EXPECT_EQ(capture_.counts().totals.undecoded, 0U);
}

// Cut anywhere, and with any octet changed: lines, and no more.
TEST_F(TraceSctp, TakesPacketsOfAnyKind) {
  const Packet good[] = {
      maker_.make(kTx, SctpBytes().init(1, 100, 1)), maker_.make(kRx, SctpBytes().init(2, 200, 1)),
      maker_.make(kTx,
                  SctpBytes().data(100, 0, 17, control(0, "0005 8020c010 0102")).data(101, 2, 17, control(0, "0001"))),
      maker_.make(kTx, SctpBytes().data(102, 0, 16, numbered(1, send_segment(test::pattern(9)))))};
  for (const Packet& p : good) {
    for (std::size_t n = 0; n < p.size(); ++n) {
      capture_.packet(milliseconds(++ms_), LinkType::kEthernet, ConstBytes(p).first(n), p.size());
      Packet bad = p;
      bad[n] ^= static_cast<std::byte>(1 << n % 8);
      capture_.packet(milliseconds(++ms_), LinkType::kEthernet, bad, bad.size());
    }
  }
  EXPECT_THAT(finish(), Not(IsEmpty()));
}

TEST_F(TraceSctp, FollowsABoundedNumberOfAssociations) {
  for (std::size_t n = 0; n <= SctpCapture::kMaxAssociations; ++n) {
    maker_ = SctpPacketMaker(kClient4, kServer4, static_cast<std::uint16_t>(1000 + n));
    establish();
    begin();
  }
  EXPECT_EQ(capture_.counts().given_up, 1U);
  EXPECT_EQ(capture_.counts().connections, 1U);
  (void)finish();
  EXPECT_EQ(capture_.counts().connections, SctpCapture::kMaxAssociations + 1);
}

}  // namespace
}  // namespace iwarp::trace
