#include "iwarp/rpc/replay_cache.h"

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

struct Connection final : ReplayCache::Connection {
  void tell(rpcrdma::CallToken call, const Octets& reply) override {
    calls.push_back(call.slot);
    told.push_back(reply);
  }
  std::vector<std::uint32_t> calls;
  std::vector<Octets> told;
};

using Verdict = ReplayCache::Verdict;

ReplayCache::Key key(std::uint32_t xid) {
  return ReplayCache::key_of(words({xid, 0, 2, 3})).value();
}

// A cache at a time of its own.
struct Cache {
  explicit Cache(const ReplayCache::Limits& limits) : cache(limits) {}
  Verdict begin(const std::string& client, const ReplayCache::Key& k, const std::shared_ptr<Connection>& connection) {
    return cache.begin(client, k, {connection, {1, 1}}, now);
  }
  Verdict begin(const std::string& client, std::uint32_t xid) { return begin(client, key(xid), asker); }
  void finish(const std::string& client, std::uint32_t xid, std::size_t octets = 24) {
    cache.finish(client, key(xid), Octets(octets), {}, now);
  }
  ReplayCache cache;
  std::shared_ptr<Connection> asker = std::make_shared<Connection>();
  TimePoint now{std::chrono::hours(1000)};
};

TEST(ReplayCache, AnswersOnceExecutedCalls) {
  Cache c({8, 4096, 4});
  EXPECT_EQ(c.begin("a", 1), Verdict::kNew);
  EXPECT_EQ(c.begin("a", 1), Verdict::kUnderWay);
  EXPECT_TRUE(c.asker->told.empty());
  c.cache.finish("a", key(1), words({1, 2}), words({3}), c.now);
  EXPECT_EQ(c.asker->told, std::vector<Octets>{words({1, 2, 3})});
  EXPECT_EQ(c.begin("a", 1), Verdict::kAnswered);
  EXPECT_EQ(c.asker->told.size(), 2u);
  EXPECT_EQ(c.asker->calls, (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(c.begin("b", 1), Verdict::kNew);                                                          // another client
  EXPECT_EQ(c.begin("a", ReplayCache::key_of(words({1, 0, 2, 4})).value(), c.asker), Verdict::kNew);  // another Call
}

TEST(ReplayCache, KeysTakeInEveryOctet) {
  auto call = pattern(10000, 1);
  const auto first = ReplayCache::key_of(call);
  EXPECT_EQ(first, ReplayCache::key_of(call));
  for (const std::size_t at : {0, 4, 23, 1023, 1024, 9999}) {
    auto other = call;
    other[at] ^= std::byte{1};
    EXPECT_NE(first, ReplayCache::key_of(other)) << at;
  }
  EXPECT_NE(first, ReplayCache::key_of(ConstBytes(call).first(9999)));
}

TEST(ReplayCache, NoClientPushesOutAnother) {
  Cache c({8, 4096, 4});
  EXPECT_EQ(c.begin("a", 1), Verdict::kNew);
  c.finish("a", 1);
  for (std::uint32_t xid = 0; xid < 1000; ++xid) {
    EXPECT_EQ(c.begin("b", xid), Verdict::kNew);
    c.finish("b", xid);
  }
  EXPECT_EQ(c.begin("a", 1), Verdict::kAnswered);
  EXPECT_EQ(c.begin("b", 999), Verdict::kAnswered);
  EXPECT_EQ(c.begin("b", 1), Verdict::kNew);  // its own oldest are forgotten
}

// A peer that connects, asks, and goes, again and again.
TEST(ReplayCache, WhoHasGoneIsNotKept) {
  Cache c({8, 4096, 4});
  EXPECT_EQ(c.begin("a", 1), Verdict::kNew);
  for (int i = 0; i < 1000; ++i) {
    const auto comes = std::make_shared<Connection>();
    EXPECT_EQ(c.begin("a", key(1), comes), Verdict::kUnderWay);
    EXPECT_EQ(comes.use_count(), 1);
    EXPECT_EQ(c.cache.askers(), 1u);
  }
  EXPECT_EQ(c.begin("a", 1), Verdict::kUnderWay);
  c.finish("a", 1);
  EXPECT_EQ(c.asker->told.size(), 1u);
  EXPECT_EQ(c.cache.askers(), 0u);
}

TEST(ReplayCache, AnswersAge) {
  Cache c({8, 4096, 4, 100s});
  EXPECT_EQ(c.begin("a", 1), Verdict::kNew);
  EXPECT_EQ(c.begin("a", 2), Verdict::kNew);
  c.now += 1000s;  // a slow handler
  EXPECT_EQ(c.begin("a", 1), Verdict::kUnderWay);
  c.finish("a", 1);
  c.now += 60s;
  c.finish("a", 2);
  c.now += 40s;
  EXPECT_EQ(c.begin("a", 1), Verdict::kAnswered);
  c.now += 1s;
  EXPECT_EQ(c.begin("a", 1), Verdict::kNew);
  EXPECT_EQ(c.begin("a", 2), Verdict::kAnswered);
  c.finish("a", 1);
}

TEST(ReplayCache, QuietClientsAreForgotten) {
  Cache c({8, 4096, 100, 100s});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(c.begin("quiet" + std::to_string(i), 1), Verdict::kNew);
    if (i != 0) c.finish("quiet" + std::to_string(i), 1);  // the first has its Call under way
  }
  EXPECT_EQ(c.cache.clients(), 50u);
  c.now += 101s;
  for (std::uint32_t xid = 0; xid < 30; ++xid) {
    EXPECT_EQ(c.begin("a", xid), Verdict::kNew);
    c.finish("a", xid);
  }
  EXPECT_EQ(c.cache.clients(), 2u);
  EXPECT_EQ(c.begin("quiet0", 1), Verdict::kUnderWay);
}

TEST(ReplayCache, BulkRepliesAreNotKept) {
  Cache c({8, 4096, 4});
  EXPECT_EQ(c.begin("a", 1), Verdict::kNew);
  EXPECT_EQ(c.begin("a", 1), Verdict::kUnderWay);
  c.finish("a", 1, 2000);
  EXPECT_EQ(c.asker->told.size(), 1u);
  EXPECT_EQ(c.begin("a", 1), Verdict::kNew);
}

TEST(ReplayCache, BoundsOctetsAndClients) {
  Cache c({100, 4096, 2});
  for (std::uint32_t xid = 0; xid < 5; ++xid) {
    EXPECT_EQ(c.begin("a", xid), Verdict::kNew);
    c.finish("a", xid, 1000);
  }
  EXPECT_EQ(c.begin("a", 0), Verdict::kNew);  // 5000 octets: the oldest went; and now under way
  EXPECT_EQ(c.begin("a", 4), Verdict::kAnswered);
  EXPECT_EQ(c.begin("b", 0), Verdict::kNew);
  EXPECT_EQ(c.begin("c", 0), Verdict::kNew);  // a and b have Calls under way: c is not remembered
  EXPECT_EQ(c.begin("c", 0), Verdict::kNew);
  c.finish("b", 0);
  EXPECT_EQ(c.begin("c", 0), Verdict::kNew);  // in the place of b
  EXPECT_EQ(c.begin("c", 0), Verdict::kUnderWay);
  EXPECT_EQ(c.begin("a", 4), Verdict::kAnswered);
}

TEST(ReplayCache, OffMeansNew) {
  Cache c({0, 4096, 2});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(c.begin("a", 1), Verdict::kNew);
    c.finish("a", 1);
  }
}

}  // namespace
}  // namespace iwarp::rpc::test
