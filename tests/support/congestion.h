// The congestion control of the sockets that this process has open.
#pragma once

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace iwarp::test {

// Of every TCP socket with that port at either end, listening ones included.
inline std::vector<std::string> congestion_controls(std::uint16_t port) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    bool concerned = false;
    for (const auto ask : {&::getsockname, &::getpeername}) {
      boost::asio::ip::tcp::endpoint at;
      auto size = static_cast<socklen_t>(at.capacity());
      concerned = concerned || (ask(fd, at.data(), &size) == 0 && at.port() == port);
    }
    std::array<char, 17> name{};
    socklen_t size = name.size() - 1;
    if (concerned && ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0)
      found.emplace_back(name.data());
  }
  return found;
}

}  // namespace iwarp::test
