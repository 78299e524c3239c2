#include "tools/log_format.h"

#include <spdlog/pattern_formatter.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace iwarp::tools {
namespace {

char priority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return '7';
    case spdlog::level::warn:
      return '4';
    case spdlog::level::err:
      return '3';
    case spdlog::level::critical:
      return '2';
    case spdlog::level::info:
    case spdlog::level::off:
    case spdlog::level::n_levels:
      return '6';
  }
  return '6';
}

class Priority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    to.push_back(priority(message.level));
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Priority>(); }
};

// Errors begin with the command's name, other lines are as `others` makes them.
class OfCommand final : public spdlog::formatter {
 public:
  OfCommand(std::string command, std::unique_ptr<spdlog::formatter> others)
      : command_(std::move(command)), others_(std::move(others)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& to) override {
    if (message.level != spdlog::level::err && message.level != spdlog::level::critical)
      return others_->format(message, to);
    to.append(command_.data(), command_.data() + command_.size());
    for (const char c : {':', ' '}) to.push_back(c);
    to.append(message.payload.data(), message.payload.data() + message.payload.size());
    to.push_back('\n');
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<OfCommand>(command_, others_->clone());
  }

 private:
  std::string command_;
  std::unique_ptr<spdlog::formatter> others_;
};

}  // namespace

bool goes_to_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat mine {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &mine) != 0) return false;
  return std::to_string(mine.st_dev) + ":" + std::to_string(mine.st_ino) == stream;
}

std::unique_ptr<spdlog::formatter> log_formatter(const std::string& command, bool for_journal) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (for_journal) {
    formatter->add_flag<Priority>('q').set_pattern("<%q>%v");
    return formatter;
  }
  formatter->set_pattern("%H:%M:%S.%e %l %v");
  if (command.empty()) return formatter;
  return std::make_unique<OfCommand>(command, std::move(formatter));
}

}  // namespace iwarp::tools
