// Log lines: with the time for people, with a priority for the journal.
#include "tools/log_format.h"

#include <gmock/gmock.h>
#include <spdlog/details/log_msg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::MatchesRegex;

std::string line(bool for_journal, spdlog::level::level_enum level, const std::string& command = "") {
  spdlog::memory_buf_t out;
  tools::log_formatter(command, for_journal)->format({"name", level, "text"}, out);
  return {out.data(), out.size()};
}

TEST(LogFormat, HasTheTimeForPeopleAndAPriorityForTheJournal) {
  EXPECT_THAT(line(false, spdlog::level::warn), MatchesRegex("[0-9]+:[0-9]+:[0-9.]+ warning text\n"));
  EXPECT_EQ(line(true, spdlog::level::debug), "<7>text\n");
  EXPECT_EQ(line(true, spdlog::level::info), "<6>text\n");
  EXPECT_EQ(line(true, spdlog::level::warn), "<4>text\n");
  EXPECT_EQ(line(true, spdlog::level::err), "<3>text\n");
  EXPECT_EQ(line(true, spdlog::level::critical), "<2>text\n");
}

TEST(LogFormat, BeginsErrorsOfACommandWithItsName) {
  const std::string command = "iwarp perf run";
  EXPECT_EQ(line(false, spdlog::level::err, command), "iwarp perf run: text\n");
  EXPECT_EQ(line(false, spdlog::level::critical, command), "iwarp perf run: text\n");
  EXPECT_THAT(line(false, spdlog::level::info, command), MatchesRegex("[0-9]+:[0-9]+:[0-9.]+ info text\n"));
  EXPECT_THAT(line(false, spdlog::level::err), MatchesRegex("[0-9]+:[0-9]+:[0-9.]+ error text\n"));
  EXPECT_EQ(line(true, spdlog::level::err, command), "<3>text\n");
}

TEST(LogFormat, KnowsTheJournalByItsInode) {
  EXPECT_FALSE(tools::goes_to_journal());
  struct stat mine {};
  ASSERT_EQ(::fstat(STDERR_FILENO, &mine), 0);
  ::setenv("JOURNAL_STREAM", (std::to_string(mine.st_dev) + ":" + std::to_string(mine.st_ino)).c_str(), 1);
  EXPECT_TRUE(tools::goes_to_journal());
  ::setenv("JOURNAL_STREAM", "1:2", 1);  // of somebody who has redirected standard error since
  EXPECT_FALSE(tools::goes_to_journal());
  ::unsetenv("JOURNAL_STREAM");
}

}  // namespace
}  // namespace iwarp::test
