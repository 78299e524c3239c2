// IWARP_TRACE: what the connections of this process send and receive, as a capture that `iwarp trace` explains and
// Wireshark opens. Headers of Ethernet, IP and TCP are made up. Octets are written as TCP takes and gives them, so the
// file is complete whenever the process ends, and costs a system call for each of those that move octets.
#pragma once

#include <cstdint>
#include <string>

#include "dropin/verbs/settings.h"
#include "iwarp/cm/byte_tap.h"

namespace iwarp::dropin {

// A file is as long as this at most, octets; what comes later is not in it.
inline constexpr std::uint64_t kMostCaptured = std::uint64_t{1} << 30;

// The name of this process's file. The process that `iwarp run` has become has the one that was asked for, each other
// one that and its number: FILE.PID.
[[nodiscard]] std::string capture_file(const Settings& from);

// Makes taps that write there. The file is made, or emptied, with the first connection; when it cannot be, or is full,
// standard error says so once and nothing more is written.
[[nodiscard]] cm::TapMaker capture_to(std::string file, std::uint64_t most = kMostCaptured);

}  // namespace iwarp::dropin
