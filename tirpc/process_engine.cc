#include "iwarp/tirpc/process_engine.h"

#include <unistd.h>

#include <mutex>

namespace iwarp::tirpc {

cm::Engine& process_engine() {
  static std::mutex mu;
  static cm::Engine* engine = nullptr;
  static pid_t owner = 0;
  const std::lock_guard lock(mu);
  if (engine == nullptr || owner != ::getpid()) {
    engine = new cm::Engine;  // the parent's stays as it is
    owner = ::getpid();
  }
  return *engine;
}

}  // namespace iwarp::tirpc
