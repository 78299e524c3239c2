// The connection is lost with Calls outstanding.
#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

TEST(Reconnect, OutstandingCallsAreSentAgainAndExecutedOnce) {
  COVERS("RFC8166-4.5.5-1");
  COVERS("RFC8167-4.3.1-3");
  World w(Carrier::kMemory, {.threads = 6});  // of which four will be held
  Client client(w.engine, w.transport);
  std::vector<std::future<Reply>> all;
  for (std::uint32_t i = 0; i < 4; ++i) all.push_back(client.async_call(proc(kHold), words({i}), {}, use_future));
  ASSERT_TRUE(eventually([&] { return w.program.held == 4; }));
  EXPECT_EQ(w.network.cut(), 1u);
  ASSERT_TRUE(eventually([&] { return client.stats().sent_again == 4; }));
  ASSERT_TRUE(eventually([&] { return w.server.stats().recognized == 4; }));
  w.release();
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(all[i].wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(word(all[i].get().results()), i);
  }
  EXPECT_EQ(w.program.executed, 4u);
  EXPECT_EQ(client.stats().connections, 2u);
}

// The Reply was lost, not the Call: the server answers from memory.
TEST(Reconnect, LostRepliesComeFromMemory) {
  COVERS("RFC8166-4.5.5-1");
  World w(Carrier::kMemory);
  Client client(w.engine, w.transport);
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());
  for (std::uint64_t n = 1; n <= 20; ++n) {
    w.network.cut_at_send(n % 2 + 1);  // the Call's Send, or that of the Reply
    const auto reply = client.call(proc(kAdd), words({1, static_cast<std::uint32_t>(n)}));
    ASSERT_TRUE(reply.ok()) << reply.error().why;
    EXPECT_EQ(word(reply->results()), 1 + n);
  }
  EXPECT_EQ(w.program.executed, 20u);
  EXPECT_EQ(w.server.stats().recognized, 10u);
}

TEST(Reconnect, OverIwarpTheServerDropsItsConnections) {
  World w(Carrier::kIwarp, {.threads = 4});
  Client client(w.engine, w.transport);
  auto held = client.async_call(proc(kHold), words({5}), {}, use_future);
  ASSERT_TRUE(eventually([&] { return w.program.held == 1; }));
  w.server.drop_connections();
  ASSERT_TRUE(eventually([&] { return w.server.stats().recognized == 1; }));
  w.release();
  ASSERT_EQ(held.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(word(held.get().results()), 5u);
  EXPECT_EQ(w.program.executed, 1u);
}

TEST(Reconnect, WithoutTheMemoryOfAnswersCallsAreExecutedAgain) {
  World w(Carrier::kMemory, {.threads = 2, .remembered_calls = 0});
  Client client(w.engine, w.transport);
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());
  w.network.cut_at_send(2);
  EXPECT_TRUE(client.call(proc(kAdd), words({1, 2})).ok());
  EXPECT_EQ(w.program.executed, 2u);
}

TEST(Reconnect, ByPolicyOutstandingCallsEndWithTheConnection) {
  World w(Carrier::kMemory);
  Client client(w.engine, w.transport, {.retransmit = false});
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  w.network.cut_at_send(2);
  const auto reply = client.call(proc(kNull), {});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::kConnectionLost);
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
}

TEST(Reconnect, AServerThatWasNeverThereIsToldAtOnce) {
  World w(Carrier::kMemory);
  w.network.refuse(true);
  Client client(w.engine, w.transport);
  const auto reply = client.call(proc(kNull), {});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::kConnectionRefused);
  Client patient(w.engine, w.transport, {.patient = true, .first_pause = 5ms});
  auto later = patient.async_call(proc(kNull), {}, {}, use_future);
  EXPECT_EQ(later.wait_for(30ms), std::future_status::timeout);
  w.network.refuse(false);
  ASSERT_EQ(later.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(later.get().success());
}

// A server that is away for a while: Calls wait for it, until their deadlines.
TEST(Reconnect, CallsWaitForAServerThatWasThere) {
  World w(Carrier::kMemory);
  Client client(w.engine, w.transport, {.first_pause = 5ms});
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  w.network.refuse(true);
  w.network.cut();
  EXPECT_EQ(client.call(proc(kNull), {}, {.timeout = 50ms}).error().code, Errc::kTimeout);
  auto later = client.async_call(proc(kNull), {}, {}, use_future);
  w.network.refuse(false);
  ASSERT_EQ(later.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(later.get().success());
}

}  // namespace
}  // namespace iwarp::rpc::test
