// A connection on which everything happens that can go well. Its outcome may depend on nothing that the network does to
// the octets.
#pragma once

#include <string>

#include "tests/support/pair.h"

namespace iwarp::test {

// All that an application can see of a run: events and completions of both ends, and a digest of all memory.
std::string run_mixed_scenario(Pair& p);

}  // namespace iwarp::test
