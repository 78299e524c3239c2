// What is placed early, and what is not.
#include <gmock/gmock.h>

#include "iwarp/rdmap/shared_receives.h"
#include "tests/session/early_segments.h"
#include "tests/support/covers.h"

namespace iwarp::session {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(EarlySegments, AWriteIsInItsPlaceBeforeTheOnesInFrontOfIt) {
  COVERS("RFC5041-3-6");
  COVERS("RFC5041-3-7");
  post_write(0, 100, 0);
  post_write(100, 200, 300);
  w.record();
  w.arrive(1);
  EXPECT_TRUE(same(target, 300, source, 100, 200));
  EXPECT_EQ(w.counters().writes, 0u) << "not delivered";
  EXPECT_EQ(w.counters().early, 1u);
  EXPECT_EQ(w.counters().early_bytes, 200u);
  EXPECT_EQ(w.budget().held(), 2 + 14 + sctp::SsnWindow::kHoldOverheadBytes) << "its front alone is kept";
  w.arrive(0);
  EXPECT_EQ(w.counters().writes, 2u);
  EXPECT_EQ(w.counters().write_bytes, 300u);
  EXPECT_EQ(w.budget().held(), 0u);
}

// An application that watches memory says so.
class EarlySegmentsOff : public EarlySegments {
 protected:
  EarlySegmentsOff() : EarlySegments({.place_early = false}) {}
};

TEST_F(EarlySegmentsOff, NothingIsPlacedBeforeItIsDue) {
  post_write(0, 100, 0);
  post_write(100, 200, 300);
  w.record();
  w.arrive(1);
  EXPECT_TRUE(untouched(target));
  EXPECT_EQ(w.counters().early, 0u);
  w.arrive(0);
  EXPECT_TRUE(same(target, 300, source, 100, 200));
}

TEST_F(EarlySegments, ASendGoesToTheReceiveOfItsMsn) {
  auto& inbox = w.b.region(300);
  for (std::size_t i = 0; i < 3; ++i) {
    post_send(100 * i, 50 + i);
    post_recv(10 + i, list({inbox.sge(100 * i, 60), inbox.sge(100 * i + 60, 10)}));
  }
  w.record();
  w.arrive(2);
  EXPECT_TRUE(same(inbox, 200, source, 200, 52));
  w.arrive(1);
  EXPECT_THAT(w.log, IsEmpty());
  w.arrive(0);
  EXPECT_THAT(w.log, ElementsAre("recv 10 ok 50", "recv 11 ok 51", "recv 12 ok 52"));
  EXPECT_EQ(w.counters().early, 2u);
}

TEST_F(EarlySegments, ASendWithoutItsReceiveIsKept) {
  auto& inbox = w.b.region(100);
  post_recv(10, list({inbox.sge(0, 50)}));
  post_send(0, 20);
  post_send(100, 30);
  w.record();
  w.arrive(1);
  EXPECT_EQ(w.counters().early, 0u);
  EXPECT_EQ(w.budget().held(), 2 + 18 + 30 + sctp::SsnWindow::kHoldOverheadBytes);
  post_recv(11, list({inbox.sge(50, 50)}));
  w.arrive(0);
  EXPECT_THAT(w.log, ElementsAre("recv 10 ok 20", "recv 11 ok 30"));
  EXPECT_TRUE(same(inbox, 50, source, 100, 30));
}

TEST_F(EarlySegments, ASendThatIsTooLongIsRefusedWhenItIsDue) {
  auto& inbox = w.b.region(100);
  auto& next = w.b.region(20);
  post_recv(10, list({inbox.all()}));
  post_recv(11, list({next.all()}));
  post_send(0, 20);
  post_send(100, 21);
  w.record();
  w.arrive(1);
  EXPECT_TRUE(untouched(next));
  w.arrive(0);
  w.lose();
  ASSERT_EQ(w.log.size(), 3u);
  EXPECT_EQ(w.log[0], "recv 10 ok 20");
  EXPECT_EQ(w.log[1], "recv 11 flushed");
  EXPECT_THAT(w.log[2], ::testing::StartsWith("ended untagged_too_long"));
}

// What is to be remembered of a message has a bound.
TEST_F(EarlySegments, AReceiveOfManyPiecesWaits) {
  auto& inbox = w.b.region(300);
  post_write(0, 10, 0);
  post_send(0, 250);
  post_recv(10, list({inbox.sge(0, 100), inbox.sge(100, 100), inbox.sge(200, 100)}));
  w.record();
  w.arrive(1);
  EXPECT_TRUE(untouched(inbox));
  w.arrive(0);
  EXPECT_THAT(w.log, ElementsAre("recv 10 ok 250"));
  EXPECT_TRUE(same(inbox, 0, source, 0, 250));
}

// Which Receive a message takes is open until it begins.
class EarlySharedReceives : public EarlySegments {
 protected:
  EarlySharedReceives() : EarlySegments({}, &shared) {}
  rdmap::SharedReceives shared{8};
};

TEST_F(EarlySharedReceives, OnlyAMessageThatHasBegunIsPlacedEarly) {
  auto& inbox = w.b.region(3000);
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(shared.post({.wr_id = 10 + i, .sges = list({inbox.sge(1500 * i, 1500)})}));
  post_send(0, 1400);
  post_send(2000, 1000);
  w.record();
  ASSERT_EQ(w.segments.size(), 5u);
  w.arrive(2);
  EXPECT_EQ(w.counters().early, 0u);
  w.arrive(0);  // takes its Receive
  w.arrive(4);
  EXPECT_EQ(w.counters().early, 0u);
  EXPECT_EQ(shared.posted(), 1u);
  w.arrive(3);
  w.arrive(1);
  EXPECT_THAT(w.log, ElementsAre("recv 10 ok 1400", "recv 11 ok 1000"));
  EXPECT_TRUE(same(inbox, 0, source, 0, 1400));
  EXPECT_TRUE(same(inbox, 1500, source, 2000, 1000));
}

TEST_F(EarlySharedReceives, TheRestOfSuchAMessageIsPlaced) {
  auto& inbox = w.b.region(1500);
  ASSERT_TRUE(shared.post({.wr_id = 10, .sges = list({inbox.all()})}));
  post_send(0, 1400);
  w.record();
  w.arrive(0);
  w.arrive(2);
  EXPECT_EQ(w.counters().early, 1u);
  w.arrive(1);
  EXPECT_THAT(w.log, ElementsAre("recv 10 ok 1400"));
  EXPECT_TRUE(same(inbox, 0, source, 0, 1400));
}

TEST_F(EarlySegments, AReadResponseGoesToTheSinkThatItNames) {
  auto& asked = w.a.region(1000, test::kRemoteAll);
  fill(asked, 8);
  auto& sink = w.b.region(1000);
  ASSERT_TRUE(w.b.core.post_send(test::read_wr(20, list({sink.sge(0, 200), sink.sge(200, 300)}), asked)));
  ASSERT_TRUE(w.b.core.post_send(test::read_wr(21, list({sink.sge(600, 200)}), asked, 600)));
  w.ask();
  ASSERT_EQ(w.segments.size(), 3u);
  w.arrive(2);
  EXPECT_TRUE(same(sink, 600, asked, 600, 200));
  w.arrive(1);
  EXPECT_TRUE(same(sink, 200, asked, 200, 300));
  EXPECT_THAT(w.log, IsEmpty());
  w.arrive(0);
  EXPECT_THAT(w.log, ElementsAre("send 20 ok 500", "send 21 ok 200"));
  EXPECT_EQ(w.counters().early, 2u);
  EXPECT_EQ(w.counters().read_response_bytes, 700u);
}

// The sink is memory of this end: another place there is none of the peer's.
TEST_F(EarlySegments, AReadResponseForAnotherPlaceIsNotPlaced) {
  auto& asked = w.a.region(1000, test::kRemoteAll);
  fill(asked, 8);
  auto& sink = w.b.region(1000);
  ASSERT_TRUE(w.b.core.post_send(test::read_wr(20, list({sink.sge(0, 200)}), asked)));
  ASSERT_TRUE(w.b.core.post_send(test::read_wr(21, list({sink.sge(400, 200)}), asked, 600)));
  w.ask();
  const Bytes good = w.segments[1];
  for (const unsigned to : {0x18fu, 0x191u, 0x100u}) {  // before the sink, beyond its end, in the gap
    w.segments.push_back(good);
    w.segments.back()[12] = static_cast<std::byte>(to >> 8);
    w.segments.back()[13] = static_cast<std::byte>(to);
    w.arrive(w.segments.size() - 1);
  }
  w.segments.push_back(good);
  const std::uint32_t stag = raw(w.b.region(1000).stag());  // the same TO, of memory that is no sink
  for (unsigned i = 0; i < 4; ++i) w.segments.back()[2 + i] = static_cast<std::byte>(stag >> (24 - 8 * i));
  w.arrive(w.segments.size() - 1);
  EXPECT_EQ(w.counters().early, 0u);
  EXPECT_TRUE(untouched(sink));
}

TEST_F(EarlySegments, WhatRdmapTakesItselfIsKept) {
  auto& readable = w.b.region(100, test::kRemoteAll);
  auto& back = w.a.region(100);
  post_write(0, 10, 0);
  ASSERT_TRUE(w.a.core.post_send(test::read_wr(2, list({back.all()}), readable)));
  post_write(0, 0, 0);
  w.record();
  ASSERT_EQ(w.segments.size(), 3u);
  w.arrive(2);
  w.arrive(1);
  EXPECT_EQ(w.counters().early, 0u);
  w.arrive(0);
  EXPECT_EQ(w.counters().read_requests, 1u);
  EXPECT_EQ(w.answers.size(), 1u);
}

// An RTR by Send has an MSN, and takes no Receive: before it is there no MSN names one.
TEST(EarlyRtr, NoSendIsPlacedBeforeAnRtrBySend) {
  for (const bool rtr : {false, true}) {
    World::Peer from(1, {}), to(2, {});
    sctp::Session::Established e;
    e.settled = {.peer_to_peer = true, .rtr = rtr ? enhanced::Rtr::kSend : enhanced::Rtr::kWrite, .depths = {8, 8}};
    from.half.start(World::kNow);
    to.half.start(World::kNow);
    from.half.on_event(sctp::Session::Event{e}, sctp::Role::kActive, World::kNow);
    to.half.on_event(sctp::Session::Event{e}, sctp::Role::kPassive, World::kNow);
    auto& source = from.region(100);
    fill(source, 6);
    auto& inbox = to.region(200);
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(to.core.post_recv({.wr_id = i, .sges = list({inbox.sge(100 * i, 100)})}));
      ASSERT_TRUE(from.core.post_send(test::send_wr(i, list({source.sge(10 * i, 10)}))));
    }
    const auto segments = World::send(from);
    ASSERT_EQ(segments.size(), 3u);
    const std::size_t placed = to.half.on_early({segments[2], 2});
    EXPECT_EQ(placed, rtr ? 0u : 10u);
    const ConstBytes last = ConstBytes(segments[2]).first(segments[2].size() - placed);
    for (const auto& d : {sctp::Session::Delivered{segments[0]}, {segments[1]}, {last, placed}})
      to.half.on_event(sctp::Session::Event{d}, sctp::Role::kPassive, World::kNow);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto c = to.core.poll_recv();
      ASSERT_TRUE(c);
      EXPECT_EQ(c->byte_len, 10u);
      EXPECT_TRUE(same(inbox, 100 * i, source, 10 * i, 10)) << rtr << i;
    }
  }
}

