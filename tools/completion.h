// The completion of `iwarp` for bash out of its flags, so that there is one source for it and for --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace iwarp::tools {

// A script for bash: subcommands, flags, the values of flags that take one of a list; else file names.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

}  // namespace iwarp::tools
