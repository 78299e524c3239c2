// The memory of all connections together: whoever takes much of it does not take it from the others.
#include <algorithm>

#include "tests/gateway/chained.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kBig = 1u << 20;
constexpr std::uint32_t kMany = 16;

class MemoryLimit : public Chained {
 protected:
  void SetUp() override {}
};

// Clients that send Calls of 1 MiB to a server that does not read, and an honest one.
TEST_F(MemoryLimit, ServesOthersWhileGreedyClientsWait) {
  options.process_memory_bytes = 32u << 20;
  open();
  std::vector<std::unique_ptr<RdmaClient>> greedy;
  std::vector<std::shared_ptr<Exposed>> calls;
  auto honest = client();
  honest->call(samples::null_call(7));  // its server reads
  (void)honest->await(7);
  server.start_paused = true;
  for (int n = 0; n < 4; ++n) greedy.push_back(client());  // while there is memory for more
  for (const auto& each : greedy) {
    RdmaClient& c = *each;
    for (std::uint32_t xid = 1; xid <= kMany; ++xid) {
      calls.push_back(c.expose_for_read(samples::write_call(xid, pattern(kBig, xid))));
      auto h = samples::header(xid, rpcrdma::Proc::kNomsg);
      h.read_list = {{0, calls.back()->segment}};
      c.send(h);
    }
  }
  ASSERT_TRUE(loop.until([&] { return log_lines("no memory for a message") > 0; }));
  const auto room = honest->expose_for_write(kBig);
  auto h = samples::header(1);
  h.write_list = {rpcrdma::WriteChunk{{room->segment}}};
  honest->send(h, samples::read_call(1, kBig));
  EXPECT_EQ(honest->await(1).payload, samples::read_reply_head(1, kBig));
  EXPECT_TRUE(room->memory == pattern(kBig, 1));
  for (const auto& peer : server.peers) peer->resume();
  for (const auto& c : greedy) {
    for (std::uint32_t xid = 1; xid <= kMany; ++xid) ASSERT_EQ(c->await(xid).payload, samples::write_reply(xid));
  }
  expect_nothing_pending();
}

// The same of TCP clients, whose Calls and Replies take memory at both fronts; the small ones finish as well.
TEST_F(MemoryLimit, LetsEveryTcpClientFinish) {
  options.process_memory_bytes = 24u << 20;
  open();
  open_tcp(front->local());
  std::vector<std::shared_ptr<TcpPeer>> clients;
  for (int n = 0; n < 6; ++n) clients.push_back(warm_client());
  for (const auto& c : clients) {
    for (std::uint32_t xid = 1; xid <= kMany; ++xid) {
      c->send(xid % 2 == 0 ? samples::write_call(xid, pattern(kBig)) : samples::read_call(xid, kBig));
    }
  }
  for (const auto& c : clients) {
    for (std::uint32_t n = 1; n <= kMany; ++n) ASSERT_FALSE(await(*c).empty());
  }
  expect_tcp_front_adds_up();
}

// Each holds the memory of a first fragment, and needs more for its second one.
TEST_F(MemoryLimit, RecordsThatGrowDoNotWaitForEachOther) {
  constexpr std::uint32_t kFragment = 250u << 10;
  options.process_memory_bytes = 32u << 20;
  options.record_deadline = 200ms;
  open();
  open_tcp(front->local());
  const auto honest = warm_client();
  std::vector<std::shared_ptr<TcpPeer>> growing;
  for (int n = 0; n < 36; ++n) growing.push_back(warm_client());
  for (const auto& c : growing) {
    c->send_raw(record_mark(kFragment, false) + pattern(kFragment));
    c->send_raw(record_mark(kBig - kFragment));
  }
  ASSERT_TRUE(loop.until([&] { return log_lines("no memory for a message") > 0; }));
  honest->send(samples::write_call(1, pattern(kBig)));
  EXPECT_EQ(await(*honest), samples::write_reply(1));
}

TEST_F(MemoryLimit, RefusesConnectionsWhenItIsUsedUp) {
  options.process_memory_bytes = 8u << 20;
  open();
  std::vector<std::unique_ptr<RdmaClient>> clients;
  bool refused_one = false;
  for (int n = 0; n < 20 && !refused_one; ++n) {
    clients.push_back(std::make_unique<RdmaClient>(loop, client_engine));
    refused_one = !clients.back()->connect(front->local());
  }
  EXPECT_TRUE(refused_one);
  EXPECT_GT(clients.size(), 5U);
  EXPECT_EQ(refused(RefuseReason::kLimit), 1U);
  EXPECT_TRUE(logged("see --memory", 1));
  clients.resize(3);
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 3; }));
  settle();
  expect_still_serving();
}

