// Segments placed as they arrive, delivered in order: in every order of small conversations memory and completions are
// those of an end that got all in order; with a segment that never comes, one that comes twice, and one that is wrong.
#include <array>
#include <map>

#include "tests/session/early_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::session {
namespace {

using test::Bytes;
using test::list;
using Order = std::vector<std::size_t>;
using Lines = std::vector<std::string>;
using Scenario = void (*)(World&);

// Writes of several segments, the last one over the first, and Sends of several and one: six segments.
void writes_and_sends(World& w) {
  auto& source = w.a.region(2000);
  fill(source, 1);
  auto& target = w.b.region(1200, test::kRemoteAll);
  auto& inbox = w.b.region(1500);
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(w.b.core.post_recv({.wr_id = 10 + i, .sges = list({inbox.sge(700 * i, 700)})}));
  ASSERT_TRUE(w.a.core.post_send(test::write_wr(1, list({source.sge(0, 700)}), target, 100)));
  ASSERT_TRUE(w.a.core.post_send(test::send_wr(2, list({source.sge(300, 650)}))));
  ASSERT_TRUE(w.a.core.post_send(test::write_wr(3, list({source.sge(1000, 300)}), target, 550)));
  ASSERT_TRUE(w.a.core.post_send(test::send_wr(4, list({source.sge(1500, 20)}))));
  w.record();
}

// Responses to two Reads of b's, between a Write and a Send with Invalidate, and a Read Request: six segments.
void reads_both_ways(World& w) {
  auto& source = w.a.region(2000, test::kRemoteAll);
  fill(source, 2);
  auto& target = w.b.region(400, test::kRemoteAll);
  auto& asked = w.b.region(300, test::kRemoteAll);
  fill(asked, 3);
  auto& sink = w.b.region(1000);
  auto& inbox = w.b.region(100);
  ASSERT_TRUE(w.b.core.post_recv({.wr_id = 10, .sges = list({inbox.all()})}));
  ASSERT_TRUE(w.b.core.post_send(test::read_wr(20, list({sink.sge(0, 650)}), source, 100)));
  ASSERT_TRUE(w.b.core.post_send(test::read_wr(21, list({sink.sge(650, 300)}), source, 900)));
  w.ask();
  auto& back = w.a.region(300);
  ASSERT_TRUE(w.a.core.post_send(test::write_wr(1, list({source.sge(0, 400)}), target)));
  ASSERT_TRUE(w.a.core.post_send(test::send_wr(2, list({source.sge(1500, 60)}))));
  ASSERT_TRUE(w.a.core.post_send(test::read_wr(3, list({back.all()}), asked)));
  w.record();
}

// The peer revokes what it has written to, and goes on with the rest.
void invalidates(World& w) {
  auto& source = w.a.region(1000);
  fill(source, 4);
  w.b.regions.push_back(std::make_unique<test::Region>(w.b.stags, w.b.key.pd, 200,
                                                       test::kRemoteAll | ddp::Access::kRemoteInvalidate, 0x20000,
                                                       w.b.key.stream, w.b.random()));
  auto& revoked = *w.b.regions.back();
  auto& target = w.b.region(200, test::kRemoteAll);
  auto& inbox = w.b.region(300);
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(w.b.core.post_recv({.wr_id = 10 + i, .sges = list({inbox.sge(100 * i, 100)})}));
  ASSERT_TRUE(w.a.core.post_send(test::write_wr(1, list({source.sge(0, 200)}), revoked)));
  auto send = test::send_wr(2, list({source.sge(200, 50)}));
  send.op = rdmap::SendOp::kSendInvalidate;
  send.remote_stag = revoked.stag();
  ASSERT_TRUE(w.a.core.post_send(send));
  ASSERT_TRUE(w.a.core.post_send(test::write_wr(3, list({source.sge(300, 150)}), target, 10)));
  ASSERT_TRUE(w.a.core.post_send(test::send_wr(4, list({source.sge(500, 70)}))));
  w.record();
}

struct Outcome {
  std::vector<Bytes> memory;
  Lines log;
  std::vector<Bytes> answer;  // what b sends
};

Outcome outcome(World& w) {
  w.lose();
  return {w.memory(), w.log, w.answers};
}

Order in_order(std::size_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

class EarlyOrder : public ::testing::TestWithParam<Scenario> {
 protected:
  // What an end hears that gets these in order and nothing else.
  Outcome reference(std::size_t count) {
    World w;
    GetParam()(w);
    w.arrive_in(in_order(count));
    return {w.memory(), w.log, w.answers};
  }
  // How many come before others in front of them and have a place in memory: all but Read Requests.
  static std::uint64_t early_in(const World& w, const Order& order) {
    std::uint64_t early = 0;
    std::size_t due = 0;
    std::vector<bool> there(order.size() + 1);
    for (const std::size_t i : order) {
      const Bytes& s = w.segments[i];
      if (i != due && ((s[0] & std::byte{0x80}) != std::byte{0} || s[9] == std::byte{0})) ++early;
      there[i] = true;
      while (there[due]) ++due;
    }
    return early;
  }
  static std::size_t count() {
    World w;
    GetParam()(w);
    return w.segments.size();
  }
};

TEST_P(EarlyOrder, EveryOrderEndsAsIfNothingHadBeenEarly) {
  COVERS("RFC5041-3-6");
  COVERS("RFC5041-3-7");
  COVERS("RFC5041-5.3-7");
  COVERS("RFC5041-5.3-8");
  const std::size_t n = count();
  ASSERT_LE(n, 6u);
  const Outcome expected = reference(n);
  each_order(n, [&](const Order& order) {
    SCOPED_TRACE(text(order));
    World w;
    GetParam()(w);
    w.arrive_in(order);
    EXPECT_EQ(w.log, expected.log);
    EXPECT_EQ(w.memory(), expected.memory);
    EXPECT_EQ(w.budget().held(), 0u);
    EXPECT_EQ(w.answers, expected.answer);
    EXPECT_EQ(w.counters().early, early_in(w, order));
  });
}

TEST_P(EarlyOrder, NothingBehindAMissingOneIsDelivered) {
  COVERS("RFC5041-5.4-3");
  COVERS("RFC5041-5.4-4");
  COVERS("RFC5041-5.4-5");
  const std::size_t n = count();
  std::map<std::size_t, Lines> prefix;
  for (std::size_t i = 0; i < n; ++i) prefix[i] = reference(i).log;
  each_order(n, [&](Order order) {
    SCOPED_TRACE(text(order));
    const std::size_t missing = order.back();
    order.pop_back();
    World w;
    GetParam()(w);
    w.arrive_in(order);
    EXPECT_EQ(w.log, prefix[missing]);
    w.lose();
    EXPECT_EQ(w.budget().held(), 0u);
  });
}

// SCTP gives no message twice; one that comes twice all the same ends the session, and is not placed again.
TEST_P(EarlyOrder, ADuplicateIsPlacedOnce) {
  COVERS("RFC5043-10-8");
  const std::size_t n = std::min<std::size_t>(count(), 4);
  each_order(n, [&](const Order& order) {
    for (std::size_t first = 0; first < n; ++first) {
      for (std::size_t again = first + 1; again <= n; ++again) {
        SCOPED_TRACE(text(order) + ", " + std::to_string(first) + " again at " + std::to_string(again));
        std::array<Lines, 2> logs;
        for (const bool place : {false, true}) {
          endpoint::Options options;
          options.place_early = place;
          World w(options);
          GetParam()(w);
          std::uint64_t placed = 0;
          for (std::size_t i = 0; i <= n; ++i) {
            if (i == again) {
              placed = w.counters().early_bytes;
              w.arrive(order[first]);
              EXPECT_EQ(w.counters().early_bytes, placed);
            }
            if (i < n) w.arrive(order[i]);
          }
          EXPECT_EQ(w.counters().early_bytes, placed) << "the session is over";
          logs[place ? 1 : 0] = w.log;
        }
        EXPECT_EQ(logs[0], logs[1]);
        EXPECT_NE(logs[0].back().find("ended ddp_ssn"), std::string::npos);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, EarlyOrder, ::testing::Values(writes_and_sends, reads_both_ways, invalidates));

// What is done to a segment, by its first octet: 0x80 is the T bit.
struct Harm {
  const char* name;
  bool tagged, untagged;
  void (*change)(Bytes&);
};
constexpr std::size_t kStagAt = 2, kToAt = 6, kQnAt = 9, kMsnAt = 13, kMoAt = 17;
const Harm kHarms[] = {
    {"DDP version", true, true, [](Bytes& s) { s[0] ^= std::byte{3}; }},
    {"RDMAP version", true, true, [](Bytes& s) { s[1] |= std::byte{0x80}; }},
    {"opcode", true, true, [](Bytes& s) { s[1] |= std::byte{0x0f}; }},
    {"no header", true, true, [](Bytes& s) { s.resize(9); }},
    {"nothing", true, true, [](Bytes& s) { s.clear(); }},
    {"STag", true, false, [](Bytes& s) { s[kStagAt + 3] ^= std::byte{1}; }},
    {"far beyond the end", true, false, [](Bytes& s) { s[kToAt] = std::byte{0x7f}; }},
    {"wrap", true, false, [](Bytes& s) { std::fill_n(s.begin() + kToAt, 8, std::byte{0xff}); }},
    {"queue", false, true, [](Bytes& s) { s[kQnAt] = std::byte{9}; }},
    {"MSN ahead", false, true, [](Bytes& s) { s[kMsnAt] ^= std::byte{3}; }},
    {"MSN far ahead", false, true, [](Bytes& s) { s[kMsnAt - 3] = std::byte{0x40}; }},
    {"MO", false, true, [](Bytes& s) { s[kMoAt] ^= std::byte{1}; }},
    {"longer than the Receive", false, true, [](Bytes& s) { s.resize(900); }},
};

class EarlyHarm : public ::testing::TestWithParam<Scenario> {};

// The same error in every order, with the same Terminate, behind the same completions: those of all that is before it.
TEST_P(EarlyHarm, AnErrorIsFoundWhenItsPlaceInTheOrderHasCome) {
  COVERS("RFC5041-3-6");
  COVERS("RFC5041-7.1-17");
  COVERS("RFC5040-7.1-6");
  World plain;
  GetParam()(plain);
  const std::size_t n = std::min<std::size_t>(plain.segments.size(), 4);
  for (std::size_t at = 0; at < n; ++at) {
    for (const Harm& harm : kHarms) {
      const bool tagged = (plain.segments[at][0] & std::byte{0x80}) != std::byte{0};
      if (tagged ? !harm.tagged : !harm.untagged) continue;
      SCOPED_TRACE(std::string(harm.name) + " at " + std::to_string(at));
      const auto run = [&](const Order& order, bool place, Outcome& out) {
        endpoint::Options options;
        options.place_early = place;
        World w(options);
        GetParam()(w);
        harm.change(w.segments[at]);
        w.arrive_in(order);
        EXPECT_EQ(w.budget().held(), 0u);
        out = outcome(w);
      };
      Outcome expected;
      run(in_order(n), true, expected);
      ASSERT_FALSE(expected.log.empty());
      EXPECT_NE(expected.log.back().find("ended "), std::string::npos) << expected.log.back();
      EXPECT_EQ(expected.log.back().find("connection_lost"), std::string::npos) << "it was not refused";
      each_order(n, [&](const Order& order) {
        SCOPED_TRACE(text(order));
        Outcome placed, kept;
        run(order, true, placed);
        run(order, false, kept);
        EXPECT_EQ(placed.log, expected.log);
        EXPECT_EQ(placed.answer, expected.answer);
        EXPECT_EQ(kept.log, expected.log);
        EXPECT_EQ(kept.memory, expected.memory);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EarlyHarm, ::testing::Values(writes_and_sends, reads_both_ways, invalidates));

}  // namespace
}  // namespace iwarp::session
