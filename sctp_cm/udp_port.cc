#include "iwarp/sctp_cm/udp_port.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace iwarp::sctp_cm {
namespace {

constexpr int kBufferBytes = 4 << 20;  // of the system, per direction, if it grants so much
constexpr std::size_t kDatagramBytes = 65536;
constexpr std::size_t kDatagramsPerCall = 8;
constexpr std::size_t kMaxRun = 64;          // segments of one call, at most
constexpr std::size_t kMaxRunBytes = 65000;  // octets of one
constexpr std::size_t kSpares = 256;
constexpr std::size_t kErrorsPerCall = 16;  // of earlier packets that are read at a time
constexpr std::size_t kQuoted = 576;        // octets of a packet that come back with an error, at most
constexpr int kTries = 16;                  // calls to the system that fail for what earlier packets have met

Error failed(const char* what) {
  return make_error(Errc::kSystem, what);
}

Error bind_error(int error) {
  switch (error) {
    case EADDRINUSE:
      return failed("UDP port in use: choose another one, or end the program that has it (ss -lunp)");
    case EADDRNOTAVAIL:
      return failed("no such local address for the UDP socket: see `ip address`");
    case EACCES:
      return failed("UDP ports below 1024 are for the superuser: choose a greater one, 9899 is the usual one");
    default:
      return failed("the UDP socket cannot be bound");
  }
}

using Address = UdpPort::Address;

// The local address that a packet came to (of a broadcast that of its interface); unspecified: `c` does not say.
Address address_in(const cmsghdr& c) {
  if (c.cmsg_level == IPPROTO_IP && c.cmsg_type == IP_PKTINFO) {
    in_pktinfo info{};
    std::memcpy(&info, CMSG_DATA(&c), sizeof info);
    return boost::asio::ip::address_v4(ntohl(info.ipi_spec_dst.s_addr));
  }
  if (c.cmsg_level == IPPROTO_IPV6 && c.cmsg_type == IPV6_PKTINFO) {
    in6_pktinfo info{};
    boost::asio::ip::address_v6::bytes_type octets;
    std::memcpy(&info, CMSG_DATA(&c), sizeof info);
    std::memcpy(octets.data(), &info.ipi6_addr, octets.size());
    return boost::asio::ip::address_v6(octets);
  }
  return {};
}

// Whether it is an ICMP message which says that nobody has the port. All others may be of a moment.
bool is_port_unreachable(const cmsghdr& c) {
  const bool is_error = (c.cmsg_level == IPPROTO_IP && c.cmsg_type == IP_RECVERR) ||
                        (c.cmsg_level == IPPROTO_IPV6 && c.cmsg_type == IPV6_RECVERR);
  if (!is_error || c.cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) return false;
  sock_extended_err e{};
  std::memcpy(&e, CMSG_DATA(&c), sizeof e);
  const bool icmp = e.ee_origin == SO_EE_ORIGIN_ICMP || e.ee_origin == SO_EE_ORIGIN_ICMP6;
  return icmp && e.ee_errno == ECONNREFUSED;
}

// Control messages of a packet that leaves.
class Control {
 public:
  template <class T>
  void add(int level, int type, const T& value) {
    auto* const c = reinterpret_cast<cmsghdr*>(octets_.data() + bytes_);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(c), &value, sizeof value);
    bytes_ += CMSG_SPACE(sizeof value);
  }
  void add_source(const Address& own) {
    if (own.is_unspecified()) return;
    if (own.is_v4()) {
      in_pktinfo info{};
      info.ipi_spec_dst.s_addr = htonl(own.to_v4().to_uint());
      return add(IPPROTO_IP, IP_PKTINFO, info);
    }
    in6_pktinfo info{};
    const auto octets = own.to_v6().to_bytes();
    std::memcpy(&info.ipi6_addr, octets.data(), octets.size());
    add(IPPROTO_IPV6, IPV6_PKTINFO, info);
  }
  void give_to(msghdr& m) {
    if (bytes_ == 0) return;
    m.msg_control = octets_.data();
    m.msg_controllen = bytes_;
  }

 private:
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t)) + CMSG_SPACE(sizeof(in6_pktinfo))> octets_{};
  std::size_t bytes_ = 0;
};

}  // namespace

struct UdpPort::Scratch {
  std::vector<std::byte> octets = std::vector<std::byte>(kDatagramsPerCall * kDatagramBytes);
  std::array<mmsghdr, kDatagramsPerCall> messages{};
  std::array<iovec, kDatagramsPerCall> pieces{};
  std::array<sockaddr_storage, kDatagramsPerCall> from{};
  struct alignas(cmsghdr) Space {
    std::array<char, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(in6_pktinfo))> octets;
  };
  std::array<Space, kDatagramsPerCall> control{};
};

