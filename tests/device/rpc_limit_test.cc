// Client and Server over a device, within a limit of locked memory (RLIMIT_MEMLOCK): what users have by default, 8 MiB,
// is less than the Calls of a Client may need at a time.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <deque>

#include "tests/device/rpc_over_device.h"

namespace iwarp::rpc::test {
namespace {

using namespace std::chrono_literals;

class RpcWithinALimit : public RpcOverDevice {
 protected:
  // A Call that says nothing of its results has a Reply chunk of 1 MiB, which counts as memory and while it is exposed.
  static constexpr std::size_t kOfACall = (2u << 20) + (256u << 10);

  // Connects, and leaves room for so many such Calls.
  void start(std::size_t calls) {
    serve({.threads = 4});
    client.emplace(engine, to_server());
    ASSERT_TRUE(client->call(proc(kAdd), words({1, 2}), {.max_results = 4}).ok());
    verbs.fake().limit_locked(calls * kOfACall + (1u << 20));  // the latter is too little for one
  }
  // One that the server keeps.
  [[nodiscard]] std::future<Reply> hold(std::chrono::milliseconds timeout = 60s) {
    const unsigned before = program.held;
    auto held = client->async_call(proc(kHold), words({7}), {.timeout = timeout}, use_future);
    EXPECT_TRUE(eventually([&] { return program.held > before; }));
    return held;
  }

  std::optional<Client> client;
};

TEST_F(RpcWithinALimit, CallsWaitForEachOther) {
  start(2);
  std::vector<std::future<Reply>> all;
  for (std::uint32_t i = 0; i < 200; ++i) all.push_back(client->async_call(proc(kAdd), words({i, 5}), {}, use_future));
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].wait_for(kPatience), std::future_status::ready) << i;
    EXPECT_EQ(word(all[i].get().results()), i + 5);
  }
  EXPECT_EQ(client->stats().connections, 1u);
}

TEST_F(RpcWithinALimit, ACallThatIsAloneSaysWhatIsShort) {
  start(0);
  verbs.fake().limit_locked(kOfACall - (1u << 20));  // for its memory, and not to expose it
  const auto failed = client->call(proc(kAdd), words({1, 2}));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::kResource);
  EXPECT_NE(std::string(failed.error().why).find("ulimit -l"), std::string::npos);
  verbs.fake().limit_locked(kOfACall);
  EXPECT_TRUE(client->call(proc(kAdd), words({1, 2})).ok());
}

// Their memory counts until they are let go of.
TEST_F(RpcWithinALimit, CallsWaitForRepliesThatAreKept) {
  start(0);
  verbs.fake().limit_locked(kOfACall + (512u << 10));
  auto kept = client->call(proc(kMake), words({50000}));
  ASSERT_TRUE(kept.ok()) << kept.error().why;
  auto waits = client->async_call(proc(kAdd), words({1, 2}), {}, use_future);
  EXPECT_EQ(waits.wait_for(50ms), std::future_status::timeout);
  kept = Reply();
  ASSERT_EQ(waits.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(word(waits.get().results()), 3u);
  EXPECT_EQ(client->stats().connections, 1u);
}

// Nobody is left for it.
TEST_F(RpcWithinALimit, ACallThatIsLateWhileOthersWait) {
  start(2);
  auto late = hold(500ms);
  std::deque<std::future<Reply>> all;
  while (late.wait_for(0ms) != std::future_status::ready) {
    all.push_back(client->async_call(proc(kAdd), words({1, 2}), {}, use_future));
    if (all.size() < 16) continue;
    ASSERT_EQ(all.front().wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(word(all.front().get().results()), 3u);
    all.pop_front();
  }
  EXPECT_THROW((void)late.get(), boost::system::system_error);
  for (auto& each : all) ASSERT_EQ(each.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(client->stats().timeouts, 1u);
  EXPECT_EQ(client->stats().connections, 1u);
}

TEST_F(RpcWithinALimit, WhoIsCancelledLetsOthersPass) {
  start(1);
  auto held = hold();
  boost::asio::cancellation_signal signal;
  std::promise<Error> cancelled;
  client->async_call(proc(kAdd), words({1, 2}), {},
                     boost::asio::bind_cancellation_slot(
                         signal.slot(), [&](const Error& error, const Reply&) { cancelled.set_value(error); }));
  auto behind = client->async_call(proc(kAdd), words({3, 4}), {.max_results = 4}, use_future);
  EXPECT_EQ(behind.wait_for(50ms), std::future_status::timeout);
  signal.emit(boost::asio::cancellation_type::terminal);
  EXPECT_EQ(cancelled.get_future().get().code, Errc::kAborted);
  ASSERT_EQ(behind.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(word(behind.get().results()), 7u);
  EXPECT_NE(held.wait_for(0ms), std::future_status::ready);
  EXPECT_EQ(client->stats().connections, 1u);
}

}  // namespace
}  // namespace iwarp::rpc::test
