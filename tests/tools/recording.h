// What --trace and --pcap have written, for tests to look at.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/subprocess.h"

namespace iwarp::test {

using Lines = std::vector<std::string>;

// Without the time.
inline Lines lines_of(const std::string& text) {
  Lines out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line.substr(line.find(' ') + 1));
  return out;
}

inline Lines lines_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return lines_of(text.str());
}

// Those that hold `text`.
inline Lines with(const Lines& lines, const std::string& text) {
  Lines out;
  for (const std::string& line : lines) {
    if (line.find(text) != std::string::npos) out.push_back(line);
  }
  return out;
}

// Without the fields that only a capture can have, and the latency, which is of other clocks.
inline Lines comparable(const Lines& lines) {
  Lines out;
  for (const std::string& line : lines) {
    out.push_back(
        std::regex_replace(line, std::regex(R"((frame|call_in|latency_ms)=[0-9.]+(, )?|, header_in=\d+)"), ""));
  }
  return out;
}

// What `iwarp trace` says of a capture, in whole lines, comparable with a trace without FPDUs.
inline Lines read_back(const std::string& capture) {
  Lines out;
  for (const std::string& line : lines_of(run({"trace", "-v", capture}).output)) {
    if (line.find(" mpa Fpdu(") == std::string::npos && line.find(" ddp ") == std::string::npos) out.push_back(line);
  }
  return comparable(out);
}

// Those of the connection with this number.
inline Lines of_connection(const Lines& lines, std::size_t number) {
  Lines out;
  for (const std::string& line : lines) {
    if (line.starts_with(std::to_string(number) + " ")) out.push_back(line);
  }
  return out;
}

inline bool has_tshark() {
  return std::system("tshark --version >/dev/null 2>&1") == 0;
}

// What tshark prints about a capture with these arguments.
inline std::string tshark(const std::string& capture, const std::string& arguments) {
  return shell("tshark -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -r '" + capture + "' " + arguments +
               " 2>/dev/null")
      .output;
}

// Packets that tshark finds fault with, a line for each.
inline std::string tshark_faults(const std::string& capture) {
  return tshark(capture,
                "-Y 'tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.analysis.flags || _ws.malformed'");
}

// A directory of one test's own, while this lives.
class Scratch {
 public:
  explicit Scratch(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("iwarp-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace iwarp::test
