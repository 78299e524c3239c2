#include "iwarp/gateway/event_log.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace iwarp::gateway {
namespace {

constexpr LogRate kConnections{1000, std::chrono::seconds(60)};
constexpr LogRate kTrouble{5, std::chrono::seconds(1)};

constexpr LogRate rate(LogKind kind) {
  switch (kind) {
    case LogKind::kEstablished:
    case LogKind::kClosed:
      return kConnections;
    case LogKind::kPeerClosed:
    case LogKind::kClosing:
    case LogKind::kDropped:
    case LogKind::kUnusable:
    case LogKind::kFailedCall:
    case LogKind::kBackward:
    case LogKind::kSourcePort:
    case LogKind::kMemory:
    case LogKind::kSiwCrc:
      return kTrouble;
  }
  return kTrouble;
}

const char* text(LogKind kind) {
  switch (kind) {
    case LogKind::kEstablished:
      return "established";
    case LogKind::kClosed:
      return "closed";
    case LogKind::kPeerClosed:
      return "client closed or server closed";
    case LogKind::kClosing:
      return "closing";
    case LogKind::kDropped:
      return "dropped";
    case LogKind::kUnusable:
      return "unusable messages";
    case LogKind::kFailedCall:
      return "call failed";
    case LogKind::kBackward:
      return "backward call";
    case LogKind::kSourcePort:
      return "source port";
    case LogKind::kMemory:
      return "no memory for a message";
    case LogKind::kSiwCrc:
      return "siw CRC fault";
  }
  return "?";
}

template <std::size_t... I>
std::array<LogLimit, sizeof...(I)> limits_by_kind(std::index_sequence<I...>) {
  return {LogLimit(rate(static_cast<LogKind>(I)))...};
}

template <std::size_t... I>
std::array<LogLimit, sizeof...(I)> limits_of_refusals(std::index_sequence<I...>) {
  return {((void)I, LogLimit(kTrouble))...};
}

void write(spdlog::level::level_enum level, const std::string& prefix, const std::string& line,
           std::uint64_t left_out) {
  if (left_out > 0) {
    spdlog::log(level, "{}{} ({} more such lines were left out since the last one)", prefix, line, left_out);
  } else {
    spdlog::log(level, "{}{}", prefix, line);
  }
}

}  // namespace

LogLimits::LogLimits()
    : limits_(limits_by_kind(std::make_index_sequence<kLogKinds>{})),
      refusals_(limits_of_refusals(std::make_index_sequence<kRefuseReasons>{})) {}

LogLimits::~LogLimits() {
  for (std::size_t i = 0; i < kLogKinds; ++i) {
    if (const auto n = limits_[i].left_out(); n > 0)
      spdlog::info("{} more lines \"{}\" were left out", n, text(static_cast<LogKind>(i)));
  }
  for (std::size_t i = 0; i < kRefuseReasons; ++i) {
    if (const auto n = refusals_[i].left_out(); n > 0)
      spdlog::info("{} more lines \"refused reason={}\" were left out", n, name(static_cast<RefuseReason>(i)));
  }
}

EventLog::EventLog(Stats& stats, std::shared_ptr<LogLimits> limits, const std::string& name)
    : stats_(stats), limits_(std::move(limits)) {
  set_name(name);
}

void EventLog::set_name(const std::string& name) {
  const std::lock_guard lock(mu_);
  prefix_ = name.empty() ? "" : name + ": ";
}

std::string EventLog::prefix() const {
  const std::lock_guard lock(mu_);
  return prefix_;
}

void EventLog::refused(RefuseReason why, const std::string& line, TimePoint now) {
  stats_.connection_refused(why);
  const auto left_out = limits_->admit(why, now);
  if (!left_out) return;
  const bool server = why == RefuseReason::kBackendUnreachable;
  write(server ? spdlog::level::err : spdlog::level::warn, prefix(), line, *left_out);
}

void EventLog::info(LogKind kind, const std::string& line, TimePoint now) {
  if (const auto left_out = limits_->admit(kind, now)) write(spdlog::level::info, prefix(), line, *left_out);
}

void EventLog::warn(LogKind kind, const std::string& line, TimePoint now) {
  if (const auto left_out = limits_->admit(kind, now)) write(spdlog::level::warn, prefix(), line, *left_out);
}

}  // namespace iwarp::gateway
