// A port of 127.0.0.1 for processes of a test that are killed and started again. As long as this exists the system
// gives it to nobody: not to who binds to any free port, nor to who connects. Processes that ask for it by its number,
// with SO_REUSEADDR, can listen there, one after the other; while none does, connecting is refused.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace iwarp::faults {

class HeldPort {
 public:
  // Throws when there is none.
  HeldPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (fd_ < 0 || ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(fd_, address, size) != 0 || ::getsockname(fd_, address, &size) != 0)
      throw std::system_error(errno, std::generic_category(), "no port to be had");
    port_ = ntohs(at.sin_port);
  }
  ~HeldPort() { ::close(fd_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  int fd_;  // bound, and never listens
  std::uint16_t port_ = 0;
};

}  // namespace iwarp::faults
