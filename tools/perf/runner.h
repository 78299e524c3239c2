// The measuring side: runs a test against its baseline, one sample of each in turn, so that both meet the same state of
// a noisy machine; what counts is the ratio of each pair. The baselines of throughput and of send_rate take their turn
// in their two best ways, and the one that did better over the whole run is what ours is compared with.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tools/perf/best_way.h"
#include "tools/perf/control.h"
#include "tools/perf/end.h"

namespace iwarp::tools::perf {

struct Plan {
  unsigned pairs = 9;
  std::chrono::milliseconds seconds{500};  // of each sample
  std::chrono::milliseconds warm_up{100};  // before each sample, not counted
  bool calibrate = true;                   // tcp_bw and tcp_rate look for their best way first
  bool live = false;                       // somebody watches: long samples tell every second how far they are
  bool verify = true;                      // a pass that compares the data, before the first pair, not timed
};

// One sample's figures.
struct Measured {
  double value = 0;                                     // in the test's unit; latency: the median
  double p99 = 0, p999 = 0;                             // latency, microseconds
  double client_cpu_per_gb = 0, server_cpu_per_gb = 0;  // seconds per 10^9 octets, bulk tests
};

// One way of the baseline.
struct Rival {
  Spec spec;
  std::vector<Measured> samples;
};

struct Row {
  Spec spec;
  Spec baseline;
  std::vector<Rival> rivals;                  // ways of the baseline that took their turn; `baseline` did best
  Measured ours, base;                        // medians over the pairs, each figure by itself
  double ratio = 0, lowest = 0, highest = 0;  // ours / base: median, least and largest of the pairs; 0 for raw tests
  unsigned pairs = 0;
  std::string congestion_control;  // of TCP: what the spec asks for at both ends, or this end's own
};

class Runner {
 public:
  // `progress` hears a line of text as the run goes on, from a thread of its own when `plan.live`. `control` must
  // outlive the runner.
  Runner(Control& control, std::string host, Plan plan, std::function<void(const std::string&)> progress);

  // Throws std::runtime_error when either end fails, or the data was damaged.
  [[nodiscard]] Row run(const Spec& spec);

 private:
  [[nodiscard]] Measured sample(const Spec& spec, std::chrono::milliseconds seconds, bool verify);
  // The ways in which a raw test may do best: sleeping and spinning, each with its best calls. To find them takes
  // calibration_time() once for each direction, size and depth. As it is when there is nothing to choose.
  [[nodiscard]] std::vector<Spec> rivals_of(const Spec& raw);
  [[nodiscard]] double server_cpu();
  void report(std::string text);

  Control& control_;
  std::string host_;
  Plan plan_;
  std::function<void(const std::string&)> progress_;
  std::string reported_;
  // Of raw tests, by direction, size and depth.
  std::map<std::tuple<Test, bool, std::uint32_t, std::uint32_t>, std::vector<Way>> best_ways_;
};

// How long the baseline of a test takes to find its best calls, each time that it must; 0 when there are none to find.
[[nodiscard]] std::chrono::milliseconds calibration_time(Test test);

void to_json(nlohmann::json& j, const Row& row);

}  // namespace iwarp::tools::perf
