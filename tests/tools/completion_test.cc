// The completion for bash, asked as bash asks it.
#include "tools/completion.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "tests/tools/subprocess.h"
#include "tools/command_line.h"

namespace iwarp::test {
namespace {

using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

const std::string kScript = std::string(IWARP_COMPLETION);

// What is offered for the last of `words`, as bash splits them.
std::vector<std::string> offered(const std::string& words, std::size_t last) {
  const Finished f =
      shell("bash -c '. " + kScript + "; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(last) +
            "; _iwarp; printf \"%s\\n\" \"${COMPREPLY[@]}\"' 2>&1");
  EXPECT_EQ(f.code, 0) << f.output;
  std::istringstream lines(f.output);
  std::vector<std::string> list;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) list.push_back(line);
  }
  return list;
}

TEST(Completion, IsWrittenByTheBuild) {
  const tools::CommandLine commands;
  std::ifstream in(kScript);
  std::ostringstream written;
  written << in.rdbuf();
  EXPECT_EQ(written.str(), tools::bash_completion(commands.app()));
}

TEST(Completion, KnowsCommandsFlagsAndValues) {
  EXPECT_THAT(offered("iwarp \"\"", 1), IsSupersetOf({"gateway", "perf", "probe", "rping", "trace"}));
  EXPECT_THAT(offered("iwarp ga", 1), UnorderedElementsAre("gateway"));
  EXPECT_THAT(offered("iwarp perf \"\"", 2), IsSupersetOf({"run", "serve", "idle"}));
  EXPECT_THAT(offered("iwarp --debug rping --cr", 3), UnorderedElementsAre("--crc"));
  EXPECT_THAT(offered("iwarp rping --crc \"\"", 3), UnorderedElementsAre("on", "prefer-off", "off"));
  EXPECT_THAT(offered("iwarp rping --crc = p", 4), UnorderedElementsAre("prefer-off"));
  EXPECT_THAT(offered("iwarp gateway --profile linux-", 3),
              UnorderedElementsAre("linux-siw", "linux-cxgb4", "linux-irdma"));
  EXPECT_THAT(offered("iwarp perf run --progress m", 4), UnorderedElementsAre("manual"));
}

TEST(Completion, LeavesFilesToBash) {
  EXPECT_THAT(offered("iwarp trace \"\"", 2), UnorderedElementsAre());
  EXPECT_THAT(offered("iwarp rping --trace \"\"", 3), UnorderedElementsAre());
  EXPECT_THAT(offered("iwarp rping --port -", 3), UnorderedElementsAre());
}

TEST(Completion, HidesWhatHelpHides) {
  CLI::App app("x", "top");
  bool flag = false;
  app.add_flag("--seen", flag);
  app.add_flag("--hidden", flag)->group("");
  const std::string script = tools::bash_completion(app);
  EXPECT_NE(script.find("--seen"), std::string::npos);
  EXPECT_EQ(script.find("--hidden"), std::string::npos);
}

}  // namespace
}  // namespace iwarp::test
