// A peer that speaks SCTP by hand over a UDP socket of its own: as much of it as a hostile one needs.
#pragma once

#include <boost/asio/ip/udp.hpp>
#include <vector>

#include "iwarp/sctp_cm/packet.h"
#include "tests/sctp_cm/net.h"

namespace iwarp::sctp_cm {

using Octets = std::vector<std::byte>;

inline void put16(Octets& out, std::size_t value) {
  out.push_back(static_cast<std::byte>(value >> 8));
  out.push_back(static_cast<std::byte>(value));
}
inline void put32(Octets& out, std::uint32_t value) {
  put16(out, value >> 16);
  put16(out, value & 0xFFFF);
}

// A packet with a right checksum around `chunks`.
inline Octets packet_of(std::uint16_t from, std::uint16_t to, std::uint32_t tag, const Octets& chunks) {
  Octets out;
  put16(out, from);
  put16(out, to);
  put32(out, tag);
  put32(out, 0);
  out.insert(out.end(), chunks.begin(), chunks.end());
  if (out.size() >= kMinPacketBytes) write_checksum(out);
  return out;
}

inline Octets chunk_of(unsigned type, unsigned flags, const Octets& value) {
  Octets out{static_cast<std::byte>(type), static_cast<std::byte>(flags)};
  put16(out, value.size() + 4);
  out.insert(out.end(), value.begin(), value.end());
  while (out.size() % 4 != 0) out.push_back(std::byte{0});
  return out;
}

// The first chunk of that type in a packet, without its padding; empty: none.
inline Octets find_chunk(const Octets& packet, unsigned type) {
  for (std::size_t i = 12; i + 4 <= packet.size();) {
    const auto at = [&](std::size_t k) { return std::to_integer<std::size_t>(packet[k]); };
    const std::size_t length = at(i + 2) << 8 | at(i + 3);
    if (length < 4 || i + length > packet.size()) return {};
    const auto begin = packet.begin() + static_cast<std::ptrdiff_t>(i);
    if (at(i) == type) return {begin, begin + static_cast<std::ptrdiff_t>(length)};
    i += (length + 3) / 4 * 4;
  }
  return {};
}

class RawPeer {
 public:
  static constexpr std::uint32_t kTag = 0x1234567;  // of this end

  RawPeer(boost::asio::io_context& io, const udp::endpoint& to, const char* from = "127.0.0.1")
      : socket_(io, udp::endpoint(boost::asio::ip::make_address(from), 0)), to_(to) {
    socket_.non_blocking(true);
  }
  void send(const Octets& packet) { (void)socket_.send_to(boost::asio::buffer(packet), to_); }
  // The next packet that has come; empty: none.
  Octets receive() {
    Octets in(65536);
    boost::system::error_code error;
    udp::endpoint from;
    in.resize(socket_.receive_from(boost::asio::buffer(in), from, 0, error));
    if (error) in.clear();
    return in;
  }
  Octets init(std::uint16_t port = 7) const {
    Octets value;
    put32(value, kTag);
    put32(value, 100000);  // window
    put16(value, 10);
    put16(value, 10);
    put32(value, 1);  // first TSN
    for (unsigned octet : {0xC0u, 0x06u, 0u, 8u}) value.push_back(static_cast<std::byte>(octet));
    put32(value, 1);  // adaptation indication of DDP
    return packet_of(port, 5043, 0, chunk_of(1, 0, value));
  }
  // COOKIE ECHO in answer to an INIT ACK; remembers the peer's tag.
  Octets echo(const Octets& init_ack, std::uint16_t port = 7) {
    const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(init_ack.at(i)); };
    tag = at(16) << 24 | at(17) << 16 | at(18) << 8 | at(19);
    for (std::size_t i = 32; i + 4 <= init_ack.size();) {
      const std::size_t type = at(i) << 8 | at(i + 1), length = at(i + 2) << 8 | at(i + 3);
      if (type == 7) {
        const auto begin = init_ack.begin() + static_cast<std::ptrdiff_t>(i);
        return packet_of(port, 5043, tag, chunk_of(10, 0, {begin + 4, begin + static_cast<std::ptrdiff_t>(length)}));
      }
      i += (length + 3) / 4 * 4;
    }
    return {};
  }

  // A DATA chunk, unordered; `begins`, `ends`: whether it is the first and the last of its message.
  static Octets data(std::uint32_t tsn, std::uint16_t stream, const std::string& octets, bool begins = true,
                     bool ends = true) {
    Octets value;
    put32(value, tsn);
    put16(value, stream);
    put16(value, 0);
    put32(value, 16);
    for (const char octet : octets) value.push_back(static_cast<std::byte>(octet));
    return chunk_of(0, 4u | (begins ? 2u : 0u) | (ends ? 1u : 0u), value);
  }
  // Acknowledges all up to `tsn`.
  static Octets sack(std::uint32_t tsn) {
    Octets value;
    put32(value, tsn);
    put32(value, 100000);  // window
    put32(value, 0);       // no gaps, no duplicates
    return chunk_of(3, 0, value);
  }
  void send_chunks(const Octets& chunks, std::uint16_t port = 7) { send(packet_of(port, 5043, tag, chunks)); }

  std::uint32_t tag = 0;  // of the peer

 private:
  udp::socket socket_;
  udp::endpoint to_;
};

}  // namespace iwarp::sctp_cm
