// Processes of a benchmark, and pipes between them.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "bench/lib/peer.h"

namespace iwarp::bench {

// A process that ends with this object.
class Process {
 public:
  explicit Process(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    std::_Exit(0);
  }
  ~Process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

 private:
  pid_t pid_;
};

class Pipe {
 public:
  Pipe() {
    if (::pipe(ends_.data()) != 0) die("pipe");
  }
  template <class T>
  void put(const T& value) {
    if (::write(ends_[1], &value, sizeof value) != sizeof value) die("pipe");
  }
  template <class T>
  T get() {
    T value;
    if (::read(ends_[0], &value, sizeof value) != sizeof value) die("pipe");
    return value;
  }

 private:
  std::array<int, 2> ends_{};
};

}  // namespace iwarp::bench