UdpPort::UdpPort(boost::asio::io_context& io, Handlers handlers, FateMaker fate)
    : socket_(io), handlers_(std::move(handlers)), fate_(std::move(fate)), scratch_(std::make_unique<Scratch>()) {}

UdpPort::~UdpPort() {
  *alive_ = false;
}

Result<std::unique_ptr<UdpPort>> UdpPort::open(boost::asio::io_context& io, const udp::endpoint& at, Handlers handlers,
                                               FateMaker fate) {
  std::unique_ptr<UdpPort> port(new UdpPort(io, std::move(handlers), std::move(fate)));
  boost::system::error_code error;
  port->socket_.open(at.protocol(), error);
  if (error)
    return failed("no UDP socket: the limit of open files may be too low (ulimit -n), or the address family is off");
  // "::" means all addresses, as for TCP.
  if (at.protocol() == udp::v6())
    port->socket_.set_option(boost::asio::ip::v6_only(!at.address().is_unspecified()), error);
  port->socket_.bind(at, error);
  if (error) return bind_error(error.value());
  port->local_ = port->socket_.local_endpoint(error);
  port->socket_.non_blocking(true, error);
  if (error) return failed("the UDP socket cannot be set up");
  // What the system does not grant costs speed only. It fragments what is too long for a path: nobody else would tell.
  const int fd = port->socket_.native_handle();
  const int bytes = kBufferBytes, on = 1, off = IP_PMTUDISC_DONT;
  (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  (void)::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &off, sizeof off);
  if (at.protocol() == udp::v6()) (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &off, sizeof off);
  (void)::setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  if (at.address().is_unspecified())  // a host may have many: what comes to one is answered from it
    (void)(at.protocol() == udp::v6() ? ::setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on)
                                      : ::setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on));
  if (port->handlers_.undelivered) {  // else the system keeps such news to itself
    (void)::setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    if (at.protocol() == udp::v6()) (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
  }
  const int none = 0;
  port->gso_ = ::setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof none) == 0;
  port->wait_readable();
  return port;
}

void UdpPort::wait_readable() {
  socket_.async_wait(udp::socket::wait_read, [this, alive = alive_](const boost::system::error_code& error) {
    if (!*alive || error) return;
    read();
    if (*alive) wait_readable();
  });
}

void UdpPort::read() {
  const std::shared_ptr<bool> alive = alive_;
  Scratch& s = *scratch_;
  std::size_t read = 0;
  int failures = 0;
  while (read < kReadBatch) {
    for (std::size_t i = 0; i < kDatagramsPerCall; ++i) {
      s.pieces[i] = {s.octets.data() + i * kDatagramBytes, kDatagramBytes};
      s.messages[i] = {};
      s.messages[i].msg_hdr = {
          &s.from[i], sizeof s.from[i], &s.pieces[i], 1, s.control[i].octets.data(), s.control[i].octets.size(), 0};
    }
    const int n = ::recvmmsg(socket_.native_handle(), s.messages.data(), kDatagramsPerCall, MSG_DONTWAIT, nullptr);
    if (n < 0 && errno == EINTR) continue;
    // What an earlier packet has met is told once, in front of what has come.
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && ++failures < kTries) continue;
    if (n <= 0) break;
    read += static_cast<std::size_t>(n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const msghdr& m = s.messages[i].msg_hdr;
      if ((m.msg_flags & MSG_TRUNC) != 0) continue;
      udp::endpoint from;
      if (m.msg_namelen > from.capacity()) continue;
      std::memcpy(from.data(), m.msg_name, m.msg_namelen);
      from.resize(m.msg_namelen);
      const std::size_t bytes = s.messages[i].msg_len;
      std::size_t each = bytes;  // of several packets of one length that the system has joined
      Address own;
      for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(const_cast<msghdr*>(&m), c)) {
        if (const Address to = address_in(*c); !to.is_unspecified()) own = to;
        if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO) continue;
        int size = 0;
        std::memcpy(&size, CMSG_DATA(c), sizeof size);
        if (size > 0) each = static_cast<std::size_t>(size);
      }
      const ConstBytes all{s.octets.data() + i * kDatagramBytes, bytes};
      for (std::size_t at = 0; at < bytes; at += each) {
        handlers_.packet(from, own, all.subspan(at, std::min(each, bytes - at)));
        if (!*alive) return;
      }
    }
    if (static_cast<std::size_t>(n) < kDatagramsPerCall) break;
  }
  if (failures > 0 || read == 0) read_errors();
  handlers_.batch();
}

