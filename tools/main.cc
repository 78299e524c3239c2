#include <csignal>
#include <exception>
#include <iostream>

#include "tools/command.h"
#include "tools/connection_log.h"

int main(int argc, char** argv) {
  using namespace iwarp::tools;
  CLI::App app{"User-space iWARP: RDMA over plain TCP, without RNIC or kernel module", "iwarp"};
  app.set_version_flag("--version", IWARP_VERSION);
  app.require_subcommand(0, 1);
  bool verbose = false;
  app.add_flag("--debug", verbose, "Log more");
  const std::vector<std::pair<CLI::App*, Run>> commands = [&] {
    std::vector<std::pair<CLI::App*, Run>> list;
    for (const auto add : {add_gateway, add_perf, add_rping, add_trace}) {
      Run run = add(app);
      list.emplace_back(app.get_subcommands({}).back(), std::move(run));
    }
    return list;
  }();
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      throw CLI::ValidationError("iwarp", "choose a command: gateway, perf, rping or trace");
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? kExitOk : kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  set_up_logging(verbose);
  try {
    for (const auto& [command, run] : commands) {
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
