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

// A key, for its manual page.
struct ConfigKey {
  std::string name;
  std::string value;  // what to write: `true`, `SECONDS`, `"ADDR:PORT"`
  std::string text;   // its meaning, with range and default
};
// Of [process], and of a [[listener]]; in the order of the flags.
[[nodiscard]] std::vector<ConfigKey> process_keys();
[[nodiscard]] std::vector<ConfigKey> listener_keys();

[[nodiscard]] ReadConfig read_gateway_config(const std::string& file);

}  // namespace iwarp::tools
