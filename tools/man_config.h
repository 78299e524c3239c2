// iwarp-gateway.toml(5), the manual page of the gateway's file: its keys are what the file's reader takes.
#pragma once

#include <string>

#include "tools/man_page.h"

namespace iwarp::tools {

[[nodiscard]] ManPage gateway_config_page(const std::string& version);

}  // namespace iwarp::tools
