// How much memory this process may use.
#pragma once

#include <cstddef>
#include <filesystem>

namespace iwarp::gateway {

// Octets: the least of the machine's memory and the limits of the control groups (version 1 or 2) that this process is
// in. `root` holds proc/ and sys/; another one is for tests. What cannot be read is no limit; `machine` octets are the
// machine's.
[[nodiscard]] std::size_t memory_of_process(const std::filesystem::path& root, std::size_t machine);
[[nodiscard]] std::size_t memory_of_process();

}  // namespace iwarp::gateway
