#include "tools/roff.h"

namespace iwarp::tools::roff {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(const std::string& text) {
  return "\\fB" + escaped(text) + "\\fR";
}

std::string italic(const std::string& text) {
  return "\\fI" + escaped(text) + "\\fR";
}

std::string item(const std::string& head, const std::string& text) {
  return ".TP\n" + head + "\n" + (text.empty() ? "\\&" : escaped(text)) + "\n";
}

std::string paragraphs(const std::string& text) {
  std::string s;
  for (std::size_t from = 0;;) {
    const std::size_t end = text.find("\n\n", from);
    s += (s.empty() ? "" : ".PP\n") + escaped(text.substr(from, end - from)) + "\n";
    if (end == std::string::npos) return s;
    from = end + 2;
  }
}

}  // namespace iwarp::tools::roff
