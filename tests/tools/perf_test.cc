// `iwarp perf`: every test runs between two processes, moves data that is compared, and reports figures that can be
// true. Nothing here judges a speed.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/faults/process_facts.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using Words = std::vector<std::string>;

class PerfReport : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(report_); }

  // Runs one test of one size; its row of the report.
  nlohmann::json measure(const Words& words) {
    Words arguments = {"perf", "run"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    for (const char* more : {"--pairs=2", "--seconds=0.05", "--json"}) arguments.emplace_back(more);
    arguments.push_back(report_);
    const Finished f = run(arguments);
    if (f.code != 0) throw std::runtime_error(f.output);
    std::ifstream in(report_);
    const auto report = nlohmann::json::parse(in);
    EXPECT_EQ(report.at("iwarp").at("command"), "perf run");
    EXPECT_FALSE(report.at("interrupted").get<bool>());
    const auto& rows = report.at("rows");
    EXPECT_EQ(rows.size(), 1U);
    EXPECT_THAT(f.output, HasSubstr(rows.at(0).at("spec").at("test").get<std::string>()));
    return rows.at(0);
  }

 private:
  const std::filesystem::path report_ =
      std::filesystem::temp_directory_path() / ("iwarp-perf-test-" + std::to_string(::getpid()) + ".json");
};

class PerfRun : public PerfReport, public ::testing::WithParamInterface<Words> {};

TEST_P(PerfRun, MeasuresBesideItsBaseline) {
  const auto row = measure(GetParam());
  EXPECT_TRUE(row.at("complete").get<bool>());
  for (const char* side : {"tcp", "iwarp"}) {
    if (!row.contains(side)) return;
    const auto& figures = row.at(side);
    EXPECT_GT(figures.at("value").get<double>(), 0);
    EXPECT_EQ(figures.at("samples").size(), 2U);
    EXPECT_GT(figures.at("operations").get<std::uint64_t>(), 0U);
    EXPECT_GT(figures.at("operations_per_second").get<double>(), 0);
    EXPECT_LE(figures.at("least").get<double>(), figures.at("average").get<double>());
    EXPECT_LE(figures.at("average").get<double>(), figures.at("most").get<double>());
    if (row.at("unit") != "us") continue;
    EXPECT_LE(figures.at("t_min").get<double>(), figures.at("t_typical").get<double>());
    EXPECT_LE(figures.at("t_typical").get<double>(), figures.at("t_max").get<double>());
    EXPECT_LE(figures.at("p50").get<double>(), figures.at("p99").get<double>());
    EXPECT_LE(figures.at("p99").get<double>(), figures.at("p999").get<double>());
  }
  const auto& ratio = row.at("ratio");
  EXPECT_GT(ratio.at("lowest").get<double>(), 0);
  EXPECT_LE(ratio.at("lowest").get<double>(), ratio.at("median").get<double>());
  EXPECT_LE(ratio.at("median").get<double>(), ratio.at("highest").get<double>());
}

INSTANTIATE_TEST_SUITE_P(
    Tests, PerfRun,
    ::testing::Values(Words{"tcp_bw", "--size=64k"}, Words{"tcp_lat"}, Words{"tcp_rate"}, Words{"tcp_connect"},
                      Words{"write_bw", "--size=64k"}, Words{"read_bw", "--size=64k", "--list=1"},
                      Words{"write_bw", "--size=1000", "--crc=off", "--depth=3"},
                      Words{"read_bw", "--size=64k", "--placement=staged", "--crc=off"},
                      Words{"read_bw", "--size=1m", "--fpdu=16k"}, Words{"read_bw", "--size=64k", "--source=changing"},
                      Words{"write_bw", "--size=64k", "--markers"}, Words{"send_rate", "--crc=off", "--markers"},
                      Words{"send_bw", "--size=64k", "--fpdu=emss"}, Words{"send_bw", "--size=3", "--depth=1"},
                      Words{"send_bw", "--size=64k", "--threads=2"}, Words{"send_bw", "--size=1m", "--depth=1"},
                      Words{"send_bw", "--size=256k", "--depth=3"}, Words{"send_rate"},
                      Words{"send_rate", "--progress=manual"}, Words{"send_rate", "--size=16m", "--depth=2"},
                      Words{"send_rate", "--size=64k", "--depth=16", "--list=16"}, Words{"write_lat"},
                      Words{"write_lat", "--size=1m", "--depth=1"}, Words{"send_lat", "--size=1m", "--depth=1"},
                      Words{"read_lat"}, Words{"send_lat"}, Words{"send_lat", "--progress=manual", "--size=1000"},
                      Words{"connect_rate"}, Words{"connect_rate", "--progress=manual"}, Words{"rpc_null"},
                      Words{"rpc_null", "--depth=8", "--threads=3"}, Words{"rpc_read", "--size=64k"},
                      Words{"rpc_read", "--size=1m", "--crc=off", "--depth=4", "--markers"},
                      Words{"rpc_read", "--size=1", "--depth=200"}, Words{"rpc_write", "--size=1m", "--crc=off"},
                      Words{"rpc_write", "--size=4097", "--threads=2", "--depth=3"},
                      Words{"tcp_rpc_write", "--size=64k", "--depth=8"}),
    [](const auto& test) {
      std::string text;
      for (const std::string& word : test.param) {
        for (const char c : word) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      }
      return text;
    });

