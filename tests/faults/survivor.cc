#include "tests/faults/survivor.h"

#include <gmock/gmock.h>

#include <sstream>

namespace iwarp::faults {

void expect_cause(test::Subprocess& survivor, const std::string& what, std::size_t lines,
                  std::chrono::milliseconds within) {
  ASSERT_TRUE(survivor.wait_for(what, lines, within)) << what << " is missing in\n" << survivor.output();
  std::istringstream log(survivor.output());
  for (std::string line; std::getline(log, line);) {
    if (line.find(what) == std::string::npos) continue;
    EXPECT_THAT(line,
                ::testing::ContainsRegex(
                    "reason=(connection_lost|peer_closed|aborted|remote_terminate|timeout|malformed_startup_frame)"));
  }
}

}  // namespace iwarp::faults
