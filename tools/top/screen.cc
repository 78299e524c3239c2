#include "tools/top/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

namespace iwarp::tools::top {
namespace {

// ECMA-48, as every terminal of today has it.
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";  // another page, no cursor
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kClearLine = "\x1b[K";
constexpr const char* kClearRest = "\x1b[J";

}  // namespace

Screen::Screen() {
  if (termios now{}; ::tcgetattr(STDIN_FILENO, &now) == 0) {
    before_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    (void)::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  std::cout << kEnter << std::flush;
}

Screen::~Screen() {
  std::cout << kLeave << std::flush;
  if (before_) (void)::tcsetattr(STDIN_FILENO, TCSAFLUSH, &*before_);
}

Screen::Size Screen::size() {
  winsize w{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0) return {};
  return {w.ws_col, w.ws_row};
}

void Screen::draw(const std::vector<std::string>& lines) const {
  const std::size_t rows = size().rows;
  std::string out = kHome;
  for (std::size_t i = 0; i < lines.size() && i < rows; ++i) {
    if (i > 0) out += "\r\n";
    const bool cut = i + 1 == rows && lines.size() > rows;
    out += (cut ? "..." : lines[i]) + kClearLine;
  }
  if (lines.size() < rows) out += kClearRest;
  std::cout << out << std::flush;
}

}  // namespace iwarp::tools::top
