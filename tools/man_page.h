// Manual pages out of the flags and texts that --help prints, so that there is one source for both.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace iwarp::tools {

struct ManPage {
  std::string name;  // "iwarp-rping": the file is name.1
  std::string text;  // roff, man(7) macros
  char section = '1';
};

// One for the command, and one for each of its subcommands and theirs.
[[nodiscard]] std::vector<ManPage> man_pages(const CLI::App& app);

}  // namespace iwarp::tools
