// The configuration file of `iwarp gateway` (TOML): a table [process] and tables [[listener]]. Their keys are the
// flags, without "--". docs/GATEWAY-SERVICE.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iwarp/gateway/service.h"
#include "tools/gateway_flags.h"

namespace iwarp::tools {

struct GatewayConfig {
  ProcessFlags process;
  gateway::ServiceSettings service;
};

// Either a configuration, or all that is wrong with the file: "FILE:LINE:COLUMN: text", in the order of the lines.
struct ReadConfig {
  std::optional<GatewayConfig> config;
  std::vector<std::string> errors;
};

[[nodiscard]] ReadConfig read_gateway_config(const std::string& file);

}  // namespace iwarp::tools
