// What FPDUs and their CRC cost simple loops of system calls that move 64 KiB messages over loopback, with no queue
// pair and no STag, beside the same loops without FPDUs. Each end is a process; a call to send is of 1 MiB, and one to
// receive of 256 KiB (in place: a message), where nothing else is said; the sender sleeps and the receiver spins; the
// ways take their turns, and the ratio of each turn counts. No proof that nothing can be faster.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "iwarp/cm/socket_options.h"
#include "iwarp/ddp/segment_header.h"
#include "iwarp/mpa/fpdu_encoder.h"

namespace {

using namespace iwarp;
using Clock = std::chrono::steady_clock;
using Region = std::vector<std::byte>;

constexpr std::size_t kMessage = 65536;
constexpr std::size_t kSlots = 32;
constexpr std::size_t kReceive = 256 * 1024;  // octets that a call may take before they are checked
constexpr std::chrono::milliseconds kWarmUp{100};
constexpr std::size_t kHead = mpa::kLengthBytes + ddp::TaggedHeader::kSize;

void check(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

// As ours are with --fpdu max: one as long as may be, and the rest. Neither needs a pad.
std::size_t first_payload() {
  return mpa::mulpdu_for(mpa::FpduPolicy::kMax, 0) - ddp::TaggedHeader::kSize;
}

// What lies around the payload of one message, in the order of the stream: two FPDUs.
struct Frame {
  std::array<std::byte, kHead> first_head;
  std::array<std::byte, mpa::kCrcBytes> first_crc{};
  std::array<std::byte, kHead> second_head;
  std::array<std::byte, mpa::kCrcBytes> second_crc{};
};
constexpr std::size_t kStream = kMessage + sizeof(Frame);

void write_head(std::span<std::byte, kHead> at, std::size_t payload, std::uint64_t to, bool last) {
  mpa::write_length(at.first<mpa::kLengthBytes>(), ddp::TaggedHeader::kSize + payload);
  ddp::TaggedHeader{.last = last, .rsvd_ulp = 0x40, .stag = Stag{0x100}, .to = to}.write_to(
      at.subspan<mpa::kLengthBytes>());
}

mpa::Crc32c crc_of(ConstBytes head, ConstBytes payload) {
  mpa::Crc32c crc;
  crc.update(head);
  crc.update(payload);
  return crc;
}

struct Parts {
  MutBytes first, second;  // payload of the two FPDUs
};
Parts parts_of(Region& region, std::size_t slot) {
  const MutBytes message = MutBytes{region}.subspan(slot * kMessage, kMessage);
  return {message.first(first_payload()), message.subspan(first_payload())};
}

iovec piece(MutBytes bytes) {
  return {bytes.data(), bytes.size()};
}

void add_pieces(std::vector<iovec>& to, Frame& f, const Parts& p) {
  to.push_back(piece(f.first_head));
  to.push_back(piece(p.first));
  to.push_back({f.first_crc.data(), f.first_crc.size() + f.second_head.size()});  // they are neighbours
  to.push_back(piece(p.second));
  to.push_back(piece(f.second_crc));
}
static_assert(offsetof(Frame, second_head) == offsetof(Frame, first_crc) + mpa::kCrcBytes);

// Calls recvmsg() or sendmsg() until all pieces are done. False at the end of the stream.
bool finish(std::vector<iovec>& pieces, const std::function<ssize_t(msghdr&)>& call) {
  std::size_t at = 0;
  while (at < pieces.size()) {
    msghdr m{};
    m.msg_iov = &pieces[at];
    m.msg_iovlen = pieces.size() - at;
    const ssize_t n = call(m);
    if (n == 0) return false;
    auto left = static_cast<std::size_t>(n);
    for (; at < pieces.size() && left >= pieces[at].iov_len; ++at) left -= pieces[at].iov_len;
    if (left > 0) pieces[at] = {static_cast<std::byte*>(pieces[at].iov_base) + left, pieces[at].iov_len - left};
  }
  return true;
}

// Payload that came behind the warm-up, and in how much time.
class Meter {
 public:
  // `octets` of the stream have come, headers and all.
  void add(std::size_t octets) {
    const auto now = Clock::now();
    if (!begin_) begin_ = now + kWarmUp;
    if (now < *begin_) return;
    octets_ += octets;
    last_ = now;
  }
  // Octets a second. Throws when there were none.
  [[nodiscard]] double rate() const {
    if (octets_ == 0 || last_ <= *begin_)
      throw std::runtime_error("nothing came behind the warm-up: take more SECONDS");
    return static_cast<double>(octets_) / std::chrono::duration<double>(last_ - *begin_).count();
  }

 private:
  std::optional<Clock::time_point> begin_;
  Clock::time_point last_;
  std::size_t octets_ = 0;
};

// Spins, as the receivers of our own tests do.
ssize_t receive(int fd, msghdr& m) {
  for (;;) {
    const ssize_t n = ::recvmsg(fd, &m, MSG_DONTWAIT);
    if (n >= 0) return n;
    check(errno == EAGAIN || errno == EINTR, "recvmsg");
  }
}
std::size_t receive(int fd, MutBytes into) {
  iovec one = piece(into);
  msghdr m{};
  m.msg_iov = &one;
  m.msg_iovlen = 1;
  return static_cast<std::size_t>(receive(fd, m));
}

template <std::size_t kCall>
void send_plain(int fd, Region& region, Clock::time_point end) {
  while (Clock::now() < end) {
    for (std::size_t at = 0; at < region.size();) {
      const ssize_t n = ::send(fd, &region[at], std::min(kCall, region.size() - at), MSG_NOSIGNAL);
      check(n > 0, "send");
      at += static_cast<std::size_t>(n);
    }
  }
}

// Keeps the processor busy, as whatever makes the next call does.
void work_for(std::chrono::microseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

void send_frames(int fd, Region& region, Clock::time_point end, std::size_t batch, bool crc,
                 std::chrono::microseconds work) {
  std::vector<Frame> frames(kSlots);
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const Parts p = parts_of(region, slot);
    write_head(frames[slot].first_head, p.first.size(), slot * kMessage, false);
    write_head(frames[slot].second_head, p.second.size(), slot * kMessage + p.first.size(), true);
  }
  std::vector<iovec> pieces;
  for (std::size_t slot = 0; Clock::now() < end;) {
    pieces.clear();
    for (std::size_t i = 0; i < batch; ++i, slot = (slot + 1) % kSlots) {
      Frame& f = frames[slot];
      const Parts p = parts_of(region, slot);
      if (crc) {
        crc_of(f.first_head, p.first).write_to(f.first_crc);
        crc_of(f.second_head, p.second).write_to(f.second_crc);
      }
      add_pieces(pieces, f, p);
    }
    (void)finish(pieces, [fd](msghdr& m) {
      const ssize_t n = ::sendmsg(fd, &m, MSG_NOSIGNAL);
      check(n > 0, "sendmsg");
      return n;
    });
    if (work.count() > 0) work_for(work);
  }
}

template <std::size_t kCall>
void receive_plain(int fd, Region& region, Meter& meter) {
  for (std::size_t at = 0;;) {
    const std::size_t n = receive(fd, MutBytes{region}.subspan(at, std::min(kCall, region.size() - at)));
    if (n == 0) return;
    meter.add(n);
    at = (at + n) % region.size();
  }
}

// Straight into place, a few messages a call: this loop knows beforehand what comes, which a real receiver does not.
template <std::size_t kMessages>
void receive_direct(int fd, Region& region, Meter& meter) {
  static_assert(kSlots % kMessages == 0);
  std::array<Frame, kMessages> frames;
  std::vector<iovec> pieces;
  for (std::size_t slot = 0;; slot = (slot + kMessages) % kSlots) {
    pieces.clear();
    for (std::size_t i = 0; i < kMessages; ++i) add_pieces(pieces, frames[i], parts_of(region, slot + i));
    if (!finish(pieces, [fd](msghdr& m) { return receive(fd, m); })) return;
    meter.add(kMessages * kStream);
  }
}

// Checks an FPDU at the front of `stream`, places its payload, and drops it from `stream`.
void place(MutBytes& stream, MutBytes payload) {
  const MutBytes head = stream.first(kHead), body = stream.subspan(kHead, payload.size());
  const auto field = stream.subspan(kHead + payload.size()).first<mpa::kCrcBytes>();
  if (mpa::load_crc(field) != crc_of(head, body).value()) throw std::runtime_error("CRC mismatch");
  std::memcpy(payload.data(), body.data(), body.size());
  stream = stream.subspan(kHead + payload.size() + mpa::kCrcBytes);
}

void receive_checked(int fd, Region& region, Meter& meter) {
  Region scratch(kReceive + kStream);
  std::size_t kept = 0, slot = 0;
  for (;;) {
    const std::size_t n = receive(fd, MutBytes{scratch}.subspan(kept, kReceive));
    if (n == 0) return;
    meter.add(n);
    MutBytes stream = MutBytes{scratch}.first(kept + n);
    for (; stream.size() >= kStream; slot = (slot + 1) % kSlots) {
      const Parts p = parts_of(region, slot);
      place(stream, p.first);
      place(stream, p.second);
    }
    kept = stream.size();
    std::memmove(scratch.data(), stream.data(), kept);
  }
}

struct Way {
  const char* name;
  std::function<void(int, Region&, Clock::time_point)> send;
  std::function<void(int, Region&, Meter&)> receive;
  bool framed;
};

template <std::size_t kCall, bool kCrc, int kMicroseconds = 0>
void send_fpdus(int fd, Region& region, Clock::time_point end) {
  send_frames(fd, region, end, kCall / kMessage, kCrc, std::chrono::microseconds(kMicroseconds));
}

void choose(int fd, const std::string& congestion) {
  const int on = 1;
  check(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
  check(
      ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion.data(), static_cast<socklen_t>(congestion.size())) == 0,
      "TCP_CONGESTION");
}

// Runs `work` in a process of its own.
template <class Work>
pid_t start(const Work& work) {
  const pid_t pid = ::fork();
  check(pid >= 0, "fork");
  if (pid > 0) return pid;
  int code = 0;
  try {
    work();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_ceiling: %s\n", e.what());
    code = 1;
  }
  ::_exit(code);
}

// Whether it did its work.
bool join(pid_t pid) {
  int status = 0;
  check(::waitpid(pid, &status, 0) == pid, "waitpid");
  return status == 0;
}

// 10^9 octets of payload a second.
double measure(const Way& way, std::chrono::duration<double> time, const std::string& congestion) {
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(listening >= 0, "socket");
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  check(::bind(listening, address, size) == 0 && ::listen(listening, 1) == 0, "listen");
  check(::getsockname(listening, address, &size) == 0, "getsockname");
  std::array<int, 2> pipe{};
  check(::pipe(pipe.data()) == 0, "pipe");
  const pid_t receiver = start([&] {
    const int fd = ::accept(listening, nullptr, nullptr);
    check(fd >= 0, "accept");
    choose(fd, congestion);
    cm::make_room(fd, cm::SocketOptions{}.receive_window);  // as all of `iwarp perf` have
    Region region(kSlots * kMessage);
    Meter meter;
    way.receive(fd, region, meter);
    const double rate = meter.rate() / (way.framed ? 1.0 * kStream / kMessage : 1.0) / 1e9;
    check(::write(pipe[1], &rate, sizeof rate) == sizeof rate, "write");
  });
  const pid_t sender = start([&] {
    ::close(listening);  // or, with the receiver gone, its backlog would keep the connection
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0, "socket");
    choose(fd, congestion);
    check(::connect(fd, address, size) == 0, "connect");
    Region region(kSlots * kMessage, std::byte{1});
    way.send(fd, region, Clock::now() + kWarmUp + std::chrono::duration_cast<Clock::duration>(time));
  });
  ::close(listening);
  ::close(pipe[1]);
  const bool sent = join(sender);
  if (!sent) ::kill(receiver, SIGKILL);  // it may wait for a connection
  double rate = 0;
  const bool told = ::read(pipe[0], &rate, sizeof rate) == sizeof rate;
  ::close(pipe[0]);
  if (!join(receiver) || !sent || !told) throw std::runtime_error("an end failed");
  return rate;
}

double quantile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1) + 0.5)];
}

