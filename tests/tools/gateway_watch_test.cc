// --metrics and --rpcbind of `iwarp gateway`, by flags and by keys of its file.
#include <gmock/gmock.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <regex>

#include "tests/gateway/exposition.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using boost::asio::ip::tcp;
using gateway::test::Exposition;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Waits until this gateway serves its metrics; the port.
std::uint16_t metrics_port(Subprocess& gateway) {
  EXPECT_TRUE(gateway.wait_for("/metrics\n") && gateway.wait_for("listening on")) << gateway.output();
  std::smatch found;
  const std::string& text = gateway.output();
  if (!std::regex_search(text, found, std::regex("metrics at http://127.0.0.1:([0-9]+)/metrics"))) return 0;
  return static_cast<std::uint16_t>(std::stoi(found[1]));
}

std::string page(std::uint16_t port) {
  boost::asio::io_context io;
  tcp::socket s(io);
  s.connect({boost::asio::ip::address_v4::loopback(), port});
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  boost::asio::write(s, boost::asio::buffer(request));
  std::string answer;
  boost::system::error_code ec;
  boost::asio::read(s, boost::asio::dynamic_buffer(answer), ec);
  EXPECT_THAT(answer, HasSubstr(" 200 OK\r\n"));
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

TEST(GatewayWatch, ServesMetricsOfOneListener) {
  Subprocess gateway({"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1", "--memory", "64",
                      "--max-record", "1088", "--metrics", "0"});
  const auto port = metrics_port(gateway);
  ASSERT_NE(port, 0);
  const std::string text = page(port);
  const auto metrics = Exposition::parse(text);
  EXPECT_EQ(metrics.value("iwarp_gateway_registered_limit_bytes"), 64 << 20);
  EXPECT_THAT(text,
              ::testing::ContainsRegex("iwarp_gateway_listener_info\\{listener=\"127.0.0.1:[0-9]+\",direction="
                                       "\"tcp-to-rdma\",local=\"127.0.0.1:[0-9]+\",backend=\"127.0.0.1:1\"\\} 1"));
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

TEST(GatewayWatch, NamesTheListenersOfAFile) {
  const std::string file = ::testing::TempDir() + "/iwarp-gateway-watch-" + std::to_string(::getpid()) + ".toml";
  const auto write = [&](const std::string& second) {
    std::ofstream(file) << "[process]\nmetrics = \"0\"\nrpcbind = \"100003:4\"\nrpcbind-socket = \"/no/such.sock\"\n"
                           "[[listener]]\nname = \"front\"\nrdma-listen = \"127.0.0.1:0\"\ntcp = \"127.0.0.1:1\"\n"
                        << second;
  };
  write("[[listener]]\nname = \"reverse\"\ntcp-listen = \"127.0.0.1:0\"\nrdma = \"127.0.0.1:1\"\n");
  Subprocess gateway({"gateway", "--config", file});
  const auto port = metrics_port(gateway);
  ASSERT_NE(port, 0);
  const std::string front = "{listener=\"front\",direction=\"rdma-to-tcp\"}";
  const std::string reverse = "{listener=\"reverse\",direction=\"tcp-to-rdma\"}";
  const auto before = Exposition::parse(page(port));
  EXPECT_EQ(before.value("iwarp_gateway_connections" + front), 0);
  EXPECT_EQ(before.value("iwarp_gateway_connections" + reverse), 0);
  write("");
  gateway.signal(SIGHUP);
  ASSERT_TRUE(gateway.wait_for("reloaded: ")) << gateway.output();
  ASSERT_TRUE(eventually([&] { return page(port).find("reverse") == std::string::npos; }));
  EXPECT_EQ(Exposition::parse(page(port)).value("iwarp_gateway_connections" + front), 0);
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
  std::remove(file.c_str());
}

TEST(GatewayWatch, SaysWhereItCannotServeMetrics) {
  boost::asio::io_context io;
  const tcp::acceptor taken(io, {boost::asio::ip::address_v4::loopback(), 0});
  const std::string port = std::to_string(taken.local_endpoint().port());
  const Finished f = run({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--metrics", port});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("cannot serve metrics at 127.0.0.1:" + port + ": Address already in use"));
}

TEST(GatewayWatch, GoesOnWithoutRpcbind) {
  Subprocess gateway({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--rpcbind",
                      "--rpcbind-socket", "/no/such.sock"});
  ASSERT_TRUE(gateway.wait_for("rpcbind: cannot reach it at /no/such.sock: No such file or directory; is it"))
      << gateway.output();
  EXPECT_TRUE(gateway.wait_for("listening on"));
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

// rpcbind is told of RDMA listeners only.
TEST(GatewayWatch, WarnsOfRpcbindWithoutAnRdmaListener) {
  Subprocess gateway({"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1", "--insecure-ports",
                      "--rpcbind", "--rpcbind-socket", "/no/such.sock"});
  EXPECT_TRUE(gateway.wait_for("rpcbind: there is nothing to register: no listener serves RDMA clients"))
      << gateway.output();
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

TEST(GatewayWatch, RefusesWrongValues) {
  const std::vector<std::string> gateway = {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1"};
  const auto with = [&](const std::string& flag) {
    auto words = gateway;
    words.push_back(flag);
    return run(words);
  };
  for (const char* wrong : {"--metrics=localhost:1", "--metrics=x", "--rpcbind=nfs:3", "--rpcbind=100003"}) {
    const Finished f = with(wrong);
    EXPECT_EQ(f.code, 2) << wrong;
    EXPECT_THAT(f.output,
                AnyOf(HasSubstr("100003:4 is right"), HasSubstr("127.0.0.1:2049"), HasSubstr("9100 is right")))
        << wrong;
  }
}

}  // namespace
}  // namespace iwarp::test
