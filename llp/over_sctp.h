// LowerLayer over SCTP in UDP: sctp_cm/, where that is built.
#pragma once

#include "iwarp/llp/lower_layer.h"

namespace iwarp::llp {

inline constexpr const char* kNoSctp =
    "this build of iwarp has no SCTP: it takes libusrsctp (Debian: apt-get install libusrsctp-dev) and IWARP_SCTP=ON";
[[nodiscard]] bool has_sctp();
[[nodiscard]] Result<std::unique_ptr<LowerLayer>> make_over_sctp(cm::Engine& engine, const SctpOptions& options);

}  // namespace iwarp::llp
