// How connections end, and what both sides are told.
#include <sys/socket.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

class Ending : public ::testing::Test {
 protected:
  Ending() : ends_(join(client_, server_, *listener_)) {}

  Engine server_engine_, client_engine_;
  Node server_{server_engine_, {}, 1 << 20}, client_{client_engine_, {}, 1 << 20};
  std::unique_ptr<Listener> listener_ = listen(server_engine_);
  Ends ends_;
};

TEST_F(Ending, OrderlyCloseSendsWhatWasPosted) {
  COVERS("RFC5041-6.2.1-2");
  server_.recv(1);
  client_.send(2, client_.out.size());
  ends_.client.connection->disconnect();
  EXPECT_TRUE(client_.qp->post_send(verbs::SendWr{.wr_id = 3}).ok());
  client_.expect(verbs::WcOp::kSend, 2);
  client_.expect(verbs::WcOp::kSend, 3, Errc::kFlushed);
  server_.expect(verbs::WcOp::kRecv, 1);
  EXPECT_EQ(server_.in, client_.out);
  EXPECT_EQ(ending(*ends_.server.connection).reason.code, Errc::kPeerClosed);
  const stream::Disconnected how = ending(*ends_.client.connection);
  EXPECT_EQ(how.reason.code, Errc::kAborted);
  EXPECT_TRUE(how.was_established);
  EXPECT_TRUE(ordinary_end(how));
  ends_.client.connection->disconnect();  // no-op
}

TEST_F(Ending, OrderlyCloseFlushesReceives) {
  client_.recv(1);
  server_.recv(2);
  ends_.client.connection->disconnect();
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  server_.expect(verbs::WcOp::kRecv, 2, Errc::kFlushed);
}

TEST_F(Ending, AbortResets) {
  client_.recv(1);
  server_.recv(2);
  ends_.client.connection->abort();
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  server_.expect(verbs::WcOp::kRecv, 2, Errc::kFlushed);
  EXPECT_EQ(ending(*ends_.client.connection).reason.code, Errc::kAborted);
  const stream::Disconnected how = ending(*ends_.server.connection);
  EXPECT_EQ(how.reason.code, Errc::kConnectionLost);
  EXPECT_FALSE(ordinary_end(how));
}

TEST_F(Ending, AbortOfTheQueuePairEndsTheConnection) {
  client_.qp->abort();
  EXPECT_EQ(ending(*ends_.client.connection).reason.code, Errc::kAborted);
  EXPECT_EQ(ending(*ends_.server.connection).reason.code, Errc::kConnectionLost);
}

TEST_F(Ending, BothSidesAtOnce) {
  ends_.client.connection->disconnect();
  ends_.server.connection->disconnect();
  EXPECT_TRUE(ordinary_end(ending(*ends_.client.connection)));
  EXPECT_TRUE(ordinary_end(ending(*ends_.server.connection)));
}

TEST_F(Ending, EveryWaiterIsToldAndLateOnesToo) {
  auto& c = *ends_.client.connection;
  std::vector<std::future<stream::Disconnected>> waiters;
  for (int i = 0; i < 5; ++i) waiters.push_back(c.async_wait_disconnected(boost::asio::use_future));
  ends_.server.connection->disconnect();
  for (auto& w : waiters) EXPECT_EQ(get(std::move(w)).reason.code, Errc::kPeerClosed);
  EXPECT_EQ(ending(c).reason.code, Errc::kPeerClosed);
  ASSERT_TRUE(c.disconnected().has_value());
}

// disconnect() may be called with the application's own lock held: no handler may run inside it.
TEST_F(Ending, HandlersDoNotRunInsideTheCallsOfTheApplication) {
  const auto caller = std::this_thread::get_id();
  std::promise<std::thread::id> told;
  ends_.client.connection->async_wait_disconnected(
      [&](const stream::Disconnected&) { told.set_value(std::this_thread::get_id()); });
  ends_.client.connection->abort();
  EXPECT_NE(get(told.get_future()), caller);
}

TEST_F(Ending, TheConnectionOutlivesTheApplicationsReference) {
  const std::weak_ptr<Connection> weak = ends_.client.connection;
  ends_.client.connection.reset();
  EXPECT_FALSE(weak.expired());
  ping_pong(client_, server_);
  ends_.server.connection->disconnect();
  (void)ending(*ends_.server.connection);
  EXPECT_TRUE(eventually([&] { return weak.expired(); })) << "and goes when it is over";
}

