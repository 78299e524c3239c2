#include "iwarp/rpc/replay_cache.h"

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

struct Asker final : ReplayCache::Asker {
  void tell(const Octets& reply) override { told.push_back(reply); }
  std::vector<Octets> told;
};

using Verdict = ReplayCache::Verdict;

ReplayCache::Key key(std::uint32_t xid) {
  return ReplayCache::key_of(words({xid, 0, 2, 3}));
}
void finish(ReplayCache& cache, const std::string& client, std::uint32_t xid, std::size_t octets = 24) {
  cache.finish(client, key(xid), Octets(octets), {});
}

TEST(ReplayCache, AnswersOnceExecutedCalls) {
  ReplayCache cache(8, 4096, 4);
  const auto asker = std::make_shared<Asker>();
  EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kNew);
  EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kUnderWay);
  EXPECT_TRUE(asker->told.empty());
  cache.finish("a", key(1), words({1, 2}), words({3}));
  EXPECT_EQ(asker->told, std::vector<Octets>{words({1, 2, 3})});
  EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kAnswered);
  EXPECT_EQ(asker->told.size(), 2u);
  EXPECT_EQ(cache.begin("b", key(1), asker), Verdict::kNew);                                    // another client
  EXPECT_EQ(cache.begin("a", ReplayCache::key_of(words({1, 0, 2, 4})), asker), Verdict::kNew);  // another Call
}

TEST(ReplayCache, NoClientPushesOutAnother) {
  ReplayCache cache(8, 4096, 4);
  const auto asker = std::make_shared<Asker>();
  EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kNew);
  finish(cache, "a", 1);
  for (std::uint32_t xid = 0; xid < 1000; ++xid) {
    EXPECT_EQ(cache.begin("b", key(xid), asker), Verdict::kNew);
    finish(cache, "b", xid);
  }
  EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kAnswered);
  EXPECT_EQ(cache.begin("b", key(999), asker), Verdict::kAnswered);
  EXPECT_EQ(cache.begin("b", key(1), asker), Verdict::kNew);  // its own oldest are forgotten
}

TEST(ReplayCache, BulkRepliesAreNotKept) {
  ReplayCache cache(8, 4096, 4);
  const auto asker = std::make_shared<Asker>();
  EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kNew);
  EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kUnderWay);
  finish(cache, "a", 1, 2000);
  EXPECT_EQ(asker->told.size(), 1u);
  EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kNew);
}

TEST(ReplayCache, BoundsOctetsAndClients) {
  ReplayCache cache(100, 4096, 2);
  const auto asker = std::make_shared<Asker>();
  for (std::uint32_t xid = 0; xid < 5; ++xid) {
    EXPECT_EQ(cache.begin("a", key(xid), asker), Verdict::kNew);
    finish(cache, "a", xid, 1000);
  }
  EXPECT_EQ(cache.begin("a", key(0), asker), Verdict::kNew);  // 5000 octets: the oldest went; and now under way
  EXPECT_EQ(cache.begin("a", key(4), asker), Verdict::kAnswered);
  EXPECT_EQ(cache.begin("b", key(0), asker), Verdict::kNew);
  EXPECT_EQ(cache.begin("c", key(0), asker), Verdict::kNew);  // a and b have Calls under way: c is not remembered
  EXPECT_EQ(cache.begin("c", key(0), asker), Verdict::kNew);
  finish(cache, "b", 0);
  EXPECT_EQ(cache.begin("c", key(0), asker), Verdict::kNew);  // in the place of b
  EXPECT_EQ(cache.begin("c", key(0), asker), Verdict::kUnderWay);
  EXPECT_EQ(cache.begin("a", key(4), asker), Verdict::kAnswered);
}

TEST(ReplayCache, OffMeansNew) {
  ReplayCache cache(0, 4096, 2);
  const auto asker = std::make_shared<Asker>();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cache.begin("a", key(1), asker), Verdict::kNew);
    finish(cache, "a", 1);
  }
}

}  // namespace
}  // namespace iwarp::rpc::test
