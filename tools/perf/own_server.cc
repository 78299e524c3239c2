#include "tools/perf/own_server.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace iwarp::tools::perf {

OwnServer::OwnServer() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  // In a process group of its own: Ctrl-C is for the client, which ends its server when it has reported.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  std::array<std::string, 6> words = {"iwarp", "perf", "serve", "--listen=127.0.0.1:0", "--once", "--with-parent"};
  std::array<char*, 7> argv{};
  std::transform(words.begin(), words.end(), argv.begin(), [](std::string& w) { return w.data(); });
  const int failed = ::posix_spawn(&pid_, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    throw std::runtime_error(std::string("cannot start the other end of the test: ") + std::strerror(failed));
  }
  std::string line;
  for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
  ::close(ends[0]);
  const auto colon = line.rfind(':');
  if (colon == std::string::npos) throw std::runtime_error("the other end of the test did not start");
  port_ = line.substr(colon + 1);
}

OwnServer::~OwnServer() {
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace iwarp::tools::perf
