// Messages that wait for a Receive, over TCP: its window closes, and nothing is lost.
#include <map>
#include <thread>

#include "iwarp/cm/link.h"
#include "iwarp/verbs/shared_receive_queue.h"
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

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

// A server whose queue pair waits for a Receive: nothing of its socket is read meanwhile.
class WhileAMessageWaits : public ::testing::Test {
 protected:
  void begin(const stream::Options& of_server, const stream::Options& of_client = {}) {
    client = std::make_unique<Node>(client_engine, of_client, kLong);
    server = std::make_unique<Node>(*server_engine, of_server, kLong);
    ends = join(*client, *server, *listener);
    client->send(1, 64);
    client->expect(verbs::WcOp::kSend, 1);
    ASSERT_TRUE(holds());
  }
  [[nodiscard]] bool holds() const {
    return eventually([&] {
      const auto lock = server->qp->lock();
      return server->qp->endpoint().holding();
    });
  }
  [[nodiscard]] std::size_t receives_come(std::size_t most) const {
    std::size_t n = 0;
    for (; n < most; ++n) {
      server->recv(n);
      if (server->next().status != Errc::kOk) break;
    }
    return n;
  }

  Engine client_engine;
  std::unique_ptr<Engine> server_engine = std::make_unique<Engine>();
  std::unique_ptr<Listener> listener = listen(*server_engine);
  std::unique_ptr<Node> client, server;
  Ends ends;
};

TEST_F(WhileAMessageWaits, AResetEndsTheConnection) {
  begin(waiting(1h));
  ends.client.connection->abort();
  const auto how = ending(*ends.server.connection);
  EXPECT_EQ(how.reason.code, Errc::kConnectionLost);
  server->recv(1);
  server->expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
}

TEST_F(WhileAMessageWaits, AResetOfWhoIsSentToEndsTheConnection) {
  begin(waiting(1h));
  for (std::uint64_t i = 0; i < 16; ++i) server->send(i, kLong);  // nobody takes that
  ends.client.connection->abort();
  EXPECT_NE(ending(*ends.server.connection).reason.code, Errc::kOk);
  for (std::uint64_t i = 0; i < 16; ++i) (void)server->next();
}

TEST_F(WhileAMessageWaits, WhatIsBeforeThePeersEndMayStillBeReceived) {
  begin(waiting(1h));
  client->send(2, kLong);
  client->expect(verbs::WcOp::kSend, 2);
  ends.client.connection->disconnect();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(receives_come(3), 2U);
  EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(ordinary_end(ending(*ends.client.connection)));
}

TEST_F(WhileAMessageWaits, ThePeersEndIsNotWaitedForLong) {
  auto o = waiting(1h);
  o.close_timeout = 50ms;
  stream::Options patient;
  patient.close_timeout = 1h;
  begin(o, patient);
  ends.client.connection->disconnect();
  EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kUntaggedNoBuffer);
  EXPECT_EQ(ending(*ends.client.connection).reason.code, Errc::kAborted);
}

// Though the message is never received.
TEST_F(WhileAMessageWaits, AnOrderlyEndTakesNotLong) {
  auto o = waiting(1h);
  o.close_timeout = 1h;
  begin(o);
  client->send(2, kLong);
  ends.server.connection->disconnect();
  EXPECT_TRUE(ordinary_end(ending(*ends.server.connection)));
  EXPECT_EQ(ending(*ends.client.connection).reason.code, Errc::kPeerClosed);
}

TEST_F(WhileAMessageWaits, TheOwnerMayLeave) {
  for (const bool disconnects : {false, true}) {
    auto o = waiting(1h);
    o.close_timeout = 1h;
    begin(o);
    if (disconnects) ends.server.connection->disconnect();
    server->qp->leave();
    EXPECT_EQ(ending(*ends.client.connection).reason.code, Errc::kPeerClosed);
    EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kAborted);
  }
}