// Each is looked at before any of them has taken memory: the server's connections come when all are waiting for them.
TEST_F(MemoryLimit, RefusesConnectionsThatComeTogether) {
  constexpr int kClients = 20, kFirst = 2;
  options.process_memory_bytes = 8u << 20;
  options.backend_timeout = 60s;
  tcp::acceptor late(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  late.listen(0);  // drops SYNs while its queue is full
  std::vector<tcp::socket> first;
  for (int n = 0; n < kFirst; ++n) {
    first.emplace_back(loop.io).async_connect(late.local_endpoint(), [](boost::system::error_code) {});
  }
  loop.run_for(20ms);
  const auto process = std::make_shared<Process>(gateway_engine, ProcessOptions::of_one(options));
  auto opened = RdmaFront::open(gateway_engine, {boost::asio::ip::make_address("127.0.0.1"), 0},
                                {"127.0.0.1", late.local_endpoint().port()}, options, process);
  ASSERT_TRUE(opened.ok());
  front = std::move(*opened);
  std::vector<std::unique_ptr<RdmaClient>> clients;
  for (int n = 0; n < kClients; ++n) {
    clients.push_back(std::make_unique<RdmaClient>(loop, client_engine));
    clients.back()->begin_connect(front->local());
  }
  ASSERT_TRUE(loop.until([&] { return process->connections() == kClients; }));
  EXPECT_EQ(front->snapshot().active(), 0U);
  late.listen(2 * kClients);
  std::vector<std::shared_ptr<TcpPeer>> peers;
  const std::function<void()> accept = [&] {
    late.async_accept([&](boost::system::error_code ec, tcp::socket socket) {
      if (ec) return;
      const auto& peer = peers.emplace_back(std::make_shared<TcpPeer>(std::move(socket)));
      peer->on_record = [](TcpPeer& from, const Bytes& call) { from.send(serve(call)); };
      peer->start();
      accept();
    });
  };
  accept();
  ASSERT_TRUE(loop.until(
      [&] { return std::all_of(clients.begin(), clients.end(), [](const auto& c) { return c->decided(); }); }));
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() + refused(RefuseReason::kLimit) == clients.size(); }))
      << "some found no memory for their Receives";
  EXPECT_GT(front->snapshot().active(), 5U);
  const auto served =
      std::find_if(clients.begin(), clients.end(), [](const auto& c) { return c->error().code == Errc::kOk; });
  ASSERT_NE(served, clients.end());
  const auto call = (*served)->expose_for_read(samples::write_call(1, pattern(kBig)));
  auto h = samples::header(1, rpcrdma::Proc::kNomsg);
  h.read_list = {{0, call->segment}};
  (*served)->send(h);
  EXPECT_EQ((*served)->await(1).payload, samples::write_reply(1));
  late.close();
}

TEST_F(MemoryLimit, RefusesTcpClientsThatComeTogether) {
  open();
  options.process_memory_bytes = 8u << 20;
  open_tcp(front->local());
  std::vector<std::shared_ptr<TcpPeer>> clients;
  for (int n = 0; n < 20; ++n) clients.push_back(tcp_client());
  const auto refused_ones = [&] { return tcp_front->snapshot().of(RefuseReason::kLimit); };
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() + refused_ones() == clients.size(); }));
  EXPECT_GT(tcp_front->snapshot().active(), 5U);
  ASSERT_TRUE(loop.until([&] {
    return std::count_if(clients.begin(), clients.end(), [](const auto& c) { return c->ended(); }) ==
           static_cast<std::ptrdiff_t>(refused_ones());
  }));
  const auto served = std::find_if(clients.begin(), clients.end(), [](const auto& c) { return !c->ended(); });
  ASSERT_NE(served, clients.end());
  (*served)->send(samples::write_call(1, pattern(kBig)));
  EXPECT_EQ(await(**served), samples::write_reply(1));
}

// Whoever is refused when its connection to the server is there already comes again, and its replays need the port that
// its lost connection had.
TEST_F(MemoryLimit, ARefusedClientKeepsItsSourcePort) {
  options.process_memory_bytes = 1u << 20;  // for two
  const RdmaClient::Options elsewhere{.source = boost::asio::ip::make_address("127.0.0.2")};
  tcp::acceptor busy(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  busy.listen(0);  // drops SYNs while its queue is full
  open({"127.0.0.1", busy.local_endpoint().port()});
  std::vector<tcp::socket> accepted;
  const auto accept = [&] {  // what has come, or comes when the gateway moves on
    const std::size_t before = accepted.size();
    busy.async_accept([&](boost::system::error_code, tcp::socket socket) { accepted.push_back(std::move(socket)); });
    ASSERT_TRUE(loop.until([&] { return accepted.size() > before; }));
  };
  std::uint16_t port = 0;
  {
    auto lost = client(elsewhere);
    accept();
    port = accepted.back().remote_endpoint().port();
    lost->call(samples::null_call(1));
    ASSERT_TRUE(loop.until([&] { return messages(MessageKind::kCall).forwarded == 1; }));
    lost->abort();
    ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  }
  tcp::socket first(loop.io), second(loop.io);
  for (tcp::socket* s : {&first, &second}) s->async_connect(busy.local_endpoint(), [](boost::system::error_code) {});
  loop.run_for(20ms);
  std::vector<std::unique_ptr<RdmaClient>> clients;
  for (int n = 0; n < 2; ++n) clients.push_back(std::make_unique<RdmaClient>(loop, client_engine));
  for (const auto& c : clients) c->begin_connect(front->local());
  loop.run_for(50ms);
  RdmaClient again(loop, client_engine, elsewhere);
  again.begin_connect(front->local());
  loop.run_for(50ms);
  EXPECT_FALSE(again.decided()) << "refused before its connection to the server was made";
  busy.listen(16);
  for (int n = 0; n < 2; ++n) accept();
  ASSERT_TRUE(loop.until([&] { return again.decided() && clients[0]->decided() && clients[1]->decided(); }));
  EXPECT_NE(again.error().code, Errc::kOk);
  EXPECT_EQ(refused(RefuseReason::kLimit), 1U) << "it found no memory for its Receives";
  clients.clear();
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  settle();
  for (int n = 0; n < 3; ++n) accept();
  auto served = client(elsewhere);
  accept();
  EXPECT_EQ(accepted.back().remote_endpoint().port(), port);
}

}  // namespace
}  // namespace iwarp::gateway::test
