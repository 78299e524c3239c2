#include "iwarp/cm/accept_pause.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace iwarp::cm {
namespace {

namespace errc = boost::system::errc;
using Clock = std::chrono::steady_clock;

class AcceptPauseTest : public ::testing::Test {
 protected:
  boost::asio::io_context io_;
  int told_ = 0;
  Error error_{};
  AcceptPause pause_{io_, [this](const Error& e) {
                       ++told_;
                       error_ = e;
                     }};
};

TEST_F(AcceptPauseTest, TriesAgainAfterAWhile) {
  bool again = false;
  const auto begin = Clock::now();
  pause_.begin(make_error_code(errc::too_many_files_open), [&] { again = true; });
  io_.run();
  EXPECT_TRUE(again);
  EXPECT_GE(Clock::now() - begin, AcceptPause::kPause);
}

TEST_F(AcceptPauseTest, SaysOnceWhatIsShort) {
  for (int i = 0; i < 3; ++i) {
    pause_.begin(make_error_code(errc::too_many_files_open), [] {});
    io_.run();
    io_.restart();
  }
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(error_.code, Errc::kResource);
  EXPECT_NE(std::string(error_.why).find("ulimit -n"), std::string::npos);
}

TEST_F(AcceptPauseTest, SaysNothingOfPeersThatGaveUp) {
  pause_.begin(make_error_code(errc::connection_aborted), [] {});
  io_.run();
  EXPECT_EQ(told_, 0);
}

TEST_F(AcceptPauseTest, GoesOnThoughWhoIsToldThrows) {
  AcceptPause pause(io_, [](const Error&) { throw std::runtime_error("told"); });
  bool again = false;
  EXPECT_THROW(pause.begin(make_error_code(errc::too_many_files_open), [&] { again = true; }), std::runtime_error);
  io_.run();
  EXPECT_TRUE(again);
}

TEST_F(AcceptPauseTest, CanBeCancelled) {
  pause_.begin(make_error_code(errc::not_enough_memory), [] { FAIL(); });
  pause_.cancel();
  io_.run();
  EXPECT_EQ(told_, 1);
}

}  // namespace
}  // namespace iwarp::cm
