// `iwarp gateway` as a command: what it says, and how it starts and ends. What it does is tested in tests/gateway.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>

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
  EXPECT_THAT(f.output, HasSubstr("not of this host"));
}

TEST(GatewayCommand, PrintsCountersOnRequest) {
  Subprocess gateway(kRdmaFront);
  ASSERT_TRUE(gateway.wait_for("listening on"));
  gateway.signal(SIGUSR1);
  ASSERT_TRUE(gateway.wait_for("{\"")) << gateway.output();
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
}

TEST(GatewayCommand, WritesCountersToAFile) {
  const std::string file = ::testing::TempDir() + "/iwarp-gateway-stats-" + std::to_string(::getpid()) + ".json";
  Subprocess gateway(with(kRdmaFront, {"--stats", file}));
  ASSERT_TRUE(gateway.wait_for("listening on"));
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
  std::ifstream in(file);
  EXPECT_EQ(in.get(), '{');
  std::remove(file.c_str());
}

}  // namespace
}  // namespace iwarp::test
