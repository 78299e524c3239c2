// Networks that delay, split and coalesce: nothing but time is lost.
#include <random>

#include "tests/faults/conversation.h"
#include "tests/faults/stages.h"

namespace iwarp::faults {
namespace {

using namespace std::chrono_literals;

Way random_way(std::mt19937& random) {
  Way way;
  way.delay = std::chrono::milliseconds(random() % 3);
  if (random() % 2 == 0) way.coalesce = 1 + random() % 5000;
  for (std::size_t n = random() % 8; n > 0; --n) way.pieces.push_back(1 + random() % (random() % 2 == 0 ? 20 : 3000));
  // With small pieces a delay of each would add up to seconds.
  if (!way.pieces.empty()) way.delay = 0ms;
  return way;
}

TEST(ThroughARelay, NothingIsLost) {
  std::vector<Case> cases{{"as it is", {}}};
  const auto both = [&](const char* name, const Way& way) {
    Case c{name, {}};
    c.settings.plan = {way, way};
    cases.push_back(c);
  };
  both("octet by octet", {.pieces = {1}});
  both("odd pieces", {.pieces = {1, 2, 3, 5, 7, 11, 13, 1451}});
  both("a delay", {.delay = 5ms});
  both("a segment at a time", {.delay = 1ms, .pieces = {1460}});
  both("coalesced", {.coalesce = 4000});
  both("coalesced, then split", {.pieces = {17, 4096}, .coalesce = 3000});
  const auto seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int i = 0; i < 16; ++i) {
    Case c{"random with seed " + std::to_string(seed) + " no " + std::to_string(i), {}};
    c.settings.plan = {random_way(random), random_way(random)};
    cases.push_back(c);
  }
  hold_all(cases, [](const Case&, const Outcome& out) {
    EXPECT_TRUE(out.complete);
    EXPECT_EQ(out.client_end.reason.code, Errc::kAborted);
    EXPECT_EQ(out.server_end.reason.code, Errc::kPeerClosed);
  });
}

// What the other tests build on: the stages of a conversation are where its octets say, in every run.
TEST(ThroughARelay, StagesAreTheSameInEveryConversation) {
  Conversations conversations;
  const Relay::Record a = conversations.undisturbed(), b = conversations.undisturbed();
  for (const auto& [one, other] : {std::pair(&a.up, &b.up), std::pair(&a.down, &b.down)}) {
    const auto of_one = stages(*one), of_other = stages(*other);
    ASSERT_EQ(of_one.size(), of_other.size());
    for (std::size_t i = 0; i < of_one.size(); ++i) EXPECT_EQ(of_one[i].to_string(), of_other[i].to_string());
    EXPECT_GT(of_one.back().fpdu, 8u);
  }
}

}  // namespace
}  // namespace iwarp::faults
