// A TCP relay between two ends of a test, in a thread of its own, that does to the octets what networks and dying hosts
// do: delays, splits, coalesces, flips a bit, stalls, half-closes, resets. It keeps a record of what each way carried.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/hex.h"

namespace iwarp::faults {

using test::Bytes;

// What happens to one way of a connection. Offsets count octets from the first one of the connection.
struct Way {
  enum class Cut : std::uint8_t {
    kNone,
    kStall,  // nothing comes through any more, no end either; what is sent is swallowed
    kFin,    // this way ends in order, the other stays open
    kReset,  // both ways end with RST
    kHold,   // no octet comes through any more, but the end does, as its sender makes it
  };

  std::chrono::milliseconds delay{0};     // of every piece
  std::vector<std::size_t> pieces{};      // cut into pieces of these sizes, in turn; empty: as they come
  std::size_t coalesce = 0;               // held until so many have collected, or nothing has come for 5 ms
  std::optional<std::size_t> flip_bit{};  // octet * 8 + bit; bit 0 is the least significant
  Cut cut = Cut::kNone;                   // from octet cut_at on
  std::size_t cut_at = 0;
};

class Relay {
 public:
  struct Plan {
    Way up{}, down{};  // up: from the side that connected
  };

  // From a free port of 127.0.0.1 to `target` there. Segments are 1460 octets at most on both sides, as on Ethernet.
  explicit Relay(std::uint16_t target = 0);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // For connections that come from now on. By default the relay changes nothing.
  void set(Plan plan);
  // For the next connection only.
  void set_once(Plan plan);
  // Where connections that come from now on go.
  void set_target(std::uint16_t port);
  // What came from each side over the latest connection since set(), before anything was done to it.
  struct Record {
    Bytes up, down;
  };
  [[nodiscard]] Record record() const;
  // Resets all connections.
  void reset_all();

 private:
  class Link;

  void accept();

  boost::asio::io_context io_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_;
  mutable std::mutex mu_;  // guards the plans, target_, latest_ and the records of the links
  Plan plan_;
  std::optional<Plan> once_;
  std::uint16_t target_;
  std::shared_ptr<Link> latest_;              // since set()
  std::vector<std::shared_ptr<Link>> links_;  // of the relay's thread; those that live, and some that do not
  std::jthread thread_;
};

}  // namespace iwarp::faults
