// Log lines for a descriptor that may block, such as a pipe that nobody reads: they wait in memory, bounded, and a
// thread of its own writes them. Whoever logs never waits. Lines that find no room are lost whole, counted, and told in
// their place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>

namespace iwarp::tools {

// write() and finish() are thread-safe. Not for use in a child of fork(), which has no such thread.
class LogWriter {
 public:
  // `fd` stays the caller's, and open until finish() has returned true or the process ends. `room`: octets that may
  // wait. Default 256 KiB, some two thousand lines. Throws std::system_error when there is no thread to be had.
  explicit LogWriter(int fd, std::size_t room = std::size_t{256} << 10);
  ~LogWriter();  // finish(), with little patience, unless that was in vain before
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // `line` with its end of line. Allocates nothing.
  void write(std::string_view line);
  // Waits until all is written, at most so long, and takes no more. False: not all is written yet.
  bool finish(std::chrono::milliseconds patience);
  // Lines lost so far.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  struct State;

  std::shared_ptr<State> state_;  // shared with the thread, which may outlive us in a call of the kernel
  std::thread thread_;
};

}  // namespace iwarp::tools
