// Memory that goes while segments are placed early, and a shortage of it.
#include <gmock/gmock.h>

#include "tests/session/early_segments.h"
#include "tests/support/covers.h"
#include "tests/support/shortage.h"

namespace iwarp::session {
namespace {

using ::testing::ElementsAre;

TEST_F(EarlySegments, NothingIsPlacedInRevokedMemory) {
  COVERS("RFC5041-8.3-2");
  post_write(0, 10, 0);
  post_write(100, 200, 300);
  w.record();
  scribble(target);
  w.arrive(1);
  EXPECT_TRUE(scribbled(target));
  w.arrive(0);
  w.lose();
  ASSERT_EQ(w.log.size(), 1u);
  EXPECT_THAT(w.log[0], ::testing::StartsWith("ended tagged_invalid_stag"));
  EXPECT_TRUE(scribbled(target));
}

TEST_F(EarlySegments, AWriteToMemoryRevokedSinceIsAnErrorWhenItIsDue) {
  COVERS("RFC5041-8.3-2");
  auto& other = w.b.region(100, test::kRemoteAll);
  ASSERT_TRUE(w.a.core.post_send(test::write_wr(1, list({source.sge(0, 100)}), other)));
  post_write(100, 200, 300);
  w.record();
  w.arrive(1);
  EXPECT_TRUE(same(target, 300, source, 100, 200));
  scribble(target);  // what was placed holds nobody up
  w.arrive(0);
  w.lose();
  ASSERT_EQ(w.log.size(), 1u);
  EXPECT_THAT(w.log[0], ::testing::StartsWith("ended tagged_invalid_stag"));
  EXPECT_TRUE(scribbled(target));
  EXPECT_TRUE(same(other, 0, source, 0, 100)) << "in front of the error";
}

// The same STag may name other memory by then: what was written there was not this segment.
TEST_F(EarlySegments, AWriteToMemoryRegisteredAnewSinceIsAnErrorWhenItIsDue) {
  post_write(0, 10, 0);
  post_write(100, 200, 300);
  w.record();
  w.arrive(1);
  Bytes other(1000);
  Stag stag = target.stag();
  for (const unsigned key : {raw(stag) + 1, raw(stag)}) {
    ASSERT_TRUE(w.b.stags.invalidate(stag));
    ASSERT_TRUE(w.b.stags.quiescent(stag));
    stag = w.b.stags.renew(stag, {other, target.to(), w.b.key.pd, w.b.key.stream, test::kRemoteAll},
                           static_cast<std::uint8_t>(key));
  }
  ASSERT_EQ(stag, target.stag());
  w.arrive(0);
  w.lose();
  ASSERT_EQ(w.log.size(), 1u);
  EXPECT_THAT(w.log[0], ::testing::StartsWith("ended tagged_invalid_stag"));
  EXPECT_TRUE(std::all_of(other.begin() + 10, other.end(), [](std::byte b) { return b == std::byte{0}; }));
}

// What a peer can have the thread look through, again and again, has a bound.
TEST_F(EarlySegments, SoManyAreRememberedAndOthersKept) {
  constexpr std::size_t kMany = session::EarlyPlacement::kMaxRemembered + 40;
  for (std::size_t i = 0; i <= kMany; ++i) {
    post_write(i, 1, 0);
    w.record();
    while (w.a.core.poll_send()) {
    }
  }
  ASSERT_EQ(w.segments.size(), kMany + 1);
  for (std::size_t i = kMany; i > 0; --i) w.arrive(i);  // the farthest first, all on one octet
  EXPECT_EQ(w.counters().early, session::EarlyPlacement::kMaxRemembered);
  w.arrive(0);
  EXPECT_EQ(w.counters().writes, kMany + 1);
  EXPECT_TRUE(same(target, 0, source, kMany, 1)) << "the last one lies above";
}

TEST_F(EarlySegments, AReceiveRevokedSinceIsAnErrorWhenItIsDue) {
  auto& inbox = w.b.region(100);
  post_recv(10, list({inbox.all()}));
  post_write(0, 10, 0);
  post_send(0, 50);
  w.record();
  w.arrive(1);
  EXPECT_TRUE(same(inbox, 0, source, 0, 50));
  scribble(inbox);
  w.arrive(0);
  w.lose();
  ASSERT_EQ(w.log.size(), 2u);
  EXPECT_EQ(w.log[0], "recv 10 flushed");
  EXPECT_THAT(w.log[1], ::testing::StartsWith("ended ddp_catastrophic"));
  EXPECT_TRUE(scribbled(inbox));
}

// The peer revokes an STag and writes to it all the same: in every order the error of that Write, and nothing of it
// once the application has heard that its memory is its own.
TEST_F(EarlySegments, AWriteBehindItsOwnInvalidationIsAnError) {
  COVERS("RFC5040-5.3-15");
  const auto make = [](World& world) {
    auto& from = world.a.region(1000);
    fill(from, 9);
    world.b.regions.push_back(std::make_unique<test::Region>(world.b.stags, world.b.key.pd, 200,
                                                             test::kRemoteAll | ddp::Access::kRemoteInvalidate, 0x20000,
                                                             world.b.key.stream, world.b.random()));
    auto& revoked = *world.b.regions.back();
    auto& inbox = world.b.region(100);
    ASSERT_TRUE(world.b.core.post_recv({.wr_id = 10, .sges = list({inbox.all()})}));
    ASSERT_TRUE(world.a.core.post_send(test::write_wr(1, list({from.sge(0, 100)}), revoked)));
    auto send = test::send_wr(2, list({from.sge(200, 50)}));
    send.op = rdmap::SendOp::kSendInvalidate;
    send.remote_stag = revoked.stag();
    ASSERT_TRUE(world.a.core.post_send(send));
    ASSERT_TRUE(world.a.core.post_send(test::write_wr(3, list({from.sge(300, 100)}), revoked, 100)));
    world.record();
  };
  std::vector<std::string> expected;
  each_order(3, [&](const std::vector<std::size_t>& order) {
    SCOPED_TRACE(text(order));
    World world;
    make(world);
    auto& revoked = *world.b.regions[0];
    std::optional<Bytes> at_revocation;
    for (const std::size_t i : order) {
      world.arrive(i);
      if (!at_revocation && !world.b.stags.valid(revoked.stag())) at_revocation = revoked.bytes();
    }
    ASSERT_TRUE(at_revocation);
    EXPECT_EQ(revoked.bytes(), *at_revocation);
    world.lose();
    if (expected.empty()) expected = world.log;
    EXPECT_EQ(world.log, expected);
  });
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_EQ(expected[0], "recv 10 ok 50 invalidated");
  EXPECT_THAT(expected[1], ::testing::StartsWith("ended tagged_invalid_stag"));
}

// Without memory for what is to be remembered it is kept, or placed again when it is due.
TEST(EarlyShortage, NothingIsLost) {
  std::size_t failures = 0;
  for (std::size_t n = 0;; ++n) {
    World w;
    auto& source = w.a.region(200);
    fill(source, 5);
    auto& target = w.b.region(200, test::kRemoteAll);
    auto& inbox = w.b.region(200);
    ASSERT_TRUE(w.b.core.post_recv({.wr_id = 10, .sges = list({inbox.sge(0, 50), inbox.sge(50, 150)})}));
    ASSERT_TRUE(w.a.core.post_send(test::write_wr(1, list({source.sge(0, 150)}), target)));
    ASSERT_TRUE(w.a.core.post_send(test::write_wr(2, list({source.sge(50, 150)}), target, 20)));
    ASSERT_TRUE(w.a.core.post_send(test::send_wr(3, list({source.all()}))));
    w.record();
    const test::Shortage shortage(n);
    w.place = [&w](const sctp::Session::Early& early) {
      const test::Shortage::Short here;
      return w.b.half.on_early(early);
    };
    w.arrive_in({2, 1, 0});
    EXPECT_THAT(w.log, ElementsAre("recv 10 ok 200"));
    EXPECT_TRUE(same(inbox, 0, source, 0, 200));
    EXPECT_TRUE(same(target, 0, source, 0, 20));
    EXPECT_TRUE(same(target, 20, source, 50, 150));
    EXPECT_EQ(w.counters().early, test::Shortage::happened() ? 1u : 2u);
    if (!test::Shortage::happened()) break;
    ++failures;
  }
  EXPECT_GT(failures, 1u);
}

// Without memory when it is due it ends, and holds up nobody who takes his memory back.
TEST(EarlyShortage, AnEndKeepsNoMemory) {
  std::size_t failures = 0;
  for (std::size_t n = 0;; ++n) {
    World w;
    fill(w.a.region(200), 5);
    auto& source = *w.a.regions[0];
    auto& target = w.b.region(200, test::kRemoteAll);
    ASSERT_TRUE(w.a.core.post_send(test::write_wr(1, list({source.sge(0, 150)}), target)));
    ASSERT_TRUE(w.a.core.post_send(test::write_wr(2, list({source.sge(50, 150)}), target, 20)));
    w.record();
    w.arrive(1);
    const test::Shortage shortage(n);
    {
      const test::Shortage::Short here;
      w.b.half.on_event(sctp::Session::Event{sctp::Session::Delivered{w.segments[0]}}, sctp::Role::kPassive,
                        World::kNow);
    }
    if (!test::Shortage::happened()) break;
    ++failures;
    EXPECT_FALSE(w.b.core.receiving());
    target.revoke();
  }
  EXPECT_GT(failures, 0u);
}

}  // namespace
}  // namespace iwarp::session
