// What `--json [FILE]` writes, the same way for every command: one JSON document, or for a stream of records one
// object a line. Each document has, and each stream begins with, an object "iwarp" that says what made it
// (docs/JSON.md).
#pragma once

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace iwarp::tools {

// Raised when a field of any command's output goes or changes its meaning; new fields do not raise it.
inline constexpr int kJsonSchema = 1;

// The flag. A value follows it only as "--json=FILE", or where the next argument is "-" or ends in ".json"
// (join_json_values()): so "--json HOST" leaves HOST to be the peer.
class JsonFlag {
 public:
  // `what`: the help text, such as "Print the report as JSON".
  void add(CLI::App& command, const std::string& what);
  [[nodiscard]] bool given() const { return !file_.empty(); }
  // The document takes the place of the text on standard output.
  [[nodiscard]] bool on_standard_output() const { return file_ == "-"; }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_;
};

// "--json FILE" becomes "--json=FILE" where FILE is "-" or ends in ".json".
[[nodiscard]] std::vector<std::string> join_json_values(std::vector<std::string> arguments);

// {"schema", "command", "version", "host", "kernel", "machine", "processors", "date"}: who made a document, and when
// (UTC). `command`: such as "perf run".
[[nodiscard]] nlohmann::ordered_json about(std::string_view command);

// Where the output goes, opened at once, so that what cannot be written is known before the work and not after it.
class JsonOutput {
 public:
  // Throws std::runtime_error "cannot write FILE: No space left on device".
  explicit JsonOutput(const JsonFlag& flag);

  // {"iwarp": about(command), ...document}, indented. Throws as the constructor does.
  void write(std::string_view command, const nlohmann::ordered_json& document);
  // The first line of a stream, {"iwarp": about(command)}, and any other. They leave at once. Throw likewise.
  void begin_lines(std::string_view command);
  void write_line(const nlohmann::ordered_json& record);

 private:
  void put(const std::string& text);

  std::string name_;
  std::ofstream file_;
  bool standard_output_;
};

}  // namespace iwarp::tools
