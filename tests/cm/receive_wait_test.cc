// Messages that wait for a Receive, over TCP: its window closes, and nothing is lost.
#include <thread>

#include "iwarp/cm/link.h"
#include "iwarp/verbs/shared_receive_queue.h"
#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

stream::Options waiting(std::chrono::milliseconds wait) {
  stream::Options o;
  o.receive_wait = wait;
  return o;
}

constexpr std::size_t kLong = 256 * 1024;

class ReceiveWaitOverTcp : public ::testing::TestWithParam<Engine::Mode> {};

// Far more than the sockets hold, to a server that posts its Receives when it likes.
TEST_P(ReceiveWaitOverTcp, LosesNothing) {
  constexpr std::uint64_t kMessages = 48;
  Engine client_engine, server_engine(GetParam());
  Node client(client_engine, {}, kLong), server(server_engine, waiting(kPatience), kLong);
  auto listener = listen(client_engine);
  // The server's end connects: either mode can do that from this thread.
  auto connecting = start_connect(server, to(*listener));
  auto coming = listener->async_accept(cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(eventually([&] {
    server_engine.poll();
    return coming.wait_for(0s) == std::future_status::ready;
  }));
  const auto request = std::get<1>(coming.get());
  auto accepting = request->async_accept(client.qp, {}, cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(server_engine.wait_for(connecting, kPatience));
  client.recv(100);
  server.send(100, 8);  // opens the way for the other end
  server.expect(verbs::WcOp::kSend, 100);
  client.expect(verbs::WcOp::kRecv, 100);
  ASSERT_EQ(get_outcome(std::move(accepting)).error.code, Errc::kOk);
  for (std::uint64_t i = 0; i < kMessages; ++i) client.send(i, kLong);
  if (GetParam() == Engine::Mode::kManual) {
    for (int i = 0; i < 100; ++i) server_engine.poll();
  } else {
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_TRUE(server.cq.empty());
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    server.recv(i);
    server.expect(verbs::WcOp::kRecv, i);
    ASSERT_EQ(server.in, client.out) << i;
    std::ranges::fill(server.in, std::byte{0});
  }
  for (std::uint64_t i = 0; i < kMessages; ++i) client.expect(verbs::WcOp::kSend, i);
}

INSTANTIATE_TEST_SUITE_P(Modes, ReceiveWaitOverTcp, ::testing::Values(Engine::Mode::kAutomatic, Engine::Mode::kManual),
                         [](const auto& mode) { return mode.param == Engine::Mode::kManual ? "manual" : "automatic"; });

TEST(ReceiveWait, EndsWithATerminateWhenTheTimeIsUp) {
  Engine engine;
  Node client(engine), server(engine, waiting(20ms));
  const auto listener = listen(engine);
  const Ends ends = join(client, server, *listener);
  client.send(1, 64);
  EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kUntaggedNoBuffer);
  const auto how = ending(*ends.client.connection);
  EXPECT_EQ(how.reason.code, Errc::kRemoteTerminate);
  ASSERT_TRUE(how.received);
}

// A thread posts to the shared queue while several connections wait, and end.
TEST(ReceiveWait, OfASharedQueueWhileConnectionsComeAndGo) {
  constexpr std::size_t kSlot = 64;
  constexpr std::uint64_t kMessages = 200;
  Engine client_engine, engine;
  verbs::ProtectionDomain pd(engine.context());
  verbs::CompletionQueue cq(8192, &engine);
  Bytes memory(kSlot);
  const auto mr = verbs::MemoryRegion::register_memory(pd, memory, {.access = ddp::Access::kLocalWrite}).value();
  verbs::SharedReceiveQueue srq(pd, {.depth = 4});
  const auto listener = listen(engine);
  std::vector<std::unique_ptr<Node>> clients;
  std::vector<Link> links;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Node>(client_engine));
    auto connecting = start_connect(*clients.back(), to(*listener));
    const auto request = next_request(*listener);
    links.push_back(
        Link::make(pd, {.send_cq = &cq, .recv_cq = &cq, .stream = waiting(kPatience), .srq = &srq}).value());
    auto accepted = links.back().async_accept(*request, {}, cm::as_error(boost::asio::use_future));
    ASSERT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
    ASSERT_EQ(get_outcome(std::move(accepted)).error.code, Errc::kOk);
  }
  std::atomic<bool> over{false};
  std::jthread poster([&] {
    const verbs::Sge sge{memory.data(), kSlot, mr.stag()};
    while (!over) {
      if (!srq.post_recv({.wr_id = 1, .sges = sge})) std::this_thread::yield();
    }
  });
  std::vector<std::jthread> senders;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    senders.emplace_back([&client = *clients[i]] {
      for (std::uint64_t n = 0; n < kMessages; ++n) {
        client.send(n, 8);
        if (client.next().status != Errc::kOk) return;
      }
    });
  }
  std::size_t got = 0;
  while (got < kMessages) {  // of all, then one goes in the midst of its messages
    ASSERT_TRUE(cq.wait_for(kPatience));
    std::array<verbs::Completion, 16> some;
    got += cq.poll(some);
  }
  links[0].reset();
  while (got < 3 * kMessages) {
    ASSERT_TRUE(cq.wait_for(kPatience));
    std::array<verbs::Completion, 16> some;
    got += cq.poll(some);
  }
  senders.clear();
  over = true;
}

}  // namespace
}  // namespace iwarp::cm
