// The terminal as a page that is drawn anew. What was on it comes back at the end.
#pragma once

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace iwarp::tools::top {

class Screen {
 public:
  struct Size {
    std::size_t columns = 80, rows = 24;
  };

  // Takes the terminal at standard output; keys that standard input gives are not shown, and come at once.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // As it is now; 80 x 24 where that is not known.
  [[nodiscard]] static Size size();
  // Lines that do not fit are left out, and the last one says so.
  void draw(const std::vector<std::string>& lines) const;

 private:
  std::optional<termios> before_;
};

}  // namespace iwarp::tools::top
