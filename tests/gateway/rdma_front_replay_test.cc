// The RDMA connection is cut after the server has executed a Call and before its Reply: the client's replay must meet
// the server's duplicate-request cache, which is keyed by address, port and xid. First against a cache in this test,
// then against nfs-ganesha.
#include <set>

#include "tests/gateway/front_fixture.h"
#include "tests/gateway/ganesha.h"
#include "tests/gateway/nfs3.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

// Makes and removes directories, once per (address, port, xid).
class CachingServer {
 public:
  explicit CachingServer(RpcServer& server) {
    server.on_call = [this](TcpPeer& from, const Bytes& call) {
      const auto key = std::make_tuple(from.remote().address(), from.remote().port(), load_be<std::uint32_t>(call));
      auto known = cache_.find(key);
      if (known == cache_.end()) {
        known = cache_.emplace(key, execute(call)).first;
        ++executed;
      }
      if (!silent) from.send(known->second);
    };
  }
  unsigned executed = 0;
  bool silent = false;

 private:
  Bytes execute(const Bytes& call) {
    const auto head = rpcrdma::RpcCall::parse(call);
    const std::string name(1, static_cast<char>(std::to_integer<char>(call.back())));
    const bool make = head->procedure == 9;
    const bool done = make ? made_.insert(name).second : made_.erase(name) > 0;
    return samples::rpc_reply(head->xid, samples::words({done ? nfs3::kOk : make ? nfs3::kExists : nfs3::kNoEntry}));
  }
  std::map<std::tuple<boost::asio::ip::address, std::uint16_t, std::uint32_t>, Bytes> cache_;
  std::set<std::string> made_;
};

Bytes mkdir_call(std::uint32_t xid) {
  return samples::rpc_call(xid, samples::kNfs, 3, 9, samples::words({0x61}));
}
Bytes rmdir_call(std::uint32_t xid) {
  return samples::rpc_call(xid, samples::kNfs, 3, 13, samples::words({0x61}));
}

class Replay : public FrontFixture {
 protected:
  void SetUp() override { open(); }
  std::optional<std::uint32_t> ask(RdmaClient& c, const Bytes& call) {
    c.call(call);
    return nfs3::status(c.await(load_be<std::uint32_t>(call)).payload);
  }
  // The server executes `call` and the connection is lost before its Reply.
  void lose_reply(CachingServer& s, const Bytes& call, RdmaClient::Options with = {}) {
    auto c = client(with);
    s.silent = true;
    const unsigned before = s.executed;
    c->call(call);
    ASSERT_TRUE(loop.until([&] { return s.executed == before + 1; }));
    c->abort();
    ASSERT_TRUE(loop.until([&] { return server.peers.back()->ended() && front->snapshot().active() == 0; }));
    s.silent = false;
  }
};

// Kernel servers believe such a port only, and replays must come from the same one.
TEST_F(Replay, ComesFromTheReservedPortOfTheLostConnection) {
  if (!may_bind_reserved_ports()) GTEST_SKIP() << "needs CAP_NET_BIND_SERVICE";
  options.reserved_port = ReservedPort::kRequire;
  open();
  CachingServer s(server);
  lose_reply(s, mkdir_call(0x51));
  auto other = client({.source = boost::asio::ip::make_address("127.0.0.9")});
  auto again = client();
  EXPECT_EQ(ask(*again, mkdir_call(0x51)), nfs3::kOk);
  ASSERT_EQ(server.peers.size(), 3u);
  for (const auto& peer : server.peers) EXPECT_TRUE(is_reserved(peer->remote().port())) << peer->remote();
  EXPECT_EQ(server.peers[2]->remote(), server.peers[0]->remote());
  EXPECT_EQ(front->snapshot().of(Incident::kHighPort), 0u);
}