TEST_F(Ending, ErrorTerminatesBothSidesAndTellsThem) {
  client_.recv(1);
  client_.send(2, 100);  // the server has no receive posted
  const stream::Disconnected server = ending(*ends_.server.connection), client = ending(*ends_.client.connection);
  EXPECT_EQ(server.reason.code, Errc::kUntaggedNoBuffer);
  EXPECT_TRUE(server.sent.has_value());
  EXPECT_EQ(client.reason.code, Errc::kRemoteTerminate);
  ASSERT_TRUE(client.received.has_value());
  EXPECT_NE(describe_end(*ends_.client.connection, client).find("terminate_received="), std::string::npos);
}

// Connects `peer` to the server's queue pair. Null when it fails.
std::shared_ptr<Connection> accept_raw(Listener& listener, Node& server, RawTcp& peer) {
  EXPECT_TRUE(peer.send(octets(good_request())));
  const auto request = next_request(listener);
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  EXPECT_TRUE(read_frame(peer, true).complete);
  EXPECT_TRUE(peer.send(fpdu(write_segment(Stag{0}, 0, {}), true)));
  const Outcome s = get_outcome(std::move(accepting));
  EXPECT_EQ(s.error.code, Errc::kOk);
  return s.error.code == Errc::kOk ? s.connection : nullptr;
}

// The peer's process dies: its kernel resets the connection.
TEST(PeerKill, ResetsUs) {
  Engine engine;
  const auto listener = listen(engine);
  Node server(engine);
  RawTcp peer = RawTcp::connect(listener->local().port());
  const auto connection = accept_raw(*listener, server, peer);
  ASSERT_NE(connection, nullptr);
  server.recv(1);
  peer.reset();
  server.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  EXPECT_EQ(ending(*connection).reason.code, Errc::kConnectionLost);
}

// Its host answers, but the application there takes nothing: no octet is lost, and nobody said Reset.
TEST(PeerStall, IsToldFromAReset) {
  struct Tap : ByteTap {
    void sent(const std::vector<ConstBytes>&, TimePoint) override {}
    void received(const std::vector<ConstBytes>&, TimePoint) override {}
    void sent_end(End, TimePoint) override {}
    void received_end(End how, TimePoint) override { seen.set_value(how); }
    std::promise<End> seen;
  };
  const auto tap = std::make_shared<Tap>();
  Engine engine;
  engine.set_tap_maker([&](const TapTarget&) { return tap; });
  ListenOptions options;
  options.socket.user_timeout = 500ms;
  const auto listener = listen(engine, options);
  Node server(engine, {}, 1 << 20);
  RawTcp peer = RawTcp::connect(listener->local().port());
  const auto connection = accept_raw(*listener, server, peer);
  ASSERT_NE(connection, nullptr);
  for (std::uint64_t i = 0; i < 32; ++i) server.send(i, server.out.size());  // more than TCP buffers
  const stream::Disconnected how = ending(*connection);
  EXPECT_EQ(how.reason.code, Errc::kConnectionLost);
  EXPECT_STREQ(how.reason.why, "TCP gave the peer up: it took nothing, or did not answer");
  EXPECT_EQ(get(tap->seen.get_future()), ByteTap::End::kSilence);
}

TEST(PeerKill, FinInsideAnFpduIsALoss) {
  Engine engine;
  const auto listener = listen(engine);
  Node server(engine);
  RawTcp peer = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(peer.send(octets(good_request())));
  const auto request = next_request(*listener);
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  ASSERT_TRUE(read_frame(peer, true).complete);
  const Bytes rtr = fpdu(write_segment(Stag{0}, 0, {}), true);
  ASSERT_TRUE(peer.send(rtr + Bytes(rtr.begin(), rtr.begin() + 5)));
  const Outcome s = get_outcome(std::move(accepting));
  ASSERT_EQ(s.error.code, Errc::kOk);
  peer.close();
  EXPECT_EQ(ending(*s.connection).reason.code, Errc::kConnectionLost);
}

