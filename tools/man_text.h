// What the man pages say beyond --help: what a command is for, its files, its exit statuses.
#pragma once

#include <span>
#include <string_view>

namespace iwarp::tools {

struct ManItem {
  std::string_view name, text;
};

[[nodiscard]] std::span<const ManItem> usual_exit_statuses();

struct ManText {
  std::string_view command;                                        // "iwarp perf run"
  std::string_view description;                                    // paragraphs, with an empty line between them
  std::span<const ManItem> exit_statuses = usual_exit_statuses();  // unless --help names them
  std::span<const ManItem> files{};                                // likewise
};

// Null: the command's one-line description has to do.
[[nodiscard]] const ManText* man_text(std::string_view command);

}  // namespace iwarp::tools