TEST_F(Replay, SucceedsBecauseTheSourcePortIsKept) {
  COVERS("RFC8167-4.3.2-3");
  CachingServer s(server);
  lose_reply(s, mkdir_call(0x51));
  auto again = client();
  EXPECT_EQ(ask(*again, mkdir_call(0x51)), nfs3::kOk);
  EXPECT_EQ(s.executed, 1u);
  EXPECT_EQ(server.peers[0]->remote(), server.peers[1]->remote());
  EXPECT_EQ(ask(*again, mkdir_call(0x52)), nfs3::kExists);
  again.reset();
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  lose_reply(s, rmdir_call(0x53));
  EXPECT_EQ(ask(*client(), rmdir_call(0x53)), nfs3::kOk);
}

// The test above can fail: another client address gets another port, and with it a cold cache.
TEST_F(Replay, FailsFromAnotherPort) {
  CachingServer s(server);
  lose_reply(s, mkdir_call(0x51));
  auto other = client({.source = boost::asio::ip::make_address("127.0.0.9")});
  EXPECT_EQ(ask(*other, mkdir_call(0x51)), nfs3::kExists);
}

// The Reply had left the gateway, but did not arrive.
TEST_F(Replay, SucceedsWhenTheReplyWasLostOnTheWay) {
  CachingServer s(server);
  Relay relay(loop, front->local());
  auto c = std::make_unique<RdmaClient>(loop, client_engine);
  ASSERT_TRUE(c->connect(relay.local()));
  relay.hold_replies(true);
  c->call(mkdir_call(0x51));
  ASSERT_TRUE(loop.until([&] { return messages(MessageKind::kReply).forwarded == 1 && relay.held_bytes() > 0; }));
  relay.cut();
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0 && server.peers[0]->ended(); }));
  EXPECT_EQ(ask(*client(), mkdir_call(0x51)), nfs3::kOk);
  EXPECT_EQ(s.executed, 1u);
}

// Nobody waits until the gateway has heard of the loss.
TEST_F(Replay, SucceedsThoughTheClientIsBackAtOnce) {
  CachingServer s(server);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const bool make = i % 2 == 0;
    const Bytes call = make ? mkdir_call(0x100 + i) : rmdir_call(0x100 + i);
    auto lost = client();
    s.silent = true;
    lost->call(call);
    ASSERT_TRUE(loop.until([&] { return s.executed == i + 1; }));
    s.silent = false;
    lost->abort();
    ASSERT_EQ(ask(*client(), call), nfs3::kOk) << i;
    ASSERT_EQ(s.executed, i + 1);
    ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  }
}

// Failed attempts in between must not use up the port.
TEST_F(Replay, SucceedsAfterFailedAttempts) {
  CachingServer s(server);
  lose_reply(s, mkdir_call(0x51));
  Relay relay(loop, front->local());
  relay.hold_replies(true);
  mpa::Policy no_fallback;
  no_fallback.allow_revision_1_fallback = false;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    RdmaClient hasty(loop, client_engine, {.policy = no_fallback});
    hasty.begin_connect(relay.local());
    ASSERT_TRUE(loop.until([&] { return relay.held_bytes() > 0; }));  // the MPA Reply
    relay.cut();
    ASSERT_TRUE(loop.until([&] { return hasty.decided() && refused(RefuseReason::kHandshakeFailed) == i; }));
  }
  EXPECT_EQ(ask(*client(), mkdir_call(0x51)), nfs3::kOk);
  EXPECT_EQ(s.executed, 1u);
}

// Several connections of one client come back to their own ports, in the order of their losses.
TEST_F(Replay, KeepsThePortsOfSeveralConnectionsApart) {
  CachingServer s(server);
  auto a = client();
  auto b = client();
  s.silent = true;
  a->call(mkdir_call(0x51));
  ASSERT_TRUE(loop.until([&] { return s.executed == 1; }));
  b->call(rmdir_call(0x52));
  ASSERT_TRUE(loop.until([&] { return s.executed == 2; }));
  a->abort();
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 1; }));
  b->abort();
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  s.silent = false;
  a = client();
  b = client();
  EXPECT_EQ(ask(*a, mkdir_call(0x51)), nfs3::kOk);
  EXPECT_EQ(ask(*b, rmdir_call(0x52)), nfs3::kOk);
  EXPECT_EQ(s.executed, 2u);
}

