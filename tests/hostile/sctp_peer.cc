#include "tests/hostile/sctp_peer.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "iwarp/base/wire.h"
#include "iwarp/sctp_cm/packet.h"

namespace iwarp::hostile {
namespace {

using namespace std::chrono_literals;
using test::operator+;

constexpr std::uint32_t kOwnTag = 0x1234567;
constexpr std::size_t kCommonHeaderBytes = 12;
constexpr std::size_t kDataHeadBytes = 12;  // of the value of a DATA chunk

enum Type : unsigned {
  kData = 0,
  kInit = 1,
  kInitAck = 2,
  kSack = 3,
  kHeartbeat = 4,
  kHeartbeatAck = 5,
  kAbort = 6,
  kShutdown = 7,
  kShutdownAck = 8,
  kCookieEcho = 10,
  kCookieAck = 11,
  kShutdownComplete = 14
};
constexpr unsigned kUnordered = 4, kBegins = 2, kEnds = 1;  // flags of a DATA chunk
constexpr unsigned kCookieParameter = 7, kIndicationParameter = 0xC006;

template <class Int>
Bytes be(Int value) {
  Bytes out(sizeof value);
  store_be<Int>(out, value);
  return out;
}
Bytes be16(std::size_t value) {
  return be(static_cast<std::uint16_t>(value));
}
template <class Int>
Int at(const Bytes& octets, std::size_t offset) {
  if (octets.size() < offset + sizeof(Int)) throw std::runtime_error("the victim has sent a chunk that is too short");
  return load_be<Int>(ConstBytes(octets).subspan(offset));
}
Bytes padded(Bytes octets) {
  while (octets.size() % 4 != 0) octets.push_back(std::byte{0});
  return octets;
}
Bytes chunk(unsigned type, const Bytes& value, unsigned flags = 0) {
  return padded(Bytes{static_cast<std::byte>(type), static_cast<std::byte>(flags)} + be16(value.size() + 4) + value);
}
Bytes parameter(unsigned type, const Bytes& value) {
  return padded(be16(type) + be16(value.size() + 4) + value);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  return a;
}

// The victim does not listen to an INIT from an address that it knows (and that may have ended since).
int fresh_socket(std::uint16_t& port) {
  static std::set<std::uint16_t> used;
  for (int tries = 0; tries < 1000; ++tries) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in a = loopback(0);
    socklen_t bytes = sizeof a;
    if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&a), bytes) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&a), &bytes) != 0)
      throw std::runtime_error("no UDP socket");
    port = ntohs(a.sin_port);
    if (used.insert(port).second) return fd;
    ::close(fd);
  }
  throw std::runtime_error("no UDP port that is new");
}

}  // namespace

SctpPeer::SctpPeer(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)), fd_(-1) {
  fd_ = fresh_socket(port_);
}

SctpPeer::~SctpPeer() {
  if (tag_ != 0 && end_ == End::kNone) put(tag_, chunk(kAbort, {}));
  ::close(fd_);
}

// Of an INIT or an INIT ACK.
Bytes SctpPeer::init(unsigned type, const Bytes& parameters) const {
  constexpr std::uint32_t kWindow = 1 << 20;
  Bytes value = be(kOwnTag) + be(kWindow) + be(setup_.outbound) + be(setup_.inbound) + be(next_tsn_) + parameters;
  if (setup_.indication) value = value + parameter(kIndicationParameter, be(*setup_.indication));
  return chunk(type, value);
}

void SctpPeer::connect(std::uint16_t to, const Setup& setup) {
  setup_ = setup;
  to_ = sctp_port_ = to;
  own_sctp_port_ = port_;
  for (int tries = 0; tries < 10 && !up_; ++tries) {
    if (tag_ == 0) put(0, init(kInit, {}));
    (void)wait([this] { return up_ || end_ != End::kNone; }, 2s);
    if (!up_ && end_ != End::kNone) throw std::runtime_error("the victim has refused an association");
  }
  if (!up_) throw std::runtime_error("the victim did not set an association up");
  if (meanwhile_) meanwhile_();
}

void SctpPeer::accept(const Setup& setup) {
  setup_ = setup;
  if (!wait([this] { return up_; }, 30s)) throw std::runtime_error("the victim did not connect");
  if (meanwhile_) meanwhile_();
}

void SctpPeer::put(std::uint32_t tag, const Bytes& chunks) {
  Bytes packet = be(own_sctp_port_) + be(sctp_port_) + be(tag) + be(std::uint32_t{0}) + chunks;
  sctp_cm::write_checksum(packet);
  const sockaddr_in a = loopback(to_);
  (void)::sendto(fd_, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&a), sizeof a);
}

void SctpPeer::send(std::uint16_t stream, std::uint32_t ppid, const Bytes& octets, Chunk how) {
  if (!up_) return;
  const unsigned flags = (how.ordered ? 0 : kUnordered) | (how.begins ? kBegins : 0) | (how.ends ? kEnds : 0);
  put(tag_, chunk(kData, be(next_tsn_++) + be(stream) + be(std::uint16_t{0}) + be(ppid) + octets, flags));
}

void SctpPeer::shut_down() {
  put(tag_, chunk(kShutdown, be(cumulative_)));
}

