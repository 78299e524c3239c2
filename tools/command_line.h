// The whole command line of `iwarp`: the flags of its own and all subcommands.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/command.h"

namespace iwarp::tools {

class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Parses and runs; the exit code. Every error that it tells begins with the command's name. Output that cannot be
  // written is one, whatever the command says.
  [[nodiscard]] int run(int argc, char** argv);
  // For what describes the command line: the man pages.
  [[nodiscard]] const CLI::App& app() const { return app_; }

 private:
  int parse_and_run(std::vector<std::string> arguments);
  int help() const;
  // The command that was chosen, down to "perf run".
  [[nodiscard]] const CLI::App& chosen() const;
  int wrong_usage(const CLI::ParseError& error) const;

  CLI::App app_;
  std::vector<std::pair<CLI::App*, Run>> commands_;
  std::vector<std::string> help_of_;
  bool verbose_ = false;
};

}  // namespace iwarp::tools