// The time is up while the peer takes nothing: its end is seen all the same.
TEST(ReceiveWait, ItsEndReadsOn) {
  Engine engine;
  const auto listener = listen(engine);
  RawTcp peer = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(peer.send(octets(good_request())));
  const auto request = next_request(*listener);
  auto o = waiting(300ms);
  o.close_timeout = 1h;
  Node server(engine, o, std::size_t{4} << 20);
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(read_frame(peer, true).complete);
  ASSERT_TRUE(peer.send(fpdu(write_segment(Stag{0}, 0, {}), true)));
  const Outcome accepted = get_outcome(std::move(accepting));
  ASSERT_EQ(accepted.error.code, Errc::kOk);
  for (std::uint64_t i = 0; i < 8; ++i) server.send(i, server.out.size());
  ASSERT_TRUE(peer.send(fpdu(send_segment(pattern(8)), true)));
  ASSERT_TRUE(eventually([&] {
    const auto lock = server.qp->lock();
    return server.qp->endpoint().phase() == stream::Phase::kTerminating;
  }));
  std::this_thread::sleep_for(20ms);
  peer.shutdown_write();
  EXPECT_EQ(ending(*accepted.connection).reason.code, Errc::kUntaggedNoBuffer);
}

TEST_F(WhileAMessageWaits, TheEngineMayGo) {
  begin(waiting(1h));
  listener.reset();
  const auto qp = server->qp;
  const std::weak_ptr<Connection> connection = ends.server.connection;
  ends.server.connection.reset();
  std::thread([&] { server_engine.reset(); }).join();
  EXPECT_EQ(qp->state(), verbs::QueuePairState::kError);
  EXPECT_TRUE(connection.expired()) << "nobody keeps it";
  EXPECT_EQ(ending(*ends.client.connection).reason.code, Errc::kConnectionLost);
}

// Who completes and goes has sent what the other end takes only later.
TEST(ReceiveWait, WhatWasSentByWhoHasLeftComesLater) {
  constexpr std::uint64_t kMessages = 48;
  Engine client_engine, engine;
  stream::Options hasty;
  hasty.close_timeout = 50ms;
  hasty.sq_depth = kMessages;
  auto client = std::make_unique<Node>(client_engine, hasty, kLong);
  Node server(engine, waiting(1h), kLong);
  const auto listener = listen(engine);
  Ends ends = join(*client, server, *listener);
  std::uint64_t sent = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) client->send(i, kLong);
  for (; sent < kMessages && client->cq.wait_for(200ms); ++sent) EXPECT_EQ(client->next().status, Errc::kOk);
  ASSERT_GT(sent, 0U);
  client->qp->leave();
  EXPECT_EQ(ending(*ends.client.connection).reason.code, Errc::kAborted);  // its time is up
  for (std::uint64_t i = 0; i < sent; ++i) {
    server.recv(i);
    server.expect(verbs::WcOp::kRecv, i);
  }
}

TEST(ReceiveWait, ASharedQueueMayGo) {
  Engine client_engine, engine;
  verbs::ProtectionDomain pd(engine.context());
  verbs::CompletionQueue cq(64, &engine);
  auto srq = std::make_unique<verbs::SharedReceiveQueue>(pd, verbs::SharedReceiveQueue::Options{.depth = 4});
  const auto listener = listen(engine);
  Node client(client_engine);
  auto connecting = start_connect(client, to(*listener));
  const auto request = next_request(*listener);
  Link link = Link::make(pd, {.send_cq = &cq, .recv_cq = &cq, .stream = waiting(200ms), .srq = srq.get()}).value();
  auto accepted = link.async_accept(*request, {}, cm::as_error(boost::asio::use_future));
  const Outcome outcome = get_outcome(std::move(connecting));
  ASSERT_EQ(outcome.error.code, Errc::kOk);
  ASSERT_EQ(get_outcome(std::move(accepted)).error.code, Errc::kOk);
  client.send(1, 8);
  ASSERT_TRUE(eventually([&] {
    const auto lock = link->lock();
    return link->endpoint().holding();
  }));
  srq.reset();
  EXPECT_EQ(ending(*outcome.connection).reason.code, Errc::kRemoteTerminate);
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
  std::map<std::uint32_t, std::uint64_t> got;  // messages, of each queue pair
  const auto take = [&] {
    ASSERT_TRUE(cq.wait_for(kPatience));
    std::array<verbs::Completion, 16> some;
    const std::size_t n = cq.poll(some);
    for (const auto& c : std::span(some).first(n)) got[c.qp_number] += c.status == Errc::kOk ? 1 : 0;
  };
  const auto first = links[0]->number();
  while (got[first] < kMessages / 4 && !HasFatalFailure()) take();  // then it goes in the midst of its messages
  links[0].reset();
  for (std::size_t i = 1; i < links.size(); ++i) {
    while (got[links[i]->number()] < kMessages && !HasFatalFailure()) take();
  }
  senders.clear();
  over = true;
}

}  // namespace
}  // namespace iwarp::cm
