// Text for manual pages, with macros of man(7).
#pragma once

#include <string>

namespace iwarp::tools::roff {

// Text that roff prints as it is.
[[nodiscard]] std::string escaped(const std::string& text);
[[nodiscard]] std::string bold(const std::string& text);
[[nodiscard]] std::string italic(const std::string& text);
// An item of a list. `head`: of these three; `text`: as it is to be read.
[[nodiscard]] std::string item(const std::string& head, const std::string& text);
// Paragraphs, with an empty line between them in `text`.
[[nodiscard]] std::string paragraphs(const std::string& text);

}  // namespace iwarp::tools::roff
