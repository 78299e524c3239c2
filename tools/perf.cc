// `iwarp perf`: what the stack does, beside what plain TCP does in the same minute on the same machine.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <utility>
#include <vector>

#include "tools/perf/server.h"
#include "tools/perf_command.h"
#include "tools/standard_output.h"

namespace iwarp::tools {
namespace {

void on_signal(int) {
  perf::interrupt();
}

}  // namespace

gateway::HostPort perf_address(const std::string& text, const char* flag) {
  const auto colons = std::count(text.begin(), text.end(), ':');
  std::string full = colons > 1 && text.front() != '[' ? "[" + text + "]" : text;
  if (colons == 0 || full.back() == ']') full += ":" + std::to_string(kPerfPort);
  auto parsed = gateway::HostPort::parse(full);
  if (!parsed) throw CLI::ValidationError(flag, parsed.error);
  return std::move(*parsed.value);
}

void add_peer(CLI::App& command, std::string& peer) {
  command.add_option("PEER", peer, "HOST[:PORT] of `iwarp perf serve`; without it, a process of its own on loopback");
}

std::optional<gateway::HostPort> parse_peer(const std::string& peer) {
  if (peer.empty()) return std::nullopt;
  return perf_address(peer, "PEER");
}

OtherEnd::OtherEnd(const std::optional<gateway::HostPort>& peer) {
  if (peer) {
    host_ = peer->host;
    control_.emplace(host_, std::to_string(peer->port));
  } else {
    control_.emplace(host_, own_.emplace().port());
  }
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::say(const std::string& text) const {
  if (terminal_) std::cerr << "\r\033[K" + text << std::flush;
}

void print(const std::string& text) {
  write_standard_output(text);
}

Run add_perf(CLI::App& app) {
  CLI::App* cmd = app.add_subcommand("perf", "Measure throughput and latency beside plain TCP");
  cmd->require_subcommand(1);
  cmd->footer(
      "Examples:\n"
      "  iwarp perf run write_bw,read_bw\n"
      "  iwarp perf run --help");
  std::vector<std::pair<CLI::App*, Run>> commands;
  for (const auto add : {add_perf_serve, add_perf_run, add_perf_idle}) {
    Run run = add(*cmd);
    commands.emplace_back(cmd->get_subcommands({}).back(), std::move(run));
  }
  return [commands]() -> int {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    const auto chosen = std::ranges::find_if(commands, [](const auto& c) { return c.first->parsed(); });
    return chosen->second();
  };
}

}  // namespace iwarp::tools
