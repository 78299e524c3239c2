// A peer on the command line, whose port may be left out.
#pragma once

#include <string_view>

#include "iwarp/gateway/options.h"

namespace iwarp::tools {

// HOST:PORT, or with `port` HOST, ADDRESS, IPV6 or [IPV6]. The error says what would be right.
[[nodiscard]] gateway::Parsed<gateway::HostPort> peer_address(std::string_view text, std::uint16_t port);

}  // namespace iwarp::tools