void run(std::size_t turns, std::chrono::duration<double> time, const std::string& congestion) {
  constexpr std::size_t kWhole = std::size_t{1} << 20, kHalf = kWhole / 2, kQuarter = kWhole / 4;
  const std::vector<Way> ways = {
      {"plain TCP", send_plain<kWhole>, receive_plain<kQuarter>, false},
      {"  received in calls of 1 MiB", send_plain<kWhole>, receive_plain<kWhole>, false},
      {"  sent in calls of 512 KiB", send_plain<kHalf>, receive_plain<kQuarter>, false},
      {"  sent in calls of 256 KiB", send_plain<kQuarter>, receive_plain<kQuarter>, false},
      {"FPDUs, taken as plain octets", send_fpdus<kWhole, false>, receive_plain<kQuarter>, true},
      {"FPDUs, in place", send_fpdus<kWhole, false>, receive_direct<1>, true},
      {"  8 us between calls to send", send_fpdus<kWhole, false, 8>, receive_direct<1>, true},
      {"  received four messages a call", send_fpdus<kWhole, false>, receive_direct<4>, true},
      {"FPDUs with CRC, taken as plain octets", send_fpdus<kWhole, true>, receive_plain<kQuarter>, true},
      {"FPDUs with CRC, checked, then placed", send_fpdus<kWhole, true>, receive_checked, true},
      {"  sent in calls of 512 KiB", send_fpdus<kHalf, true>, receive_checked, true},
  };
  std::vector<std::vector<double>> rates(ways.size());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t n = (i + turn) % ways.size();  // nobody always comes behind the same one
      rates[n].push_back(measure(ways[n], time, congestion));
    }
  }
  const std::string title = "messages of 64 KiB, " + std::to_string(turns) + " turns, " + congestion;
  std::printf("%-45s %5s   of plain TCP (quartiles)\n", title.c_str(), "GB/s");
  for (std::size_t n = 0; n < ways.size(); ++n) {
    std::vector<double> ratios;
    for (std::size_t turn = 0; turn < turns; ++turn) ratios.push_back(rates[n][turn] / rates[0][turn]);
    std::printf("%-45s %5.2f   %.2f (%.2f-%.2f)\n", ways[n].name, quantile(rates[n], 0.5), quantile(ratios, 0.5),
                quantile(ratios, 0.25), quantile(ratios, 0.75));
  }
}

}  // namespace

// bench_ceiling TURNS SECONDS CONGESTION
int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::invalid_argument("usage: bench_ceiling TURNS SECONDS CONGESTION");
    const double seconds = std::stod(argv[2]);
    if (!(seconds >= 0.02 && seconds <= 3600)) throw std::invalid_argument("SECONDS must be 0.02 to 3600");
    const unsigned long turns = std::stoul(argv[1]);
    if (turns < 1 || turns > 10000) throw std::invalid_argument("TURNS must be 1 to 10000");
    run(turns, std::chrono::duration<double>(seconds), argv[3]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_ceiling: %s\n", e.what());
    return 1;
  }
  return 0;
}
