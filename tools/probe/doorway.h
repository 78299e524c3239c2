// The listening socket of `iwarp probe --listen`, and the signals that end its waiting.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>

#include "tools/probe/socket.h"

namespace iwarp::tools::probe {

// While it lives, SIGINT and SIGTERM only end the waiting of accept(). For a process with one thread.
class Doorway {
 public:
  using tcp = boost::asio::ip::tcp;
  enum class Came : std::uint8_t { kSomebody, kNobody, kInterrupted };

  // Throws std::runtime_error "cannot listen on ADDRESS: CAUSE".
  explicit Doorway(const tcp::endpoint& at);
  ~Doorway();
  Doorway(const Doorway&) = delete;
  Doorway& operator=(const Doorway&) = delete;

  [[nodiscard]] tcp::endpoint local() const;
  // Without `deadline` it waits for ever. `peer`: its address and port.
  [[nodiscard]] Came accept(Socket& into, std::string& peer, std::optional<TimePoint> deadline,
                            const cm::TapMaker& tap_maker);

 private:
  int fd_ = -1;
  int signals_ = -1;
};

}  // namespace iwarp::tools::probe
