// `iwarp gateway --llp sctp`: two gateways with RPC-over-RDMA over SCTP between them.
#include <gmock/gmock.h>

#include <csignal>

#include "iwarp/llp/lower_layer.h"
#include "tests/gateway/rpc_server.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/tools/subprocess.h"

namespace iwarp::gateway::test {
namespace {

namespace samples = rpcrdma::test;
using iwarp::test::pattern;
using iwarp::test::run;
using iwarp::test::Subprocess;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class GatewayOverSctp : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!llp::has(llp::Kind::kSctp)) GTEST_SKIP() << "built without SCTP";
  }
  std::shared_ptr<TcpPeer> client(const std::string& port) {
    tcp::socket socket(loop.io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(std::stoi(port))});
    auto out = std::make_shared<TcpPeer>(std::move(socket));
    out->start();
    return out;
  }
  Bytes answer(TcpPeer& to, const Bytes& call) {
    to.send(call);
    EXPECT_TRUE(loop.until([&] { return !to.inbox.empty() || to.ended(); }));
    if (to.inbox.empty()) return {};
    Bytes out = std::move(to.inbox.front());
    to.inbox.pop_front();
    return out;
  }

  Loop loop;
  RpcServer server{loop};
};

TEST_F(GatewayOverSctp, TwoInAChainCarryEverySizeBothWays) {
  Subprocess rdma_front({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", server.host_port().to_string(), "--llp",
                         "sctp", "--sctp-packet", "9000", "--reserved-port", "off"});
  Subprocess tcp_front({"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:" + rdma_front.listening_port(),
                        "--llp", "sctp", "--insecure-ports"});
  EXPECT_THAT(rdma_front.output(), HasSubstr("RPC-over-RDMA (SCTP)"));
  const auto one = client(tcp_front.listening_port()), other = client(tcp_front.listening_port());
  std::uint32_t xid = 0;
  for (const std::uint32_t size : {0u, 1u, 1023u, 4097u, 65537u, 1u << 20}) {
    SCOPED_TRACE(size);
    for (const auto& peer : {one, other}) {
      xid += 2;
      for (const Bytes& call : {samples::write_call(xid, pattern(size, xid)), samples::read_call(xid + 1, size)})
        ASSERT_TRUE(answer(*peer, call) == serve(call));
    }
  }
  one->close();
  ASSERT_TRUE(tcp_front.wait_for("end=\"done\"")) << tcp_front.output();
  EXPECT_THAT(tcp_front.output(), HasSubstr("llp=sctp enhanced=1"));
  const Bytes last = samples::read_call(1000, 100);
  EXPECT_TRUE(answer(*other, last) == serve(last));
  for (Subprocess* gateway : {&tcp_front, &rdma_front}) {
    gateway->signal(SIGTERM);
    EXPECT_EQ(gateway->wait(), 0) << gateway->output();
  }
}

TEST_F(GatewayOverSctp, SaysWhatDoesNotGoWithIt) {
  const Words front{"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--llp", "sctp"};
  for (const Words& more : {Words{"--crc", "off"}, Words{"--device", "siw0"}, Words{"--profile", "linux-siw"}}) {
    Words words = front;
    words.insert(words.end(), more.begin(), more.end());
    const auto f = run(words);
    EXPECT_EQ(f.code, 2) << f.output;
    EXPECT_THAT(f.output, HasSubstr(more[0]));
  }
}

}  // namespace
}  // namespace iwarp::gateway::test
