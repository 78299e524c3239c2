// Makes packets for a TCP connection of which only the bytes are known: for a capture written by one of its ends, which
// Wireshark opens. Ethernet, IPv4 or IPv6, TCP, with correct checksums; what TCP really did (sizes of segments,
// acknowledgements, retransmissions) is not in them. Pure, not thread-safe.
#pragma once

#include <array>
#include <vector>

#include "iwarp/trace/packet.h"
#include "iwarp/trace/record.h"

namespace iwarp::trace {

using Packet = std::vector<std::byte>;

class PacketMaker {
 public:
  // Octets of payload in one packet, at most: an IP datagram holds 65535.
  static constexpr std::size_t kMaxPayloadBytes = 65000;

  // `local` sends what is kTx. Both must be of one IP version, else the packets are IPv6 with mapped addresses.
  PacketMaker(const Endpoint& local, const Endpoint& remote);

  // SYN, SYN and ACK, ACK; `opener` connected.
  [[nodiscard]] std::vector<Packet> handshake(Direction opener);
  [[nodiscard]] std::vector<Packet> data(Direction direction, ConstBytes bytes);
  [[nodiscard]] Packet fin(Direction direction);
  [[nodiscard]] Packet reset(Direction direction);

 private:
  struct End {
    Endpoint endpoint;
    std::uint32_t sequence;  // next
  };
  Packet make(Direction direction, std::uint8_t flags, ConstBytes payload);

  std::array<End, 2> ends_;  // by Direction
  bool ipv4_;
};

}  // namespace iwarp::trace
