// `iwarp perf run` and Ctrl-C, and a server that is killed.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/faults/process_facts.h"
#include "tests/support/eventually.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using ::testing::HasSubstr;
using ::testing::Not;

// A port of loopback that answers no SYN, because its backlog is full.
class Silent {
 public:
  Silent() {
    acceptor_.open(tcp::v4());
    acceptor_.bind({boost::asio::ip::address_v4::loopback(), 0});
    acceptor_.listen(0);
    for (tcp::socket& s : fill_) {
      s.open(tcp::v4());
      s.native_non_blocking(true);
      const tcp::endpoint to = acceptor_.local_endpoint();
      (void)::connect(s.native_handle(), to.data(), static_cast<socklen_t>(to.size()));
    }
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  // Sockets that wait for an answer.
  [[nodiscard]] std::size_t waiting() const {
    constexpr const char* kSynSent = "02";
    std::array<char, 16> number{};
    std::snprintf(number.data(), number.size(), "0100007F:%04X", static_cast<unsigned>(port()));
    std::ifstream in("/proc/net/tcp");
    std::size_t n = 0;
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state;
      words >> slot >> local >> remote >> state;
      if (remote == number.data() && state == kSynSent) ++n;
    }
    return n;
  }

 private:
  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_};
  std::array<tcp::socket, 4> fill_{tcp::socket{io_}, tcp::socket{io_}, tcp::socket{io_}, tcp::socket{io_}};
};

TEST(PerfInterrupt, WhileConnecting) {
  const Silent peer;
  const std::size_t before = peer.waiting();
  Subprocess client({"perf", "run", "write_bw", "127.0.0.1:" + std::to_string(peer.port())});
  ASSERT_TRUE(eventually([&] { return peer.waiting() > before; }));
  client.signal(SIGINT);
  EXPECT_EQ(client.wait(), 130) << client.output();
  EXPECT_THAT(client.output(), Not(HasSubstr("perf serve"))) << "it is no failure";
}

// Starts a client whose first sample takes half a minute, and waits until it is in it: that keeps a processor busy.
class PerfInTest : public ::testing::Test {
 protected:
  PerfInTest()
      : server_({"perf", "serve", "--listen", "127.0.0.1:0"}),
        client_({"perf", "run", "write_bw", "127.0.0.1:" + server_.listening_port(), "--size=4k", "--pairs=1",
                 "--seconds=30"}) {
    EXPECT_TRUE(eventually([&] { return faults::cpu_time(client_.pid()) >= 500ms; }));
  }

  Subprocess server_, client_;
};

TEST_F(PerfInTest, EndsWhenInterrupted) {
  client_.signal(SIGINT);
  EXPECT_EQ(client_.wait(10s), 130) << client_.output();
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 130) << server_.output();
}

TEST_F(PerfInTest, SaysWhenTheServerIsKilled) {
  server_.signal(SIGKILL);
  EXPECT_EQ(client_.wait(10s), 1);
  EXPECT_THAT(client_.output(), HasSubstr("the other end of the test"));
}

// A row is printed when it is measured, and stays when the next one is interrupted.
TEST(PerfInterrupt, LeavesTheRowsThatWereMeasured) {
  Subprocess client({"perf", "run", "write_bw", "--size=4k,8k,16k,32k", "--pairs=10", "--seconds=0.1", "--no-verify"});
  ASSERT_TRUE(client.wait_for("crc; TCP: ")) << client.output();
  client.signal(SIGINT);
  EXPECT_EQ(client.wait(), 130) << client.output();
  EXPECT_THAT(client.output(), ::testing::ContainsRegex("write_bw +4096 [^\n]*sleeping\n")) << "the whole row";
  EXPECT_THAT(client.output(), HasSubstr("TCP congestion control"));
  EXPECT_THAT(client.output(), Not(HasSubstr(" 32768 ")));
}

TEST(PerfInterrupt, LeavesThePairsOfTheRowUnderWay) {
  const std::string file = ::testing::TempDir() + "iwarp-perf-interrupt-" + std::to_string(::getpid()) + ".json";
  Subprocess client(
      {"perf", "run", "write_bw", "--size=4k", "--pairs=1000", "--seconds=0.05", "--no-verify", "--json=" + file});
  ASSERT_TRUE(eventually([&] { return faults::cpu_time(client.pid()) >= 2s; }));
  client.signal(SIGINT);
  EXPECT_EQ(client.wait(), 130) << client.output();
  EXPECT_THAT(client.output(), ::testing::ContainsRegex("write_bw +4096 .*; interrupted: [0-9]+ of 1000 pairs\n"));
  std::ifstream in(file);
  const auto report = nlohmann::json::parse(in);
  std::filesystem::remove(file);
  EXPECT_TRUE(report.at("interrupted").get<bool>());
  ASSERT_EQ(report.at("rows").size(), 1U);
  const auto& row = report.at("rows").at(0);
  EXPECT_FALSE(row.at("complete").get<bool>());
  EXPECT_EQ(row.at("iwarp").at("samples").size(), row.at("pairs").get<std::size_t>());
}

}  // namespace
}  // namespace iwarp::test
