// The man pages: one for each subcommand, every flag in it, and nothing that man complains of.
#include "tools/man_page.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/tools/subprocess.h"
#include "tools/command_line.h"
#include "tools/gateway_config.h"
#include "tools/man_config.h"
#include "tools/roff.h"

namespace iwarp::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::map<std::string, std::string> pages_of(const CLI::App& app) {
  std::map<std::string, std::string> pages;
  for (const tools::ManPage& p : tools::man_pages(app)) pages[p.name] = p.text;
  return pages;
}

std::string in_roff(const std::string& flag) {
  std::string s = "--" + flag;
  for (std::size_t at = 0; (at = s.find('-', at)) != std::string::npos; at += 2) s.insert(at, 1, '\\');
  return s + "\\fR";
}

void expect_pages(const CLI::App& app, const std::string& name, const std::map<std::string, std::string>& pages,
                  std::size_t& count) {
  ++count;
  ASSERT_EQ(pages.count(name), 1U) << name;
  const std::string& page = pages.at(name);
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_group().empty()) continue;
    for (const std::string& flag : o->get_lnames()) EXPECT_THAT(page, HasSubstr(in_roff(flag))) << name;
  }
  std::size_t last = 0;
  for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "\"SEE ALSO\""}) {
    const std::size_t at = page.find(std::string(".SH ") + section + "\n");
    ASSERT_NE(at, std::string::npos) << name << " has no section " << section;
    EXPECT_GT(at, last) << name << ": " << section << " is too early";
    last = at;
  }
  for (const CLI::App* sub : app.get_subcommands({})) {
    EXPECT_THAT(page, HasSubstr("\\-" + sub->get_name() + "\\fR(1)")) << name;
    expect_pages(*sub, name + "-" + sub->get_name(), pages, count);
  }
}

TEST(ManPages, EachCommandHasOneWithEveryFlagAndAllSections) {
  const tools::CommandLine commands;
  const auto pages = pages_of(commands.app());
  std::size_t count = 0;
  expect_pages(commands.app(), "iwarp", pages, count);
  EXPECT_EQ(pages.size(), count);
  EXPECT_THAT(pages.at("iwarp-gateway"), HasSubstr(".SH \"FILES\"\n.TP\n\\fB/etc/iwarp/gateway.toml"));
  for (const auto& [name, page] : pages) {
    EXPECT_THAT(page, AllOf(HasSubstr(".SH \"EXAMPLES\""), HasSubstr(".TH IWARP"))) << name;
    const bool handles_files =
        name != "iwarp-help" && name != "iwarp-perf" && name != "iwarp-profiles" && name != "iwarp-run";
    EXPECT_EQ(page.find(".SH \"FILES\"") != std::string::npos, handles_files) << name;
  }
}

TEST(ManPages, AreWrittenByTheBuild) {
  const tools::CommandLine commands;
  auto pages = tools::man_pages(commands.app());
  pages.push_back(tools::gateway_config_page(commands.app().version()));
  for (const tools::ManPage& p : pages) {
    const std::string section(1, p.section);
    std::ifstream in(std::string(IWARP_MAN_PAGES) + "/man" + section + "/" + p.name + "." + section);
    std::ostringstream written;
    written << in.rdbuf();
    EXPECT_EQ(written.str(), p.text) << p.name;
  }
}

// The page of the gateway's file: as the reader of the file has it.
TEST(ManPages, OfTheFileHasEveryKey) {
  const tools::ManPage page = tools::gateway_config_page("1.2");
  EXPECT_EQ(page.section, '5');
  std::size_t keys = 0;
  for (const auto& list : {tools::process_keys(), tools::listener_keys()}) {
    for (const tools::ConfigKey& key : list) {
      ++keys;
      EXPECT_THAT(page.text, HasSubstr(tools::roff::bold(key.name) + " = " + tools::roff::italic(key.value)))
          << key.name;
      EXPECT_THAT(key.text, Not(HasSubstr("--"))) << key.name;
    }
  }
  EXPECT_GT(keys, 40U);
  EXPECT_THAT(page.text, HasSubstr("\\fBmemory\\fR = \\fIMIB\\fR\n"));
  EXPECT_THAT(page.text, HasSubstr("\\fBrdma\\-listen\\fR = \\fI\"ADDR:PORT\"\\fR\n"));
  EXPECT_THAT(page.text, HasSubstr("\\fBno\\-wake\\fR = \\fItrue\\fR\n"));
}

