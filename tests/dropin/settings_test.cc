#include "dropin/verbs/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace iwarp::dropin {
namespace {

TEST(Settings, LengthOfFpdusGoesBeforeTheProfile) {
  Settings asked;
  EXPECT_EQ(stream_options(asked).fpdu, mpa::FpduPolicy::kEmss);
  asked.fpdu = mpa::FpduPolicy::k16k;
  EXPECT_EQ(stream_options(asked).fpdu, mpa::FpduPolicy::k16k);
  asked.profile = "siw";
  EXPECT_EQ(stream_options(asked).fpdu, mpa::FpduPolicy::k16k);
}

TEST(Settings, AreWhatTheEnvironmentHas) {
  ::setenv("IWARP_FPDU", "max", 1);
  ::setenv("IWARP_TRACE", "/tmp/some where", 1);
  ::setenv("IWARP_TRACE_PID", "4711", 1);
  const Settings read = read_settings();
  EXPECT_EQ(read.fpdu, mpa::FpduPolicy::kMax);
  EXPECT_EQ(read.trace, "/tmp/some where");
  EXPECT_EQ(read.trace_process, 4711);
  ::setenv("IWARP_FPDU", "1448", 1);
  ::setenv("IWARP_TRACE_PID", "x", 1);
  EXPECT_EQ(read_settings().fpdu, std::nullopt) << "what cannot be understood counts as not said";
  EXPECT_EQ(read_settings().trace_process, 0);
  for (const char* name : {"IWARP_FPDU", "IWARP_TRACE", "IWARP_TRACE_PID"}) ::unsetenv(name);
}

}  // namespace
}  // namespace iwarp::dropin
