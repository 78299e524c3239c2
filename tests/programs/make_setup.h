// The hosts and connections of a program.
#pragma once

#include "tests/programs/program.h"
#include "tests/programs/random.h"

namespace iwarp::programs {

// One that can connect.
[[nodiscard]] Setup make_setup(Random& r);

}  // namespace iwarp::programs
