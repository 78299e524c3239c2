// The subcommands of `iwarp`. Each registers its flags with the CLI parser and runs when chosen; the value returned is
// the exit code: 0 success, 1 the operation failed, 2 wrong usage (by the parser), 130 interrupted; others
// are listed by the subcommand's help.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace iwarp::tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

using Run = std::function<int()>;

// Adds the subcommand; the function returned runs it after parsing.
[[nodiscard]] Run add_perf(CLI::App& app);
[[nodiscard]] Run add_rping(CLI::App& app);
[[nodiscard]] Run add_gateway(CLI::App& app);
[[nodiscard]] Run add_trace(CLI::App& app);
[[nodiscard]] Run add_probe(CLI::App& app);
[[nodiscard]] Run add_profiles(CLI::App& app);
[[nodiscard]] Run add_run(CLI::App& app);
[[nodiscard]] Run add_top(CLI::App& app);

}  // namespace iwarp::tools
