#include "tools/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

namespace iwarp::tools {

StandardOutputError::StandardOutputError(int cause)
    : std::runtime_error(std::string("cannot write standard output: ") + std::strerror(cause)), cause_(cause) {}

void check_standard_output() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return;
  int cause = errno;
  if (cause == 0) {  // it failed some time ago: it will again, and say why
    std::clearerr(stdout);
    if (std::fputc('\n', stdout) == EOF || std::fflush(stdout) != 0) cause = errno;
  }
  throw StandardOutputError(cause != 0 ? cause : EIO);
}

void write_standard_output(std::string_view text) {
  errno = 0;
  std::cout << text;
  // A write that failed may not fail again; its errno stands here, as nothing else has set it meanwhile.
  if (const bool failed = std::ferror(stdout) != 0 || !std::cout; failed && errno == EINTR)
    throw StandardOutputError(EINTR);
  check_standard_output();
}

}  // namespace iwarp::tools
