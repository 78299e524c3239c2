#include "iwarp/sctp_cm/socket.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <usrsctp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace iwarp::sctp_cm {
namespace {

constexpr std::uint16_t kInitAttempts = 100;  // connect_timeout is the limit

template <class T>
bool set(struct socket* so, int option, const T& value, int level = IPPROTO_SCTP) {
  return usrsctp_setsockopt(so, level, option, &value, sizeof value) == 0;
}

std::uint32_t count(std::chrono::milliseconds time) {
  return static_cast<std::uint32_t>(time.count());
}

sockaddr_conn address(Handle handle, std::uint16_t port) {
  sockaddr_conn a{};
  a.sconn_family = AF_CONN;
  a.sconn_port = htons(port);
  a.sconn_addr = reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle));
  return a;
}

bool configure(struct socket* so, const TransportOptions& o) {
  sctp_initmsg init{};
  init.sinit_num_ostreams = o.streams;  // req: RFC5043-8-2, RFC5043-8-4
  init.sinit_max_instreams = o.streams;
  init.sinit_max_attempts = kInitAttempts;
  init.sinit_max_init_timeo = static_cast<std::uint16_t>(count(o.rto_max));
  sctp_rtoinfo rto{};
  rto.srto_initial = std::clamp<std::uint32_t>(1000, count(o.rto_min), count(o.rto_max));
  rto.srto_min = count(o.rto_min);
  rto.srto_max = count(o.rto_max);
  sctp_assocparams association{};
  association.sasoc_asocmaxrxt = o.max_retransmissions;
  association.sasoc_cookie_life = count(Peers::kCookieLife);
  sctp_paddrparams path{};
  path.spp_address.ss_family = AF_CONN;
  path.spp_flags = SPP_PMTUD_DISABLE | SPP_HB_ENABLE;
  path.spp_pathmtu = o.packet_bytes;
  path.spp_hbinterval = count(o.heartbeat);
  path.spp_pathmaxrxt = o.max_retransmissions;
  sctp_setadaptation adaptation{};
  adaptation.ssb_adaptation_ind = o.indication.value_or(0);  // req: RFC5043-7.1-1
  const std::uint32_t on = 1, off = 0;                       // no delay: req: RFC5043-11.2-2
  const int bytes = static_cast<int>(o.buffer_bytes);
  const linger abort_at_once{.l_onoff = 1, .l_linger = 0};
  sctp_sack_info sack{};
  sack.sack_delay = 20;
  sack.sack_freq = 2;
  bool ok = set(so, SCTP_INITMSG, init) && set(so, SCTP_RTOINFO, rto) && set(so, SCTP_ASSOCINFO, association) &&
            set(so, SCTP_PEER_ADDR_PARAMS, path) &&
            (!o.indication || set(so, SCTP_ADAPTATION_LAYER, adaptation)) &&  // req: RFC5043-5.1-3, RFC5043-11.1-1
            set(so, SCTP_NODELAY, on) && set(so, SCTP_RECVRCVINFO, on) && set(so, SCTP_FRAGMENT_INTERLEAVE, off) &&
            set(so, SCTP_DELAYED_SACK, sack) && set(so, SO_SNDBUF, bytes, SOL_SOCKET) &&
            set(so, SO_RCVBUF, bytes, SOL_SOCKET) && set(so, SO_LINGER, abort_at_once, SOL_SOCKET);
  for (const int type : {SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION, SCTP_SENDER_DRY_EVENT, SCTP_SHUTDOWN_EVENT}) {
    sctp_event event{};
    event.se_assoc_id = SCTP_FUTURE_ASSOC;
    event.se_type = static_cast<std::uint16_t>(type);
    event.se_on = 1;
    ok = ok && set(so, SCTP_EVENT, event);
  }
  return ok && usrsctp_set_non_blocking(so, 1) == 0;
}

Socket::Read over(Errc code, const char* why) {
  return Socket::Over{make_error(code, why)};
}

