// Runs a program on two hosts, beside the model, and compares.
#pragma once

#include <string>

#include "tests/programs/program.h"
#include "tests/programs/sabotage.h"

namespace iwarp::programs {

// What came of a run.
struct Outcome {
  std::string fault;                      // what was not as it must be, first of all; empty: nothing
  std::size_t step = 0;                   // the number of the step at which that was seen
  std::size_t skipped = 0;                // steps that were not legal when their turn came
  std::size_t refused = 0;                // posts to a full queue
  std::array<std::size_t, kDos> steps{};  // taken, by kind
  Tally tally;
  bool planted = false;  // the saboteur's fault
};

[[nodiscard]] Outcome run(const Program& program, Fault fault = Fault::kNone);

}  // namespace iwarp::programs
