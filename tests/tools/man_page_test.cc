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
  for (const char* name : {"iwarp-perf-run", "iwarp-gateway", "iwarp-rping"})
    EXPECT_THAT(pages.at(name), AllOf(HasSubstr(".SH \"EXAMPLES\""), HasSubstr(".TH IWARP-"))) << name;
}

TEST(ManPages, AreWrittenByTheBuild) {
  const tools::CommandLine commands;
  for (const auto& [name, text] : pages_of(commands.app())) {
    std::ifstream in(std::string(IWARP_MAN_PAGES) + "/" + name + ".1");
    std::ostringstream written;
    written << in.rdbuf();
    EXPECT_EQ(written.str(), text) << name;
  }
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
  for (const auto& [name, text] : pages_of(commands.app())) {
    std::ofstream(file) << text;
    const Finished f = shell("LC_ALL=C man --warnings -Z -Tutf8 -l " + file + " 2>&1 >/dev/null");
    EXPECT_EQ(f.code, 0) << name;
    EXPECT_THAT(f.output, IsEmpty()) << name;
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace iwarp::test
