// --help as plain text of at most 80 columns: a column of options, a column of what they do, and the footer, whose
// paragraphs are filled and whose indented lines stay as they are.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace iwarp::tools {

inline constexpr std::size_t kHelpColumns = 80;

class HelpFormat final : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace iwarp::tools
