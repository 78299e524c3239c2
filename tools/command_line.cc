#include "tools/command_line.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

#include "tools/connection_log.h"
#include "tools/json_file.h"

namespace iwarp::tools {

CommandLine::CommandLine() : app_("User-space iWARP: RDMA over plain TCP, without RNIC or kernel module", "iwarp") {
  app_.set_version_flag("--version", IWARP_VERSION);
  app_.require_subcommand(0, 1);
  app_.add_flag("--debug", verbose_, "Log more");
  for (const auto add : {add_gateway, add_perf, add_probe, add_rping, add_top, add_trace}) {
    Run run = add(app_);
    commands_.emplace_back(app_.get_subcommands({}).back(), std::move(run));
  }
}

int CommandLine::run(int argc, char** argv) {
  try {
    std::vector<std::string> arguments = join_json_values({argv + 1, argv + argc});
    std::ranges::reverse(arguments);  // as CLI11 wants it
    app_.parse(std::move(arguments));
    if (app_.get_subcommands().empty())
      throw CLI::ValidationError("iwarp", "choose a command: gateway, perf, probe, rping, top or trace");
  } catch (const CLI::ParseError& e) {
    const int code = app_.exit(e);
    return code == 0 ? kExitOk : kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  set_up_logging(verbose_);
  try {
    for (const auto& [command, run] : commands_) {
      if (command->parsed()) return run();
    }
  } catch (const CLI::ParseError& e) {
    std::cerr << e.what() << "\nRun with --help for more information.\n";
    return kExitUsage;
  } catch (const std::exception& e) {
    std::cerr << "iwarp: " << e.what() << '\n';
    return kExitFailed;
  }
  return kExitUsage;
}

}  // namespace iwarp::tools
