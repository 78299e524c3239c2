// What another process uses, and how much it may.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tests/support/sanitized.h"

namespace iwarp::faults {

using test::kSanitized;

// Sets the soft limit of a running process. Throws when that is not allowed.
void limit(pid_t process, __rlimit_resource resource, std::size_t value);
// Lets a process open so many more descriptors.
void leave_descriptors(pid_t process, std::size_t more);
// Open descriptors.
[[nodiscard]] std::size_t descriptors(pid_t process);
// The same of one that has nothing to do: the least of some readings, because the sanitizers' run-time opens a pipe for
// an instant now and then.
[[nodiscard]] std::size_t descriptors_at_rest(pid_t process);
// Processor time so far, to 10 ms.
[[nodiscard]] std::chrono::milliseconds cpu_time(pid_t process);
// How often its threads have gone to sleep so far: an idle process does so no more.
[[nodiscard]] std::uint64_t sleeps(pid_t process);
// Octets: address space now, and the most memory that was ever resident.
struct Memory {
  std::size_t mapped = 0, peak = 0;
};
[[nodiscard]] Memory memory(pid_t process);

}  // namespace iwarp::faults
