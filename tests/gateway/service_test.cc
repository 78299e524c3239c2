// Several listeners in one process: what they share, and how they change while connections go on.
#include "iwarp/gateway/service.h"

#include <gmock/gmock.h>

#include "tests/gateway/front_fixture.h"

namespace iwarp::gateway::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Changes = Service::Changes;

class GatewayService : public FrontFixture {
 protected:
  ~GatewayService() override {
    clients.clear();
    service.reset();
  }

  ListenerSettings rdma(const std::string& name, std::uint16_t port = 0) {
    ListenerSettings s;
    s.name = name;
    s.listen = {boost::asio::ip::make_address("127.0.0.1"), port};
    s.server = server.host_port();
    s.options = options;
    return s;
  }
  // In front of what listens at `to`.
  ListenerSettings tcp_before(const std::string& name, const tcp::endpoint& to) {
    ListenerSettings s = rdma(name);
    s.direction = Direction::kTcpToRdma;
    s.server = {to.address().to_string(), to.port()};
    s.options.insecure_ports = true;
    return s;
  }
  Changes apply(std::vector<ListenerSettings> listeners) {
    settings.listeners = std::move(listeners);
    if (!service) service = std::make_unique<Service>(gateway_engine, settings.process);
    const auto changes = service->apply(settings);
    EXPECT_TRUE(changes) << changes.error;
    return changes.value.value_or(Changes{});
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const FrontStatus& f : service->fronts()) out.push_back(f.name + (f.listening ? "" : " (removed)"));
    return out;
  }
  FrontStatus front_named(const std::string& name) const {
    for (const FrontStatus& f : service->fronts()) {
      if (f.name == name) return f;
    }
    ADD_FAILURE() << "no listener " << name;
    return {};
  }
  RdmaClient& connect(const std::string& name) {
    clients.push_back(std::make_unique<RdmaClient>(loop, client_engine));
    EXPECT_TRUE(clients.back()->connect(front_named(name).local));
    EXPECT_TRUE(loop.until([&] { return front_named(name).stats.opened > 0; }));
    return *clients.back();
  }
  void expect_refused(const tcp::endpoint& to) {
    RdmaClient::Options once;
    once.policy.allow_revision_1_fallback = false;
    RdmaClient c(loop, client_engine, once);
    EXPECT_FALSE(c.connect(to));
  }
  void expect_served(RdmaClient& c, std::uint32_t xid) {
    c.call(samples::null_call(xid));
    EXPECT_EQ(c.await(xid).payload, samples::rpc_reply(xid));
  }

  ServiceSettings settings;
  std::unique_ptr<Service> service;
  std::vector<std::unique_ptr<RdmaClient>> clients;
};

TEST_F(GatewayService, ServesSeveralListenersInBothDirections) {
  EXPECT_EQ(apply({rdma("a"), rdma("b")}), (Changes{.added = 2}));
  apply({rdma("a"), rdma("b"), tcp_before("t", front_named("a").local)});
  EXPECT_THAT(names(), ElementsAre("a", "b", "t"));
  EXPECT_EQ(front_named("t").direction, Direction::kTcpToRdma);
  EXPECT_EQ(front_named("b").server, server.host_port());
  expect_served(connect("b"), 1);
  tcp::socket socket(loop.io);
  socket.connect(front_named("t").local);
  auto client = std::make_shared<TcpPeer>(std::move(socket));
  client->start();
  client->send(samples::null_call(2));
  ASSERT_TRUE(loop.until([&] { return !client->inbox.empty(); }));
  EXPECT_EQ(client->inbox.front(), samples::rpc_reply(2));
  // The counters of each, and their sum.
  EXPECT_EQ(front_named("a").stats.opened, 1u);
  EXPECT_EQ(front_named("b").stats.opened, 1u);
  EXPECT_EQ(front_named("t").stats.opened, 1u);
  EXPECT_EQ(service->snapshot().opened, 3u);
  EXPECT_TRUE(logged("b: established", 1));
  client->close();
}

TEST_F(GatewayService, SharesThePlacesForConnections) {
  settings.process.max_connections = 2;
  apply({rdma("a"), rdma("b")});
  expect_served(connect("a"), 1);
  expect_served(connect("b"), 2);
  EXPECT_EQ(service->process().connections(), 2u);
  expect_refused(front_named("a").local);
  EXPECT_TRUE(logged("the gateway has as many connections as it may have", 1));
  settings.process.max_connections = 3;
  apply({rdma("a"), rdma("b")});
  expect_served(connect("a"), 3);
  settings.process.max_connections_per_client = 3;
  settings.process.max_connections = 9;
  apply({rdma("a"), rdma("b")});
  expect_refused(front_named("b").local);
  EXPECT_TRUE(logged("this client has as many connections as it may have", 1));
}

