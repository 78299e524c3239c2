#include "tests/tools/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace iwarp::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

Subprocess::Subprocess(const std::vector<std::string>& arguments) : Subprocess(IWARP_COMMAND, arguments) {}

Subprocess::Subprocess(const std::string& program, const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) check(errno, "pipe");
  posix_spawn_file_actions_t actions;
  check(::posix_spawn_file_actions_init(&actions), "posix_spawn");
  for (const int to : {STDOUT_FILENO, STDERR_FILENO})
    check(::posix_spawn_file_actions_adddup2(&actions, ends[1], to), "posix_spawn");
  // Asio opens its sockets without O_CLOEXEC: a connection would live on in the child when the test has closed it.
  check(::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1), "posix_spawn");
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const int failed = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  fd_ = ends[0];
  check(failed, "posix_spawn");
}

Subprocess::~Subprocess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(fd_);
}

bool Subprocess::read_more(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd p{fd_, POLLIN, 0};
  if (left <= 0 || ::poll(&p, 1, static_cast<int>(left)) != 1) return false;
  std::array<char, 4096> bytes;
  const ssize_t n = ::read(fd_, bytes.data(), bytes.size());
  if (n > 0) output_.append(bytes.data(), static_cast<std::size_t>(n));
  return n > 0;
}

bool Subprocess::wait_for(const std::string& text, std::size_t times, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (count(text) < times) {
    if (!read_more(deadline)) return false;
  }
  return true;
}

std::size_t Subprocess::count(const std::string& text) const {
  std::size_t n = 0;
  for (std::size_t at = output_.find(text); at != std::string::npos; at = output_.find(text, at + text.size())) ++n;
  return n;
}

void Subprocess::read_pending() {
  pollfd p{fd_, POLLIN, 0};
  while (::poll(&p, 1, 0) == 1 && read_more(Clock::now() + kPatience)) {
  }
}

int Subprocess::wait(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (read_more(deadline)) {
  }
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) return -1;
    std::this_thread::sleep_for(1ms);
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Subprocess::signal(int number) const {
#if defined(__SANITIZE_THREAD__)
  // It holds a signal back that comes while code of its own runs, for as long as the thread then sleeps.
  std::this_thread::sleep_for(300ms);
#endif
  if (pid_ > 0) ::kill(pid_, number);
}

std::string Subprocess::listening_port() {
  if (!wait_for("listening on ")) throw std::runtime_error("does not listen: " + output_);
  const std::size_t line = output_.find("listening on ");
  while (output_.find('\n', line) == std::string::npos) {
    if (!read_more(Clock::now() + kPatience)) break;
  }
  const std::string at = output_.substr(line + 13, output_.find_first_of(" \n", line + 13) - line - 13);
  return at.substr(at.rfind(':') + 1);
}

Finished run(const std::vector<std::string>& arguments) {
  Subprocess p(arguments);
  const int code = p.wait();
  return {code, p.output()};
}

Finished shell(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

}  // namespace iwarp::test