TEST_F(PerfReport, NamesTheCongestionControl) {
  std::ifstream system("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name;
  ASSERT_TRUE(system >> name);
  EXPECT_EQ(measure({"tcp_lat"}).at("congestion_control"), name);
  Words words = {"perf", "run", "tcp_bw", "--size=64k", "--pairs=2", "--seconds=0.05"};
  const Finished text = run(words);
  EXPECT_EQ(text.code, 0) << text.output;
  EXPECT_THAT(text.output, HasSubstr("TCP congestion control here: " + name + '\n'));
  EXPECT_EQ(text.output.find("which paces what is sent") != std::string::npos, name.starts_with("bbr")) << text.output;
  words.emplace_back("--markdown");
  const Finished markdown = run(words);
  EXPECT_EQ(markdown.code, 0) << markdown.output;
  EXPECT_THAT(markdown.output, Not(HasSubstr("congestion control here:"))) << "bench/run joins these tables";
}

TEST_F(PerfReport, CongestionControlCanBeChosen) {
  for (const char* test : {"write_bw", "tcp_bw", "send_lat", "connect_rate"}) {
    const auto row = measure({test, "--size=64k", "--congestion=reno"});
    EXPECT_EQ(row.at("congestion_control"), "reno");
    EXPECT_EQ(row.at("spec").at("congestion"), "reno");
  }
  for (const char* test : {"write_bw", "tcp_bw"}) {
    const Finished f = run({"perf", "run", test, "--congestion=nonesuch"});
    EXPECT_EQ(f.code, 1);
    EXPECT_THAT(f.output, HasSubstr("nonesuch: the kernel has no TCP congestion control of that name here"));
  }
}

// The frames of plain TCP are as long as the FPDUs of iwarp: 2 of length, 18 of header, 64 of data, 4 of CRC.
TEST_F(PerfReport, SizeCountsForSendRateAndItsBaseline) {
  const auto row = measure({"send_rate", "--size=64"});
  EXPECT_EQ(row.at("spec").at("size"), 64);
  EXPECT_EQ(row.at("tcp_spec").at("size"), 88);
}

TEST_F(PerfReport, FramesOfPlainTcpAreAsLongAsAsked) {
  const auto row = measure({"tcp_rate", "--size=32"});
  EXPECT_EQ(row.at("spec").at("size"), 32);
  EXPECT_EQ(row.at("spec").at("call"), 32);
}

TEST_F(PerfReport, BestOfPlainTcpIsSleepingOrSpinning) {
  const auto row = measure({"send_rate", "--baseline=best"});
  const auto& rivals = row.at("rivals");
  ASSERT_EQ(rivals.size(), 2U);
  const bool sleeping = rivals.at(0).at("value") >= rivals.at(1).at("value");
  EXPECT_FALSE(rivals.at(0).at("spec").at("manual").get<bool>());
  EXPECT_TRUE(rivals.at(1).at("spec").at("manual").get<bool>());
  EXPECT_EQ(row.at("tcp_spec"), rivals.at(sleeping ? 0 : 1).at("spec"));
  EXPECT_EQ(row.at("tcp").at("value"), rivals.at(sleeping ? 0 : 1).at("value"));
}

TEST_F(PerfReport, ReadsAreMeasuredFromWhereAskedBesideTheSameDirection) {
  const auto stable = measure({"read_bw", "--size=64k"});
  EXPECT_TRUE(stable.at("spec").at("stable").get<bool>());
  EXPECT_TRUE(stable.at("tcp_spec").at("fetch").get<bool>());
  EXPECT_FALSE(measure({"read_bw", "--size=64k", "--source=changing"}).at("spec").at("stable").get<bool>());
}

TEST_F(PerfReport, RpcsCostTimeOfBothEnds) {
  for (const char* test : {"rpc_read", "rpc_write"}) {
    const auto row = measure({test, "--size=1m"});
    EXPECT_EQ(row.at("unit"), "octets/s");
    EXPECT_EQ(row.at("tcp_spec").at("test"), "tcp_" + std::string(test));
    for (const char* side : {"tcp", "iwarp"}) {
      EXPECT_GT(row.at(side).at("client_cpu_seconds_per_gb").get<double>(), 0) << test;
      EXPECT_GT(row.at(side).at("server_cpu_seconds_per_gb").get<double>(), 0) << test;
    }
  }
  EXPECT_EQ(measure({"rpc_null"}).at("unit"), "operations/s");
}

TEST(Perf, MakesRpcsOverIpv6) {
  Subprocess server({"perf", "serve", "--listen", "[::1]:0", "--once"});
  const std::string peer = "[::1]:" + server.listening_port();
  const Finished f = run({"perf", "run", "rpc_null,rpc_read", peer, "--size=64k", "--pairs=1", "--seconds=0.05"});
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, AllOf(HasSubstr("rpc_null "), HasSubstr("crc, 1 outstanding"), HasSubstr("rpc_read ")));
}

