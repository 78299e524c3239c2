// `iwarp perf`: every test runs between two processes, moves data that is compared, and reports figures that can be
// true. Nothing here judges a speed.
#include <gmock/gmock.h>

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::HasSubstr;

class PerfRun : public ::testing::TestWithParam<std::vector<std::string>> {
 protected:
  void TearDown() override { std::filesystem::remove(report_); }

  const std::filesystem::path report_ =
      std::filesystem::temp_directory_path() / ("iwarp-perf-test-" + std::to_string(::getpid()) + ".json");
};

TEST_P(PerfRun, MeasuresBesideItsBaseline) {
  std::vector<std::string> arguments = {"perf", "run"};
  arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
  for (const char* more : {"--pairs=2", "--seconds=0.05", "--no-calibration", "--json"}) arguments.emplace_back(more);
  arguments.push_back(report_);
  const Finished f = run(arguments);
  ASSERT_EQ(f.code, 0) << f.output;
  std::ifstream in(report_);
  const auto rows = nlohmann::json::parse(in);
  ASSERT_EQ(rows.size(), 1U);
  const auto& row = rows.front();
  EXPECT_THAT(f.output, HasSubstr(row.at("spec").at("test").get<std::string>()));
  EXPECT_GT(row.at("ours").at("value").get<double>(), 0);
  if (!row.contains("ratio")) return;
  EXPECT_GT(row.at("baseline").at("value").get<double>(), 0);
  const auto& ratio = row.at("ratio");
  EXPECT_GT(ratio.at("lowest").get<double>(), 0);
  EXPECT_LE(ratio.at("lowest").get<double>(), ratio.at("median").get<double>());
  EXPECT_LE(ratio.at("median").get<double>(), ratio.at("highest").get<double>());
}

using Words = std::vector<std::string>;
INSTANTIATE_TEST_SUITE_P(
    Tests, PerfRun,
    ::testing::Values(Words{"tcp_bw", "--size=64k"}, Words{"tcp_lat"}, Words{"tcp_rate"}, Words{"tcp_connect"},
                      Words{"write_bw", "--size=64k"}, Words{"write_bw", "--size=1000", "--crc=off", "--depth=3"},
                      Words{"read_bw", "--size=64k", "--placement=staged", "--crc=off"},
                      Words{"read_bw", "--size=1m", "--fpdu=16k"}, Words{"send_bw", "--size=64k", "--fpdu=emss"},
                      Words{"send_bw", "--size=3", "--depth=1"}, Words{"send_bw", "--size=64k", "--threads=2"},
                      Words{"send_rate"}, Words{"send_rate", "--progress=manual"}, Words{"write_lat"},
                      Words{"read_lat"}, Words{"send_lat"}, Words{"send_lat", "--progress=manual", "--size=1000"},
                      Words{"connect_rate"}, Words{"connect_rate", "--progress=manual"}),
    [](const auto& test) {
      std::string text;
      for (const std::string& word : test.param) {
        for (const char c : word) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      }
      return text;
    });

TEST(Perf, ServesAClientAfterTheOther) {
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

TEST(Perf, LooksForTheBestCallsOfPlainTcp) {
  const Finished f = run({"perf", "run", "tcp_bw", "--size=64k", "--pairs=1", "--seconds=0.05"});
  ASSERT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, ::testing::ContainsRegex("calls of (64 KiB|256 KiB|1 MiB) and (64 KiB|256 KiB|1 MiB), "));
}

TEST(Perf, CountsWhatIdleConnectionsHold) {
  const Finished f = run({"perf", "idle", "--connections=50"});
  ASSERT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, ::testing::ContainsRegex("descriptors of each +1.00 +1.00"));
}

TEST(Perf, SaysWhichLimitIsTooLow) {
  const Finished f = run({"perf", "idle", "--connections=1000000"});
  if (f.code == 0) GTEST_SKIP() << "this machine allows a million descriptors";
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("RLIMIT_NOFILE allows"));
}

TEST(Perf, SaysWhenNobodyServes) {
  const Finished f = run({"perf", "run", "write_bw", "127.0.0.1:1"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("is `iwarp perf serve` running there?"));
}

TEST(Perf, ClientSaysWhenTheServerIsKilled) {
  Subprocess server({"perf", "serve", "--listen", "127.0.0.1:0"});
  const std::string peer = "127.0.0.1:" + server.listening_port();
  Subprocess client({"perf", "run", "write_bw", peer, "--size=4k", "--pairs=1", "--seconds=30"});
  ::usleep(500'000);
  server.signal(SIGKILL);
  EXPECT_EQ(client.wait(), 1);
}

}  // namespace
}  // namespace iwarp::test
