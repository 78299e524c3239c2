// What the process logs while a test runs. Thread-safe.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>

namespace iwarp::gateway::test {

class LogText {
 public:
  [[nodiscard]] std::string str() const { return sink_->str(); }
  [[nodiscard]] const spdlog::sink_ptr& sink() const { return as_sink_; }

 private:
  class Sink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    [[nodiscard]] std::string str() {
      const std::lock_guard lock(mutex_);
      return text_;
    }

   protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
      spdlog::memory_buf_t line;
      formatter_->format(message, line);
      text_.append(line.data(), line.size());
    }
    void flush_() override {}

   private:
    std::string text_;
  };

  std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
  spdlog::sink_ptr as_sink_ = sink_;
};

}  // namespace iwarp::gateway::test
