// A TCP relay between two parties, which can hold back or stop what flows from the server to the client, let either
// way pass slowly, or cut everything.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/gateway/loop.h"
#include "tests/gateway/tcp_peer.h"

namespace iwarp::gateway::test {

class Relay {
 public:
  // `source`: local address towards the server, with the very port that the client has, so that the server still sees
  // which connection of the client it is. Nothing: any address, any port.
  Relay(Loop& loop, const tcp::endpoint& server, std::optional<boost::asio::ip::address> source = std::nullopt);
  ~Relay();

  [[nodiscard]] tcp::endpoint local() const { return local_; }
  // Octets from the server are read but kept.
  void hold_replies(bool on);
  [[nodiscard]] std::size_t held_bytes() const;
  // Octets from the server are not read at all: its TCP window closes.
  void stall_replies(bool on);
  // From now on: after each `bytes` octets, about, from the client or from the server nothing passes for `pause`.
  void pace_calls(std::size_t bytes, std::chrono::milliseconds pause) { calls_ = {bytes, pause}; }
  void pace_replies(std::size_t bytes, std::chrono::milliseconds pause) { replies_ = {bytes, pause}; }
  // All connections, with RST on both sides.
  void cut();
  [[nodiscard]] std::size_t live() const;

 private:
  struct Link;
  void accept();

  Loop& loop_;
  tcp::acceptor acceptor_;
  tcp::endpoint local_, server_;
  std::optional<boost::asio::ip::address> source_;
  std::vector<std::shared_ptr<Link>> links_;
  struct Pace {
    std::size_t bytes = SIZE_MAX;
    std::chrono::milliseconds pause{};
  };
  Pace calls_{}, replies_{};
  bool hold_ = false, stall_ = false;
};

}  // namespace iwarp::gateway::test
