// Makes a failing program shorter.
#pragma once

#include "tests/programs/program.h"
#include "tests/programs/sabotage.h"

namespace iwarp::programs {

// A shorter program that fails as well, though maybe in another way: without steps, and with a setup that is simpler,
// where that does not help it. Takes as long as some hundred runs.
[[nodiscard]] Program shrink(Program program, Fault fault = Fault::kNone);

}  // namespace iwarp::programs
