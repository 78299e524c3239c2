// What --help, the man pages and the completion say of an option: the name of its value, its range or its choices, its
// default. One wording for all of them, out of what the parser knows.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace iwarp::tools {

// Those that are shown, in their order: an empty group hides an option.
[[nodiscard]] std::vector<const CLI::Option*> shown_options(const CLI::App& app);
[[nodiscard]] std::vector<const CLI::App*> shown_commands(const CLI::App& app);

// "iwarp perf run"
[[nodiscard]] std::string command_path(const CLI::App& app);

// "-a", "--address"; for a positional argument "FILE".
[[nodiscard]] std::vector<std::string> option_names(const CLI::Option& option);
// " SECONDS", or what else stands behind the names: "[=FILE]", " [PROGRAMS]". Empty for a flag, and for a positional
// argument. A type name that was set with type_name() counts, unless it lists choices ("on|off").
[[nodiscard]] std::string option_value(const CLI::Option& option);
// The words that it takes; empty: others, too.
[[nodiscard]] std::vector<std::string> option_choices(const CLI::Option& option);
// Whether its value is a number.
[[nodiscard]] bool takes_number(const CLI::Option& option);
// The description, and behind it "(1-96, default 64)", "(on, off; default on)", "(required)", "(needs --trace)". A
// default that is no value is written at the end of the description: "(default as many as there are)".
[[nodiscard]] std::string option_text(const CLI::Option& option);

// What the parser says of a wrong value or of flags that do not go together, without its own words: "--crc: unknown
// value 'no': use on or off". Others pass unchanged.
[[nodiscard]] std::string error_text(const std::string& parsers);

}  // namespace iwarp::tools
