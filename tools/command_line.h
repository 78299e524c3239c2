// The whole command line of `iwarp`: the flags of its own and all subcommands.
#pragma once

#include <utility>
#include <vector>

#include "tools/command.h"

namespace iwarp::tools {

class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Parses and runs; the exit code.
  [[nodiscard]] int run(int argc, char** argv);
  // For what describes the command line: the man pages.
  [[nodiscard]] const CLI::App& app() const { return app_; }

 private:
  CLI::App app_;
  std::vector<std::pair<CLI::App*, Run>> commands_;
  bool verbose_ = false;
};

}  // namespace iwarp::tools