Socket::Read notification(ConstBytes octets) {
  union sctp_notification n {};
  if (octets.size() < sizeof n.sn_header) return Socket::Other{};
  std::memcpy(&n, octets.data(), std::min(octets.size(), sizeof n));
  switch (n.sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE:
      if (octets.size() < sizeof n.sn_assoc_change) return Socket::Other{};
      switch (n.sn_assoc_change.sac_state) {
        case SCTP_COMM_UP:
          return Socket::Up{n.sn_assoc_change.sac_inbound_streams, n.sn_assoc_change.sac_outbound_streams};
        case SCTP_COMM_LOST:
          if (octets.size() > sizeof n.sn_assoc_change || n.sn_assoc_change.sac_error != 0)
            return over(Errc::kConnectionLost, "the peer has aborted the SCTP association");
          return over(Errc::kConnectionLost,
                      "the SCTP association is lost: its peer has aborted it or answers no more");
        case SCTP_CANT_STR_ASSOC:  // req: RFC5043-7.1-3
          return over(Errc::kConnectionRefused,
                      "no SCTP association: nothing listens at that SCTP port behind the peer's UDP port");
        case SCTP_SHUTDOWN_COMP:
          return over(Errc::kPeerClosed, "the SCTP association is shut down");
        case SCTP_RESTART:
          return over(Errc::kConnectionLost, "the peer has begun its SCTP association anew");
        default:
          return Socket::Other{};
      }
    case SCTP_ADAPTATION_INDICATION:
      if (octets.size() < sizeof n.sn_adaptation_event) return Socket::Other{};
      return Socket::Indication{n.sn_adaptation_event.sai_adaptation_ind};
    case SCTP_SENDER_DRY_EVENT:
      return Socket::Dry{};
    default:
      return Socket::Other{};
  }
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(so_, other.so_);
  return *this;
}

Result<Socket> Socket::make(const TransportOptions& options) {
  Socket socket(usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, nullptr, nullptr, 0, nullptr));
  if (!socket) return make_error(Errc::kResource, "no memory for another SCTP association");
  if (!configure(socket.so_, options)) return make_error(Errc::kSystem, "libusrsctp refuses the settings of iwarp");
  return socket;
}

void Socket::close() {
  struct socket* so = std::exchange(so_, nullptr);
  if (so == nullptr || !process_.alive()) return;
  usrsctp_set_upcall(so, nullptr, nullptr);
  usrsctp_close(so);
}

void Socket::set_upcall(Upcall upcall, void* who) {
  usrsctp_set_upcall(so_, upcall, who);
}

