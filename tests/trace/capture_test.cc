#include "iwarp/trace/capture.h"

#include <gmock/gmock.h>

#include "iwarp/trace/packet_maker.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/segments.h"
#include "tests/trace/endpoints.h"
#include "tests/trace/lines.h"
#include "tests/trace/startup.h"

namespace iwarp::trace {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::fpdu;
using test::send_segment;
using test::operator|;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kTx = Direction::kTx;
constexpr auto kRx = Direction::kRx;

Bytes send(std::uint32_t msn, std::size_t bytes = 8) {
  return fpdu(send_segment(test::pattern(bytes), {.msn = msn}), true);
}

class TraceCapture : public ::testing::Test {
 protected:
  void give(const Packet& p) { capture_.packet(milliseconds(++ms_), LinkType::kEthernet, p, p.size()); }
  void give(const std::vector<Packet>& packets) {
    for (const Packet& p : packets) give(p);
  }
  void open(PacketMaker& m) {
    give(m.handshake(kTx));
    give(m.data(kTx, request(true)));
    give(m.data(kRx, reply(true)));
  }
  std::vector<std::string> lines() { return lines_of(capture_.take()); }
  std::vector<std::string> finish() {
    capture_.finish(milliseconds(++ms_));
    return lines();
  }
  // Everything but the times, for the lines that contain `word`.
  std::vector<std::string> about(const char* word) {
    std::vector<std::string> out;
    for (const std::string& l : finish()) {
      if (l.find(word) != std::string::npos) out.push_back(l.substr(l.find(' ') + 1));
    }
    return out;
  }

