// The command `iwarp`, or another program, as a subprocess: its arguments, its output, its exit code. Every wait is
// bounded; the destructor kills what still runs. It inherits no descriptor of the test but its output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/eventually.h"

namespace iwarp::test {

class Subprocess {
 public:
  // Starts `iwarp` with these arguments; standard output and error go into one text.
  explicit Subprocess(const std::vector<std::string>& arguments);
  // The same with another program, named by its path.
  Subprocess(const std::string& program, const std::vector<std::string>& arguments);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  // Reads until the output holds `text` that often; false when the process ends, or time runs out, before that.
  bool wait_for(const std::string& text, std::size_t times = 1, std::chrono::milliseconds patience = kPatience);
  // How often the output holds `text` so far.
  [[nodiscard]] std::size_t count(const std::string& text) const;
  // Reads what there is, without waiting for more.
  void read_pending();
  // Reads to the end and waits. The exit code; 128 + signal when it was killed; -1 when it does not end in time (the
  // destructor kills it then).
  int wait(std::chrono::milliseconds patience = kPatience);
  void signal(int number) const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  // What it wrote so far.
  [[nodiscard]] const std::string& output() const { return output_; }
  // The number behind the last ':' of the line that holds "listening on": the port of a server started at port 0.
  [[nodiscard]] std::string listening_port();

 private:
  // False at the end of the output or when `deadline` has passed.
  bool read_more(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int fd_ = -1;
  std::string output_;
};

struct Finished {
  int code;
  std::string output;
};
// Runs it to its end.
Finished run(const std::vector<std::string>& arguments);
// Runs another program, by way of the shell; its standard output.
Finished shell(const std::string& command);

}  // namespace iwarp::test
