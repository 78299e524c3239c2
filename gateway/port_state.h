// PortMemories in a file, so that clients that reconnect after a restart of the gateway get their source ports again,
// and servers recognise what they replay. Text, versioned, bounded.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "iwarp/base/time.h"
#include "iwarp/gateway/port_memories.h"

namespace iwarp::gateway {

// Both clocks at one moment: the file has the time of day, since the other begins anew with each boot.
struct Clocks {
  TimePoint steady = std::chrono::steady_clock::now();
  std::chrono::system_clock::time_point wall = std::chrono::system_clock::now();
};

// Adds what the file tells, as far as it has not expired. What is wrong with it, and then nothing is added; empty: all
// is well, or there is no such file.
[[nodiscard]] std::string load_ports(const std::filesystem::path& file, PortMemories& to, const Clocks& now = {});

// Written aside ("FILE.new") and renamed. What went wrong; empty: nothing.
[[nodiscard]] std::string save_ports(const std::filesystem::path& file, const PortMemories& ports,
                                     const Clocks& now = {});

}  // namespace iwarp::gateway
