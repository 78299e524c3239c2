// Calls of all kinds over both kinds of network, with every kind of token.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <thread>

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

class Calls : public ::testing::TestWithParam<Carrier> {};
INSTANTIATE_TEST_SUITE_P(Over, Calls, ::testing::Values(Carrier::kMemory, Carrier::kIwarp), carrier_name);

TEST_P(Calls, ReturnResults) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  const auto sum = client.call(proc(kAdd), words({40, 2}));
  ASSERT_TRUE(sum.ok()) << sum.error().why;
  EXPECT_TRUE(sum->success());
  EXPECT_EQ(word(sum->results()), 42u);
  EXPECT_TRUE(client.call(proc(kNull), {})->results().empty());
  EXPECT_EQ(client.stats().replies, 2u);
  EXPECT_EQ(client.stats().connections, 1u);
}

TEST_P(Calls, EverySizeOfArgumentsAndResults) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  for (const std::size_t size : {0, 4, 1000, 3960, 4096, 65536, 1 << 20}) {
    const auto octets = pattern(size, 3);
    const auto echo = client.call(proc(kEcho), octets);
    ASSERT_TRUE(echo.ok()) << size << ' ' << echo.error().why;
    EXPECT_TRUE(std::ranges::equal(echo->results(), octets)) << size;
  }
}

TEST_P(Calls, ErrorsOfRpcAreReplies) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  EXPECT_EQ(client.call(proc(99), {})->accept_stat(), AcceptStat::kProcUnavail);
  EXPECT_EQ(client.call(proc(kThrow), {})->accept_stat(), AcceptStat::kSystemErr);
  EXPECT_EQ(client.call({kProgram + 1, 1, 0}, {})->accept_stat(), AcceptStat::kProgUnavail);
  const auto mismatch = client.call({kProgram, 7, 0}, {});
  EXPECT_EQ(mismatch->accept_stat(), AcceptStat::kProgMismatch);
  EXPECT_EQ(word(mismatch->message(), 6), 1u);  // the lowest
  EXPECT_EQ(word(mismatch->message(), 7), 1u);  // the highest
  Octets other_rpc = encode_call(proc(kNull), {}, {}, {});
  store_be(MutBytes(other_rpc).subspan(8, 4), std::uint32_t{3});
  const auto denied = client.exchange(other_rpc);
  ASSERT_TRUE(denied.ok());
  EXPECT_FALSE(denied->accepted());
}

TEST_P(Calls, CoroutinesAndFutures) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  auto future = client.async_call(proc(kAdd), words({1, 2}), {}, use_future);
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(word(future.get().results()), 3u);
  auto total = boost::asio::co_spawn(
      w.engine.get_executor(),
      [&]() -> awaitable<std::uint32_t> {
        std::uint32_t sum = 0;
        for (std::uint32_t i = 0; i < 100; ++i) {
          Octets arguments = words({sum, i});
          const Reply reply = co_await client.async_call(proc(kAdd), std::move(arguments), {}, use_awaitable);
          sum = word(reply.results());
        }
        co_return sum;
      },
      use_future);
  ASSERT_EQ(total.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(total.get(), 4950u);
}

TEST_P(Calls, CredentialsReachTheHandler) {
  World w(GetParam());
  std::promise<std::pair<std::uint32_t, Octets>> seen;
  w.server.serve(kProgram, 2, [&](Call call) -> awaitable<Answer> {
    seen.set_value({call.credential().flavor, copy(call.credential().body)});
    co_return AcceptStat::kSuccess;
  });
  Client client(w.engine, w.transport);
  const auto credential = Credential::sys("host", 1000, 100, {4, 24});
  EXPECT_TRUE(client.call({kProgram, 2, 0}, {}, {.credential = credential})->success());
  const auto [flavor, body] = seen.get_future().get();
  EXPECT_EQ(flavor, rpcrdma::kAuthSys);
  EXPECT_EQ(body, credential.body);
}

TEST_P(Calls, OneWayCallsAreExecuted) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(client.call(proc(kAdd), words({1, 2}), {.one_way = true}).ok());
  EXPECT_TRUE(eventually([&] { return w.program.executed == 500; }));
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
}

