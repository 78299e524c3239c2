// --llp: commands over SCTP, against themselves over loopback.
#include <gmock/gmock.h>

#include <csignal>

#include "iwarp/llp/lower_layer.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

Words rping(const std::string& role, const std::string& port, Words more, const std::string& host = "127.0.0.1") {
  Words w{"rping", role, "-a", host, "-p", port, "--llp", "sctp"};
  w.insert(w.end(), more.begin(), more.end());
  return w;
}

class OverSctp : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!llp::has(llp::Kind::kSctp)) GTEST_SKIP() << "built without SCTP";
  }
};

TEST_F(OverSctp, RpingPingsAndSaysWhatWasNegotiatedAndMoved) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    Subprocess server(rping("-s", "0", {"-V"}, host));
    const Finished f =
        run(rping("-c", server.listening_port(), {"-C", "3", "-V", "-v", "-S", "4000", "-I", host}, host));
    EXPECT_EQ(f.code, 0) << f.output;
    EXPECT_THAT(f.output, HasSubstr(std::string("local=") + (host[0] == ':' ? "[::1]:" : "127.0.0.1:")));
    EXPECT_THAT(f.output, HasSubstr("role=initiator llp=sctp enhanced=1 p2p=0 rtr=none ird=1 ord=1"));
    EXPECT_THAT(f.output, HasSubstr("ping data: rdma-ping-2: C"));
    EXPECT_THAT(f.output, HasSubstr("end=\"done\" rx_write=3/12000 rx_read=3/12000 tx_send=6/96 rx_send=6/96"));
    EXPECT_EQ(server.wait(), 0) << server.output();
    EXPECT_THAT(server.output(), HasSubstr("role=responder llp=sctp"));
    EXPECT_THAT(server.output(), HasSubstr("end=\"client closed\" tx_write="));
  }
}

TEST_F(OverSctp, ARpingServerListensOnAllAddressesByDefault) {
  Subprocess server({"rping", "-s", "-P", "-p", "0", "--llp", "sctp"});
  for (const char* host : {"127.0.0.1", "::1"}) {
    const Finished f = run(rping("-c", server.listening_port(), {"-C", "1", "-V"}, host));
    EXPECT_EQ(f.code, 0) << f.output;
  }
}

TEST_F(OverSctp, ARpingServerServesManyClients) {
  Subprocess server(rping("-s", "0", {"-P"}));
  const std::string port = server.listening_port();
  Subprocess first(rping("-c", port, {"-v", "--p2p", "--ird", "4"}));
  ASSERT_TRUE(first.wait_for("rdma-ping-10: "));
  EXPECT_THAT(first.output(), HasSubstr("p2p=1 rtr=read ird=4 ord=1"));
  const Finished second = run(rping("-c", port, {"-C", "5", "-V"}));
  EXPECT_EQ(second.code, 0) << second.output;
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(), 130) << first.output();
  ASSERT_TRUE(server.wait_for(" pings answered", 2)) << server.output();
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 130);
}

TEST_F(OverSctp, RpingSaysWhatIsWrong) {
  const auto refused = [](Words more) {
    const Finished f = run(rping("-c", "7174", std::move(more)));
    EXPECT_EQ(f.code, 2) << f.output;
    return f.output;
  };
  EXPECT_THAT(refused({"--crc", "off"}), HasSubstr("--crc: is about MPA over TCP: leave it out with --llp sctp"));
  EXPECT_THAT(refused({"--markers", "ask"}), HasSubstr("--markers"));
  EXPECT_THAT(refused({"--mpa-rev", "1"}), HasSubstr("--mpa-rev"));
  EXPECT_THAT(refused({"--profile", "linux-siw"}), HasSubstr("--profile"));
  EXPECT_THAT(refused({"--trace", "-"}), HasSubstr("--trace and --pcap record connections over TCP"));
  const Finished nobody = run(rping("-c", "9", {"--timeout", "1"}));
  EXPECT_EQ(nobody.code, 1);
  EXPECT_THAT(nobody.output, HasSubstr("Connection refused: no program has that UDP port there"));
}

TEST_F(OverSctp, JsonNamesTheLowerLayer) {
  Subprocess server(rping("-s", "0", {}));
  const Finished f = run(rping("-c", server.listening_port(), {"-C", "1", "--json"}));
  EXPECT_EQ(f.code, 0);
  EXPECT_THAT(f.output, AllOf(HasSubstr("\"llp\": \"sctp\""), Not(HasSubstr("\"revision\""))));
}

TEST_F(OverSctp, PerfMeasures) {
  const Finished f = run({"perf", "run", "write_bw,read_bw,send_bw,send_lat,write_lat", "--size", "4k", "--seconds",
                          "0.05", "--pairs", "1", "--llp", "sctp", "--sctp-packet", "8000"});
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, HasSubstr("SCTP, packets of 8000"));
  const Finished connects = run({"perf", "run", "connect_rate", "--seconds", "0.05", "--pairs", "1", "--llp", "sctp"});
  EXPECT_EQ(connects.code, 0) << connects.output;
}

TEST_F(OverSctp, PerfSaysWhatIsWrong) {
  const auto refused = [](Words more) {
    Words words{"perf", "run", "write_bw", "--llp", "sctp"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished f = run(words);
    EXPECT_EQ(f.code, 2) << f.output;
    return f.output;
  };
  EXPECT_THAT(refused({"--threads", "2"}), HasSubstr("--llp sctp goes with one thread"));
  EXPECT_THAT(refused({"--fpdu", "emss"}), HasSubstr("--fpdu"));
  EXPECT_EQ(run({"perf", "run", "rpc_null", "--llp", "sctp"}).code, 2);
}

TEST(OverTcp, WhatIsOfSctpGoesWithIt) {
  const Finished f = run({"rping", "-c", "-a", "127.0.0.1", "--sctp-packet", "9000"});
  EXPECT_EQ(f.code, 2);
  EXPECT_THAT(f.output, HasSubstr("--sctp-packet: goes with --llp sctp"));
}

TEST(WithoutSctp, TheCommandSaysHowToGetIt) {
  if (llp::has(llp::Kind::kSctp)) GTEST_SKIP() << "built with SCTP";
  for (const Words& words : {rping("-c", "7174", {}), Words{"probe", "127.0.0.1", "--llp", "sctp"}}) {
    const Finished f = run(words);
    EXPECT_EQ(f.code, 2);
    EXPECT_THAT(f.output, HasSubstr("this iwarp was built without SCTP: build it where libusrsctp is"));
  }
}

}  // namespace
}  // namespace iwarp::test