std::size_t UdpPort::read_errors() {
  if (!handlers_.undelivered) return 0;
  std::size_t read = 0;
  for (; read < kErrorsPerCall; ++read) {
    udp::endpoint to;
    std::array<std::byte, kQuoted> quoted;
    alignas(cmsghdr) std::array<char, 256> control{};
    iovec piece{quoted.data(), quoted.size()};
    msghdr m{};
    m.msg_name = to.data();
    m.msg_namelen = static_cast<socklen_t>(to.capacity());
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    m.msg_control = control.data();
    m.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(socket_.native_handle(), &m, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (n < 0) break;
    if (m.msg_namelen == 0 || m.msg_namelen > to.capacity()) continue;
    to.resize(m.msg_namelen);
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
      if (is_port_unreachable(*c))
        handlers_.undelivered(to, ConstBytes(quoted).first(static_cast<std::size_t>(n)), ECONNREFUSED);
    }
  }
  return read;
}

std::vector<std::byte> UdpPort::spare() {
  if (spares_.empty()) return {};
  std::vector<std::byte> octets = std::move(spares_.back());
  spares_.pop_back();
  return octets;
}

void UdpPort::put(const udp::endpoint& to, const Address& own, ConstBytes packet) {
  if (out_.size() >= kMaxWaiting) return;
  std::vector<std::byte> octets = spare();
  octets.assign(packet.begin(), packet.end());
  out_.push_back({to, own, std::move(octets)});
}

void UdpPort::queue(const udp::endpoint& to, ConstBytes packet, const Address& own) {
  const Fate fate = fate_ ? fate_(packet) : Fate::kPass;
  if (fate == Fate::kLose) return;
  if (fate == Fate::kLater) {
    later_.push_back({to, own, {packet.begin(), packet.end()}});
    return;
  }
  put(to, own, packet);
  if (fate == Fate::kTwice) put(to, own, packet);
  tick();
}

void UdpPort::tick() {
  for (const Packet& packet : std::exchange(later_, {})) put(packet.to, packet.own, packet.octets);
}

std::size_t UdpPort::run_length() const {
  const Packet& first = out_.front();
  std::size_t n = 1, bytes = first.octets.size();
  while (gso_ && alone_ == 0 && n < kMaxRun && n < out_.size()) {
    const Packet& next = out_[n];
    if (next.to != first.to || next.own != first.own || next.octets.size() > first.octets.size()) break;
    bytes += next.octets.size();
    if (bytes > kMaxRunBytes) break;
    ++n;
    if (next.octets.size() < first.octets.size()) break;  // a shorter one may be the last
  }
  return n;
}

void UdpPort::flush() {
  std::array<iovec, kMaxRun> pieces;
  int tries = 0;
  while (!out_.empty() && !waits_to_write_) {
    const std::size_t n = run_length();
    for (std::size_t i = 0; i < n; ++i) pieces[i] = {out_[i].octets.data(), out_[i].octets.size()};
    msghdr m{};
    m.msg_name = out_.front().to.data();
    m.msg_namelen = static_cast<socklen_t>(out_.front().to.size());
    m.msg_iov = pieces.data();
    m.msg_iovlen = n;
    Control control;
    control.add_source(out_.front().own);
    if (n > 1) control.add(IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(out_.front().octets.size()));
    control.give_to(m);
    if (::sendmsg(socket_.native_handle(), &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      const int error = errno;
      if (error == EINTR) continue;
      if (error == EAGAIN || error == EWOULDBLOCK) return wait_writable();
      if (n > 1 && (error == EMSGSIZE || error == EINVAL)) {  // not to that peer, as where its path has a smaller MTU
        alone_ = n;
        continue;
      }
      if (n > 1 && error == EIO) {  // the interface has no part in it
        gso_ = false;
        continue;
      }
      // Lost packets: SCTP sends them again, and gives the peer up at last. With news of ICMP, which are about other
      // packets, the system fails calls until they are read; an error that comes without any is of these.
      if (handlers_.undelivered && error != ENOBUFS && error != ENOMEM) {
        const std::size_t news = read_errors();
        if ((news > 0 || tries == 0) && ++tries < kTries) continue;
        for (std::size_t i = 0; i < n && news == 0 && error != ECONNREFUSED; ++i)
          handlers_.undelivered(out_[i].to, out_[i].octets, error);
      }
    }
    tries = 0;
    if (alone_ > 0) --alone_;
    for (std::size_t i = 0; i < n; ++i) {
      if (spares_.size() < kSpares) spares_.push_back(std::move(out_.front().octets));
      out_.pop_front();
    }
  }
}

void UdpPort::wait_writable() {
  waits_to_write_ = true;
  socket_.async_wait(udp::socket::wait_write, [this, alive = alive_](const boost::system::error_code& error) {
    if (!*alive || error) return;
    waits_to_write_ = false;
    flush();
  });
}

}  // namespace iwarp::sctp_cm