  Capture capture_{{}};
  PacketMaker maker_{kClient4, kServer4};
  int ms_ = -1;
};

TEST_F(TraceCapture, OneConnection) {
  open(maker_);
  give(maker_.data(kTx, send(1)));
  give(maker_.fin(kTx));
  give(maker_.fin(kRx));
  EXPECT_THAT(
      lines(),
      ElementsAre("0.000 1 tx tcp Open(frame=1, client=10.0.0.1:4000, server=10.0.0.2:7174, syn=1)",
                  "3.000 1 tx mpa Request(frame=4, rev=2, crc=1, markers=0, enhanced=0, pd=0)",
                  "4.000 1 rx mpa Reply(frame=5, rev=2, reject=0, crc=1, markers=0, enhanced=0, pd=0)",
                  "5.000 1 tx rdmap Send(frame=6, msn=1, length=8, segments=1)", "6.000 1 tx tcp Fin(frame=7)",
                  "7.000 1 rx tcp Fin(frame=8)",
                  "7.000 1 tx tcp Total(bytes=52, fpdus=1, messages=1, undecoded=0, lost=0, bad_crc=0, malformed=0)",
                  "7.000 1 rx tcp Total(bytes=20, fpdus=0, messages=0, undecoded=0, lost=0, bad_crc=0, malformed=0)"));
  EXPECT_THAT(finish(), IsEmpty());
  EXPECT_EQ(capture_.counts().connections, 1U);
  EXPECT_TRUE(capture_.counts().totals.all_decoded());
}

TEST_F(TraceCapture, RetransmittedAndReordered) {
  open(maker_);
  const auto a = maker_.data(kTx, send(1)), b = maker_.data(kTx, send(2)), c = maker_.data(kTx, send(3));
  give(a);
  give(c);
  give(a);
  give(b);
  give(c);
  EXPECT_THAT(about("rdmap"), ElementsAre("1 tx rdmap Send(frame=6, msn=1, length=8, segments=1)",
                                          "1 tx rdmap Send(frame=9, msn=2, length=8, segments=1)",
                                          "1 tx rdmap Send(frame=9, msn=3, length=8, segments=1)"));
}

TEST_F(TraceCapture, WhatTheCaptureLost) {
  open(maker_);
  (void)maker_.data(kTx, send(1, 100));
  give(maker_.data(kTx, send(2)));
  for (unsigned n = 0; n < 20; ++n) give(maker_.data(kRx, send(n + 1)));  // these acknowledge it
  const auto out = lines();
  EXPECT_THAT(out, Contains(HasSubstr("tx tcp Lost(frame=23, bytes=124)")));
  EXPECT_THAT(out, Contains(HasSubstr("tx rdmap Send(frame=23, msn=2, ")));
  (void)finish();
  EXPECT_EQ(capture_.counts().totals.lost, 124U);
  EXPECT_FALSE(capture_.counts().totals.all_decoded());
}

// tcpdump -s 80: payloads are missing, headers are there.
TEST_F(TraceCapture, ShortSnapLength) {
  open(maker_);
  for (std::uint32_t msn = 1; msn <= 3; ++msn) {
    const Packet p = maker_.data(kTx, send(msn, 500))[0];
    capture_.packet(milliseconds(++ms_), LinkType::kEthernet, ConstBytes(p).first(80), p.size());
  }
  EXPECT_THAT(about("rdmap"), ElementsAre("1 tx rdmap Send(frame=6, msn=1, length=500, segments=1)",
                                          "1 tx rdmap Send(frame=7, msn=2, length=500, segments=1)",
                                          "1 tx rdmap Send(frame=8, msn=3, length=500, segments=1)"));
  EXPECT_EQ(capture_.counts().totals.undecoded, 0U);
  EXPECT_GT(capture_.counts().totals.lost, 1400U);
}

TEST_F(TraceCapture, BeganTooLate) {
  (void)maker_.handshake(kTx);
  (void)maker_.data(kTx, request(true));
  (void)maker_.data(kRx, reply(true));
  give(maker_.data(kRx, send(4)));
  give(maker_.data(kTx, send(9)));
  EXPECT_THAT(lines(), ElementsAre("0.000 1 tx tcp Open(frame=1, client=10.0.0.2:7174, server=10.0.0.1:4000, syn=0)",
                                   "0.000 1 tx mpa Aligned(frame=1, crc=on)",
                                   "0.000 1 tx rdmap Send(frame=1, msn=4, length=8, segments=1)",
                                   "1.000 1 rx mpa Aligned(frame=2, crc=on)",
                                   "1.000 1 rx rdmap Send(frame=2, msn=9, length=8, segments=1)"));
}

TEST_F(TraceCapture, OtherConnectionsAreLeftAlone) {
  give(maker_.handshake(kTx));
  give(maker_.data(kTx, test::hex("474554202f")));
  give(maker_.data(kTx, send(1)));
  EXPECT_THAT(finish(), ElementsAre(HasSubstr("tcp Open("), "3.000 1 tx tcp NotMpa(frame=4)"));
  EXPECT_EQ(capture_.counts().connections, 0U);
}

TEST_F(TraceCapture, ThePortIsUsedAgain) {
  open(maker_);
  give(maker_.reset(kRx));
  PacketMaker again(kClient4, kServer4);
  open(again);
  give(again.data(kTx, send(1)));
  EXPECT_THAT(about("rdmap"), ElementsAre("2 tx rdmap Send(frame=12, msn=1, length=8, segments=1)"));
  EXPECT_EQ(capture_.counts().connections, 2U);
}

TEST_F(TraceCapture, LatePacketsMakeNoNewConnection) {
  open(maker_);
  give(maker_.fin(kTx));
  give(maker_.fin(kRx));
  (void)lines();
  give(maker_.data(kRx, send(1)));
  EXPECT_THAT(finish(), IsEmpty());
}

TEST_F(TraceCapture, OnlyOnePort) {
  capture_ = Capture({.port = 7175, .stream = {}, .verbose = false});
  open(maker_);
  Endpoint server = kServer4;
  server.port = 7175;
  PacketMaker wanted(kClient4, server);
  open(wanted);
  EXPECT_THAT(finish()[0], HasSubstr("1 tx tcp Open(frame=6, client=10.0.0.1:4000, server=10.0.0.2:7175"));
  EXPECT_EQ(capture_.counts().connections, 1U);
}

TEST_F(TraceCapture, OnlyOneStream) {
  capture_ = Capture({.port = {}, .stream = 2, .verbose = false});
  open(maker_);
  PacketMaker second(kClient6, kServer6);
  open(second);
  for (const std::string& l : finish()) EXPECT_THAT(l, HasSubstr(" 2 "));
  EXPECT_EQ(capture_.counts().connections, 1U);
}

TEST_F(TraceCapture, NfsPortMeansRpcOverRdma) {
  Endpoint server = kServer4;
  server.port = Capture::kNfsRdmaPort;
  PacketMaker m(kClient4, server);
  open(m);
  give(m.data(kTx, send(1, 16)));
  EXPECT_THAT(about("rpcrdma"), ElementsAre(HasSubstr("1 tx rpcrdma Malformed(frame=6, bytes=16")));
}

TEST_F(TraceCapture, FollowsABoundedNumberOfConnections) {
  for (std::size_t n = 0; n <= Capture::kMaxConnections; ++n) {
    Endpoint client = kClient4;
    client.port = static_cast<std::uint16_t>(1000 + n);
    PacketMaker m(client, kServer4);
    give(m.handshake(kTx));
    give(m.data(kTx, request(true)));
  }
  EXPECT_EQ(capture_.counts().connections, 1U);  // the oldest one is over
  EXPECT_THAT(lines(), Contains(HasSubstr(" 1 tx tcp Total(bytes=20,")));
}

// Connections of an NFS client, which share 64 KiB.
class TraceCaptureMemory : public TraceCapture {
 protected:
  TraceCaptureMemory() {
    CaptureOptions o;
    o.max_bytes = 64u << 10;
    capture_ = Capture(o);
  }
  static PacketMaker connection(std::uint16_t n) {
    Endpoint client = kClient4, server = kServer4;
    client.port = static_cast<std::uint16_t>(4000 + n);
    server.port = Capture::kNfsRdmaPort;
    return {client, server};
  }
  static Bytes rdma_msg(std::uint32_t xid, const test::Xdr& rpc, std::uint32_t msn) {
    const Bytes message = test::Xdr().words({xid, 1, 32, 0, 0, 0, 0}).raw(rpc.bytes()).bytes();
    return fpdu(send_segment(message, {.msn = msn}), true);
  }
  static Bytes call(std::uint32_t xid) {
    return rdma_msg(xid, test::Xdr().words({xid, 0, 2, 100003, 3, 0, 0, 0, 0, 0}), xid);
  }
  static Bytes answer(std::uint32_t xid) { return rdma_msg(xid, test::Xdr().words({xid, 1, 0, 0, 0, 0}), xid); }
};

TEST_F(TraceCaptureMemory, TheConnectionThatWasSilentForLongestForgetsItsCalls) {
  auto silent = connection(1), busy = connection(2);
  open(silent);
  open(busy);
  give(silent.data(kTx, call(1)));
  for (std::uint32_t xid = 1; xid <= 100; ++xid) give(busy.data(kTx, call(xid)));
  EXPECT_THAT(lines(), testing::Not(Contains(HasSubstr("Malformed"))));
  for (std::uint32_t xid = 101; xid <= 300; ++xid) give(busy.data(kTx, call(xid)));
  give(silent.data(kRx, answer(1)));
  give(busy.data(kTx, call(301)));
  give(busy.data(kRx, answer(1)));
  give(silent.data(kTx, call(2)));
  give(silent.data(kRx, answer(2)));
  const auto all = lines();
  EXPECT_THAT(all, Contains(HasSubstr(" 1 rx rpc Reply(frame=312, xid=0x1, stat=SUCCESS, bytes=24)")));
  EXPECT_THAT(all, Contains(testing::AllOf(HasSubstr(" 1 rx rpc Reply(frame=316, xid=0x2, call_in=315"),
                                           HasSubstr("proc=NULL"))));
  finish();
  EXPECT_GT(capture_.counts().forgotten_rpcs, 100U);
  EXPECT_LT(capture_.counts().forgotten_rpcs, 303U);
  EXPECT_EQ(capture_.counts().given_up, 0U);
}

TEST_F(TraceCaptureMemory, WhatWaitsBehindAHoleIsGivenUpFor) {
  auto first = connection(1), second = connection(2);
  for (PacketMaker* m : {&first, &second}) {
    open(*m);
    (void)m->data(kTx, send(1));  // not captured
    for (std::uint32_t msn = 2; msn < 32; ++msn) give(m->data(kTx, send(msn, 1000)));
    if (m == &first) {
      EXPECT_THAT(lines(), testing::Not(Contains(HasSubstr("Lost"))));
    }
  }
  for (std::uint32_t msn = 32; msn < 42; ++msn) give(second.data(kTx, send(msn, 1000)));
  const auto all = lines();
  EXPECT_THAT(all, Contains(HasSubstr(" 1 tx tcp Lost(bytes=32)")));
  EXPECT_THAT(all, Contains(HasSubstr(" 1 tx rdmap Send(msn=31,")));
  EXPECT_THAT(all, testing::Not(Contains(HasSubstr(" 2 tx tcp Lost"))));
  EXPECT_EQ(capture_.counts().given_up, 0U);
}

// Of an FPDU nothing can be forgotten: without its length the next one would not be found.
TEST_F(TraceCaptureMemory, EndsConnectionsWhenForgettingIsNotEnough) {
  std::vector<PacketMaker> all;
  const Bytes large = fpdu(send_segment(test::pattern(40000), {.msn = 1}), true);
  for (std::uint16_t n = 0; n < 3; ++n) {
    auto& m = all.emplace_back(connection(n));
    open(m);
    give(m.data(kTx, ConstBytes(large).first(30000)));
  }
  EXPECT_THAT(lines(), Contains(HasSubstr(" 1 tx tcp Total(")));
  EXPECT_EQ(capture_.counts().given_up, 2U);
  give(all[2].data(kTx, ConstBytes(large).subspan(30000)));
  EXPECT_THAT(lines(), Contains(HasSubstr(" 3 tx rdmap Send(")));
}

TEST_F(TraceCapture, CountsWhatItCannotUse) {
  const Packet p = maker_.data(kTx, send(1))[0];
  Packet fragment = p;
  fragment[20] = std::byte{0x20};
  give(fragment);
  capture_.packet(milliseconds(1), LinkType::kEthernet, ConstBytes(p).first(30), p.size());
  EXPECT_EQ(capture_.counts().fragments, 1U);
  EXPECT_EQ(capture_.counts().cut, 1U);
  EXPECT_EQ(capture_.counts().packets, 2U);
}

}  // namespace
}  // namespace iwarp::trace