// --- Where others wait.

TEST_F(EarlySegments, BeforeTheSessionIsEstablishedAndBehindItsEndNothingIsPlaced) {
  World::Peer idle(3, {});
  post_write(0, 10, 0);
  w.record();
  EXPECT_EQ(idle.half.on_early({w.segments[0], 5}), 0u);
  w.lose();
  EXPECT_EQ(w.b.half.on_early({w.segments[0], 5}), 0u);
  EXPECT_TRUE(untouched(target));
}

// A Send waits for its Receive, and a Write that is due behind it, and one that is early, for the Send.
class EarlyBehindAHeldSend : public EarlySegments {
 protected:
  EarlyBehindAHeldSend() : EarlySegments({.receive_wait = std::chrono::seconds(5)}) {}
};

TEST_F(EarlyBehindAHeldSend, IsPlacedAndDeliveredBehindIt) {
  auto& inbox = w.b.region(100);
  post_send(0, 50);
  post_write(100, 100, 0);
  post_write(300, 100, 50);  // over half of the one before
  post_write(500, 100, 900);
  post_send(700, 20);
  w.record();
  w.arrive(0);
  w.arrive(2);
  w.arrive(4);  // no Receive: kept
  EXPECT_EQ(w.counters().early, 1u);
  w.arrive(1);  // due, and held
  w.arrive(3);
  EXPECT_EQ(w.counters().writes, 0u);
  EXPECT_THAT(w.log, IsEmpty());
  EXPECT_EQ(w.budget().held(), 0u);
  EXPECT_TRUE(same(target, 50, source, 300, 100));
  post_recv(10, list({inbox.sge(0, 50)}));
  EXPECT_EQ(w.counters().writes, 3u);
  EXPECT_EQ(w.counters().write_bytes, 300u);
  EXPECT_TRUE(same(target, 0, source, 100, 50));
  EXPECT_TRUE(same(target, 50, source, 300, 100)) << "the later one lies above";
  EXPECT_TRUE(same(target, 900, source, 500, 100));
  post_recv(11, list({inbox.sge(50, 50)}));
  EXPECT_THAT(w.log, ElementsAre("recv 10 ok 50", "recv 11 ok 20"));
  EXPECT_EQ(w.b.half.held_bytes(), 0u);
}

// A segment that DDP cannot read has no Terminate code of this lower layer: there are those of MPA only.
TEST_F(EarlySegments, NoTerminateCodeOfMpaIsUsed) {
  COVERS("RFC5040-4.8-37");
  COVERS("RFC5040-4.8-11");
  for (const std::size_t octets : {0u, 1u, 13u}) {
    World world;
    fill(world.a.region(100), 1);
    auto& to = world.b.region(100, test::kRemoteAll);
    ASSERT_TRUE(world.a.core.post_send(test::write_wr(1, list({world.a.regions[0]->all()}), to)));
    world.record();
    world.segments[0].resize(octets);
    world.arrive(0);
    world.lose();
    ASSERT_EQ(world.log.size(), 1u);
    EXPECT_EQ(world.log[0], "ended fpdu_length 00000000") << octets;
    EXPECT_EQ(world.answers.size(), 1u);
  }
}

}  // namespace
}  // namespace iwarp::session
