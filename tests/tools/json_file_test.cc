#include "tools/json_file.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace iwarp::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Parsed {
  JsonFlag flag;
  std::string peer;
};

Parsed parse(std::vector<std::string> arguments) {
  Parsed p;
  CLI::App app;
  p.flag.add(app, "Print it as JSON");
  app.add_option("PEER", p.peer);
  arguments = join_json_values(std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  return p;
}

TEST(JsonFlag, IsOffUnlessGiven) {
  EXPECT_FALSE(parse({"host"}).flag.given());
}

TEST(JsonFlag, AloneMeansStandardOutputAndTakesNoPeer) {
  const Parsed p = parse({"--json", "host:20049"});
  EXPECT_TRUE(p.flag.on_standard_output());
  EXPECT_EQ(p.peer, "host:20049");
  EXPECT_TRUE(parse({"host", "--json"}).flag.on_standard_output());
}

TEST(JsonFlag, TakesAFileInEitherForm) {
  EXPECT_EQ(parse({"--json=report", "host"}).flag.file(), "report");
  const Parsed p = parse({"--json", "a.json", "host"});
  EXPECT_EQ(p.flag.file(), "a.json");
  EXPECT_EQ(p.peer, "host");
  EXPECT_TRUE(parse({"--json", "-", "host"}).flag.on_standard_output());
}

class JsonOutputTest : public ::testing::Test {
 protected:
  ~JsonOutputTest() override { std::filesystem::remove(file_); }
  JsonFlag to_file() { return parse({"--json=" + file_, "x"}).flag; }
  std::string written() {
    std::ostringstream out;
    out << std::ifstream(file_).rdbuf();
    return out.str();
  }
  std::string file_ = ::testing::TempDir() + "json_file_test." + std::to_string(::getpid());
};

TEST_F(JsonOutputTest, ADocumentSaysWhatMadeIt) {
  JsonOutput(to_file()).write("probe", {{"peer", "host"}});
  const Json j = Json::parse(written());
  EXPECT_EQ(j["peer"], "host");
  const Json& about = j["iwarp"];
  EXPECT_EQ(about["schema"], kJsonSchema);
  EXPECT_EQ(about["command"], "probe");
  EXPECT_EQ(about["version"], IWARP_VERSION);
  for (const char* field : {"host", "kernel", "machine"})
    EXPECT_FALSE(about[field].get<std::string>().empty()) << field;
  EXPECT_GE(about["processors"], 1);
  EXPECT_EQ(about["date"].get<std::string>().size(), std::string("2026-11-25T12:00:00Z").size());
}

TEST_F(JsonOutputTest, AStreamIsALineForEachRecord) {
  JsonOutput out(to_file());
  out.begin_lines("trace");
  out.write_line({{"a", 1}});
  std::istringstream lines(written());
  std::string first, second, none;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ(Json::parse(first)["iwarp"]["command"], "trace");
  EXPECT_EQ(second, R"({"a":1})");
  EXPECT_FALSE(std::getline(lines, none));
}

TEST_F(JsonOutputTest, WhatIsNoUtf8IsReplacedAndNotThrown) {
  JsonOutput(to_file()).write("probe", {{"text", "\xff"}});
  EXPECT_EQ(Json::parse(written())["text"], "\xEF\xBF\xBD");
}

TEST_F(JsonOutputTest, AFileThatCannotBeMadeIsNamedWithTheCause) {
  file_ = "/nonexistent/x.json";
  try {
    const JsonOutput out(to_file());
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "cannot write /nonexistent/x.json: No such file or directory");
  }
}

TEST_F(JsonOutputTest, AFullDeviceIsAnError) {
  const std::string own = std::exchange(file_, "/dev/full");
  JsonOutput out(to_file());
  file_ = own;
  EXPECT_THROW(out.write("probe", Json::object()), std::runtime_error);
}

}  // namespace
}  // namespace iwarp::tools
