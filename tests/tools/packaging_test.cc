// What the package brings for the gateway as a service: the example of its configuration, and the unit of systemd.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/tools/recording.h"
#include "tests/tools/subprocess.h"
#include "tools/command.h"
#include "tools/gateway_config.h"

namespace iwarp::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using tools::read_gateway_config;

const std::string kSource = IWARP_SOURCE_DIR;
const std::string kExample = kSource + "/packaging/gateway.toml";
const std::string kUnit = kSource + "/packaging/iwarp-gateway.service";

std::string content(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> keys() {
  CLI::App command("x", "iwarp");
  const tools::Run run = tools::add_gateway(command);
  std::vector<std::string> out;
  for (const CLI::Option* o : command.get_subcommand("gateway")->get_options()) {
    const std::string name = o->get_lnames().front();
    if (name != "help" && name != "config" && name != "check") out.push_back(name);
  }
  return out;
}

TEST(GatewayExample, ServesThisHostOnlyAsItStands) {
  const auto r = read_gateway_config(kExample);
  ASSERT_THAT(r.errors, IsEmpty());
  ASSERT_THAT(r.config->service.listeners, SizeIs(1));
  const auto& listener = r.config->service.listeners.front();
  EXPECT_TRUE(listener.listen.address().is_loopback());
  EXPECT_EQ(listener.options.allow, gateway::AccessList());
}

TEST(GatewayExample, IsValidWithAllItsLinesAndNamesEveryKey) {
  const Scratch scratch("packaging");
  std::ifstream in(kExample);
  std::ofstream out(scratch.file("all.toml"));
  std::set<std::string> named;
  const std::regex key("#?([a-z][a-z0-9-]*) = .*");
  for (std::string line; std::getline(in, line);) {
    const bool setting = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    out << (setting ? line.substr(1) : line) << '\n';
    if (std::smatch match; std::regex_match(line, match, key)) named.insert(match[1]);
  }
  out.close();
  const auto r = read_gateway_config(scratch.file("all.toml"));
  EXPECT_THAT(r.errors, IsEmpty());
  ASSERT_TRUE(r.config);
  EXPECT_THAT(r.config->service.listeners, SizeIs(2));
  for (const std::string& k : keys()) EXPECT_EQ(named.count(k), 1u) << k << " is not in the example";
}

TEST(GatewayDocument, NamesEveryKey) {
  const std::string page = content(kSource + "/docs/GATEWAY-SERVICE.md");
  for (const std::string& key : keys()) EXPECT_THAT(page, HasSubstr("| `" + key + "` |"));
}

// iwarp need not be installed here.
std::string unit_for_this_machine() {
  return std::regex_replace(content(kUnit), std::regex("/usr/bin/iwarp"), "/bin/true");
}

bool has_systemd_analyze() {
  return std::system("systemd-analyze --version >/dev/null 2>&1") == 0;
}

TEST(GatewayUnit, IsWellFormed) {
  if (!has_systemd_analyze()) GTEST_SKIP() << "no systemd-analyze";
  const Scratch scratch("packaging");
  std::ofstream(scratch.file("iwarp-gateway.service")) << unit_for_this_machine();
  const Finished f = shell("systemd-analyze verify --man=no '" + scratch.file("iwarp-gateway.service") + "' 2>&1");
  EXPECT_EQ(f.output.find("iwarp-gateway.service:"), std::string::npos) << f.output;
}

// A small Debian has no /bin/kill, for one.
TEST(GatewayUnit, RunsNoProgramThatIsOfAnotherPackage) {
  std::istringstream unit(content(kUnit));
  const std::regex program("Exec[A-Za-z]+=[-@:+!]*([^ ]+).*");
  std::set<std::string> programs;
  for (std::string line; std::getline(unit, line);) {
    if (std::smatch match; std::regex_match(line, match, program)) programs.insert(match[1]);
  }
  EXPECT_EQ(programs, (std::set<std::string>{"/usr/bin/iwarp", "/bin/sh"}));
}

TEST(GatewayUnit, IsHardened) {
  if (!has_systemd_analyze()) GTEST_SKIP() << "no systemd-analyze";
  const Finished f = shell("systemd-analyze --offline=true --threshold=30 security '" + kUnit + "' 2>&1");
  EXPECT_EQ(f.code, 0) << f.output;  // above 3.0 it fails
  EXPECT_THAT(f.output, HasSubstr("Overall exposure level"));
}

}  // namespace
}  // namespace iwarp::test
