// The TCP sockets that this process has open, and what was asked of them.
#pragma once

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace iwarp::test {

// Every TCP socket with that port at the end which `ask` tells (getsockname() or getpeername()).
inline std::vector<int> tcp_sockets(std::uint16_t port, int (*ask)(int, sockaddr*, socklen_t*)) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    boost::asio::ip::tcp::endpoint at;
    auto size = static_cast<socklen_t>(at.capacity());
    if (ask(fd, at.data(), &size) == 0 && at.port() == port) found.push_back(fd);
  }
  return found;
}

// The congestion control of every TCP socket with that port at either end, listening ones included.
inline std::vector<std::string> congestion_controls(std::uint16_t port) {
  std::vector<std::string> found;
  for (const auto ask : {&::getsockname, &::getpeername}) {
    for (const int fd : tcp_sockets(port, ask)) {
      std::array<char, 17> name{};
      socklen_t size = name.size() - 1;
      if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0) found.emplace_back(name.data());
    }
  }
  return found;
}

// SO_RCVBUF of the only such connection.
inline std::size_t receive_buffer(std::uint16_t port, int (*ask)(int, sockaddr*, socklen_t*)) {
  std::size_t buffer = 0, connections = 0;
  for (const int fd : tcp_sockets(port, ask)) {
    int listens = 0, value = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens != 0) continue;
    size = sizeof value;
    if (::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &size) == 0) buffer = static_cast<std::size_t>(value);
    ++connections;
  }
  return connections == 1 ? buffer : 0;
}

// The most that the system gives a TCP socket.
inline std::size_t largest_receive_buffer() {
  std::ifstream limits("/proc/sys/net/ipv4/tcp_rmem");
  std::size_t least = 0, usual = 0, most = 0;
  limits >> least >> usual >> most;
  return most;
}

}  // namespace iwarp::test
