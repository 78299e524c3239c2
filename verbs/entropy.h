// Random numbers that nobody can predict, for STags and keys.
#pragma once

#include "iwarp/base/bytes.h"

namespace iwarp::verbs {

// Fills `out`. False: there are none to be had, for want of memory for example, and nothing is promised of `out`. An
// application that must not load libcrypto may link a definition of its own, which takes the place of this one.
// Thread-safe.
[[nodiscard]] bool fill_random(MutBytes out);

}  // namespace iwarp::verbs
