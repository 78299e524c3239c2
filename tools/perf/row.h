// What a run has measured: a row for each test and size, iwarp beside plain TCP.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/perf/latency.h"
#include "tools/perf/spec.h"

namespace iwarp::tools::perf {

// One sample's figures.
struct Measured {
  double value = 0;  // in the test's unit; latency: the median
  std::uint64_t operations = 0;
  double seconds = 0;
  double client_cpu_per_gb = 0, server_cpu_per_gb = 0;  // seconds per 10^9 octets, bulk tests
  Latency latency{};                                    // latency tests
};

// All samples of one side.
struct Figures {
  double median = 0, average = 0, least = 0, most = 0;  // of the samples' values
  std::uint64_t operations = 0;                         // in all samples together
  double operations_per_second = 0;                     // mean of the samples
  double client_cpu_per_gb = 0, server_cpu_per_gb = 0;  // medians
  Latency latency{};
};
// `samples` must not be empty.
[[nodiscard]] Figures figures_of(const std::vector<Measured>& samples);

// One way of the baseline.
struct Rival {
  Spec spec;
  std::vector<Measured> samples;
};

struct Row {
  Spec spec;
  std::vector<Measured> samples;              // of iwarp; raw tests have none
  std::vector<Rival> rivals;                  // ways of plain TCP that were measured
  std::size_t best = 0;                       // the one that did best
  Figures iwarp, tcp;                         // raw tests have the second only; TCP's best way
  double ratio = 0, lowest = 0, highest = 0;  // iwarp / TCP: median, least and largest of the pairs; 0 for raw tests
  unsigned pairs = 0;                         // measured
  unsigned planned = 0;                       // more than `pairs` when the user interrupted it
  std::string congestion_control;             // of TCP: what the spec asks for at both ends, or this end's own

  [[nodiscard]] bool complete() const { return pairs == planned; }
  // Of the test itself.
  [[nodiscard]] const Figures& figures() const { return is_raw(spec.test) ? tcp : iwarp; }
  [[nodiscard]] const Spec& baseline() const { return rivals[best].spec; }
};

// Of the first `row.pairs` samples of each side: which way of the baseline is best, and the figures. Needs one pair.
void conclude(Row& row);

// "octets/s", "operations/s", "us".
[[nodiscard]] std::string_view unit_text(Unit unit);
// "64k", "1m", "100": as --size takes it.
[[nodiscard]] std::string short_size(std::uint32_t size);

void to_json(nlohmann::ordered_json& j, const Row& row);

}  // namespace iwarp::tools::perf
