// SCTP packets for tests of the trace: Ethernet, IPv4 or IPv6, UDP if wanted, SCTP, with correct checksums where
// Wireshark looks at them.
#pragma once

#include <array>
#include <vector>

#include "iwarp/base/wire.h"
#include "iwarp/mpa/crc32c.h"
#include "iwarp/sctp/session_control.h"
#include "iwarp/trace/packet_maker.h"
#include "iwarp/trace/record.h"
#include "tests/support/segments.h"
#include "tests/trace/endpoints.h"

namespace iwarp::trace {

// U, B, E of a DATA chunk.
inline constexpr std::uint8_t kWholeUnordered = 7, kWholeOrdered = 3, kFirstPart = 6, kMiddlePart = 4, kLastPart = 5;

// The chunks of one packet.
class SctpBytes {
 public:
  SctpBytes& chunk(std::uint8_t type, std::uint8_t flags, ConstBytes value) {
    be(type).be(flags).be(static_cast<std::uint16_t>(4 + value.size())).raw(value);
    while (bytes.size() % 4 != 0) bytes.push_back(std::byte{0});
    return *this;
  }
  SctpBytes& data(std::uint32_t tsn, std::uint16_t stream, std::uint32_t ppid, ConstBytes message,
                  std::uint8_t flags = kWholeUnordered) {
    SctpBytes v;
    v.be(tsn).be(stream).be(std::uint16_t{0}).be(ppid).raw(message);
    return chunk(0, flags, v.bytes);
  }
  // INIT (1) or INIT ACK (2).
  SctpBytes& init(std::uint8_t type, std::uint32_t first_tsn, std::optional<std::uint32_t> indication) {
    SctpBytes v;
    v.be(std::uint32_t{0x1234}).be(std::uint32_t{65536}).be(std::uint16_t{8}).be(std::uint16_t{8}).be(first_tsn);
    v.be(std::uint16_t{0x8008}).be(std::uint16_t{6}).be(std::uint32_t{0xC1800000});  // extensions, padded
    if (indication) v.be(std::uint16_t{0xC006}).be(std::uint16_t{8}).be(*indication);
    if (type == 2) v.be(std::uint16_t{7}).be(std::uint16_t{8}).be(std::uint32_t{0});  // state cookie
    return chunk(type, 0, v.bytes);
  }
  template <std::unsigned_integral T>
  SctpBytes& be(T v) {
    std::array<std::byte, sizeof(T)> field{};
    store_be<T>(field, v);
    return raw(field);
  }
  SctpBytes& raw(ConstBytes more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  test::Bytes bytes;
};

class SctpPacketMaker {
 public:
  // `client` sends what is kTx. `udp`: in UDP, from this port of the client; 0: SCTP by itself.
  SctpPacketMaker(const Endpoint& client, const Endpoint& server, std::uint16_t udp)
      : ends_{client, server}, udp_(udp) {}

  [[nodiscard]] Packet make(Direction d, const SctpBytes& chunks) const {
    const Endpoint &from = ends_[index(d)], &to = ends_[index(opposite(d))];
    SctpBytes sctp;
    sctp.be(from.port).be(to.port).be(std::uint32_t{0x1234}).be(std::uint32_t{0}).raw(chunks.bytes);
    mpa::Crc32c crc;
    crc.update(sctp.bytes);
    crc.write_to(std::span(sctp.bytes).subspan<8, 4>());
    SctpBytes ip_payload;
    if (udp_ != 0) {
      const bool tx = d == Direction::kTx;
      ip_payload.be(tx ? udp_ : sctp::kEncapsulationPort).be(tx ? sctp::kEncapsulationPort : udp_);
      ip_payload.be(static_cast<std::uint16_t>(8 + sctp.bytes.size())).be(std::uint16_t{0});
    }
    ip_payload.raw(sctp.bytes);
    const std::uint8_t protocol = udp_ != 0 ? 17 : 132;
    SctpBytes out;
    out.raw(test::hex("020000000002 020000000001"));
    const bool v4 = std::to_integer<unsigned>(from.address[10]) == 0xFF && from.address[0] == std::byte{0};
    if (v4) {
      SctpBytes ip;
      ip.be(std::uint16_t{0x4500}).be(static_cast<std::uint16_t>(20 + ip_payload.bytes.size()));
      ip.be(std::uint32_t{0x4000}).be(std::uint8_t{64}).be(protocol).be(std::uint16_t{0});
      ip.raw(ConstBytes(from.address).last(4)).raw(ConstBytes(to.address).last(4));
      std::uint32_t sum = 0;
      for (std::size_t i = 0; i < 20; i += 2) sum += load_be<std::uint16_t>(ConstBytes(ip.bytes).subspan(i));
      while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
      store_be<std::uint16_t>(std::span(ip.bytes).subspan(10), static_cast<std::uint16_t>(~sum));
      out.be(std::uint16_t{0x0800}).raw(ip.bytes);
    } else {
      out.be(std::uint16_t{0x86DD}).be(std::uint32_t{0x60000000});
      out.be(static_cast<std::uint16_t>(ip_payload.bytes.size())).be(protocol).be(std::uint8_t{64});
      out.raw(from.address).raw(to.address);
    }
    return out.raw(ip_payload.bytes).bytes;
  }

 private:
  std::array<Endpoint, 2> ends_;
  std::uint16_t udp_;
};

// A message of a session: DDP-SSN and what follows.
inline test::Bytes numbered(std::uint16_t ssn, const test::Bytes& rest) {
  return SctpBytes().be(ssn).raw(rest).bytes;
}
inline test::Bytes control(std::uint16_t ssn, const char* code_and_data) {
  return numbered(ssn, test::hex(code_and_data));
}

}  // namespace iwarp::trace
