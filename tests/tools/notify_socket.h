// In place of the service manager: the socket of $NOTIFY_SOCKET, and what it was told.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "tests/support/eventually.h"

namespace iwarp::test {

class NotifySocket {
 public:
  // `name`: a path, or "@name".
  explicit NotifySocket(std::string name)
      : name_(std::move(name)), fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name_.data(), name_.size());
    if (name_[0] == '@') at.sun_path[0] = '\0';
    const auto size = offsetof(sockaddr_un, sun_path) + name_.size() + (name_[0] == '@' ? 0 : 1);
    bound_ = ::bind(fd_, reinterpret_cast<const sockaddr*>(&at), static_cast<socklen_t>(size)) == 0;
  }
  ~NotifySocket() { ::close(fd_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  [[nodiscard]] bool bound() const { return bound_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // The next message; empty when none comes within `patience`.
  std::string next(std::chrono::milliseconds patience = kPatience) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(patience.count())) != 1) return {};
    std::array<char, 4096> text{};
    const ssize_t n = ::recv(fd_, text.data(), text.size(), 0);
    return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : std::string();
  }
  // Sends "x" until no more is taken. False: it takes what comes.
  bool fill_from(int fd) {
    sockaddr_un at{};
    socklen_t size = sizeof at;
    if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) != 0) return false;
    constexpr int kMost = 100'000;
    for (int n = 0; n < kMost; ++n) {
      if (::sendto(fd, "x", 1, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&at), size) != 1) return true;
    }
    return false;
  }
  // The next that is no sign of life.
  std::string next_news() {
    std::string text = next();
    while (text == "WATCHDOG=1\n") text = next();
    return text;
  }

 private:
  std::string name_;
  int fd_;
  bool bound_ = false;
};

}  // namespace iwarp::test
