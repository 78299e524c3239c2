// LowerLayer over SCTP in UDP: sctp_cm/, where libusrsctp is.
#pragma once

#include "iwarp/llp/lower_layer.h"

namespace iwarp::llp {

inline constexpr const char* kNoSctp =
    "this build of iwarp has no SCTP: build it where libusrsctp is (Debian: apt-get install libusrsctp-dev)";
[[nodiscard]] bool has_sctp();
[[nodiscard]] Result<std::unique_ptr<LowerLayer>> make_over_sctp(cm::Engine& engine, const SctpOptions& options);

}  // namespace iwarp::llp
