#include "tests/faults/survivor.h"

#include <gmock/gmock.h>

#include <sstream>

#include "tests/faults/written.h"
#include "tests/support/eventually.h"

namespace iwarp::faults {

void expect_cause(test::Subprocess& survivor, const std::string& what, std::size_t lines,
                  std::chrono::milliseconds within) {
  ASSERT_TRUE(survivor.wait_for(what, lines, within)) << what << " is missing in\n" << survivor.output();
  std::istringstream log(survivor.output());
  for (std::string line; std::getline(log, line);) {
    if (line.find(what) == std::string::npos) continue;
    EXPECT_THAT(line,
                ::testing::ContainsRegex(
                    "end=\"(connection lost|client closed|server closed|done|aborted|remote terminate|timeout)\"|"
                    "reason=(connection_lost|peer_closed|aborted|remote_terminate|timeout|malformed_startup_frame)"));
  }
}

void expect_at_rest(Chain& chain, Chain::Process survivor) {
  EXPECT_TRUE(test::eventually([&] { return chain.at_rest(survivor); }, kFreed))
      << survivor << " keeps " << descriptors(chain[survivor].pid()) << " descriptors\n"
      << chain[survivor].output();
}

void expect_serving(Chain& chain) {
  RpcClient c(chain.port(Chain::kTcpFront));
  EXPECT_TRUE(c.answered(write_call(1, 1, 70'000)));
  EXPECT_TRUE(c.answered(rpcrdma::test::read_call(2, 70'000)));
}

}  // namespace iwarp::faults
