// TCP by hand, for peers that misbehave: blocking calls with a limit, no Asio. And MPA startup frames to send over it.
#pragma once

#include <cstdint>
#include <utility>

#include "iwarp/mpa/startup_frame.h"
#include "tests/support/hex.h"

namespace iwarp::test {

class RawTcp {
 public:
  enum class End { kFin, kReset, kTimeout, kTooMuch };

  explicit RawTcp(int fd = -1) : fd_(fd) {}
  RawTcp(RawTcp&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawTcp& operator=(RawTcp&& other) noexcept;
  ~RawTcp() { close(); }

  // To 127.0.0.1. Throws when it fails.
  [[nodiscard]] static RawTcp connect(std::uint16_t port);

  // False when the peer does not take it.
  bool send(ConstBytes bytes);
  // Exactly n octets, or fewer when the peer ends or nothing comes for `limit_ms`.
  [[nodiscard]] Bytes read(std::size_t n, int limit_ms = 30'000);
  // Whatever is there, at most n; empty at the end of the stream or after `limit_ms`.
  [[nodiscard]] Bytes read_some(std::size_t n, int limit_ms);
  // How the peer ends the connection; octets before that are dropped.
  [[nodiscard]] End end(int limit_ms = 30'000);
  void shutdown_write();
  void close();
  // Closes with RST.
  void reset();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

class RawListener {
 public:
  explicit RawListener(int backlog = 16);
  ~RawListener();
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Throws when nobody comes.
  [[nodiscard]] RawTcp accept(int limit_ms = 30'000);
  // Whether somebody comes within the time.
  [[nodiscard]] bool anybody(int within_ms);

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

// A well-formed enhanced Request (revision 2, CRC, peer-to-peer) and the Reply that accepts it.
[[nodiscard]] mpa::StartupFrame good_request(ConstBytes private_data = {});
// Answered with R=1 by every listener: of revision 0.
[[nodiscard]] mpa::StartupFrame refused_request();
[[nodiscard]] mpa::StartupFrame good_reply(ConstBytes private_data = {});
[[nodiscard]] Bytes octets(const mpa::StartupFrame& frame);
// Reads one startup frame.
struct FrameRead {
  Bytes bytes;  // what the frame's spans point to
  mpa::StartupFrame frame;
  bool complete = false;
};
[[nodiscard]] FrameRead read_frame(RawTcp& from, bool reply);

}  // namespace iwarp::test
