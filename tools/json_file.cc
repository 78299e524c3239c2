#include "tools/json_file.h"

#include <fmt/chrono.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <iostream>
#include <thread>

#include "tools/standard_output.h"

namespace iwarp::tools {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& name) {
  const int cause = errno;
  throw std::runtime_error("cannot write " + name + (cause != 0 ? std::string(": ") + std::strerror(cause) : ""));
}

}  // namespace

void JsonFlag::add(CLI::App& command, const std::string& what) {
  command.add_flag("--json{-}", file_, what + "; --json=FILE: to that file")->type_name("[FILE]");
}

std::vector<std::string> join_json_values(std::vector<std::string> arguments) {
  std::vector<std::string> out;
  for (std::string& a : arguments) {
    if (!out.empty() && out.back() == "--json" && (a == "-" || a.ends_with(".json"))) {
      out.back() += "=" + a;
    } else {
      out.push_back(std::move(a));
    }
  }
  return out;
}

Json about(std::string_view command) {
  utsname system{};
  ::uname(&system);
  std::tm utc{};
  const std::time_t now = std::time(nullptr);
  ::gmtime_r(&now, &utc);
  return {{"schema", kJsonSchema},
          {"command", command},
          {"version", IWARP_VERSION},
          {"host", system.nodename},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"machine", system.machine},
          {"processors", std::thread::hardware_concurrency()},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc)}};
}

JsonOutput::JsonOutput(const JsonFlag& flag)
    : name_(flag.on_standard_output() ? "standard output" : flag.file()), standard_output_(flag.on_standard_output()) {
  if (standard_output_) return;
  errno = 0;
  file_.open(name_, std::ios::trunc);
  if (!file_) fail(name_);
}

void JsonOutput::put(const std::string& text) {
  if (standard_output_) return write_standard_output(text);
  errno = 0;
  file_ << text << std::flush;
  if (!file_) fail(name_);
}

void JsonOutput::write(std::string_view command, const Json& document) {
  Json all = {{"iwarp", about(command)}};
  all.update(document);
  put(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void JsonOutput::begin_lines(std::string_view command) {
  write_line({{"iwarp", about(command)}});
}

void JsonOutput::write_line(const Json& record) {
  put(record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace iwarp::tools