// What has left is not taken back, also where more Calls were made than there are credits.
TEST_P(Calls, OneWayCallsOutliveTheirClient) {
  World w(GetParam());
  for (unsigned round = 1; round <= 20; ++round) {
    {
      Client client(w.engine, w.transport);
      std::vector<std::future<Reply>> all;
      for (int i = 0; i < 40; ++i)
        all.push_back(client.async_call(proc(kAdd), words({1, 2}), {.one_way = true}, use_future));
      for (auto& one : all) ASSERT_EQ(one.wait_for(kPatience), std::future_status::ready);
    }
    ASSERT_TRUE(eventually([&] { return w.program.executed == 40 * round; })) << w.program.executed;
  }
}

// Nor is one that the server fetches by RDMA Read.
TEST_P(Calls, LongOneWayCallsOutliveTheirClient) {
  World w(GetParam());
  for (unsigned round = 1; round <= 20; ++round) {
    {
      Client client(w.engine, w.transport);
      ASSERT_TRUE(client.call(proc(kEcho), pattern(100000, round), {.one_way = true}).ok());
    }
    ASSERT_TRUE(eventually([&] { return w.program.executed == round; })) << w.program.executed;
  }
}

// Others that are under way, or that wait for a credit behind it, are no matter of its.
TEST_P(Calls, OneWayCallsWaitForNoOthers) {
  ServerOptions few{.threads = 4};
  few.responder.credits = 3;
  World w(GetParam(), few);
  Client client(w.engine, w.transport);
  ASSERT_TRUE(client.call(proc(kNull), {}).ok());
  std::vector<std::future<Reply>> slow;
  for (int i = 0; i < 2; ++i) slow.push_back(client.async_call(proc(kHold), words({1}), {}, use_future));
  ASSERT_TRUE(eventually([&] { return w.program.held == 2; }));
  auto one_way = client.async_call(proc(kHold), words({2}), {.one_way = true}, use_future);
  slow.push_back(client.async_call(proc(kAdd), words({1, 2}), {}, use_future));  // no credit is left for it
  EXPECT_EQ(one_way.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(slow.back().wait_for(0s), std::future_status::timeout);
  w.release();
  for (auto& one : slow) EXPECT_EQ(one.wait_for(kPatience), std::future_status::ready);
}

TEST_P(Calls, ResultsLongerThanAnnouncedAreRefused) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  const auto reply = client.call(proc(kMake), words({100000}), {.max_results = 50000});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::kRecordTooLong);
  EXPECT_TRUE(client.call(proc(kMake), words({100000}), {.max_results = 100008}).ok());
}

// The handler of one Reply begins the next Call: however many are ready at once, the stack stays as it is.
TEST_P(Calls, ChainsOfCallsDoNotDeepenTheStack) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  constexpr int kChains = 64, kLength = 100;
  std::atomic<int> left{kChains * kLength};
  std::promise<void> done;
  static thread_local int depth = 0;
  std::atomic<int> deepest{0};
  std::function<void(int)> next = [&](int n) {
    client.async_call(proc(kNull), {}, {}, [&, n](const Error& error, const Reply&) {
      ++depth;
      deepest = std::max(deepest.load(), depth);
      EXPECT_EQ(error.code, Errc::kOk) << error.why;
      if (n > 1) next(n - 1);
      if (--left == 0) done.set_value();
      --depth;
    });
  };
  for (int i = 0; i < kChains; ++i) next(kLength);
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(deepest, 1);
}

// A lock that the caller holds while it calls is free again before any handler runs.
TEST_P(Calls, HandlersDoNotRunInsideCalls) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  std::atomic<bool> inside{false};
  std::atomic<int> left{2000};
  std::promise<void> done;
  const auto caller = std::this_thread::get_id();
  for (int i = 0; i < 2000; ++i) {
    inside = true;
    client.async_call(proc(kNull), {}, {}, [&](const Error&, const Reply&) {
      EXPECT_FALSE(inside && std::this_thread::get_id() == caller);
      if (--left == 0) done.set_value();
    });
    inside = false;
  }
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
}

}  // namespace
}  // namespace iwarp::rpc::test