// --- The real thing.

class GaneshaReplay : public FrontFixture {
 protected:
  void SetUp() override {
    const std::string missing = ganesha.start();
    if (!missing.empty()) GTEST_SKIP() << missing;
    boost::asio::ip::tcp::socket socket(loop.io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), ganesha.mount_port()});
    auto mountd = std::make_shared<TcpPeer>(std::move(socket));
    mountd->start();
    mountd->send(nfs3::mount(1, "/export"));
    ASSERT_TRUE(loop.until([&] { return !mountd->inbox.empty(); }));
    const auto handle = nfs3::mounted(mountd->inbox.front());
    ASSERT_TRUE(handle);
    root = *handle;
  }
  // Calls through gateway and relay, cuts the client once the server has answered, replays; gives the status of the
  // replay's Reply.
  std::optional<std::uint32_t> replay_after_cut(Relay& relay, const Bytes& call) {
    auto c = client();
    c->call(nfs3::call(1, samples::kNfs, 0, {}));  // the connection is up to the server
    (void)c->await(1);
    relay.hold_replies(true);
    c->call(call);
    EXPECT_TRUE(loop.until([&] { return relay.held_bytes() > 0; })) << "nfs-ganesha does not answer";
    c->abort();
    EXPECT_TRUE(loop.until([&] { return relay.live() == 0 && front->snapshot().active() == 0; }));
    relay.hold_replies(false);
    // nfs-ganesha drops the replay of a Call that it is not done with, though its Reply has left. Then the client comes
    // again, as clients do: when its former connection has ended, whose port the gateway keeps for it.
    std::optional<Decoded> reply;
    for (int attempt = 0; attempt < 5 && !reply; ++attempt) {
      c = client();
      c->call(call);
      (void)loop.until([&] { return (reply = c->take(load_be<std::uint32_t>(call))).has_value(); }, 2s);
      if (reply) break;
      c->abort();
      EXPECT_TRUE(loop.until([&] { return relay.live() == 0 && front->snapshot().active() == 0; }));
    }
    if (!reply) return std::nullopt;
    return nfs3::status(reply->payload);
  }

  Ganesha ganesha;
  Bytes root;
};

TEST_F(GaneshaReplay, OfMkdirAndRmdirSucceeds) {
  Relay relay(loop, {boost::asio::ip::make_address("127.0.0.1"), ganesha.nfs_port()},
              boost::asio::ip::make_address("127.0.0.2"));
  open({"127.0.0.1", relay.local().port()});
  EXPECT_EQ(replay_after_cut(relay, nfs3::mkdir(0x1001, root, "made")), nfs3::kOk);
  EXPECT_TRUE(ganesha.exists("made"));
  EXPECT_EQ(replay_after_cut(relay, nfs3::rmdir(0x1002, root, "made")), nfs3::kOk);
  EXPECT_FALSE(ganesha.exists("made"));
}

// The test above can fail: when the server sees another port for each connection, the replay is executed.
TEST_F(GaneshaReplay, FailsFromAnotherPort) {
  Relay relay(loop, {boost::asio::ip::make_address("127.0.0.1"), ganesha.nfs_port()});
  open({"127.0.0.1", relay.local().port()});
  EXPECT_EQ(replay_after_cut(relay, nfs3::mkdir(0x1001, root, "made")), nfs3::kExists);
  EXPECT_EQ(replay_after_cut(relay, nfs3::rmdir(0x1002, root, "made")), nfs3::kNoEntry);
}

}  // namespace
}  // namespace iwarp::gateway::test
