// The one device, "iwarp0": an RNIC with one port, whose address is that of the settings, or of an interface. With
// Present::kRoce it says that it is a channel adapter of InfiniBand on Ethernet.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace iwarp::dropin {

// Limits that the device names, and that the verbs hold applications to.
inline constexpr int kMostRequests = 65536;       // of a queue
inline constexpr int kMostCompletions = 1 << 22;  // of a completion queue
inline constexpr std::uint32_t kMostInline = 4096;
inline constexpr int kMostReads = 128;  // IRD and ORD

[[nodiscard]] ibv_device* device();
// GID 0: the address, an IPv4 one mapped into IPv6 (::ffff:a.b.c.d).
[[nodiscard]] const ibv_gid& gid();
[[nodiscard]] __be64 guid();
// Index of the interface that has the address; 0: none is known.
[[nodiscard]] unsigned interface_index();
[[nodiscard]] ibv_device_attr device_attributes();
[[nodiscard]] ibv_port_attr port_attributes();

}  // namespace iwarp::dropin
