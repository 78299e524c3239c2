#include "iwarp/sctp_cm/udp_port.h"

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

}  // namespace

struct UdpPort::Scratch {
  std::vector<std::byte> octets = std::vector<std::byte>(kDatagramsPerCall * kDatagramBytes);
  std::array<mmsghdr, kDatagramsPerCall> messages{};
  std::array<iovec, kDatagramsPerCall> pieces{};
  std::array<sockaddr_storage, kDatagramsPerCall> from{};
  std::array<std::array<char, 64>, kDatagramsPerCall> control{};
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
  if (port->socket_.open(at.protocol(), error))
    return failed("no UDP socket: the limit of open files may be too low (ulimit -n), or the address family is off");
  if (at.protocol() == udp::v6()) port->socket_.set_option(boost::asio::ip::v6_only(true), error);
  if (port->socket_.bind(at, error)) return bind_error(error.value());
  port->local_ = port->socket_.local_endpoint(error);
  port->socket_.non_blocking(true, error);
  if (error) return failed("the UDP socket cannot be set up");
  // What the system does not grant costs speed only. It fragments what is too long for a path: nobody else would tell.
  const int fd = port->socket_.native_handle();
  const int bytes = kBufferBytes, on = 1, off = IP_PMTUDISC_DONT;
  (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  if (at.protocol() == udp::v4())
    (void)::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &off, sizeof off);
  else
    (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &off, sizeof off);
  (void)::setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
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
  for (std::size_t read = 0; read < kReadBatch;) {
    for (std::size_t i = 0; i < kDatagramsPerCall; ++i) {
      s.pieces[i] = {s.octets.data() + i * kDatagramBytes, kDatagramBytes};
      s.messages[i] = {};
      s.messages[i].msg_hdr = {&s.from[i], sizeof s.from[i], &s.pieces[i], 1, s.control[i].data(), s.control[i].size(),
                               0};
    }
    const int n = ::recvmmsg(socket_.native_handle(), s.messages.data(), kDatagramsPerCall, MSG_DONTWAIT, nullptr);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // nothing is there, or an error of an earlier packet, which SCTP finds out itself
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
      for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(const_cast<msghdr*>(&m), c)) {
        if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO) continue;
        int size = 0;
        std::memcpy(&size, CMSG_DATA(c), sizeof size);
        if (size > 0) each = static_cast<std::size_t>(size);
      }
      const ConstBytes all{s.octets.data() + i * kDatagramBytes, bytes};
      for (std::size_t at = 0; at < bytes; at += each) {
        handlers_.packet(from, all.subspan(at, std::min(each, bytes - at)));
        if (!*alive) return;
      }
    }
    if (static_cast<std::size_t>(n) < kDatagramsPerCall) break;
  }
  handlers_.batch();
}

std::vector<std::byte> UdpPort::spare() {
  if (spares_.empty()) return {};
  std::vector<std::byte> octets = std::move(spares_.back());
  spares_.pop_back();
  return octets;
}

void UdpPort::put(const udp::endpoint& to, ConstBytes packet) {
  if (out_.size() >= kMaxWaiting) return;
  std::vector<std::byte> octets = spare();
  octets.assign(packet.begin(), packet.end());
  out_.push_back({to, std::move(octets)});
}

void UdpPort::queue(const udp::endpoint& to, ConstBytes packet) {
  const Fate fate = fate_ ? fate_(packet) : Fate::kPass;
  if (fate == Fate::kLose) return;
  if (fate == Fate::kLater) {
    later_.push_back({to, {packet.begin(), packet.end()}});
    return;
  }
  put(to, packet);
  if (fate == Fate::kTwice) put(to, packet);
  tick();
}

void UdpPort::tick() {
  for (const Packet& packet : std::exchange(later_, {})) put(packet.to, packet.octets);
}

std::size_t UdpPort::run_length() const {
  const Packet& first = out_.front();
  std::size_t n = 1, bytes = first.octets.size();
  while (gso_ && alone_ == 0 && n < kMaxRun && n < out_.size()) {
    const Packet& next = out_[n];
    if (next.to != first.to || next.octets.size() > first.octets.size()) break;
    bytes += next.octets.size();
    if (bytes > kMaxRunBytes) break;
    ++n;
    if (next.octets.size() < first.octets.size()) break;  // a shorter one may be the last
  }
  return n;
}

void UdpPort::flush() {
  std::array<iovec, kMaxRun> pieces;
  while (!out_.empty() && !waits_to_write_) {
    const std::size_t n = run_length();
    for (std::size_t i = 0; i < n; ++i) pieces[i] = {out_[i].octets.data(), out_[i].octets.size()};
    msghdr m{};
    m.msg_name = out_.front().to.data();
    m.msg_namelen = static_cast<socklen_t>(out_.front().to.size());
    m.msg_iov = pieces.data();
    m.msg_iovlen = n;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control{};
    if (n > 1) {
      m.msg_control = control.data();
      m.msg_controllen = control.size();
      cmsghdr* c = CMSG_FIRSTHDR(&m);
      c->cmsg_level = IPPROTO_UDP;
      c->cmsg_type = UDP_SEGMENT;
      c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
      const auto size = static_cast<std::uint16_t>(out_.front().octets.size());
      std::memcpy(CMSG_DATA(c), &size, sizeof size);
    }
    if (::sendmsg(socket_.native_handle(), &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_writable();
      if (n > 1 && (errno == EMSGSIZE || errno == EINVAL)) {  // not to that peer, as where its path has a smaller MTU
        alone_ = n;
        continue;
      }
      if (n > 1 && errno == EIO) {  // the interface has no part in it
        gso_ = false;
        continue;
      }
    }  // any other error is a lost packet: SCTP sends it again, and gives the peer up at last
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
