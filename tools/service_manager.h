// What a service tells systemd, by its protocol sd_notify(3): datagrams of NAME=value lines to $NOTIFY_SOCKET. Without
// that nobody is told, and nothing is done. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace iwarp::tools {

class ServiceManager {
 public:
  // Reads $NOTIFY_SOCKET, a path or "@name" (abstract), and $WATCHDOG_USEC, $WATCHDOG_PID.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Whether there is somebody to tell.
  [[nodiscard]] bool told() const { return !address_.empty(); }
  // How long news may wait for room in the queue of whoever is told, before they are lost with a warning. Signs of life
  // do not wait: the next one follows.
  static constexpr std::chrono::seconds kPatience{2};

  // It serves, from now on or again; `status` is one line for people.
  void ready(const std::string& status);
  // ready() follows, whether the reload succeeds or not.
  void reloading();
  // It is going to end, in so much time at most.
  void stopping(std::chrono::seconds limit);
  // How often alive() is wanted, at least; nothing: it is not.
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }
  void alive();

 private:
  enum class Wait : std::uint8_t { kNo, kYes };
  void tell(const std::string& lines, Wait wait);

  std::string address_;  // as it stands in a sockaddr_un; empty: nobody
  int fd_ = -1;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace iwarp::tools
