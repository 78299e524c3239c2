#include "tools/log_writer.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>
#include <vector>

namespace iwarp::tools {
namespace {

constexpr std::chrono::seconds kPatience{1};
// A pipe takes so much at once, so that what the reader sees grows while more waits.
constexpr std::size_t kPiece = 4096;

}  // namespace

struct LogWriter::State {
  State(int to, std::size_t room) : fd(to), ring(room) {}

  // The rest with `mu` held.
  [[nodiscard]] bool fits(std::size_t n) const { return n <= ring.size() - used; }
  void put(std::string_view text) {
    for (const char c : text) ring[(begin + used++) % ring.size()] = c;
  }
  // In the place of what was lost.
  void put_notice() {
    if (untold == 0) return;
    char text[80];
    const int n = std::snprintf(text, sizeof text, "%llu log lines were lost: nobody read them\n",
                                static_cast<unsigned long long>(untold));
    if (n <= 0 || !fits(static_cast<std::size_t>(n))) return;
    put({text, static_cast<std::size_t>(n)});
    untold = 0;
  }
  void run();

  const int fd;
  mutable std::mutex mu;
  std::condition_variable work, over;
  std::vector<char> ring;
  std::size_t begin = 0, used = 0;
  std::uint64_t untold = 0, lost = 0;
  bool closing = false, done = false;
};

void LogWriter::State::run() {
  std::unique_lock lock(mu);
  for (;;) {
    work.wait(lock, [&] { return used > 0 || closing; });
    if (used == 0) break;
    const std::size_t n = std::min({used, ring.size() - begin, kPiece});
    const char* from = &ring[begin];  // nobody writes there before it counts as free
    lock.unlock();
    ssize_t written = ::write(fd, from, n);
    if (written < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      (void)::poll(&ready, 1, -1);
    }
    // Nobody will ever take it.
    if (written < 0 && errno != EAGAIN && errno != EINTR) written = static_cast<ssize_t>(n);
    lock.lock();
    const auto gone = static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    begin = (begin + gone) % ring.size();
    used -= gone;
    if (used == 0) put_notice();
  }
  done = true;
  over.notify_all();
}

LogWriter::LogWriter(int fd, std::size_t room) : state_(std::make_shared<State>(fd, room)) {
  // Signals, SIGPIPE among them, are for other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([state = state_] { state->run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LogWriter::~LogWriter() {
  bool given_up = false;
  {
    const std::lock_guard lock(state_->mu);
    given_up = state_->closing && !state_->done;
  }
  if (!given_up) (void)finish(kPatience);
  if (thread_.joinable()) thread_.detach();
}

void LogWriter::write(std::string_view line) {
  const std::lock_guard lock(state_->mu);
  state_->put_notice();
  if (state_->closing || state_->untold > 0 || !state_->fits(line.size())) {
    ++state_->untold;
    ++state_->lost;
    return;
  }
  state_->put(line);
  state_->work.notify_one();
}

bool LogWriter::finish(std::chrono::milliseconds patience) {
  {
    std::unique_lock lock(state_->mu);
    state_->closing = true;
    state_->work.notify_one();
    if (!state_->over.wait_for(lock, patience, [&] { return state_->done; })) return false;
  }
  if (thread_.joinable()) thread_.join();
  return true;
}

std::uint64_t LogWriter::lost() const {
  const std::lock_guard lock(state_->mu);
  return state_->lost;
}

}  // namespace iwarp::tools
