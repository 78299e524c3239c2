// Recognises a fault of siw, the Linux kernel's software iWARP, from what its peers see. With CRC on, siw of Linux 6.1
// misreads the trailer of an FPDU that a TCP segment cuts, and ends the connection with Terminate layer 2, type 0,
// code 2 (MPA CRC error). TCP has checksums of its own, so that this Terminate is rare for any other reason: a host
// that sends it again and again has that siw. Time is passed in. Thread-safe.
#pragma once

#include <array>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/base/error.h"
#include "iwarp/base/time.h"

namespace iwarp::gateway {

class SiwCrcTrap {
 public:
  static constexpr TerminateCode kTerminate{2, 0, 2};
  // So many ends of one address within kWithin are no accident.
  static constexpr std::size_t kEnds = 3;
  static constexpr std::chrono::minutes kWithin{10};
  // What is known of an address is told again after so long, while it goes on.
  static constexpr std::chrono::minutes kTellAgain{30};
  // Addresses remembered: the one that was quiet for longest makes room.
  static constexpr std::size_t kAddresses = 256;

  enum class Verdict : std::uint8_t {
    kSingle,      // may be anything
    kRecognised,  // the pattern, told before
    kTell,        // the pattern: say so now
  };
  // A connection with a peer at `address` was ended by it with kTerminate. `now` never goes backwards.
  [[nodiscard]] Verdict ended(const boost::asio::ip::address& address, TimePoint now);
  // Addresses remembered at present.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mu_);
    return hosts_.size();
  }

 private:
  struct Host {
    boost::asio::ip::address address{};
    std::array<TimePoint, kEnds> ends{};  // the last ones, a ring
    std::size_t seen = 0;                 // of them are set, or more
    TimePoint last{};
    std::optional<TimePoint> told{};
  };

  mutable std::mutex mu_;
  std::vector<Host> hosts_;  // guarded by it
};

// Cause and cure, for the log.
[[nodiscard]] std::string explain_siw_crc_trap(const boost::asio::ip::address& address);

}  // namespace iwarp::gateway
