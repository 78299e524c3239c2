#include "iwarp/trace/packet_maker.h"

#include <algorithm>

#include "iwarp/base/wire.h"

namespace iwarp::trace {
namespace {

constexpr std::uint8_t kFin = 0x01, kSyn = 0x02, kReset = 0x04, kPush = 0x08, kAck = 0x10;
constexpr std::size_t kTcpBytes = 20, kIpv4Bytes = 20;
constexpr std::uint8_t kTcpProtocol = 6, kHops = 64;

// RFC 1071. `sum` chains over pieces; all but the last must have an even length.
std::uint64_t add_up(std::uint64_t sum, ConstBytes bytes) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += load_be<std::uint16_t>(bytes.subspan(i));
  if (bytes.size() % 2 != 0) sum += std::uint64_t{std::to_integer<std::uint8_t>(bytes.back())} << 8;
  return sum;
}
std::uint16_t checksum(std::uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

bool is_ipv4(const Endpoint& e) {
  return std::all_of(e.address.begin(), e.address.begin() + 10, [](std::byte b) { return b == std::byte{0}; }) &&
         e.address[10] == std::byte{0xFF} && e.address[11] == std::byte{0xFF};
}

void write_ethernet(WriteCursor& w, Direction d, std::uint16_t type) {
  constexpr std::uint32_t kLocallyAdministered = 0x02000000;
  const auto station = [&](Direction which) {
    w.be(kLocallyAdministered);
    w.be(static_cast<std::uint16_t>(1 + index(which)));
  };
  station(opposite(d));
  station(d);
  w.be(type);
}

}  // namespace

PacketMaker::PacketMaker(const Endpoint& local, const Endpoint& remote)
    : ends_{{{local, 1000}, {remote, 2000}}}, ipv4_(is_ipv4(local) && is_ipv4(remote)) {}

Packet PacketMaker::make(Direction d, std::uint8_t flags, ConstBytes payload) {
  End &from = ends_[index(d)], &to = ends_[index(opposite(d))];
  const std::size_t segment_bytes = kTcpBytes + payload.size();
  std::array<std::byte, 128> head{};
  WriteCursor w(head);
  write_ethernet(w, d, ipv4_ ? 0x0800 : 0x86DD);
  const std::size_t ip_at = w.written();
  const std::size_t skip = ipv4_ ? 12 : 0;  // in front of an IPv4 address
  if (ipv4_) {
    w.be(std::uint32_t{0x45000000} | static_cast<std::uint32_t>(kIpv4Bytes + segment_bytes));
    w.be(std::uint32_t{0x4000});  // no identification, do not fragment
    w.be(static_cast<std::uint32_t>(kHops << 24 | kTcpProtocol << 16));
  } else {
    w.be(std::uint32_t{0x60000000});
    w.be(static_cast<std::uint32_t>(segment_bytes << 16 | kTcpProtocol << 8 | kHops));
  }
  const std::size_t addresses_at = w.written();
  w.bytes(ConstBytes(from.endpoint.address).subspan(skip));
  w.bytes(ConstBytes(to.endpoint.address).subspan(skip));
  const std::size_t tcp_at = w.written();
  w.be(from.endpoint.port);
  w.be(to.endpoint.port);
  w.be(from.sequence);
  w.be((flags & kAck) != 0 ? to.sequence : 0U);
  w.be(static_cast<std::uint16_t>(kTcpBytes / 4 << 12 | flags));
  w.be(std::uint16_t{0xFFFF});  // window
  w.be(std::uint32_t{0});       // checksum, urgent pointer
  const MutBytes written = MutBytes(head).first(w.written());
  if (ipv4_) store_be(written.subspan(ip_at + 10), checksum(add_up(0, written.subspan(ip_at, kIpv4Bytes))));
  std::uint64_t sum = segment_bytes + kTcpProtocol;  // pseudo header
  sum = add_up(sum, written.subspan(addresses_at));
  store_be(written.subspan(tcp_at + 16), checksum(add_up(sum, payload)));
  Packet out(written.begin(), written.end());
  out.insert(out.end(), payload.begin(), payload.end());
  from.sequence += static_cast<std::uint32_t>(payload.size()) + ((flags & (kSyn | kFin)) != 0 ? 1 : 0);
  return out;
}

std::vector<Packet> PacketMaker::handshake(Direction opener) {
  std::vector<Packet> out;
  out.push_back(make(opener, kSyn, {}));
  out.push_back(make(opposite(opener), kSyn | kAck, {}));
  out.push_back(make(opener, kAck, {}));
  return out;
}

std::vector<Packet> PacketMaker::data(Direction d, ConstBytes bytes) {
  std::vector<Packet> out;
  while (!bytes.empty()) {
    const ConstBytes part = bytes.first(std::min(bytes.size(), kMaxPayloadBytes));
    out.push_back(make(d, kPush | kAck, part));
    bytes = bytes.subspan(part.size());
  }
  return out;
}

Packet PacketMaker::fin(Direction d) {
  return make(d, kFin | kAck, {});
}

Packet PacketMaker::reset(Direction d) {
  return make(d, kReset | kAck, {});
}

}  // namespace iwarp::trace
