// --help as plain text of at most 80 columns: a column of options, a column of what they do, and the footer, whose
// paragraphs are filled and whose indented lines stay as they are.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace iwarp::tools {

inline constexpr std::size_t kHelpColumns = 80;

// The words of `text` in lines of at most 80 columns. The first line goes on behind `head`, the others begin with
// `indent` spaces. A word that is too long has a line of its own.
[[nodiscard]] std::string filled(const std::string& head, std::size_t indent, const std::string& text);

class HelpFormat final : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace iwarp::tools
