#include "tools/service_manager.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

namespace iwarp::tools {
namespace {

std::optional<std::int64_t> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  std::int64_t value = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (ec != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<std::chrono::microseconds> wanted_watchdog() {
  const auto time = number("WATCHDOG_USEC");
  if (!time || *time <= 0) return std::nullopt;
  if (const auto pid = number("WATCHDOG_PID"); pid && *pid != ::getpid()) return std::nullopt;
  return std::chrono::microseconds(*time / 2);  // as sd_watchdog_enabled(3) recommends
}

std::int64_t monotonic_microseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

}  // namespace

ServiceManager::ServiceManager() : watchdog_(wanted_watchdog()) {
  const char* const where = std::getenv("NOTIFY_SOCKET");
  if (where == nullptr) return;
  std::string address = where;
  const bool known = !address.empty() && (address[0] == '/' || address[0] == '@');
  if (!known || address.size() >= sizeof(sockaddr_un::sun_path)) {
    spdlog::warn("NOTIFY_SOCKET={} is no socket that can be told of the start", address);
    return;
  }
  if (address[0] == '@') address[0] = '\0';
  fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  (void)::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  address_ = std::move(address);
}

ServiceManager::~ServiceManager() {
  if (fd_ >= 0) ::close(fd_);
}

void ServiceManager::tell(const std::string& lines, Wait wait) {
  if (address_.empty()) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  // The name of an abstract socket ends where its address does; a path has a null behind it.
  const auto size = offsetof(sockaddr_un, sun_path) + address_.size() + (address_[0] == '\0' ? 0 : 1);
  const int flags = MSG_NOSIGNAL | (wait == Wait::kNo ? MSG_DONTWAIT : 0);
  if (::sendto(fd_, lines.data(), lines.size(), flags, reinterpret_cast<const sockaddr*>(&to),
               static_cast<socklen_t>(size)) < 0)
    spdlog::warn("the service manager cannot be told: {}", std::strerror(errno));
}

void ServiceManager::ready(const std::string& status) {
  tell("READY=1\nSTATUS=" + status + "\n", Wait::kYes);
}

void ServiceManager::reloading() {
  tell(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\n", monotonic_microseconds()), Wait::kYes);
}

void ServiceManager::stopping(std::chrono::seconds limit) {
  constexpr std::chrono::microseconds kMore = std::chrono::seconds(10);
  tell(
      fmt::format("STOPPING=1\nSTATUS=waiting for outstanding RPCs\nEXTEND_TIMEOUT_USEC={}\n", (kMore + limit).count()),
      Wait::kYes);
}

void ServiceManager::alive() {
  tell("WATCHDOG=1\n", Wait::kNo);
}

}  // namespace iwarp::tools
