// The TCP front: clients that take nothing, or send without end.
#include <boost/asio/write.hpp>

#include "tests/gateway/chained.h"
#include "tests/gateway/flood.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

// A client that reads slowly, when the server goes away.
class ChainedSlow : public Chained {
 protected:
  static constexpr std::uint32_t kReads = 24;
  static constexpr std::uint32_t kBytes = 1u << 20;
  // All Replies have come to the TCP front, which cannot get rid of them, and the server is gone.
  std::shared_ptr<TcpPeer> stuck_client() {
    options.memory_bytes = 32u << 20;
    open();
    open_tcp(front->local());
    auto c = warm_client();
    c->pause();
    for (std::uint32_t xid = 1; xid <= kReads; ++xid) c->send(samples::read_call(xid, kBytes));
    EXPECT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kReply).received == kReads + 1; }));
    server.peers.back()->close();
    EXPECT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
    EXPECT_LT(tcp_front->snapshot().tcp_bytes[static_cast<std::size_t>(Way::kOut)], std::uint64_t{kReads} * kBytes);
    return c;
  }
};

TEST_F(ChainedSlow, GetsWhatIsCompleteBeforeTheConnectionCloses) {
  options.delivery_timeout = 100s;  // to compare 24 MiB takes long under a sanitizer
  auto c = stuck_client();
  c->send(samples::null_call(99));  // too late: must not turn the end into a reset
  c->resume();
  for (std::uint32_t n = 0; n < kReads; ++n) {
    const Bytes reply = await(*c);
    ASSERT_FALSE(reply.empty());
    const auto xid = load_be<std::uint32_t>(reply);
    EXPECT_TRUE(reply == samples::read_reply(xid, pattern(kBytes, xid)));
  }
  ASSERT_TRUE(loop.until([&] { return c->ended(); }));
  EXPECT_FALSE(c->was_reset());
  c->close();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  expect_tcp_front_adds_up();
}

TEST_F(ChainedSlow, IsNotWaitedForLongerThanTheLimit) {
  options.delivery_timeout = 300ms;
  auto c = stuck_client();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }, 5s));
  EXPECT_LT(tcp_front->snapshot().tcp_bytes[static_cast<std::size_t>(Way::kOut)], std::uint64_t{kReads} * kBytes);
  expect_tcp_front_adds_up();
}

// Records that are dropped at once, faster than they can be read: nobody else waits for their end.
TEST_F(Chained, AFloodOfRecordsStarvesNobody) {
  auto good = warm_client();
  tcp::socket socket(loop.io);
  socket.connect(tcp_front->local());
  const Flood flood(std::move(socket), samples::words({7, 1}));  // Replies to no backward Call
  const auto dropped = [&] {
    return tcp_messages(MessageKind::kBackwardReply).dropped[static_cast<std::size_t>(DropReason::kUnknownXid)];
  };
  ASSERT_TRUE(loop.until([&] { return dropped() > 10000; }));
  for (std::uint32_t xid = 1; xid <= 10; ++xid) {
    good->send(samples::null_call(xid));
    EXPECT_EQ(await(*good), samples::rpc_reply(xid));
  }
  EXPECT_FALSE(flood.exhausted());
}

// The same while all that is left to do is to deliver what the client does not take.
TEST_F(ChainedSlow, AFloodOfRecordsDoesNotKeepItBeyondTheLimit) {
  options.delivery_timeout = 300ms;
  options.memory_bytes = 32u << 20;
  open();
  open_tcp(front->local());
  tcp::socket socket(loop.io);
  socket.connect(tcp_front->local());
  boost::asio::write(socket, boost::asio::buffer(record_mark(samples::null_call(1).size()) + samples::null_call(1)));
  ASSERT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kReply).forwarded == 1; }));
  for (std::uint32_t xid = 2; xid < 2 + kReads; ++xid) {
    const Bytes call = samples::read_call(xid, kBytes);
    boost::asio::write(socket, boost::asio::buffer(record_mark(call.size()) + call));
  }
  ASSERT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kReply).received == kReads + 1; }));
  const Flood flood(std::move(socket), samples::words({7, 1}));
  server.peers.back()->close();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  const auto& dropped = tcp_messages(MessageKind::kBackwardReply).dropped;
  EXPECT_GT(dropped[static_cast<std::size_t>(DropReason::kConnectionClosed)], 0U);  // taken while delivering
  EXPECT_FALSE(flood.exhausted());
}

