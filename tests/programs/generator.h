// Makes programs from seeds.
#pragma once

#include "tests/programs/program.h"

namespace iwarp::programs {

// The program of that seed: all its steps are legal, whenever completions come. The same everywhere.
[[nodiscard]] Program generate(std::uint64_t seed);

}  // namespace iwarp::programs
