// Versions of RPC-over-RDMA between two gateways.
#include "iwarp/gateway/version_memory.h"

#include "tests/gateway/chained.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

struct Versions {
  std::uint32_t client = 1, server = 1;
};

// Both fronts, with inline thresholds of 1024 octets: what has 3000 goes in line in version 2 only.
class Versioned : public Chained {
 protected:
  void SetUp() override {}
  void open_both(Versions of) {
    options.inline_bytes = 1024;
    options.rpcrdma_version = of.server;
    open();
    options.rpcrdma_version = of.client;
    open_tcp(front->local());
  }
  // What the connection of a client that has been served speaks.
  std::uint32_t version_of(TcpPeer& c) {
    const auto reads = [&] { return front->snapshot().rdma_bytes[static_cast<std::size_t>(RdmaOperation::kRead)][0]; };
    const auto before = reads();
    c.send(samples::write_call(0xAB, pattern(3000)));
    EXPECT_EQ(await(c), samples::write_reply(0xAB));
    return reads() == before ? 2 : 1;
  }
  // ERR_VERS that the RDMA front has sent.
  [[nodiscard]] std::uint64_t refusals() const { return front->snapshot().of(Incident::kErrVersSent); }
  [[nodiscard]] std::uint64_t lowered() const { return tcp_front->snapshot().of(Incident::kVersionLowered); }
  [[nodiscard]] std::uint64_t given_up(EndReason why) const {
    return tcp_front->snapshot().given_up[static_cast<std::size_t>(why)];
  }
  // A client whose first Call comes to the server, which does with it what `on_call` says, and whose connection then
  // ends.
  void lose_a_connection(std::function<void(TcpPeer&, const Bytes&)> on_call) {
    server.on_call = std::move(on_call);
    auto c = tcp_client();
    c->send(samples::null_call(1));
    ASSERT_TRUE(loop.until([&] { return c->ended() && tcp_front->snapshot().active() == 0; }));
    server.on_call = {};
  }
};

class EachPair : public Versioned, public ::testing::WithParamInterface<Versions> {};

