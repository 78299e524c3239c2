// What the environment asks of the drop-in libraries, read once per process: `iwarp run` sets it.
//   IWARP_ADDRESS=A     address of the device: GID 0. Default: the first IPv4 address that is not of the loopback
//   IWARP_CRC=on|off    MPA CRC. Default: on; off lets a peer that wants it have it
//   IWARP_PROFILE=NAME  a profile of `iwarp profiles`
//   IWARP_PRESENT=iwarp|roce  what the device presents itself as. Default: iwarp, which it is on the wire. roce is
//                       for programs that connect by ibv_modify_qp(), towards another of these libraries in that mode
//   IWARP_RFC7306=on    agree with the peer on immediate data and Atomics: agreement.h. Default: off
//   IWARP_FPDU=emss|16k|max  how long FPDUs are. Default: as the profile has it
//   IWARP_TRACE=FILE    a capture of the connections: capture.h
//   IWARP_TRACE_PID=N   the process whose file is FILE itself
// What cannot be understood counts as not said.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "iwarp/mpa/policy.h"
#include "iwarp/stream/connection.h"

namespace iwarp::dropin {

enum class Present : std::uint8_t { kIwarp, kRoce };

struct Settings {
  std::optional<std::string> address;  // IPv4 or IPv6, as text
  std::optional<bool> crc;             // whether FPDUs are to have one
  std::string profile;                 // empty: none
  Present present = Present::kIwarp;
  bool rfc7306 = false;  // to be agreed on with the peer
  std::optional<mpa::FpduPolicy> fpdu;
  std::string trace;      // file; empty: none
  pid_t trace_process{};  // whose file that is; 0: nobody's
};

// Of the environment as it is. Others of its threads must not change it meanwhile.
[[nodiscard]] Settings read_settings();
// Of the environment as it was at the first call. Thread-safe.
[[nodiscard]] const Settings& settings();
// The policy of those settings, for connections and listeners.
[[nodiscard]] mpa::Policy startup_policy(const Settings& from);
// The options of those settings for queue pairs: depths and inline data are left to their maker.
[[nodiscard]] stream::Options stream_options(const Settings& from);

}  // namespace iwarp::dropin
