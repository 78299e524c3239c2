// The command line of `iwarp probe`, what its ways share, and how it ends.
#pragma once

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "tools/json_file.h"
#include "tools/llp_flags.h"
#include "tools/probe/report.h"
#include "tools/recorder.h"

namespace iwarp::tools {

inline constexpr std::uint16_t kNfsRdmaPort = 20049;  // where nothing else is named

struct ProbeFlags {
  std::string peer;    // empty with --listen
  std::string listen;  // ADDRESS:PORT, ADDRESS, or empty
  double timeout_seconds = 5;
  double wait_seconds = 0;  // for a connection of an initiator; 0: for ever
  std::string private_data = "auto";
  std::vector<std::string> only;
  LlpFlags llp;
  JsonFlag json;
  RecorderFlags recorder;

  [[nodiscard]] std::chrono::milliseconds timeout() const;
  // Throws CLI::ValidationError.
  [[nodiscard]] std::vector<std::byte> private_data_at(std::uint16_t port) const;
  // Text goes to standard output at once, unless JSON takes its place.
  void print(const std::string& text) const;
};

// The questions that were chosen, out of all that there are, or all of them. Throws CLI::ValidationError.
template <class Question>
[[nodiscard]] std::vector<const Question*> chosen(const ProbeFlags& flags, std::span<const Question> all) {
  std::vector<const Question*> list;
  for (const Question& q : all) {
    if (flags.only.empty()) list.push_back(&q);
  }
  for (const std::string& name : flags.only) {
    const auto found = std::ranges::find(all, name, &Question::name);
    if (found != all.end()) {
      list.push_back(&*found);
      continue;
    }
    std::string text = "unknown question '" + name + "': use";
    for (const Question& q : all) text += " " + std::string(q.name);
    throw CLI::ValidationError("--only", text);
  }
  return list;
}

// A line for each question, for --help.
template <class Question>
[[nodiscard]] std::string list_of(std::span<const Question> all) {
  std::string text;
  for (const Question& q : all) text += "  " + probe::padded(q.name, 18) + std::string(q.asks) + "\n";
  return text;
}

[[nodiscard]] int exit_code(probe::Verdict verdict);

// All: the exit code.
[[nodiscard]] int probe_responder(const ProbeFlags& flags);
[[nodiscard]] int probe_sctp(const ProbeFlags& flags);
[[nodiscard]] int probe_initiator(const ProbeFlags& flags);

}  // namespace iwarp::tools
