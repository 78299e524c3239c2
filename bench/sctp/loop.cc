// bench_sctp_loop bulk|pingpong MESSAGE_OCTETS PACKET_OCTETS SECONDS
//
// What usrsctp carries by itself: one association between two processes over UDP on loopback, with the packet I/O and
// the CRC-32C of sctp_cm/ and nothing else of iwarp. `bulk`: unordered messages one way; prints octets a second, as the
// receiver counts them. `pingpong`: one message there and back, both ends spinning; prints half a round trip in
// microseconds, the median. bench/sctp/run puts DDP beside it.
#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <usrsctp.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iwarp/sctp_cm/packet.h"
#include "iwarp/sctp_cm/udp_port.h"

namespace {

using namespace iwarp;
using boost::asio::ip::udp;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::uint16_t kPort = 7174;  // of SCTP
constexpr std::uint32_t kPpid = 16;
constexpr int kBufferBytes = 1 << 20;
constexpr std::size_t kMaxMessageBytes = 65536;
constexpr std::size_t kWarmUp = 200;
constexpr unsigned kPatienceSeconds = 30;  // beyond the time to measure

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_sctp_loop: %s\n", what.c_str());
  std::_Exit(1);
}

void need(bool done, const char* what) {
  if (!done) fail(std::string(what) + ": " + std::strerror(errno));
}

// One end. usrsctp has one instance per process, and so has this.
class End {
 public:
  explicit End(std::size_t packet_bytes) : packet_bytes_(packet_bytes), scratch_(kMaxMessageBytes) {
    only_ = this;
    usrsctp_init_nothreads(0, &End::on_output, nullptr);
    usrsctp_enable_crc32c_offload();
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    usrsctp_sysctl_set_sctp_max_chunks_on_queue(8192);
    usrsctp_register_address(this);
    sctp_cm::UdpPort::Handlers handlers;
    handlers.packet = [this](const udp::endpoint& from, const sctp_cm::UdpPort::Address&, ConstBytes packet) {
      peer_ = from;
      if (packet.size() >= sctp_cm::kMinPacketBytes && sctp_cm::has_good_checksum(packet))
        usrsctp_conninput(this, packet.data(), packet.size(), 0);
    };
    handlers.batch = [] {};
    auto port = sctp_cm::UdpPort::open(io_, {boost::asio::ip::address_v4::loopback(), 0}, std::move(handlers), {});
    if (!port) fail(port.error().why);
    udp_ = *std::move(port);
  }
  [[nodiscard]] std::uint16_t udp_port() const { return udp_->local().port(); }

  void listen() {
    struct socket* listener = make();
    sockaddr_conn own = address(nullptr);
    need(usrsctp_bind(listener, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0, "bind");
    need(usrsctp_listen(listener, 1) == 0, "listen");
    until([&] { return (so_ = usrsctp_accept(listener, nullptr, nullptr)) != nullptr; });
    usrsctp_set_non_blocking(so_, 1);
  }

  void connect(std::uint16_t peer) {
    peer_ = {boost::asio::ip::address_v4::loopback(), peer};
    so_ = make();
    sockaddr_conn to = address(this);
    need(usrsctp_connect(so_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS, "connect");
    until([&] {
      sctp_status status{};
      socklen_t bytes = sizeof status;
      return usrsctp_getsockopt(so_, IPPROTO_SCTP, SCTP_STATUS, &status, &bytes) == 0 &&
             status.sstat_state == SCTP_ESTABLISHED;
    });
  }

  // False: no room now.
  bool send(std::size_t octets) {
    sctp_sendv_spa how{};
    how.sendv_flags = SCTP_SEND_SNDINFO_VALID;
    how.sendv_sndinfo.snd_flags = SCTP_UNORDERED | SCTP_EOR;
    how.sendv_sndinfo.snd_ppid = htonl(kPpid);
    if (usrsctp_sendv(so_, scratch_.data(), octets, nullptr, 0, &how, sizeof how, SCTP_SENDV_SPA, 0) >= 0) return true;
    need(errno == EWOULDBLOCK || errno == EAGAIN || errno == ENOBUFS, "send");
    return false;
  }

  // Octets of the next piece of a message; 0: none is there.
  std::size_t receive() {
    socklen_t from_bytes = 0, info_bytes = 0;
    unsigned info_type = SCTP_RECVV_NOINFO;
    int flags = 0;
    const ssize_t n = usrsctp_recvv(so_, scratch_.data(), scratch_.size(), nullptr, &from_bytes, nullptr, &info_bytes,
                                    &info_type, &flags);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

  // Sends what is queued, then reads what has come; waits for it, a timer's grain at most, unless it is to spin.
  void step(bool spin) {
    udp_->flush();
    if (io_.stopped()) io_.restart();
    spin ? io_.poll() : io_.run_one_for(std::chrono::milliseconds(10));
    io_.poll();
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - ticked_);
    if (passed.count() < 10) return;
    ticked_ += passed;
    usrsctp_handle_timers(static_cast<std::uint32_t>(passed.count()));
  }

  template <class Condition>
  void until(Condition condition) {
    const auto limit = Clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (Clock::now() > limit) fail("no association within 10 s");
      step(false);
    }
  }

 private:
  static int on_output(void*, void* packet, std::size_t bytes, std::uint8_t, std::uint8_t) {
    const MutBytes octets{static_cast<std::byte*>(packet), bytes};
    sctp_cm::write_checksum(octets);
    only_->udp_->queue(only_->peer_, octets);
    return 0;
  }

  static sockaddr_conn address(void* handle) {
    sockaddr_conn a{};
    a.sconn_family = AF_CONN;
    a.sconn_port = htons(kPort);
    a.sconn_addr = handle;
    return a;
  }

  struct socket* make() const {
    struct socket* so = usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, nullptr, nullptr, 0, nullptr);
    if (so == nullptr) fail("no SCTP socket");
    sctp_paddrparams path{};
    path.spp_address.ss_family = AF_CONN;
    path.spp_flags = SPP_PMTUD_DISABLE;
    path.spp_pathmtu = static_cast<std::uint32_t>(packet_bytes_);
    const std::uint32_t on = 1;
    sctp_rtoinfo rto{};  // as those of iwarp
    rto.srto_initial = 1000;
    rto.srto_min = 250;
    rto.srto_max = 5000;
    sctp_sack_info sack{};
    sack.sack_delay = 20;
    sack.sack_freq = 2;
    const bool set = usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) == 0 &&
                     usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == 0 &&
                     usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) == 0 &&
                     usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_DELAYED_SACK, &sack, sizeof sack) == 0 &&
                     usrsctp_setsockopt(so, SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes) == 0 &&
                     usrsctp_setsockopt(so, SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes) == 0;
    need(set && usrsctp_set_non_blocking(so, 1) == 0, "socket options");
    return so;
  }

  static inline End* only_ = nullptr;
  boost::asio::io_context io_{1};
  std::size_t packet_bytes_;
  std::unique_ptr<sctp_cm::UdpPort> udp_;
  udp::endpoint peer_;
  struct socket* so_ = nullptr;
  std::vector<std::byte> scratch_;
  Clock::time_point ticked_ = Clock::now();
};

