// Runs a gateway until a signal ends it.
#pragma once

#include <string>

#include "tools/gateway_config.h"

namespace iwarp::tools {

// `file`: what `config` was read from, and is read again from on SIGHUP; empty: flags, which cannot be. The exit code.
// `config.process.stats` holds, whatever the file says then: --stats stands above it. Throws std::runtime_error when an
// output file cannot be written.
[[nodiscard]] int run_gateway(const GatewayConfig& config, const std::string& file, bool stats_by_flag = false);

}  // namespace iwarp::tools