TEST_P(EachPair, CarriesEverySize) {
  COVERS("V2-5-1");
  COVERS("V2-5.1-2");
  COVERS("V2-5.2-2");
  COVERS("V2-5.2-5");
  open_both(GetParam());
  const std::uint32_t common = std::min(GetParam().client, GetParam().server);
  for (int connection = 0; connection < 2; ++connection) {
    auto c = warm_client();
    c->send(samples::write_call(2, pattern(700)));
    EXPECT_EQ(await(*c), samples::write_reply(2));
    EXPECT_EQ(version_of(*c), common);
    for (const std::uint32_t size : {1u, 4000u, 4097u, 300'000u}) {
      for (const Bytes& call : {samples::read_call(4, size), samples::write_call(5, pattern(size))}) {
        c->send(call);
        EXPECT_TRUE(await(*c) == serve(call)) << size;
      }
    }
    c->close();
    ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  }
  // A server that has refused is not asked again.
  EXPECT_EQ(refusals(), GetParam().client > GetParam().server ? 1U : 0U);
  if (GetParam().client == 2) {
    EXPECT_TRUE(logged("rpcrdma=" + std::to_string(common), 2));
  }
  EXPECT_EQ(tcp_front->snapshot().of(Incident::kErrVersReceived), 0U);
  EXPECT_EQ(lowered(), refusals());
  for (const Front* f : {static_cast<const Front*>(front.get()), static_cast<const Front*>(tcp_front.get())}) {
    const auto s = f->snapshot();
    EXPECT_EQ(s.of(Spoken::kVersion1), common == 1 ? 2U : 0U);
    EXPECT_EQ(s.of(Spoken::kVersion2), common == 2 ? 2U : 0U);
    EXPECT_EQ(s.of(Spoken::kDraft2005), 0U);
  }
  expect_tcp_front_adds_up();
  expect_nothing_pending();
}

INSTANTIATE_TEST_SUITE_P(Each, EachPair,
                         ::testing::Values(Versions{1, 1}, Versions{1, 2}, Versions{2, 1}, Versions{2, 2}));

TEST_F(Versioned, ManyCallsBehindTheQuestion) {
  for (const std::uint32_t of_server : {1u, 2u}) {
    open_both({2, of_server});
    auto c = tcp_client();
    constexpr std::uint32_t kCalls = 100;
    for (std::uint32_t xid = 1; xid <= kCalls; ++xid) {
      c->send(xid % 2 == 0 ? samples::write_call(xid, pattern(100 * xid)) : samples::read_call(xid, 100 * xid));
    }
    for (std::uint32_t xid = 1; xid <= kCalls; ++xid) EXPECT_FALSE(await(*c).empty());
    expect_tcp_front_adds_up();
    expect_nothing_pending();
  }
}

TEST_F(Versioned, BackwardCallsHaveTheSizesOfTheVersion) {
  for (const std::uint32_t of_server : {1u, 2u}) {
    open_both({2, of_server});
    auto c = warm_client();
    std::deque<Bytes> replies;
    TcpPeer& nfsd = *server.peers.back();
    nfsd.on_record = [&](TcpPeer&, Bytes record) { replies.push_back(std::move(record)); };
    const Bytes callback = samples::rpc_call(77, 0x40000000, 1, 1, pattern(3000));
    nfsd.send(callback);
    if (of_server == 2) {
      EXPECT_EQ(await(*c), callback);
      c->send(samples::rpc_reply(77, pattern(3000)));
    }
    ASSERT_TRUE(loop.until([&] { return !replies.empty(); }));
    EXPECT_EQ(replies[0].size() > 3000, of_server == 2);  // else an error: it does not fit
    nfsd.on_record = {};
  }
}

// It has version 2, and is only slow; but so it is with one that drops what it does not know.
TEST_F(Versioned, AServerThatDoesNotAnswerTheQuestionIsAskedForVersion1) {
  COVERS("V2-5.2-4");
  options.version_timeout = 50ms;
  open_both({2, 2});
  lose_a_connection([](TcpPeer&, const Bytes&) {});
  EXPECT_EQ(given_up(EndReason::kNoVersion), 1U);
  EXPECT_TRUE(logged("reason=no_version", 1));
  EXPECT_EQ(lowered(), 1U);
  EXPECT_EQ(version_of(*warm_client()), 1U);
  EXPECT_EQ(lowered(), 1U) << "the next connection was not asked";
  EXPECT_EQ(given_up(EndReason::kNoVersion), 1U);
  expect_tcp_front_adds_up();
}

TEST_F(Versioned, AServerThatEndsTheConnectionAtTheQuestionTwiceIsAskedForVersion1) {
  COVERS("V2-5.2-4");
  open_both({2, 2});
  lose_a_connection([](TcpPeer& from, const Bytes&) { from.close(); });
  EXPECT_EQ(lowered(), 0U) << "it may have been started again";
  lose_a_connection([](TcpPeer& from, const Bytes&) { from.close(); });
  EXPECT_EQ(lowered(), 1U);
  EXPECT_EQ(given_up(EndReason::kNoVersion), 0U);
  EXPECT_EQ(version_of(*warm_client()), 1U);
}

TEST_F(Versioned, AServerThatAnswersBehindALostQuestionSpeaksVersion2) {
  open_both({2, 2});
  for (int i = 0; i < 3; ++i) {
    lose_a_connection([](TcpPeer& from, const Bytes&) { from.close(); });
    auto c = warm_client();
    EXPECT_EQ(version_of(*c), 2U);
    c->close();
    ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  }
  EXPECT_EQ(lowered(), 0U);
}

TEST_F(Versioned, AServerThatEndsTheConnectionAfterItHasRefusedIsNotAskedAgain) {
  COVERS("V2-5.2-3");
  open_both({2, 1});
  lose_a_connection([](TcpPeer& from, const Bytes&) { from.close(); });
  EXPECT_EQ(refusals(), 1U);
  EXPECT_EQ(lowered(), 1U);
  EXPECT_EQ(version_of(*warm_client()), 1U);
  EXPECT_EQ(refusals(), 1U);
  EXPECT_EQ(lowered(), 1U);
}

TEST_F(Versioned, AClientThatLeavesBeforeTheAnswerSaysNothingOfTheServer) {
  options.delivery_timeout = 50ms;
  open_both({2, 2});
  server.on_call = [](TcpPeer&, const Bytes&) {};
  for (const bool reset : {false, true}) {
    auto c = tcp_client();
    const std::size_t calls = server.calls.size();
    c->send(samples::null_call(1));
    ASSERT_TRUE(loop.until([&] { return server.calls.size() > calls; }));
    reset ? c->reset() : c->close();
    ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  }
  server.on_call = {};
  EXPECT_EQ(version_of(*warm_client()), 2U);
  EXPECT_EQ(lowered(), 0U);
}

TEST_F(Versioned, OptionsThatAreRefusedAreCounted) {
  options.rpcrdma_version = 2;
  open();
  auto c = client();
  auto h = samples::header(7, rpcrdma::Proc::kOptional);
  h.version = rpcrdma::kVersion2;
  h.option = {1, pattern(5)};
  c->send(h, samples::getattr_call(7));
  ASSERT_TRUE(loop.until([&] { return front->snapshot().of(Incident::kInvalOptionSent) == 1; }));
  EXPECT_EQ(front->snapshot().of(Incident::kUnusableMessage), 0U);
}

TEST(VersionMemory, IsOfEachServerAndBounded) {
  COVERS("V2-5.2-3");
  const TimePoint begin{std::chrono::hours(1)};
  VersionMemory memory;
  rpcrdma::VersionNegotiation refused(rpcrdma::kVersion2);
  refused.on_call_sent();
  ASSERT_TRUE(refused.on_err_vers(1, 1));
  for (std::size_t i = 0; i <= VersionMemory::kServers; ++i) {
    EXPECT_EQ(memory.highest(std::to_string(i), 2, begin + i * 1s), 2u);
    EXPECT_TRUE(memory.learn(std::to_string(i), refused, VersionMemory::End::kLost, begin, begin + i * 1s));
  }
  EXPECT_EQ(memory.highest("0", 2, begin + 80s), 2u);
  EXPECT_EQ(memory.highest("1", 2, begin + 80s), 1u);
  // One that is known already, or of which nothing is learned, makes nobody go.
  EXPECT_TRUE(memory.learn("5", refused, VersionMemory::End::kLost, begin, begin + 90s));
  EXPECT_FALSE(memory.learn("new", rpcrdma::VersionNegotiation(rpcrdma::kVersion2), VersionMemory::End::kOurs, begin,
                            begin + 90s));
  EXPECT_EQ(memory.highest("1", 2, begin + 90s), 1u);
}

}  // namespace
}  // namespace iwarp::gateway::test
