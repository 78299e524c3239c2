// The commands below `iwarp perf`, and what they share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "iwarp/gateway/options.h"
#include "tools/command.h"
#include "tools/perf/control.h"
#include "tools/perf/own_server.h"

namespace iwarp::tools {

inline constexpr std::uint16_t kPerfPort = 7175;

[[nodiscard]] Run add_perf_serve(CLI::App& perf);
[[nodiscard]] Run add_perf_run(CLI::App& perf);
[[nodiscard]] Run add_perf_idle(CLI::App& perf);

// "HOST:PORT", "[V6]:PORT"; without a port, the usual one: "HOST", "V6", "[V6]". Throws CLI::ValidationError.
[[nodiscard]] gateway::HostPort perf_address(const std::string& text, const char* flag);

// The option PEER.
void add_peer(CLI::App& command, std::string& peer);

// The other end: `iwarp perf serve` at a peer, or a process of its own.
class OtherEnd {
 public:
  // That process when `peer` is empty. Throws std::runtime_error when nobody serves there.
  explicit OtherEnd(const std::optional<gateway::HostPort>& peer);
  [[nodiscard]] perf::Control& control() { return *control_; }
  [[nodiscard]] const std::string& host() const { return host_; }

 private:
  std::string host_ = "127.0.0.1";
  std::optional<perf::OwnServer> own_;
  std::optional<perf::Control> control_;
};
// PEER as OtherEnd wants it. Throws CLI::ValidationError.
[[nodiscard]] std::optional<gateway::HostPort> parse_peer(const std::string& peer);

// One line on a terminal (standard error), written over again and again, and gone in the end.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  [[nodiscard]] bool seen() const { return terminal_; }
  void say(const std::string& text) const;
  // Before something else is printed.
  void clear() const { say(""); }

 private:
  bool terminal_;
};

// Prints at once. Throws StandardOutputError when it cannot.
void print(const std::string& text);

}  // namespace iwarp::tools
