// A TCP connection of `iwarp probe`: every call has a deadline, and FIN and RST are told apart.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "iwarp/base/time.h"
#include "iwarp/cm/byte_tap.h"

namespace iwarp::tools::probe {

class Socket {
 public:
  enum class Read : std::uint8_t { kData, kFin, kReset, kTimeout };

  Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  // False, and `why` says it, when there is no connection by then.
  bool connect(const boost::asio::ip::tcp::endpoint& to, TimePoint deadline, const cm::TapMaker& tap_maker,
               std::string& why);
  // A connection that was accepted; it is closed with this.
  void adopt(int fd, const boost::asio::ip::tcp::endpoint& from, const cm::TapMaker& tap_maker);
  // In one piece, as some RNICs want it. False when the peer does not take it.
  bool send(ConstBytes octets, TimePoint deadline);
  // Appends at most `max` octets, max > 0.
  Read read_some(std::vector<std::byte>& into, std::size_t max, TimePoint deadline);

 private:
  [[nodiscard]] bool wait(short events, TimePoint deadline) const;

  int fd_ = -1;
  bool ended_ = false;
  std::shared_ptr<cm::ByteTap> tap_;
};

}  // namespace iwarp::tools::probe
