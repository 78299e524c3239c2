// `iwarp perf serve`: whom it serves, and for how long.
#include <gmock/gmock.h>
#include <sched.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

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
    const Finished f = run({"perf", "run", "write_bw", peer, "--size=4k", "--pairs=1", "--seconds=0.05"});
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
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0", "--patience=600"});
  const std::string port = server.listening_port();
  Control first("127.0.0.1", port);
  (void)first.ask({{"command", "cpu"}});
  for (int i = 0; i < 5; ++i) {
    const Finished f = run({"perf", "run", "tcp_lat", "127.0.0.1:" + port});
    EXPECT_EQ(f.code, 1);
    EXPECT_THAT(f.output, ::testing::HasSubstr("another client is being served")) << i;
  }
}

std::uint16_t start(Control& control, const Spec& spec) {
  return control.ask({{"command", "start"}, {"spec", spec}}).at("ports").at(0).get<std::uint16_t>();
}

// A client whose control connection ends, and whose data connection stays: with nothing to say, or amid its sample.
struct Vanished {
  Test test;
  bool busy;
  bool fetch = false;
};
class PerfServeVanishedTest : public ::testing::TestWithParam<Vanished> {};

TEST_P(PerfServeVanishedTest, IsForgotten) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  const std::string port = server.listening_port();
  const auto [test, busy, fetch] = GetParam();
  const Spec spec{.test = test, .size = 8, .fetch = fetch, .manual = test == tools::perf::Test::kWriteLat};
  std::optional<Control> vanished(std::in_place, "127.0.0.1", port);
  const std::uint16_t data_port = start(*vanished, spec);
  const auto data = tools::perf::is_raw(spec.test) ? tools::perf::connect_raw(spec, "127.0.0.1", data_port)
                                                   : tools::perf::connect_rdma(spec, "127.0.0.1", data_port);
  std::jthread sample;
  if (busy) {
    sample = std::jthread([&] {
      try {
        (void)data->run(2 * kPatience);
      } catch (const std::runtime_error&) {  // the server has ended it
      }
    });
    std::this_thread::sleep_for(50ms);
  }
  vanished.reset();
  EXPECT_TRUE(eventually([&] {
    try {
      (void)Control("127.0.0.1", port).ask({{"command", "cpu"}});
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }));
}

std::vector<Vanished> each() {
  std::vector<Vanished> list;
  for (const Test test : tools::perf::all_tests()) {
    list.push_back({test, true});
    const bool connects = test == Test::kTcpConnect || test == Test::kConnectRate;
    if (!connects) list.push_back({test, false});  // those have no connection when they have nothing to do
  }
  for (const bool busy : {false, true}) list.push_back({Test::kTcpBw, busy, true});
  return list;
}
INSTANTIATE_TEST_SUITE_P(DuringEach, PerfServeVanishedTest, ::testing::ValuesIn(each()), [](const auto& p) {
  return std::string(tools::perf::name(p.param.test)) + (p.param.fetch ? "Fetch" : "") +
         (p.param.busy ? "Busy" : "Idle");
});

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
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (!CPU_ISSET(0, &allowed) || CPU_COUNT(&allowed) == 1) GTEST_SKIP() << "needs processor 0 and another";
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

// Whatever this end thinks of it: the server may have privileges that would load a module.
TEST(PerfServe, RefusesACongestionControlThatIsNotThere) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  Control control("127.0.0.1", server.listening_port());
  for (const auto test : {tools::perf::Test::kTcpBw, tools::perf::Test::kWriteBw}) {
    EXPECT_THAT([&] { (void)start(control, {.test = test, .congestion = "nonesuch"}); },
                ::testing::ThrowsMessage<std::runtime_error>(::testing::HasSubstr("load that first")));
  }
}

}  // namespace
}  // namespace iwarp::test