TEST(Perf, SaysWhatRpcTestsCannotDo) {
  const Finished manual = run({"perf", "run", "rpc_null", "--progress=manual"});
  EXPECT_EQ(manual.code, 2);
  EXPECT_THAT(manual.output, HasSubstr("RPC tests go by threads of iwarp: leave out --progress manual"));
  const Finished deep = run({"perf", "run", "rpc_read", "--depth=201"});
  EXPECT_EQ(deep.code, 2);
  EXPECT_THAT(deep.output, HasSubstr("depth of RPC tests must be 1 to 200"));
}

TEST_F(PerfReport, ConnectionsHaveNoSize) {
  EXPECT_EQ(measure({"connect_rate", "--size=64"}).at("spec").at("size"), 8);
}

// The two numbers behind `label`: of this end, and of the other.
std::vector<double> figures(const std::string& report, const std::string& label) {
  std::istringstream in(report.substr(std::min(report.find(label) + label.size(), report.size())));
  std::vector<double> found(2, -1);
  in >> found[0] >> found[1];
  return found;
}

TEST(Perf, LooksForTheBestCallsOfPlainTcp) {
  const Finished f = run({"perf", "run", "tcp_bw", "--size=64k", "--baseline=best", "--pairs=1", "--seconds=0.05"});
  ASSERT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, ::testing::ContainsRegex("calls of (64 KiB|256 KiB|1 MiB) and (64 KiB|256 KiB|1 MiB), "));
}

TEST(Perf, LooksForTheBestWayToSendFrames) {
  const Finished f = run({"perf", "run", "tcp_rate", "--baseline=best", "--pairs=1", "--seconds=0.05"});
  ASSERT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, ::testing::ContainsRegex("frames of 8, (TCP_NODELAY|Nagle), (sleeping|spinning)"));
}

TEST(Perf, CountsWhatIdleConnectionsHold) {
  const Finished f = run({"perf", "idle", "--connections=500"});
  ASSERT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(figures(f.output, "descriptors of each"), Each(1)) << f.output;
  EXPECT_THAT(f.output, HasSubstr("RLIMIT_NOFILE: "));
  if (!faults::kSanitized) {  // which has memory, and perhaps a thread, of its own
    EXPECT_THAT(figures(f.output, "wake-ups in 3 s"), Each(0)) << f.output;
    EXPECT_THAT(figures(f.output, "memory of each, octets"), Each(AllOf(Gt(0), Le(16384)))) << f.output;
  }
}

TEST(Perf, SaysToWhatItRaisedTheLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max <= 400) GTEST_SKIP() << "the hard limit is too low";
  const Finished f = shell("ulimit -Sn 400; '" IWARP_COMMAND "' perf idle --connections=10");
  ASSERT_EQ(f.code, 0) << f.output;
  const std::string raised = std::to_string(before.rlim_max) + " (raised from 400)";
  EXPECT_THAT(f.output, HasSubstr("RLIMIT_NOFILE: " + raised + " here, " + raised + " there"));
}

TEST(Perf, SaysWhichLimitIsTooLow) {
  const Finished f = shell("ulimit -n 400; '" IWARP_COMMAND "' perf idle --connections=1000 2>&1");
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("RLIMIT_NOFILE allows 400 here and 400 there"));
}

