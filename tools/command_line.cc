#include "tools/command_line.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>

#include "tools/cause.h"
#include "tools/connection_log.h"
#include "tools/help_format.h"
#include "tools/json_file.h"
#include "tools/nearest_key.h"
#include "tools/option_words.h"
#include "tools/standard_output.h"

namespace iwarp::tools {
namespace {

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : shown_commands(app)) names.push_back(command->get_name());
  return names;
}

std::string list_of_commands(const CLI::App& app) {
  const auto names = names_of_commands(app);
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return list;
}

std::string perhaps_meant(const std::string& word, const std::vector<std::string>& words) {
  const std::string near = nearest_key(word, words);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

std::string unknown_command(const std::string& word, const CLI::App& app) {
  const std::string meant = perhaps_meant(word, names_of_commands(app));
  return "there is no command '" + word + "'" + (meant.empty() ? ": choose " + list_of_commands(app) : meant);
}

std::string unexpected(const std::string& word, const CLI::App& app) {
  if (word.front() == '-') {
    std::vector<std::string> names;
    for (const CLI::Option* o : shown_options(app)) {
      for (const std::string& name : option_names(*o)) names.push_back(name);
    }
    return "there is no flag " + word + perhaps_meant(word.substr(0, word.find('=')), names);
  }
  if (!shown_commands(app).empty()) return unknown_command(word, app);
  return "unexpected argument '" + word + "'";
}

// What the parser says, less of its own words.
std::string message_of(const CLI::ParseError& error, const CLI::App& app) {
  const std::string text = error.what();
  const bool needs_command = text.starts_with("A subcommand is required");
  if (const auto rest = app.remaining();
      !rest.empty() && (needs_command || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr))
    return unexpected(rest.front(), app);
  if (needs_command) return "choose a command: " + list_of_commands(app);
  const std::size_t colon = text.find(": ");
  if (error.get_name() == "ArgumentMismatch" && colon != std::string::npos && text.ends_with(" missing"))
    return text.substr(0, colon) + ": a value is missing";
  const std::string path = command_path(app), before = text.substr(0, std::min(colon, text.size()));
  if (!before.empty() && colon != std::string::npos && path.ends_with(" " + before)) return text.substr(colon + 2);
  return error_text(text);
}

}  // namespace

CommandLine::CommandLine() : app_("User-space iWARP: RDMA over plain TCP, without RNIC or kernel module", "iwarp") {
  app_.formatter(std::make_shared<HelpFormat>());
  app_.set_help_flag("-h,--help", "Print this text and end");
  app_.set_version_flag("--version", IWARP_VERSION, "Print the version and end");
  app_.require_subcommand(0, 1);
  app_.add_flag("--debug", verbose_, "Log more; stands before the command");
  for (const auto add : {add_gateway, add_perf, add_probe, add_profiles, add_rping, add_run, add_top, add_trace}) {
    Run run = add(app_);
    commands_.emplace_back(app_.get_subcommands({}).back(), std::move(run));
  }
  CLI::App* const help = app_.add_subcommand("help", "Print the help of a command");
  help->add_option("COMMAND", help_of_, "Such as gateway, or perf run");
  help->footer("Example:\n  iwarp help perf run");
  commands_.emplace_back(help, [this] { return this->help(); });
  app_.footer(
      "`iwarp help COMMAND` and `iwarp COMMAND --help` explain a command; each has a man page, too.\n"
      "Examples:\n"
      "  iwarp rping -s                   a server to ping, on this host\n"
      "  iwarp rping -c -a HOST -C 3 -v   pings it\n"
      "  iwarp trace nfs.pcap             what happened on an iWARP connection");
}

const CLI::App& CommandLine::chosen() const {
  const CLI::App* at = &app_;
  while (!at->get_subcommands().empty() && at->remaining().empty()) at = at->get_subcommands().front();
  return *at;
}

int CommandLine::wrong_usage(const CLI::ParseError& error) const {
  const CLI::App& app = chosen();
  const std::string command = command_path(app);
  std::cerr << command << ": " << message_of(error, app) << "\nRun `" << command << " --help` for what it takes.\n";
  return kExitUsage;
}

int CommandLine::help() const {
  const CLI::App* at = &app_;
  for (const std::string& word : help_of_) {
    const auto commands = shown_commands(*at);
    const auto found = std::ranges::find(commands, word, [](const CLI::App* c) { return c->get_name(); });
    if (found == commands.end()) {
      throw CLI::ValidationError(
          "help", commands.empty() ? command_path(*at) + " has no command '" + word + "'" : unknown_command(word, *at));
    }
    at = *found;
  }
  std::cout << at->get_formatter()->make_help(at, "", CLI::AppFormatMode::Normal);
  return kExitOk;
}

int CommandLine::parse_and_run(std::vector<std::string> arguments) {
  try {
    std::ranges::reverse(arguments);  // as CLI11 wants it
    app_.parse(std::move(arguments));
    if (app_.get_subcommands().empty()) throw CLI::ValidationError("choose a command: " + list_of_commands(app_));
  } catch (const CLI::CallForHelp&) {
    const CLI::App& app = chosen();
    std::cout << app.get_formatter()->make_help(&app, "", CLI::AppFormatMode::Normal);
    return kExitOk;
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << '\n';
    return kExitOk;
  } catch (const CLI::ParseError& e) {
    return wrong_usage(e);
  }
  set_up_logging(command_path(chosen()), verbose_);
  try {
    for (const auto& [command, run] : commands_) {
      if (command->parsed()) return run();
    }
  } catch (const CLI::ParseError& e) {
    return wrong_usage(e);
  } catch (const StandardOutputError&) {
    throw;
  } catch (const std::exception& e) {
    std::cerr << command_path(chosen()) << ": " << cause_of(e) << '\n';
  }
  return kExitFailed;
}

int CommandLine::run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int code = parse_and_run(join_json_values({argv + 1, argv + argc}));
    check_standard_output();
    return code;
  } catch (const StandardOutputError& e) {
    if (e.cause() == EINTR) return kExitInterrupted;
    if (e.cause() != EPIPE) std::cerr << command_path(chosen()) << ": " << e.what() << '\n';
    return kExitFailed;
  }
}

}  // namespace iwarp::tools
