// Whether standard output takes what commands print. Text goes there by std::cout or stdio, and what is held back is
// lost silently unless somebody asks.
#pragma once

#include <stdexcept>
#include <string_view>

namespace iwarp::tools {

// "cannot write standard output: No space left on device". CommandLine tells it, but of a pipe that nobody reads any
// more (EPIPE) nothing: whoever closed it knows. EINTR: SIGINT or SIGTERM came while a reader kept it waiting, and the
// command counts as interrupted.
class StandardOutputError : public std::runtime_error {
 public:
  explicit StandardOutputError(int cause);
  [[nodiscard]] int cause() const { return cause_; }

 private:
  int cause_;  // errno
};

// Writes out what is held back. Throws StandardOutputError when that, or something before it, could not be written.
void check_standard_output();
// Writes `text` at once, and checks. What came before it and could not be written is told likewise.
void write_standard_output(std::string_view text);

}  // namespace iwarp::tools
