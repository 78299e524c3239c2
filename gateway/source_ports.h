// Which local ports a connection to the TCP server may have, in the order in which they are tried. Servers take a port
// below 1024 as a sign that the superuser of the client's host speaks (`secure`, the default of kernel exports), and
// know replays by address and port. Pure. Not thread-safe.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>

namespace iwarp::gateway {

// --reserved-port.
enum class ReservedPort : std::uint8_t {
  kOff,      // any port
  kPrefer,   // 512 to 1023, or any when none of them is to be had
  kRequire,  // 512 to 1023, or no connection
};

inline constexpr std::uint16_t kFirstReservedPort = 512;
inline constexpr std::uint16_t kLastReservedPort = 1023;
inline constexpr std::size_t kReservedPorts = kLastReservedPort - kFirstReservedPort + 1;

constexpr bool is_reserved(std::uint16_t port) {
  return port > 0 && port <= kLastReservedPort;
}

// Ports of 512 to 1023, each at its number less 512.
using ReservedPortSet = std::bitset<kReservedPorts>;

class SourcePorts {
 public:
  // `preferred` comes first, unless kRequire and it is not reserved. Then the reserved ports, from `first` (modulo
  // their number) round to it: those not in `avoid` before those in it. At the end any port.
  SourcePorts(ReservedPort mode, std::optional<std::uint16_t> preferred, const ReservedPortSet& avoid,
              std::size_t first);

  // The next to try; 0 lets the system choose. Nothing: all were tried.
  [[nodiscard]] std::optional<std::uint16_t> next();
  // This process may not bind reserved ports: no more of them.
  void no_privilege() { step_ = 2 * kReservedPorts; }

 private:
  ReservedPort mode_;
  std::optional<std::uint16_t> preferred_;
  ReservedPortSet avoid_;
  std::size_t first_;
  std::size_t step_ = 0;  // twice through the reserved ports
  bool any_tried_ = false;
};

// Whether this process may bind a port below 1024 (CAP_NET_BIND_SERVICE, or net.ipv4.ip_unprivileged_port_start).
[[nodiscard]] bool may_bind_reserved_ports();

}  // namespace iwarp::gateway
