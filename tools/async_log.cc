#include "tools/async_log.h"

#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "tools/log_format.h"

namespace iwarp::tools {
namespace {

constexpr std::chrono::seconds kPatience{1};

class WriterSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit WriterSink(std::shared_ptr<LogWriter> writer) : writer_(std::move(writer)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_->write({line.data(), line.size()});
  }
  void flush_() override {}  // the writer's thread is at it

  std::shared_ptr<LogWriter> writer_;
};

std::atomic<LogWriter*> current{nullptr};
std::terminate_handler terminate_before = nullptr;

[[noreturn]] void write_out_and_terminate() {
  if (LogWriter* writer = current.exchange(nullptr)) (void)writer->finish(kPatience);
  if (terminate_before != nullptr) terminate_before();
  std::abort();
}

}  // namespace

AsyncLog::AsyncLog(const std::string& command) {
  try {
    writer_ = std::make_shared<LogWriter>(STDERR_FILENO);
  } catch (const std::system_error& e) {
    spdlog::warn("no thread for the log: whoever does not read it stops the command ({})", e.what());
    return;
  }
  const auto logger = before_->clone(before_->name());
  logger->sinks() = {std::make_shared<WriterSink>(writer_)};
  logger->set_formatter(log_formatter(command));
  spdlog::set_default_logger(logger);
  current = writer_.get();
  terminate_before = std::set_terminate(write_out_and_terminate);
}

AsyncLog::~AsyncLog() {
  if (!writer_) return;
  std::set_terminate(terminate_before);
  current = nullptr;
  spdlog::set_default_logger(before_);
  (void)writer_->finish(kPatience);
}

}  // namespace iwarp::tools
