// `iwarp perf serve`: whom it serves, and for how long.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/tools/subprocess.h"
#include "tools/perf/control.h"
#include "tools/perf/end.h"
#include "tools/perf/spec.h"

namespace iwarp::test {
namespace {

using namespace std::chrono_literals;
using tools::perf::Control;
using tools::perf::Spec;
using tools::perf::Test;
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

std::uint16_t start(Control& control, const Spec& spec) {
  return control.ask({{"command", "start"}, {"spec", spec}}).at("ports").at(0).get<std::uint16_t>();
}

// Its control connection ends, and its data connection stays.
class PerfServeVanishedTest : public ::testing::TestWithParam<Test> {};

TEST_P(PerfServeVanishedTest, IsForgotten) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  const std::string port = server.listening_port();
  const Spec spec{.test = GetParam(), .size = 8};
  std::optional<Control> vanished(std::in_place, "127.0.0.1", port);
  const std::uint16_t data_port = start(*vanished, spec);
  const auto data = tools::perf::is_raw(spec.test) ? tools::perf::connect_raw(spec, "127.0.0.1", data_port)
                                                   : tools::perf::connect_rdma(spec, "127.0.0.1", data_port);
  vanished.reset();
  EXPECT_TRUE(eventually(
      [&] {
        try {
          (void)Control("127.0.0.1", port).ask({{"command", "cpu"}});
          return true;
        } catch (const std::runtime_error&) {
          return false;
        }
      },
      10s));
}

INSTANTIATE_TEST_SUITE_P(DuringEach, PerfServeVanishedTest,
                         ::testing::Values(Test::kTcpBw, Test::kTcpLat, Test::kTcpRate, Test::kTcpConnect,
                                           Test::kWriteBw, Test::kReadBw, Test::kSendBw, Test::kSendRate,
                                           Test::kWriteLat, Test::kReadLat, Test::kSendLat),
                         [](const auto& test) { return std::string(tools::perf::name(test.param)); });

// Threads of the process that run on processor 0 only.
std::size_t threads_on_processor_0(pid_t pid) {
  std::size_t n = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream in(task.path() / "status");
    for (std::string line; std::getline(in, line);) n += line == "Cpus_allowed_list:\t0" ? 1 : 0;
  }
  return n;
}

TEST(PerfServe, RunsTheEngineTooOnTheProcessorThatIsAskedFor) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  if (threads_on_processor_0(server.pid()) != 0) GTEST_SKIP() << "there is no other processor";
  Control control("127.0.0.1", server.listening_port());
  (void)start(control, {.test = tools::perf::Test::kConnectRate, .cpu = 0});
  EXPECT_TRUE(eventually([&] { return threads_on_processor_0(server.pid()) == 2; })) << "that serves, and the engine's";
}

TEST(PerfServe, RefusesATestOnAProcessorThatItHasNot) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  const Finished f = run({"perf", "run", "tcp_lat", "127.0.0.1:" + server.listening_port(), "--cpus=0,1023"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, ::testing::HasSubstr("the other end: cannot run on processor 1023"));
}

}  // namespace
}  // namespace iwarp::test
