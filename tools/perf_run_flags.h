// The flags of `iwarp perf run`, and the tests that they ask for.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/json_file.h"
#include "tools/llp_flags.h"
#include "tools/perf/runner.h"
#include "tools/perf/spec.h"
#include "tools/profile_flag.h"
#include "tools/recorder.h"

namespace iwarp::tools {

struct PerfRunFlags {
  std::string tests, peer;
  std::vector<std::string> sizes;
  bool all_sizes = false;
  double seconds = std::chrono::duration<double>(perf::Plan{}.length).count();
  unsigned pairs = perf::Plan{}.pairs;
  std::string baseline = "quick";
  perf::Spec spec;
  std::optional<std::uint32_t> list;
  std::optional<std::uint32_t> depth;
  LlpFlags llp;
  ProfileFlag profile;
  std::optional<std::string> crc, fpdu;
  std::string progress = "auto";
  std::string placement = "direct";
  std::string source = "stable";
  std::vector<int> cpus;
  bool gbit = false;
  bool markdown = false;
  bool no_verify = false;
  std::string plot;
  JsonFlag json;
  RecorderFlags recorder;

  void add(CLI::App& run);
  // After parsing. The tests, one for each size; throws CLI::ValidationError.
  [[nodiscard]] std::vector<perf::Spec> specs() const;
  // How they are measured.
  [[nodiscard]] perf::Plan plan() const;
};

}  // namespace iwarp::tools
