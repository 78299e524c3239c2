// What is asked of a process that loses the other end of its connections: that it says why, in time, and frees what
// they held.
#pragma once

#include <chrono>
#include <string>

#include "tests/faults/chain.h"
#include "tests/faults/process_facts.h"
#include "tests/tools/subprocess.h"

namespace iwarp::faults {

// From the death of a process to the line in its peer's log: TCP tells at once, and nothing else is waited for.
inline constexpr std::chrono::milliseconds kNoticed{kSanitized ? 15'000 : 5'000};
// ... to the end of all that depended on it: the gateway's delivery_timeout, 5 s, may pass before that.
inline constexpr std::chrono::milliseconds kFreed = 2 * kNoticed;

// In time the log has so many lines with `what`, and in each of them the cause is one that the end of a process
// has when seen from outside.
void expect_cause(test::Subprocess& survivor, const std::string& what, std::size_t lines,
                  std::chrono::milliseconds within = kNoticed);

// In time the process has freed what the dead one cost it.
void expect_at_rest(Chain& chain, Chain::Process survivor);
// A new client is served, through every process.
void expect_serving(Chain& chain);

}  // namespace iwarp::faults