bool SctpPeer::wait(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  for (bool waited = false;; waited = true) {
    receive();
    if (done()) return true;
    if (!waited && meanwhile_) meanwhile_();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    pollfd p{fd_, POLLIN, 0};
    (void)::poll(&p, 1, static_cast<int>(left.count()));
  }
}

std::optional<SctpPeer::Message> SctpPeer::take(const std::function<bool(const Message&)>& suits,
                                                std::chrono::milliseconds limit) {
  auto found = inbox_.end();
  (void)wait(
      [&] {
        found = std::find_if(inbox_.begin(), inbox_.end(), suits);
        return found != inbox_.end() || end_ != End::kNone;
      },
      limit);
  if (found == inbox_.end()) return std::nullopt;
  Message message = std::move(*found);
  inbox_.erase(found);
  return message;
}

SctpPeer::End SctpPeer::end(std::chrono::milliseconds limit) {
  (void)wait([this] { return end_ != End::kNone; }, limit);
  return end_;
}

// All that is there.
void SctpPeer::receive() {
  Bytes packet(65536);
  for (;;) {
    sockaddr_in from{};
    socklen_t bytes = sizeof from;
    packet.resize(65536);
    const ssize_t n =
        ::recvfrom(fd_, packet.data(), packet.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &bytes);
    if (n < 0) return;
    packet.resize(static_cast<std::size_t>(n));
    if (to_ == 0) {
      to_ = ntohs(from.sin_port);
      sctp_port_ = at<std::uint16_t>(packet, 0);
      own_sctp_port_ = at<std::uint16_t>(packet, 2);
    }
    if (ntohs(from.sin_port) == to_) take_packet(packet);
    if (std::exchange(owes_sack_, false) && end_ == End::kNone)
      put(tag_, chunk(kSack, be(cumulative_) + be(std::uint32_t{1 << 20}) + be(std::uint32_t{0})));
  }
}

void SctpPeer::take_packet(const Bytes& packet) {
  if (!sctp_cm::has_good_checksum(packet)) throw std::runtime_error("the victim has sent a wrong checksum");
  for (std::size_t i = kCommonHeaderBytes; i + 4 <= packet.size();) {
    const std::size_t bytes = at<std::uint16_t>(packet, i + 2);
    if (bytes < 4 || i + bytes > packet.size()) throw std::runtime_error("the victim has sent a broken chunk");
    const auto begin = packet.begin() + static_cast<std::ptrdiff_t>(i);
    take_chunk(std::to_integer<unsigned>(packet[i]), std::to_integer<unsigned>(packet[i + 1]),
               {begin + 4, begin + static_cast<std::ptrdiff_t>(bytes)});
    i += (bytes + 3) / 4 * 4;
  }
}

void SctpPeer::take_chunk(unsigned type, unsigned flags, const Bytes& value) {
  switch (type) {
    case kData:
      return take_data(flags, value);
    case kInit:
      if (up_) return;
      tag_ = at<std::uint32_t>(value, 0);
      cumulative_ = at<std::uint32_t>(value, 12) - 1;
      return put(tag_, init(kInitAck, parameter(kCookieParameter, Bytes(16, std::byte{42}))));
    case kInitAck:
      if (tag_ != 0) return;
      tag_ = at<std::uint32_t>(value, 0);
      cumulative_ = at<std::uint32_t>(value, 12) - 1;
      for (std::size_t i = 16; i + 4 <= value.size();) {
        const std::size_t bytes = std::max<std::size_t>(at<std::uint16_t>(value, i + 2), 4);
        if (at<std::uint16_t>(value, i) == kCookieParameter && i + bytes <= value.size()) {
          const auto begin = value.begin() + static_cast<std::ptrdiff_t>(i);
          return put(tag_, chunk(kCookieEcho, {begin + 4, begin + static_cast<std::ptrdiff_t>(bytes)}));
        }
        i += (bytes + 3) / 4 * 4;
      }
      throw std::runtime_error("the victim has sent no cookie");
    case kHeartbeat:
      return put(tag_, chunk(kHeartbeatAck, value));
    case kAbort:
      if (end_ == End::kNone) end_ = End::kAborted;
      return;
    case kShutdown:
      up_ = false;  // nothing may be sent any more
      return put(tag_, chunk(kShutdownAck, {}));
    case kShutdownAck:
      put(tag_, chunk(kShutdownComplete, {}));
      end_ = End::kShutDown;
      return;
    case kShutdownComplete:
      end_ = End::kShutDown;
      return;
    case kCookieEcho:
      up_ = true;
      return put(tag_, chunk(kCookieAck, {}));
    case kCookieAck:
      up_ = true;
      return;
    default:
      return;
  }
}

void SctpPeer::take_data(unsigned flags, const Bytes& value) {
  owes_sack_ = true;
  if (at<std::uint32_t>(value, 0) != cumulative_ + 1) return;  // was there already, or comes again
  ++cumulative_;
  if ((flags & (kBegins | kEnds)) != (kBegins | kEnds)) throw std::runtime_error("the victim has fragmented a message");
  inbox_.push_back({at<std::uint16_t>(value, 4),
                    at<std::uint32_t>(value, 8),
                    (flags & kUnordered) == 0,
                    {value.begin() + kDataHeadBytes, value.end()}});
}

}  // namespace iwarp::hostile
