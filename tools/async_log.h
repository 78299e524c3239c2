// The log of a server that must not wait for whoever reads its standard error.
#pragma once

#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "tools/log_writer.h"

namespace iwarp::tools {

// While it lives, the default logger's lines go to standard error by way of a LogWriter; then they are written out, for
// a second at most, as they are when the process ends by std::terminate(). At most one at a time. Without a thread to
// be had the logger stays as it was.
class AsyncLog {
 public:
  // `command`: as log_formatter() takes it.
  explicit AsyncLog(const std::string& command);
  ~AsyncLog();
  AsyncLog(const AsyncLog&) = delete;
  AsyncLog& operator=(const AsyncLog&) = delete;

 private:
  std::shared_ptr<LogWriter> writer_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

}  // namespace iwarp::tools