// Urgent data mean nothing here. They stay in the socket until somebody takes them, and would keep the loop awake.
TEST_F(Chained, UrgentDataKeepNobodyAwake) {
  tcp::socket socket(loop.io);
  socket.connect(tcp_front->local());
  for (std::uint32_t n = 1; n <= 3; ++n) {
    boost::asio::write(socket, boost::asio::buffer(record_mark(samples::null_call(n).size()) + samples::null_call(n)));
    ASSERT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kReply).forwarded == n; }));
    loop.run_for(50ms);
    const char octet = 'x';
    socket.send(boost::asio::buffer(&octet, 1), tcp::socket::message_out_of_band);
    loop.run_for(50ms);
    loop.io.restart();
    EXPECT_LT(loop.io.run_for(50ms), 100U);
  }
  EXPECT_EQ(tcp_front->snapshot().active(), 1U);
}

// Through both kinds of session: their own wake-ups are no use of the connection.
TEST_F(Chained, AnIdleConnectionGivesMemoryBackAndSleeps) {
  options.keep_idle_memory = 300ms;
  open();
  open_tcp(front->local());
  const auto regions = [](const cm::Engine& engine) { return engine.context()->stags().size(); };
  auto c = warm_client();
  for (std::uint32_t xid = 1; xid <= 4; ++xid) c->send(samples::read_call(xid, 1u << 20));
  for (std::uint32_t xid = 1; xid <= 4; ++xid) ASSERT_FALSE(await(*c).empty());
  loop.run_for(100ms);
  c->send(samples::null_call(5));
  EXPECT_EQ(await(*c), samples::rpc_reply(5));
  const std::size_t rdma_front = regions(gateway_engine), tcp_front_regions = regions(client_engine);
  EXPECT_TRUE(loop.until([&] { return regions(gateway_engine) < rdma_front; }, 2s));
  EXPECT_TRUE(loop.until([&] { return regions(client_engine) < tcp_front_regions; }, 2s));
  loop.run_for(1s);  // what was not needed for a while goes first, the rest a while after the last use
  loop.io.restart();
  EXPECT_EQ(loop.io.run_for(1s), 0U);
}

// A TCP client that sends much and takes nothing: memory stays bounded, others are served.
TEST_F(Chained, SlowClientsSlowOnlyThemselves) {
  options.memory_bytes = 4u << 20;
  server.keep_calls = false;
  open();
  open_tcp(front->local());
  auto slow = tcp_client();
  slow->pause();
  constexpr std::uint32_t kCalls = 100;
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) {
    slow->send(xid % 2 == 0 ? samples::write_call(xid, pattern(1u << 20)) : samples::read_call(xid, 1u << 20));
  }
  Stats::Snapshot last;
  do {
    last = tcp_front->snapshot();
    loop.run_for(200ms);
  } while (!(last == tcp_front->snapshot()));
  EXPECT_GT(slow->unsent_bytes(), 0u);
  auto quick = tcp_client();
  quick->send(samples::null_call(1));
  EXPECT_EQ(await(*quick), samples::rpc_reply(1));
  slow->resume();
  for (std::uint32_t n = 0; n < kCalls; ++n) ASSERT_FALSE(await(*slow).empty());
  expect_tcp_front_adds_up();
}

}  // namespace
}  // namespace iwarp::gateway::test