Result<void> Socket::connect(Handle peer, std::uint16_t own_port, std::uint16_t peer_port) {
  sockaddr_conn own = address(peer, own_port), to = address(peer, peer_port);  // one address. req: RFC5043-7.2-1
  if (usrsctp_bind(so_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0)
    return make_error(Errc::kSystem, "libusrsctp has no SCTP port for the association");
  if (usrsctp_connect(so_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
    return make_error(Errc::kSystem, "libusrsctp sends no INIT");
  return {};
}

Result<void> Socket::listen(std::uint16_t own_port) {
  sockaddr_conn own = address(kNoHandle, own_port);
  if (usrsctp_bind(so_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0)
    return make_error(Errc::kSystem, "another listener of this process has that SCTP port: choose another one");
  if (usrsctp_listen(so_, 128) != 0) return make_error(Errc::kSystem, "libusrsctp does not listen");
  return {};
}

std::optional<std::pair<Socket, Handle>> Socket::accept() {
  sockaddr_conn from{};
  socklen_t bytes = sizeof from;
  Socket accepted(usrsctp_accept(so_, reinterpret_cast<sockaddr*>(&from), &bytes));
  if (!accepted) return std::nullopt;
  usrsctp_set_non_blocking(accepted.so_, 1);
  const linger abort_at_once{.l_onoff = 1, .l_linger = 0};
  (void)set(accepted.so_, SO_LINGER, abort_at_once, SOL_SOCKET);
  return std::pair{std::move(accepted), Handle{reinterpret_cast<std::uintptr_t>(from.sconn_addr)}};
}

Result<bool> Socket::send(sctp::StreamId stream, sctp::Ppid ppid, bool unordered, ConstBytes message) {
  sctp_sendv_spa how{};
  how.sendv_flags = SCTP_SEND_SNDINFO_VALID;
  how.sendv_sndinfo.snd_sid = raw(stream);
  how.sendv_sndinfo.snd_flags = static_cast<std::uint16_t>(SCTP_EOR | (unordered ? SCTP_UNORDERED : 0));
  how.sendv_sndinfo.snd_ppid = htonl(static_cast<std::uint32_t>(ppid));
  const ssize_t n = usrsctp_sendv(so_, message.data(), message.size(), nullptr, 0, &how, sizeof how, SCTP_SENDV_SPA, 0);
  if (n >= 0) return true;
  if (errno == EWOULDBLOCK || errno == EAGAIN || errno == ENOBUFS) return false;
  if (errno == EINVAL) return make_error(Errc::kInvalidArgument, "no such stream on the SCTP association");
  return make_error(Errc::kNotConnected, "the SCTP association takes nothing more");
}

bool Socket::has_room() const {
  return (usrsctp_get_events(so_) & SCTP_EVENT_WRITE) != 0;
}

Socket::Read Socket::read(MutBytes into) {
  sctp_rcvinfo info{};
  socklen_t info_bytes = sizeof info, from_bytes = 0;
  unsigned info_type = SCTP_RECVV_NOINFO;
  int flags = 0;
  const ssize_t n =
      usrsctp_recvv(so_, into.data(), into.size(), nullptr, &from_bytes, &info, &info_bytes, &info_type, &flags);
  if (n < 0) {
    if (errno == EWOULDBLOCK || errno == EAGAIN || errno == EINTR) return Empty{};
    return over(Errc::kConnectionLost, "the SCTP association is lost");
  }
  const auto bytes = static_cast<std::size_t>(n);
  if ((flags & MSG_NOTIFICATION) != 0) return notification(into.first(bytes));
  if (n == 0) return Empty{};  // its end is told by a notification
  Data data;
  if (info_type == SCTP_RECVV_RCVINFO) {
    data.stream = sctp::StreamId{info.rcv_sid};
    data.ppid = ntohl(info.rcv_ppid);
    data.ordered = (info.rcv_flags & SCTP_UNORDERED) == 0;
  }
  data.bytes = bytes;
  data.last = (flags & MSG_EOR) != 0;
  return data;
}

void Socket::set_packet_bytes(std::uint16_t octets) {
  sctp_paddrparams path{};
  path.spp_address.ss_family = AF_CONN;
  path.spp_flags = SPP_PMTUD_DISABLE;
  path.spp_pathmtu = octets;
  (void)set(so_, SCTP_PEER_ADDR_PARAMS, path);
}

std::size_t Socket::fragmentation_point() const {
  sctp_status status{};
  socklen_t bytes = sizeof status;
  if (usrsctp_getsockopt(so_, IPPROTO_SCTP, SCTP_STATUS, &status, &bytes) != 0) return 0;
  return status.sstat_fragmentation_point;
}

bool Socket::all_arrived() const {
  sctp_status status{};
  socklen_t bytes = sizeof status;
  return usrsctp_getsockopt(so_, IPPROTO_SCTP, SCTP_STATUS, &status, &bytes) == 0 && status.sstat_unackdata == 0;
}

void Socket::shutdown() {
  (void)usrsctp_shutdown(so_, SHUT_WR);
}

void Socket::abort(const char* why) {
  sctp_sendv_spa how{};
  how.sendv_flags = SCTP_SEND_SNDINFO_VALID;
  how.sendv_sndinfo.snd_flags = SCTP_ABORT;
  (void)usrsctp_sendv(so_, why, std::strlen(why), nullptr, 0, &how, sizeof how, SCTP_SENDV_SPA, 0);
  close();
}

}  // namespace iwarp::sctp_cm
