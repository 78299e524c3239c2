#include "tools/stats_file.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/json_file.h"

namespace iwarp::tools {
namespace {

std::string aside(const std::string& file) {
  return file + ".new";
}

}  // namespace

StatsFile::StatsFile(std::string file) : file_(std::move(file)) {
  if (to_output()) return;
  std::error_code ec;
  if (std::filesystem::is_directory(file_, ec))
    throw std::runtime_error("cannot write " + file_ + ": it is a directory");
  if (std::filesystem::exists(file_, ec) && !std::filesystem::is_regular_file(file_, ec))
    throw std::runtime_error("cannot write " + file_ + ": it is no regular file; - is standard output");
  const bool was_there = std::filesystem::exists(aside(file_), ec);
  std::FILE* const out = std::fopen(aside(file_).c_str(), "a");
  if (out == nullptr) throw std::runtime_error("cannot write " + aside(file_) + ": " + std::strerror(errno));
  std::fclose(out);
  if (!was_there) std::remove(aside(file_).c_str());
}

void StatsFile::write(const gateway::Stats::Snapshot& snapshot) const {
  nlohmann::json counters;
  gateway::to_json(counters, snapshot);
  nlohmann::ordered_json json = {{"iwarp", about("gateway")}};
  json.update(nlohmann::ordered_json(counters));
  if (to_output()) {
    std::cout << json.dump() << std::endl;
    return;
  }
  std::ofstream out(aside(file_));
  out << json.dump(2) << '\n';
  out.close();
  if (!out || std::rename(aside(file_).c_str(), file_.c_str()) != 0)
    spdlog::error("cannot write {}: {}", file_, std::strerror(errno));
}

}  // namespace iwarp::tools
