// A peer of the gateway that sends without end, from a thread of its own: as fast as the gateway can take it.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <thread>

#include "tests/gateway/tcp_peer.h"

namespace iwarp::gateway::test {

class Flood {
 public:
  // Sends `record`, with its mark, again and again: until destroyed, or the connection ends, or kLongest has passed.
  Flood(boost::asio::ip::tcp::socket socket, const Bytes& record) : socket_(std::move(socket)) {
    using iwarp::test::operator+;
    const Bytes marked = record_mark(record.size()) + record;
    while (octets_.size() < 256 * 1024) octets_.insert(octets_.end(), marked.begin(), marked.end());
    thread_ = std::jthread([this] { run(); });
  }
  ~Flood() {
    stop_ = true;
    ::shutdown(socket_.native_handle(), SHUT_RDWR);  // nobody may be taking what it sends
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  // It ended only because kLongest had passed.
  [[nodiscard]] bool exhausted() const { return exhausted_; }

 private:
  static constexpr std::chrono::seconds kLongest{20};

  void run() {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    boost::system::error_code ec;
    socket_.non_blocking(false, ec);
    while (!stop_ && !ec) {
      socket_.write_some(boost::asio::buffer(octets_), ec);
      if (std::chrono::steady_clock::now() < end) continue;
      exhausted_ = true;
      break;
    }
  }

  boost::asio::ip::tcp::socket socket_;
  Bytes octets_;
  std::atomic<bool> stop_{false}, exhausted_{false};
  std::jthread thread_;  // joined first
};

}  // namespace iwarp::gateway::test