struct Spec {
  bool bulk = false;
  std::size_t message_bytes = 0, packet_bytes = 0;
  Seconds time{};
};

// Receives for the time, from the first octet on; octets a second.
double take_bulk(End& end, const Spec& spec) {
  std::optional<Clock::time_point> begun;
  std::size_t octets = 0;
  for (;;) {
    while (const std::size_t n = end.receive()) {
      if (!begun) begun = Clock::now();
      octets += n;
    }
    const auto now = Clock::now();
    if (begun && now - *begun >= spec.time) return static_cast<double>(octets) / Seconds(now - *begun).count();
    end.step(false);
  }
}

// Until somebody ends this process.
[[noreturn]] void give_bulk(End& end, const Spec& spec) {
  for (;;) {
    while (end.send(spec.message_bytes)) {
    }
    end.step(false);
  }
}

void take_one(End& end) {
  while (end.receive() == 0) end.step(true);
}

[[noreturn]] void echo(End& end, const Spec& spec) {
  for (;;) {
    take_one(end);
    while (!end.send(spec.message_bytes)) end.step(true);
  }
}

double half_round_trip(End& end, const Spec& spec) {
  std::vector<double> us;
  auto begun = Clock::now();
  for (std::size_t i = 0; us.empty() || Clock::now() - begun < spec.time; ++i) {
    if (i == kWarmUp) begun = Clock::now();
    const auto sent = Clock::now();
    while (!end.send(spec.message_bytes)) end.step(true);
    take_one(end);
    if (i >= kWarmUp) us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - sent).count() / 2);
  }
  std::ranges::nth_element(us, us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2));
  return us[us.size() / 2];
}

// Out of a signal's handler.
[[noreturn]] void die(std::string_view why) {
  (void)!::write(STDERR_FILENO, why.data(), why.size());
  std::_Exit(1);
}

// The process that measures listens, the other one connects.
double measure(const Spec& spec) {
  int ports[2];
  need(::pipe(ports) == 0, "pipe");
  ::signal(SIGCHLD, [](int) { die("bench_sctp_loop: the other end died\n"); });
  ::signal(SIGALRM, [](int) { die("bench_sctp_loop: the other end is silent\n"); });
  ::alarm(kPatienceSeconds + static_cast<unsigned>(spec.time.count()));
  const pid_t child = ::fork();
  need(child >= 0, "fork");
  if (child == 0) {
    ::signal(SIGCHLD, SIG_DFL);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::uint16_t port = 0;
    if (::read(ports[0], &port, sizeof port) != sizeof port) std::_Exit(1);
    End end(spec.packet_bytes);
    end.connect(port);
    spec.bulk ? give_bulk(end, spec) : echo(end, spec);
  }
  End end(spec.packet_bytes);
  const std::uint16_t port = end.udp_port();
  need(::write(ports[1], &port, sizeof port) == sizeof port, "pipe");
  end.listen();
  const double measured = spec.bulk ? take_bulk(end, spec) : half_round_trip(end, spec);
  ::signal(SIGCHLD, SIG_DFL);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return measured;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 5 ? argv[1] : "";
  if (what != "bulk" && what != "pingpong") {
    std::fprintf(stderr, "usage: bench_sctp_loop bulk|pingpong MESSAGE_OCTETS PACKET_OCTETS SECONDS\n");
    return 2;
  }
  Spec spec;
  spec.bulk = what == "bulk";
  spec.message_bytes = std::strtoul(argv[2], nullptr, 10);
  spec.packet_bytes = std::strtoul(argv[3], nullptr, 10);
  spec.time = Seconds(std::strtod(argv[4], nullptr));
  if (spec.message_bytes < 1 || spec.message_bytes > kMaxMessageBytes || spec.packet_bytes < 576 ||
      spec.packet_bytes > sctp_cm::kMaxPacketBytes || spec.time.count() <= 0 || spec.time.count() > 3600)
    fail("a message has 1 to 65536 octets, a packet 576 to 65507, and it takes some time");
  std::printf("%.6g\n", measure(spec));
  std::fflush(stdout);
  std::_Exit(0);  // usrsctp is not asked to end in order
}
