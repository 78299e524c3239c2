// The measuring side: runs a test against its baseline, one sample of each in turn, so that both meet the same state of
// a noisy machine; what counts is the ratio of each pair. With `best`, the baselines of throughput and of send_rate are
// measured in their two best ways, and the one that did better over the whole run is what iwarp is compared with.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tools/perf/best_way.h"
#include "tools/perf/control.h"
#include "tools/perf/end.h"
#include "tools/perf/row.h"
#include "tools/perf/table.h"

namespace iwarp::tools::perf {

// As it is, a row is there after less than 3 s on loopback.
struct Plan {
  unsigned pairs = 7;
  std::chrono::milliseconds length{100};  // of each sample; before it, half of that and at most 100 ms to warm up
  bool best = false;                      // tcp_bw and tcp_rate look for their best way first
  bool live = false;                      // somebody watches: long samples tell every second how far they are
  Units units{};                          // of what progress tells
  bool verify = true;                     // a pass that compares the data, before the first pair, not timed
};

class Runner {
 public:
  // `progress` hears a line of text as the run goes on, from a thread of its own when `plan.live`. `control` must
  // outlive the runner.
  Runner(Control& control, std::string host, Plan plan, std::function<void(const std::string&)> progress);

  // When the user interrupts it, what there is: a row of fewer pairs than planned, or of none, which has no figures.
  // Throws std::runtime_error when either end fails, or the data was damaged.
  [[nodiscard]] Row run(const Spec& spec);

 private:
  void measure(Row& row);
  [[nodiscard]] Measured sample(const Spec& spec, std::chrono::milliseconds length, bool verify);
  // The ways in which a raw test may do best: sleeping and spinning, each with its best calls. To find them takes
  // search_time() once for each direction, size and depth. As it is when there is nothing to choose.
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
[[nodiscard]] std::chrono::milliseconds search_time(Test test);

}  // namespace iwarp::tools::perf