TEST_F(GatewayService, SharesTheMemory) {
  settings.process.memory_bytes = std::size_t{8} << 20;
  apply({rdma("a"), rdma("b")});
  EXPECT_EQ(service->process().memory()->used(), 0u);
  connect("a");
  const std::size_t one = service->process().memory()->used();
  EXPECT_GT(one, 0u);
  connect("b");
  EXPECT_EQ(service->process().memory()->used(), 2 * one);
  settings.process.memory_bytes = 2 * one;
  apply({rdma("a"), rdma("b")});
  expect_refused(front_named("a").local);
  EXPECT_TRUE(logged(kNoMemory, 1));
}

TEST_F(GatewayService, SharesTheLimitsOfTheLog) {
  options.allow = *AccessList::parse("192.0.2.1").value;
  apply({rdma("a"), rdma("b")});
  std::size_t refused = 0;
  const auto lines = [&] { return log_lines("its address is not in --allow"); };
  while (refused < 400 && lines() == refused) {  // five a second of the process
    for (const char* name : {"a", "b"}) expect_refused(front_named(name).local);
    refused += 2;
  }
  EXPECT_EQ(service->snapshot().of(RefuseReason::kNotAllowed), refused);
  EXPECT_LT(lines(), refused);
}

TEST_F(GatewayService, AReloadWithoutChangesChangesNothing) {
  apply({rdma("a"), rdma("b")});
  const auto before = front_named("a").local;
  EXPECT_EQ(apply({rdma("a"), rdma("b")}), Changes{});
  EXPECT_EQ(front_named("a").local, before);
}

TEST_F(GatewayService, NewConnectionsGetTheNewSettingsAndOldOnesKeepTheirs) {
  apply({rdma("a")});
  RdmaClient& old = connect("a");
  expect_served(old, 1);
  options.allow = *AccessList::parse("192.0.2.1").value;
  options.credits = 8;
  EXPECT_EQ(apply({rdma("a")}), (Changes{.changed = 1}));
  expect_refused(front_named("a").local);
  EXPECT_EQ(service->snapshot().of(RefuseReason::kNotAllowed), 1u);
  old.call(samples::null_call(2));
  EXPECT_EQ(old.await(2).header.credits, Options{}.credits);
  options.allow = {};
  apply({rdma("a")});
  RdmaClient& fresh = connect("a");
  fresh.call(samples::null_call(3));
  EXPECT_EQ(fresh.await(3).header.credits, 8u);
}

TEST_F(GatewayService, NewConnectionsGetTheNewPolicy) {
  apply({rdma("a")});
  connect("a");
  options.policy.crc = mpa::Policy::Crc::kOff;  // refuses a peer that wants a CRC
  apply({rdma("a")});
  loop.run_for(std::chrono::milliseconds(1));
  expect_refused(front_named("a").local);
}

TEST_F(GatewayService, ARemovedListenerStopsAcceptingAndItsConnectionsGoOn) {
  apply({rdma("a"), rdma("b")});
  RdmaClient& c = connect("a");
  // One is at the server while the listener is removed.
  std::vector<TcpPeer*> asked;
  server.on_call = [&](TcpPeer& peer, const Bytes&) { asked.push_back(&peer); };
  c.call(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return asked.size() == 1; }));
  const auto place = front_named("a").local;
  EXPECT_EQ(apply({rdma("b")}), (Changes{.removed = 1}));
  EXPECT_THAT(names(), ElementsAre("b", "a (removed)"));
  EXPECT_EQ(front_named("a").connections, 1u);
  expect_refused(place);
  asked[0]->send(samples::rpc_reply(1));
  EXPECT_EQ(c.await(1).payload, samples::rpc_reply(1));
  server.on_call = nullptr;
  expect_served(c, 2);
  // It is forgotten with its last connection, its counters are not.
  c.disconnect();
  EXPECT_TRUE(loop.until([&] { return names() == std::vector<std::string>{"b"}; }));
  EXPECT_EQ(service->snapshot().of(MessageKind::kCall).forwarded, 2u);
  EXPECT_EQ(service->snapshot().closed, 1u);
}

TEST_F(GatewayService, ARemovedListenerWithoutConnectionsIsForgotten) {
  apply({rdma("a"), rdma("b"), tcp_before("t", tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 1))});
  EXPECT_EQ(apply({}), (Changes{.removed = 3}));
  EXPECT_TRUE(loop.until([&] { return names().empty(); }));
}

