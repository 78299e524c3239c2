// `iwarp gateway` as a command: what it says, and how it starts and ends. What it does is tested in tests/gateway.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const Words kRdmaFront{"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1"};
const Words kTcpFront{"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(GatewayCommand, SaysWhatItServesAndEndsOnRequest) {
  for (const Words& front : {kRdmaFront, kTcpFront}) {
    for (const int signal : {SIGTERM, SIGINT}) {
      Subprocess gateway(front);
      ASSERT_TRUE(gateway.wait_for("forwarding to 127.0.0.1:1")) << gateway.output();
      EXPECT_THAT(gateway.output(), HasSubstr("listening on 127.0.0.1:"));
      EXPECT_THAT(gateway.output(), HasSubstr("allowed: "));
      gateway.signal(signal);
      EXPECT_EQ(gateway.wait(), 0) << gateway.output();
      EXPECT_THAT(gateway.output(), HasSubstr("shutting down"));
    }
  }
}

TEST(GatewayCommand, ListensOnIpv6InBrackets) {
  Subprocess gateway({"gateway", "--rdma-listen", "[::]:0", "--tcp", "[::1]:2049", "--allow", "10.0.0.0/8,fd00::/8"});
  ASSERT_TRUE(gateway.wait_for("forwarding to [::1]:2049")) << gateway.output();
  EXPECT_THAT(gateway.output(), HasSubstr("listening on [::]:"));
}

TEST(GatewayCommand, PortInUse) {
  Subprocess first(kTcpFront);
  const std::string port = first.listening_port();
  for (const Words& second : {Words{"gateway", "--tcp-listen", "127.0.0.1:" + port, "--rdma", "127.0.0.1:1"},
                              Words{"gateway", "--rdma-listen", "127.0.0.1:" + port, "--tcp", "127.0.0.1:1"}}) {
    const Finished f = run(second);
    EXPECT_EQ(f.code, 1);
    EXPECT_THAT(f.output, HasSubstr("cannot listen on 127.0.0.1:" + port));
    EXPECT_THAT(f.output, HasSubstr("in use"));
  }
}

TEST(GatewayCommand, AddressOfAnotherHost) {
  const Finished f = run({"gateway", "--rdma-listen", "192.0.2.1:0", "--tcp", "127.0.0.1:1"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("not an address of this host"));
}

TEST(GatewayCommand, PrintsCountersOnRequest) {
  Subprocess gateway(kRdmaFront);
  ASSERT_TRUE(gateway.wait_for("listening on"));
  gateway.signal(SIGUSR1);
  ASSERT_TRUE(gateway.wait_for("{\"iwarp\":{\"schema\":1,\"command\":\"gateway\"")) << gateway.output();
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
}

TEST(GatewayCommand, TellsOfSignalsThatItIgnores) {
  Subprocess gateway(kRdmaFront);
  ASSERT_TRUE(gateway.wait_for("listening on"));
  gateway.signal(SIGHUP);
  EXPECT_TRUE(gateway.wait_for("SIGHUP is ignored")) << gateway.output();
  gateway.signal(SIGUSR2);
  EXPECT_TRUE(gateway.wait_for("SIGUSR2 is ignored")) << gateway.output();
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

// Standard error is a full pipe, which nobody reads.
TEST(GatewayCommand, DoesNotWaitForAReaderOfItsLog) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const std::string full(4096, ' ');
  while (::write(ends[1], full.data(), full.size()) > 0) {
  }
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, 0), 0);
  boost::asio::io_context io;
  using boost::asio::ip::tcp;
  const auto port = tcp::acceptor(io, {tcp::v4(), 0}).local_endpoint().port();
  const std::string its_end = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends[1]);
  Subprocess gateway("/bin/sh", {"-c", "exec " IWARP_COMMAND " gateway --tcp-listen 127.0.0.1:" + std::to_string(port) +
                                           " --rdma 127.0.0.1:1 2>" + its_end});
  // Each of them is refused for its port, and told of.
  for (int served = 0; served < 20; ++served) {
    std::optional<tcp::socket> client;
    ASSERT_TRUE(eventually([&] {
      boost::system::error_code ec;
      client.emplace(io).connect({boost::asio::ip::address_v4::loopback(), port}, ec);
      return !ec;
    }));
    client->non_blocking(true);
    EXPECT_TRUE(eventually([&] {
      char octet = 0;
      boost::system::error_code ec;
      (void)client->read_some(boost::asio::buffer(&octet, 1), ec);
      return ec && ec != boost::asio::error::would_block;
    })) << "the gateway stands still";
  }
  gateway.signal(SIGUSR1);
  EXPECT_TRUE(gateway.wait_for("\"insecure_port\":20")) << gateway.output();
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
  for (const int end : ends) ::close(end);
}

TEST(GatewayCommand, WritesCountersToAFile) {
  const std::string file = ::testing::TempDir() + "iwarp-gateway-stats-" + std::to_string(::getpid()) + ".json";
  for (const Words& flags : {Words{"--stats", file}, Words{"--json", file}, Words{"--json=" + file}}) {
    Subprocess gateway(with(kRdmaFront, flags));
    ASSERT_TRUE(gateway.wait_for("listening on"));
    gateway.signal(SIGTERM);
    EXPECT_EQ(gateway.wait(), 0);
    std::ifstream in(file);
    const auto document = nlohmann::json::parse(in);
    EXPECT_EQ(document.at("iwarp").at("command"), "gateway");
    EXPECT_TRUE(document.contains("programs"));
    std::remove(file.c_str());
  }
}

TEST(GatewayCommand, WritesCountersToStandardOutputAtTheEnd) {
  Subprocess gateway(with(kRdmaFront, {"--json"}));
  ASSERT_TRUE(gateway.wait_for("listening on"));
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
  EXPECT_THAT(gateway.output(), HasSubstr("\n{\"iwarp\":{"));
}

}  // namespace
}  // namespace iwarp::test
