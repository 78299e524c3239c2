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
  const bool failed = std::ferror(stdout) != 0 || !std::cout;
  if (failed && errno == EINTR) throw StandardOutputError(EINTR);  // just now, or errno says something else
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

}  // namespace iwarp::tools