TEST_F(GatewayService, AListenerMovesAndMayBeRenamed) {
  apply({rdma("a")});
  RdmaClient& c = connect("a");
  const auto at = front_named("a").local;
  EXPECT_EQ(apply({rdma("b")}), (Changes{.added = 1, .removed = 1}));  // port 0 is another each time
  expect_served(c, 1);
  c.disconnect();
  ASSERT_TRUE(loop.until([&] { return names() == std::vector<std::string>{"b"}; }));
  EXPECT_EQ(apply({rdma("b"), rdma("z", at.port())}), (Changes{.added = 1}));
  // The address makes it the same, whatever its name.
  EXPECT_EQ(apply({rdma("b"), rdma("y", at.port())}), (Changes{.changed = 1}));
  EXPECT_THAT(names(), ElementsAre("b", "y"));
  // A name keeps its listener together where it moves.
  ListenerSettings moved = rdma("y");
  moved.listen.address(boost::asio::ip::make_address("127.0.0.2"));
  EXPECT_EQ(apply({rdma("b"), moved}), (Changes{.changed = 1}));
  EXPECT_EQ(front_named("y").local.address().to_string(), "127.0.0.2");
  expect_served(connect("y"), 2);
}

TEST_F(GatewayService, WhatCannotListenChangesNothing) {
  tcp::acceptor taken(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  apply({rdma("a")});
  RdmaClient& c = connect("a");
  const ServiceSettings before = settings;
  ServiceSettings wrong = settings;
  wrong.process.max_connections = 1;
  wrong.listeners = {rdma("new"), rdma("bad", taken.local_endpoint().port())};
  const auto changes = service->apply(wrong);
  EXPECT_FALSE(changes);
  EXPECT_THAT(changes.error, HasSubstr("bad: cannot listen on 127.0.0.1:"));
  EXPECT_THAT(names(), ElementsAre("a"));
  EXPECT_EQ(service->process().options(), before.process);
  expect_served(c, 1);
  expect_served(connect("a"), 2);
}

TEST_F(GatewayService, DrainsAllOfThem) {
  apply({rdma("a"), rdma("b")});
  RdmaClient& a = connect("a");
  RdmaClient& b = connect("b");
  apply({rdma("b")});  // the first has a connection yet
  std::vector<std::pair<TcpPeer*, std::uint32_t>> asked;
  server.on_call = [&](TcpPeer& peer, const Bytes& call) {
    asked.emplace_back(&peer, std::to_integer<std::uint32_t>(call.at(3)));
  };
  a.call(samples::null_call(1));
  b.call(samples::null_call(2));
  ASSERT_TRUE(loop.until([&] { return asked.size() == 2; }));
  int done = 0;
  service->drain([&] { ++done; });
  loop.run_for(std::chrono::milliseconds(5));
  EXPECT_EQ(done, 0);
  for (const auto& [peer, xid] : asked) peer->send(samples::rpc_reply(xid));
  EXPECT_TRUE(loop.until([&] { return done == 1 && a.closed() && b.closed(); }));
  EXPECT_EQ(service->snapshot().of(MessageKind::kReply).forwarded, 2u);
}

TEST_F(GatewayService, DrainsWithoutListenersToo) {
  apply({});
  bool done = false;
  service->drain([&] { done = true; });
  EXPECT_TRUE(loop.until([&] { return done; }));
}

// The port that a server knows a client by is the listener's no longer, but the server's.
TEST_F(GatewayService, SharesThePortsTowardsAServer) {
  apply({rdma("a"), rdma("b")});
  RdmaClient& c = connect("a");
  expect_served(c, 1);
  const auto port = server.peers.at(0)->remote().port();
  c.abort();
  ASSERT_TRUE(loop.until([&] { return front_named("a").connections == 0; }));
  expect_served(connect("b"), 2);
  EXPECT_EQ(server.peers.at(1)->remote().port(), port);
}

// Nothing was outstanding, but a Reply need not have arrived. The kernel keeps no port back for a minute.
TEST_F(GatewayService, TheNextProcessHasThePortOfAClientAfterADrain) {
  apply({rdma("a")});
  expect_served(connect("a"), 1);
  const auto port = server.peers.at(0)->remote().port();
  bool done = false;
  service->drain([&] { done = true; });
  ASSERT_TRUE(loop.until([&] { return done; }));

  // As by the file in which they are kept.
  const auto known = service->process().ports().of(server.host_port())->entries(std::chrono::steady_clock::now());
  service = std::make_unique<Service>(gateway_engine, settings.process);
  for (const auto& entry : known)
    service->process().ports().of(server.host_port())->restore(entry, std::chrono::steady_clock::now());
  apply({rdma("a")});
  expect_served(connect("a"), 2);
  EXPECT_EQ(server.peers.at(1)->remote().port(), port);
  EXPECT_EQ(log_lines("source port"), 0u);
}

}  // namespace
}  // namespace iwarp::gateway::test