TEST(Perf, SaysWhenNobodyServes) {
  const Finished f = run({"perf", "run", "write_bw", "127.0.0.1:1"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("is `iwarp perf serve` running there?"));
}

TEST(Perf, TakesThePeerBehindAListOfSizesOrProcessors) {
  for (const Words& flags : {Words{"--size", "64k"}, Words{"--size", "8,64k"}, Words{"--cpus", "0,0"}}) {
    Words words{"perf", "run", "write_bw"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back("127.0.0.1:1");
    const Finished f = run(words);
    EXPECT_EQ(f.code, 1);
    EXPECT_THAT(f.output, HasSubstr("cannot connect to 127.0.0.1 port 1:"));
  }
}

TEST(Perf, FindsOutAtOnceThatItCannotWriteTheReport) {
  const Finished f = run({"perf", "run", "write_bw", "127.0.0.1:1", "--json=/nowhere/at/all.json"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("cannot write /nowhere/at/all.json"));
  EXPECT_THAT(f.output, ::testing::Not(HasSubstr("cannot connect")));
}

TEST(Perf, FindsOutAtOnceThatItCannotWriteThePicture) {
  const Finished f = run({"perf", "run", "write_bw", "127.0.0.1:1", "--plot=/nowhere/at/all.svg"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("cannot write /nowhere/at/all.svg: No such file or directory"));
  EXPECT_THAT(f.output, Not(HasSubstr("cannot connect")));
}

const std::string kQuickRun = "'" IWARP_COMMAND "' perf run tcp_lat --pairs=1 --seconds=0.05";

TEST(Perf, FullDeviceIsAnError) {
  for (const char* flag : {" --json=/dev/full", " --plot=/dev/full"}) {
    const Finished f = shell(kQuickRun + flag + " 2>&1");
    EXPECT_EQ(f.code, 1);
    EXPECT_THAT(f.output, HasSubstr("cannot write /dev/full: No space left on device"));
  }
  for (const char* flag : {"", " --json"}) {
    const Finished f = shell(kQuickRun + flag + " 2>&1 1>/dev/full");
    EXPECT_EQ(f.code, 1);
    EXPECT_EQ(f.output, "iwarp perf run: cannot write standard output: No space left on device\n");
  }
}

TEST(Perf, JsonOnStandardOutputIsAllThatStandsThere) {
  const Finished f = shell(kQuickRun + " --json");
  EXPECT_EQ(f.code, 0);
  EXPECT_EQ(nlohmann::json::parse(f.output).at("rows").at(0).at("spec").at("test"), "tcp_lat");
  const auto idle = nlohmann::json::parse(shell("'" IWARP_COMMAND "' perf idle --connections=10 --json").output);
  EXPECT_EQ(idle.at("iwarp").at("command"), "perf idle");
  EXPECT_EQ(idle.at("connections"), 10);
  EXPECT_EQ(idle.at("this_end").at("descriptors_each"), 1);
}

TEST(Perf, SaysThatTcpCouldBeFaster) {
  const Words words = {"perf", "run", "tcp_bw", "--size=64k", "--pairs=1", "--seconds=0.05"};
  EXPECT_THAT(run(words).output, HasSubstr("TCP in 64 KiB calls; tuned TCP is faster: --baseline best"));
}

TEST(Perf, SweepsTheSizesOfPerftest) {
  const std::string picture = ::testing::TempDir() + "iwarp-perf-sweep-" + std::to_string(::getpid()) + ".svg";
  const Finished f = shell("'" IWARP_COMMAND
                           "' perf run tcp_lat,tcp_connect -a --no-verify --pairs=1 --seconds=0.05 "
                           "--json --plot=" +
                           picture);
  ASSERT_EQ(f.code, 0);
  std::vector<unsigned> sizes;
  const auto report = nlohmann::json::parse(f.output);
  for (const auto& row : report.at("rows")) {
    if (row.at("spec").at("test") == "tcp_lat") sizes.push_back(row.at("spec").at("size").get<unsigned>());
  }
  ASSERT_EQ(sizes.size(), 23U);
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(sizes[i], 2U << i);
  EXPECT_EQ(report.at("rows").size(), 24U) << "connections have no size";
  std::ostringstream drawn;
  drawn << std::ifstream(picture).rdbuf();
  std::filesystem::remove(picture);
  EXPECT_THAT(drawn.str(), ::testing::StartsWith("<svg "));
  EXPECT_THAT(drawn.str(), HasSubstr(">8m</text>"));
}

TEST(Perf, SaysHowLongTheSearchForTheBestCallsTakes) {
  std::string help;
  std::istringstream words(run({"perf", "run", "--help"}).output);
  for (std::string word; words >> word;) help += word + ' ';
  EXPECT_THAT(help, HasSubstr("14 s for each size and direction of throughput, 2 s for send_rate"));
}

}  // namespace
}  // namespace iwarp::test