// Its example can be read.
TEST(ManPages, ExampleOfTheFileIsAFile) {
  std::string text = tools::gateway_config_page("1.2").text;
  text.erase(0, text.find(".nf\n", text.find(".SH EXAMPLES")) + 4);
  text.erase(text.find(".fi\n"));
  for (std::size_t at = 0; (at = text.find("\\-", at)) != std::string::npos;) text.erase(at, 1);
  const std::string file = ::testing::TempDir() + "iwarp-example-" + std::to_string(::getpid()) + ".toml";
  std::ofstream(file) << text;
  const tools::ReadConfig read = tools::read_gateway_config(file);
  std::filesystem::remove(file);
  EXPECT_THAT(read.errors, IsEmpty());
  ASSERT_TRUE(read.config.has_value());
  EXPECT_EQ(read.config->service.listeners.size(), 2U);
}

TEST(ManPages, TextIsNoMarkup) {
  CLI::App app("x", "top");
  CLI::App* sub = app.add_subcommand("odd", "does .this and \\that");
  bool flag = false;
  sub->add_flag("--hidden", flag, "never seen")->group("");
  sub->add_flag("--dots", flag, "'first");
  sub->footer(".SH no heading\nExample:\n  top odd -x");
  const std::string page = pages_of(app).at("top-odd");
  EXPECT_THAT(page, AllOf(HasSubstr("does .this and \\ethat\n"), HasSubstr("\n\\&'first\n"),
                          HasSubstr("\n\\&.SH no heading\n"), HasSubstr("  top odd \\-x\n")));
  EXPECT_THAT(page, Not(HasSubstr("hidden")));
}

TEST(ManPages, FooterHasTheUsualHeadings) {
  CLI::App app("x", "top");
  app.add_subcommand("all", "a")
      ->footer("Odd.\nExamples:\n  top all\nBehind.\nExit code: 0 well,\n1 ill.\nFiles:\n  /etc/x\nTwo words: t");
  app.add_subcommand("some", "b")->footer("Example:\n  top some");
  app.add_subcommand("none", "c");
  const auto pages = pages_of(app);
  EXPECT_THAT(pages.at("top-all"),
              HasSubstr(".SH \"NOTES\"\nOdd.\n.SH \"TWO WORDS\"\nt\n.SH \"EXIT STATUS\"\n0 well,\n1 ill.\n"
                        ".SH \"FILES\"\n.nf\n  /etc/x\n.fi\n"
                        ".SH \"EXAMPLES\"\n.nf\n  top all\n.fi\nBehind.\n.SH \"SEE ALSO\"\n"));
  EXPECT_THAT(pages.at("top-some"),
              AllOf(HasSubstr(".SH \"EXAMPLES\"\n.nf\n  top some\n.fi\n"), Not(HasSubstr("NOTES"))));
  EXPECT_THAT(pages.at("top-none"), AllOf(Not(HasSubstr(".nf")), HasSubstr(".SH DESCRIPTION\nc.\n"),
                                          HasSubstr(".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\n")));
}

TEST(ManPages, AreWithoutWarnings) {
  if (std::system("man --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "man is not installed";
  const tools::CommandLine commands;
  const std::string file = ::testing::TempDir() + "iwarp-man-" + std::to_string(::getpid());
  auto pages = tools::man_pages(commands.app());
  pages.push_back(tools::gateway_config_page(commands.app().version()));
  for (const tools::ManPage& p : pages) {
    std::ofstream(file) << p.text;
    const Finished f = shell("LC_ALL=C man --warnings -Z -Tutf8 -l " + file + " 2>&1 >/dev/null");
    EXPECT_EQ(f.code, 0) << p.name;
    EXPECT_THAT(f.output, IsEmpty()) << p.name;
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace iwarp::test
