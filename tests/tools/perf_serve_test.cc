// `iwarp perf serve`: whom it serves, and for how long.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/tools/subprocess.h"
#include "tools/perf/control.h"

namespace iwarp::test {
namespace {

using namespace std::chrono_literals;
using tools::perf::Control;
using Clock = std::chrono::steady_clock;

TEST(PerfServe, ServesAClientAfterTheOther) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  const std::string peer = "127.0.0.1:" + server.listening_port();
  for (int i = 0; i < 2; ++i) {
    const Finished f =
        run({"perf", "run", "write_bw", peer, "--size=4k", "--pairs=1", "--seconds=0.05", "--no-calibration"});
    EXPECT_EQ(f.code, 0) << f.output;
  }
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 130);
}

// It talks all the time, and starts no test.
TEST(PerfServe, SendsAClientAwayThatOnlyAsks) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0", "--patience=1"});
  const std::string port = server.listening_port();
  Control idler("127.0.0.1", port);
  const auto begin = Clock::now();
  const auto talk = [&] {
    while (Clock::now() < begin + 20s) {
      (void)idler.ask({{"command", "cpu"}});
      (void)idler.ask({{"command", "stop"}});  // there is nothing to stop
      std::this_thread::sleep_for(100ms);
    }
  };
  EXPECT_THROW(talk(), std::runtime_error);
  EXPECT_GE(Clock::now() - begin, 900ms);
  EXPECT_LT(Clock::now() - begin, 10s);
  Control next("127.0.0.1", port);
  EXPECT_NO_THROW((void)next.ask({{"command", "cpu"}}));
}

TEST(PerfServe, LetsATestRunThatTakesLonger) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0", "--patience=1"});
  const Finished f =
      run({"perf", "run", "send_rate", "127.0.0.1:" + server.listening_port(), "--pairs=1", "--seconds=1.5"});
  EXPECT_EQ(f.code, 0) << f.output;
}

TEST(PerfServe, SaysWhenAnotherClientIsBeingServed) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  const std::string port = server.listening_port();
  Control first("127.0.0.1", port), second("127.0.0.1", port);
  (void)first.ask({{"command", "cpu"}});
  const auto refusal = second.receive(10s);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_THAT(refusal->value("error", ""), ::testing::HasSubstr("another client is being served"));
}

TEST(PerfServe, ToldToComeAgainWhateverWasAsked) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  const std::string port = server.listening_port();
  Control first("127.0.0.1", port);
  (void)first.ask({{"command", "cpu"}});
  for (int i = 0; i < 20; ++i) {
    const Finished f = run({"perf", "run", "tcp_lat", "127.0.0.1:" + port});
    EXPECT_EQ(f.code, 1);
    EXPECT_THAT(f.output, ::testing::HasSubstr("another client is being served")) << i;
  }
}

TEST(PerfServe, RefusesATestOnAProcessorThatItHasNot) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  const Finished f = run({"perf", "run", "tcp_lat", "127.0.0.1:" + server.listening_port(), "--cpus=0,1023"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, ::testing::HasSubstr("the other end: cannot run on processor 1023"));
}

}  // namespace
}  // namespace iwarp::test
