// Versions of RPC-over-RDMA below a Client and a Server, and the draft of 2005.
#include <array>

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

ServerOptions server_of(std::uint32_t version) {
  ServerOptions out{.threads = 2};
  out.responder.highest_version = version;
  return out;
}

ClientOptions client_of(std::uint32_t highest, std::uint32_t lowest = rpcrdma::kVersion1) {
  ClientOptions out;
  out.requester.highest_version = highest;
  out.requester.lowest_version = lowest;
  return out;
}

class Versions : public ::testing::TestWithParam<Carrier> {};
INSTANTIATE_TEST_SUITE_P(Over, Versions, ::testing::Values(Carrier::kMemory, Carrier::kIwarp), carrier_name);

TEST_P(Versions, TheHighestOfBothIsSpoken) {
  for (const auto& [server, client, spoken] : {std::tuple{2u, 2u, 2u}, {1u, 2u, 1u}, {2u, 1u, 1u}}) {
    World w(GetParam(), server_of(server));
    Client caller(w.engine, w.transport, client_of(client));
    for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(word(caller.call(proc(kAdd), words({i, 1}))->results()), i + 1);
    const auto octets = pattern(300000, 3);
    EXPECT_EQ(copy(caller.call(proc(kEcho), octets)->results()), octets);
    EXPECT_EQ(caller.stats().version, spoken);
    EXPECT_EQ(caller.stats().connections, 1u) << "one that declines is asked on the same connection";
  }
}

TEST_P(Versions, AServerWithoutTheLowestIsOfNoUse) {
  World w(GetParam(), server_of(1));
  Client client(w.engine, w.transport, client_of(2, 2));
  const auto reply = client.call(proc(kNull), {});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Errc::kUnsupportedRevision);
}

// A server that is started again loses the question as well.
TEST(VersionsOf, AServerThatLosesTheConnectionOnceIsAskedAgain) {
  World w(Carrier::kMemory, server_of(2));
  Client client(w.engine, w.transport, client_of(2));
  w.network.cut_at_send(2);  // its answer
  EXPECT_EQ(word(client.call(proc(kAdd), words({1, 2}))->results()), 3u);
  EXPECT_EQ(client.stats().version, 2u);
  EXPECT_EQ(client.stats().connections, 2u);
}

// As one does that knows version 1 only, and takes the question for a breach of it.
TEST(VersionsOf, AServerThatEndsTheConnectionTwiceIsNotAskedAgain) {
  World w(Carrier::kMemory, server_of(2));
  std::atomic<int> asked{0};
  w.server.serve(kProgram, 2, [&](Call call) -> awaitable<Answer> {
    if (call.procedure() == 0 && asked++ < 2) w.network.cut();
    co_return AcceptStat::kSuccess;
  });
  Client client(w.engine, w.transport, client_of(2));
  EXPECT_TRUE(client.call({kProgram, 2, 1}, {}).ok());
  EXPECT_EQ(client.stats().version, 1u);
  EXPECT_EQ(client.stats().connections, 3u);
  w.network.cut();
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  EXPECT_EQ(client.stats().version, 1u) << "it is remembered";
}

TEST(VersionsOf, AServerThatSaysNothingIsNotAskedAgain) {
  World w(Carrier::kMemory, server_of(2));
  std::atomic<int> asked{0};
  w.server.serve(kProgram, 2, [&](Call) -> awaitable<Answer> {
    if (asked++ == 0) w.program.gate.wait();
    co_return AcceptStat::kSuccess;
  });
  ClientOptions options = client_of(2);
  options.version_timeout = 200ms;
  Client client(w.engine, w.transport, options);
  EXPECT_TRUE(client.call({kProgram, 2, 1}, {}).ok());
  EXPECT_EQ(client.stats().version, 1u);
  EXPECT_EQ(client.stats().connections, 2u);
}

// Nobody would take them, and the connection would end in the end: they are refused, each by itself.
TEST(VersionsOf, AServerHasNoExtensions) {
  using rpcrdma::OptionRegistry;
  ServerOptions server = server_of(2);
  ASSERT_TRUE(server.responder.extensions.add(7, OptionRegistry::Payload::kNever).ok());
  World w(Carrier::kMemory, server);
  auto options = client_of(2).requester;
  ASSERT_TRUE(options.extensions.add(7, OptionRegistry::Payload::kNever).ok());
  std::promise<std::unique_ptr<Channel>> made;
  w.transport->connect(rpcrdma::private_data(options).encode(),
                       [&](const Error&, std::unique_ptr<Channel> channel) { made.set_value(std::move(channel)); });
  const auto channel = made.get_future().get();
  ASSERT_NE(channel, nullptr);
  rpcrdma::BufferPool pool(channel->registrar(), rpcrdma::pool_options(options));
  rpcrdma::Requester requester(
      channel->endpoint(), pool,
      rpcrdma::negotiate(rpcrdma::private_data(options), rpcrdma::PrivateData::parse(channel->peer_data())), options);
  ASSERT_TRUE(requester.start().ok());
  const auto take = [&] {
    std::array<rpcrdma::Completion, 16> batch;
    const std::size_t n = channel->poll(batch);
    for (std::size_t i = 0; i < n; ++i) requester.on_completion(batch[i]);
    return n;
  };
  const auto go_on = [&] {
    (void)take();
    EXPECT_TRUE(channel->flush().ok());
  };
  const Octets question = encode_call(proc(kNull), {}, {}, {});
  auto room = pool.acquire(question.size(), rpcrdma::BufferPool::Purpose::kCall);
  ASSERT_TRUE(room);
  std::copy(question.begin(), question.end(), room->bytes().begin());
  ASSERT_TRUE(requester.call(std::move(*room), {}).ok());
  EXPECT_TRUE(eventually([&] {
    go_on();
    const auto event = requester.poll_event();
    return event && std::holds_alternative<rpcrdma::Requester::ReplyReceived>(*event);
  }));
  for (std::uint32_t xid = 1; xid <= 100; ++xid) {
    ASSERT_TRUE(requester.send_option(xid, {7, {}}).ok());
    std::optional<rpcrdma::OptionEvent> event;
    ASSERT_TRUE(eventually([&] {
      go_on();
      event = requester.poll_option();
      return event.has_value();
    })) << xid;
    EXPECT_TRUE(std::holds_alternative<rpcrdma::OptionRefused>(*event));
  }
  channel->close();
  while (take() > 0) {
  }
}

TEST_P(Versions, TheDraftOf2005) {
  ServerOptions server{.threads = 2};
  server.responder.draft_2005.enabled = true;
  World w(GetParam(), server);
  ClientOptions options;
  options.requester.draft_2005.enabled = true;
  options.requester.draft_2005.configure = true;
  Client client(w.engine, w.transport, options);
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(word(client.call(proc(kAdd), words({i, 1}))->results()), i + 1);
  const auto octets = pattern(300000, 3);
  EXPECT_EQ(copy(client.call(proc(kEcho), octets)->results()), octets);
  EXPECT_EQ(client.stats().connections, 1u);
}

}  // namespace
}  // namespace iwarp::rpc::test
