#include "tools/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <string>
#include <thread>

namespace iwarp::tools {
namespace {

using namespace std::chrono_literals;

class LogWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::pipe(ends_.data()), 0);
    ASSERT_GT(::fcntl(ends_[1], F_SETPIPE_SZ, 4096), 0);
  }
  ~LogWriterTest() override {
    close_end(0);
    close_end(1);
  }
  void close_end(int which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }
  // To the end of the stream.
  std::string read_all() const {
    std::string out;
    std::array<char, 1000> chunk{};
    for (ssize_t n = 0; (n = ::read(ends_[0], chunk.data(), chunk.size())) > 0;) out.append(chunk.data(), n);
    return out;
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_F(LogWriterTest, LosesNothingAtAnOrdinaryEnd) {
  std::string got, expected;
  std::thread reader([&] { got = read_all(); });
  {
    LogWriter writer(ends_[1]);
    for (int i = 0; i < 5000; ++i) {
      const std::string line = "line " + std::to_string(i) + "\n";
      expected += line;
      writer.write(line);
    }
    EXPECT_TRUE(writer.finish(60s));
    EXPECT_EQ(writer.lost(), 0u);
  }
  close_end(1);
  reader.join();
  EXPECT_EQ(got, expected);
}

// Nobody reads while these are written.
TEST_F(LogWriterTest, CountsAndTellsWhatFoundNoRoom) {
  constexpr unsigned kLines = 3000;
  LogWriter writer(ends_[1], 8192);
  for (unsigned i = 0; i < kLines; ++i) writer.write("line " + std::to_string(i) + "\n");
  EXPECT_GT(writer.lost(), 0u);
  std::string got;
  std::thread reader([&] { got = read_all(); });
  EXPECT_TRUE(writer.finish(60s));
  close_end(1);
  reader.join();
  unsigned whole = 0, lost = 0, next = 0;
  std::istringstream lines(got);
  for (std::string line; std::getline(lines, line);) {
    unsigned n = 0;
    if (std::sscanf(line.c_str(), "line %u", &n) == 1) {
      EXPECT_EQ(line, "line " + std::to_string(n));
      EXPECT_EQ(n, next) << "told in the place of what is missing";
      next = n + 1;
      ++whole;
    } else if (std::sscanf(line.c_str(), "%u log lines were lost", &n) == 1) {
      next += n;
      lost += n;
    } else {
      ADD_FAILURE() << line;
    }
  }
  EXPECT_EQ(whole + lost, kLines);
  EXPECT_EQ(lost, writer.lost());
}

TEST_F(LogWriterTest, GivesUpOnAReaderThatNeverComes) {
  LogWriter writer(ends_[1]);
  writer.write(std::string(100000, 'x') + "\n");
  EXPECT_FALSE(writer.finish(10ms));
  EXPECT_FALSE(writer.finish(0ms));
  close_end(0);
  EXPECT_TRUE(writer.finish(60s)) << "or it would write to whatever has the descriptor next";
}

TEST_F(LogWriterTest, AReaderThatIsGoneDoesNotKeepIt) {
  LogWriter writer(ends_[1]);
  close_end(0);
  writer.write(std::string(100000, 'x') + "\n");
  EXPECT_TRUE(writer.finish(60s));
}

}  // namespace
}  // namespace iwarp::tools