TEST(Leaks, ConnectingAndDisconnectingTwoHundredTimes) {
  Engine server_engine, client_engine;
  const auto listener = listen(server_engine);
  std::size_t before = 0;
  for (int i = 0; i < 200; ++i) {
    if (i == 5) before = open_descriptors();
    Node server(server_engine, {}, 64), client(client_engine, {}, 64);
    const Ends ends = join(client, server, *listener);
    ASSERT_EQ(ends.client.error.code, Errc::kOk);
    if (i % 2 == 0) {
      ends.client.connection->disconnect();
    } else {
      ends.server.connection->abort();
    }
    (void)ending(*ends.client.connection);
    (void)ending(*ends.server.connection);
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(server_engine.context()->stags().size(), 0U);
}

TEST(Leaks, FailedConnects) {
  Engine engine;
  std::uint16_t nobody = 0;
  { nobody = RawListener().port(); }
  const RawListener silent(64);
  std::size_t before = 0;
  for (int i = 0; i < 30; ++i) {
    if (i == 3) before = open_descriptors();
    Node a(engine, {}, 64), b(engine, {}, 64);
    EXPECT_NE(get_outcome(start_connect(a, to_port(nobody))).error.code, Errc::kOk);
    mpa::Policy impatient;
    impatient.startup_timeout = 5ms;
    EXPECT_NE(get_outcome(start_connect(b, to_port(silent.port(), impatient))).error.code, Errc::kOk);
  }
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }))
      << open_descriptors() << " instead of " << before;
}

// One thread has the token, and waits for the queue pair's lock, when the timer rings in another.
TEST(EndingWhile, ATurnIsUnderWayAtItsDeadline) {
  boost::asio::io_context io;
  const auto work = boost::asio::make_work_guard(io);
  Engine engine(io);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&] { io.run(); });
  RawListener listener;
  stream::Options options;
  options.close_timeout = 300ms;
  options.early_wake = false;
  Node client(engine, options);
  mpa::Policy policy;
  policy.peer_to_peer = false;
  auto connecting = start_connect(client, to_port(listener.port(), policy));
  RawTcp peer = listener.accept();
  EXPECT_TRUE(read_frame(peer, false).complete);
  mpa::StartupFrame reply = good_reply();
  reply.enhanced_data = {.ird = 8, .ord = 8};
  EXPECT_TRUE(peer.send(octets(reply)));
  const auto [error, connection] = get_outcome(std::move(connecting));
  EXPECT_EQ(error.code, Errc::kOk) << error.why;
  const auto begin = std::chrono::steady_clock::now();
  connection->disconnect();
  std::this_thread::sleep_until(begin + 250ms);
  {
    const auto lock = client.qp->lock();
    EXPECT_TRUE(peer.send(Bytes(4)));  // part of an FPDU
    std::this_thread::sleep_until(begin + 350ms);
  }
  EXPECT_EQ(ending(*connection).reason.code, Errc::kAborted);
  io.stop();
}

// Only the engine holds the client's connection. Whoever is posting when it ends may be the last at it.
TEST(EndingWhile, SomebodyPosts) {
  Engine client_engine, server_engine;
  const auto listener = listen(server_engine);
  for (int round = 0; round < 300; ++round) {
    Node client(client_engine), server(server_engine);
    const auto connection = join(client, server, *listener).server.connection;
    ASSERT_NE(connection, nullptr);
    std::jthread ends([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(round % 50 * 10));
      round % 2 == 0 ? connection->abort() : connection->disconnect();
    });
    std::uint64_t posted = 0, completed = 0;
    while (client.qp->state() == verbs::QueuePairState::kRts || completed < posted) {
      const verbs::Sge sge{client.out.data(), 1024, client.out_mr.stag()};
      const verbs::SendWr write{.wr_id = posted,
                                .op = verbs::SendOp::kWrite,
                                .sges = sge,
                                .remote_stag = server.in_mr.stag(),
                                .remote_to = server.in_mr.base_to()};
      if (client.qp->state() == verbs::QueuePairState::kRts && client.qp->post_send(write)) ++posted;
      std::array<verbs::Completion, 16> some;
      completed += client.cq.poll(some);
    }
    EXPECT_EQ(completed, posted);
  }
}

}  // namespace
}  // namespace iwarp::cm
