// The baselines: the same work over plain TCP. A bulk stream is a sequence of buffers of `size` octets; the first octet
// of each says what it is, so that the receiver looks at every buffer, as a real one would.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "iwarp/base/wire.h"
#include "tools/perf/ping_pong.h"
#include "tools/perf/rpc_tests.h"
#include "tools/perf/tcp_socket.h"

namespace iwarp::tools::perf {
namespace {

using Clock = std::chrono::steady_clock;

// A clock look costs a small send's few per cent, so not at every one.
constexpr unsigned kSendsPerLook = 16;
constexpr std::byte kData{0};
constexpr std::byte kEnd{1};     // the last of a run: answered by an octet
constexpr std::byte kVerify{2};  // carries the pattern: answered by kGood or kBad
constexpr std::byte kGood{10};
constexpr std::byte kBad{11};

// Throws Gone when none comes, or when the test was ended meanwhile.
void check_answer(const TcpSocket& socket) {
  std::byte answer{};
  if (!socket.receive_all(&answer, 1)) throw Gone();
  if (answer != kGood) throw std::runtime_error("plain TCP: the data arrived damaged");
}

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The sending end of a bulk stream, whichever end of the test it is.
class Source {
 public:
  Source(const Spec& spec, const TcpSocket& socket) : spec_(spec), socket_(socket), region_(spec.region_bytes()) {}

  // Until the other end has confirmed the last buffer.
  Sample run(std::chrono::nanoseconds duration) {
    for (std::size_t at = 0; at < region_.size(); at += spec_.size) region_[at] = kData;
    socket_.set_nodelay(spec_.nodelay);
    Sample s;
    std::size_t at = 0;
    const auto begin = Clock::now();
    const auto end = begin + duration;
    for (unsigned n = 0; n % kSendsPerLook != 0 || Clock::now() < end; ++n) {
      if (interrupted) throw std::runtime_error("interrupted");
      const std::size_t sent = socket_.send_some(&region_[at], std::min<std::size_t>(spec_.call, region_.size() - at));
      s.octets += sent;
      at = (at + sent) % region_.size();
    }
    if (const std::size_t rest = (spec_.size - at % spec_.size) % spec_.size; rest != 0) {
      socket_.send_all(&region_[at], rest);
      s.octets += rest;
      at = (at + rest) % region_.size();
    }
    region_[at] = kEnd;
    socket_.send_all(&region_[at], spec_.size);
    s.octets += spec_.size;
    socket_.set_nodelay(true);  // the last frames go at once
    check_answer(socket_);
    s.seconds = since(begin);
    s.operations = s.octets / spec_.size;
    return s;
  }

  void verify() {
    for (std::size_t at = 0; at < region_.size(); at += spec_.size) {
      region_[at] = kVerify;
      fill_pattern(&region_[at] + 1, spec_.size - 1, at);
      socket_.send_all(&region_[at], spec_.size);
      check_answer(socket_);
    }
  }

 private:
  const Spec& spec_;
  const TcpSocket& socket_;
  std::vector<std::byte> region_;
};

// The receiving end: receives into a region as large as that of iwarp, looks at the first octet of every buffer. The
// socket may spin.
class Sink {
 public:
  Sink(const Spec& spec, const TcpSocket& socket) : spec_(spec), socket_(socket), region_(spec.region_bytes()) {}

  // Receives up to the end of a run, or until so many buffers were compared. The octets received; 0 at the end of the
  // stream.
  std::uint64_t run(std::size_t compare = ~std::size_t{0}) {
    std::uint64_t octets = 0;
    for (std::size_t compared = 0; compared < compare;) {
      const std::size_t n =
          socket_.receive_some(&region_[at_], std::min<std::size_t>(spec_.receive, region_.size() - at_));
      if (n == 0) return 0;
      octets += n;
      at_ += n;
      bool end = false;
      for (; looked_ + spec_.size <= at_; looked_ += spec_.size) {
        const std::byte what = region_[looked_];
        if (what == kData) continue;
        end = what == kEnd;
        if (what == kVerify) ++compared;
        answer(end || (what == kVerify && is_next()));
      }
      if (at_ == region_.size()) at_ = looked_ = 0;
      if (end) break;
    }
    return octets;
  }
  [[nodiscard]] bool all_good() const { return good_; }

 private:
  bool is_next() {
    return has_pattern(&region_[looked_] + 1, spec_.size - 1, std::exchange(verified_, verified_ + spec_.size));
  }
  void answer(bool good) {
    good_ = good_ && good;
    const std::byte octet = good ? kGood : kBad;
    socket_.send_all(&octet, 1);
  }

  const Spec& spec_;
  const TcpSocket& socket_;
  std::vector<std::byte> region_;
  std::size_t at_ = 0, looked_ = 0, verified_ = 0;
  bool good_ = true;
};

class Push final : public Active {
 public:
  Push(const Spec& spec, const std::string& host, std::uint16_t port)
      : spec_(spec), socket_(TcpSocket::connect(host, port, false, spec.congestion)) {}
  Sample run(std::chrono::nanoseconds duration) override { return source_.run(duration); }
  void verify() override { source_.verify(); }

 private:
  Spec spec_;
  TcpSocket socket_;
  Source source_{spec_, socket_};
};

// As an RDMA Read moves data: this end asks, with the nanoseconds that the run shall take (0: for verification), and
// the other sends.
class Fetch final : public Active {
 public:
  using Nanoseconds = std::array<std::byte, 8>;
  static constexpr std::uint64_t kLongestRun = std::chrono::nanoseconds(kLongestSample).count();

  Fetch(const Spec& spec, const std::string& host, std::uint16_t port)
      : spec_(spec), socket_(TcpSocket::connect(host, port, spec.manual, spec.congestion)) {
    socket_.make_room();
  }

  Sample run(std::chrono::nanoseconds duration) override {
    Sample s;
    const auto begin = Clock::now();
    ask(duration);
    s.octets = sink_.run();
    s.seconds = since(begin);
    s.operations = s.octets / spec_.size;
    if (s.octets == 0) throw Gone();
    return s;
  }

  void verify() override {
    ask({});
    const bool all = sink_.run(spec_.region_bytes() / spec_.size) != 0;
    if (!sink_.all_good()) throw std::runtime_error("plain TCP: the data arrived damaged");
    if (!all) throw Gone();
  }

  // The passive end, until the active one goes. Throws std::runtime_error when asked for a run that takes too long.
  static void serve(const Spec& spec, const TcpSocket& socket) {
    Source source(spec, socket);
    for (Nanoseconds request; socket.receive_all(request.data(), request.size());) {
      const auto duration = load_be<std::uint64_t>(request);
      if (duration == 0) {
        source.verify();
      } else if (duration > kLongestRun) {
        throw std::runtime_error("plain TCP: the other end asked for a run of more than an hour");
      } else {
        (void)source.run(std::chrono::nanoseconds(duration));
      }
    }
  }

 private:
  void ask(std::chrono::nanoseconds duration) {
    Nanoseconds request;
    store_be(request, static_cast<std::uint64_t>(duration.count()));
    socket_.send_all(request.data(), request.size());
  }

  Spec spec_;
  TcpSocket socket_;
  Sink sink_{spec_, socket_};
};

class PingPong final : public Active {
 public:
  PingPong(const Spec& spec, const std::string& host, std::uint16_t port)
      : socket_(TcpSocket::connect(host, port, spec.manual, spec.congestion)), out_(spec.size), in_(spec.size) {}

  Sample run(std::chrono::nanoseconds duration) override {
    return ping_pong(duration, out_.size(), [this] { turn(); });
  }

  void verify() override {
    fill_pattern(out_.data(), out_.size(), 1);
    turn();
    if (in_ != out_) throw std::runtime_error("plain TCP: the data arrived damaged");
  }

 private:
  void turn() {
    socket_.send_all(out_.data(), out_.size());
    if (!socket_.receive_all(in_.data(), in_.size())) throw Gone();
  }

  TcpSocket socket_;
  std::vector<std::byte> out_, in_;
};

void echo(std::size_t size, const TcpSocket& socket) {
  std::vector<std::byte> data(size);
  while (socket.receive_all(data.data(), data.size())) socket.send_all(data.data(), data.size());
}

class Connects final : public Active {
 public:
  Connects(const Spec& spec, const std::string& host, std::uint16_t port) : spec_(spec) {
    TcpSocket first = TcpSocket::connect(host, port, false, spec_.congestion);
    peer_ = first.peer();
    first.reset();
  }

  Sample run(std::chrono::nanoseconds duration) override {
    Sample s;
    const auto begin = Clock::now();
    for (; Clock::now() < begin + duration && !interrupted; ++s.operations) one();
    s.seconds = since(begin);
    return s;
  }
  void verify() override { one(); }

 private:
  void one() {
    TcpSocket socket = TcpSocket::connect(peer_, false, spec_.congestion);
    std::byte octet = kGood;
    socket.send_all(&octet, 1);
    check_answer(socket);
    socket.reset();
  }

  Spec spec_;
  boost::asio::ip::tcp::endpoint peer_;
};

class RawPassive final : public Passive {
 public:
  RawPassive(const Spec& spec, const std::string& host)
      : spec_(spec), listener_(TcpSocket::listen(host, spec.congestion)) {}

  [[nodiscard]] std::uint16_t port() const override { return listener_.local().port(); }

  void serve(const std::atomic<bool>& stop) override {
    while (!stop && !interrupted) {
      const TcpSocket socket = listener_.accept(spec_.manual && !spec_.fetch, &stop);
      if (!socket) continue;
      try {
        converse(socket);
      } catch (const Gone&) {  // as soon as it has given its last answer it may: if anything is wrong, it knows
      }
      if (spec_.test != Test::kTcpConnect) return;
    }
  }

 private:
  void converse(const TcpSocket& socket) const {
    if (spec_.test == Test::kTcpConnect) {
      echo(1, socket);
    } else if (spec_.test == Test::kTcpLat) {
      echo(spec_.size, socket);
    } else if (spec_.fetch) {
      Fetch::serve(spec_, socket);
    } else {
      socket.make_room();
      Sink sink(spec_, socket);
      while (sink.run() != 0) {
      }
    }
  }

  Spec spec_;
  TcpSocket listener_;
};

}  // namespace

std::unique_ptr<Active> connect_raw(const Spec& spec, const std::string& host, std::uint16_t port) {
  if (is_rpc(spec.test)) return tcp_rpc_active(spec, host, port);
  switch (spec.test) {
    case Test::kTcpConnect:
      return std::make_unique<Connects>(spec, host, port);
    case Test::kTcpLat:
      return std::make_unique<PingPong>(spec, host, port);
    default:
      if (spec.fetch) return std::make_unique<Fetch>(spec, host, port);
      return std::make_unique<Push>(spec, host, port);
  }
}

std::unique_ptr<Passive> listen_raw(const Spec& spec, const std::string& host) {
  if (is_rpc(spec.test)) return tcp_rpc_passive(spec, host);
  return std::make_unique<RawPassive>(spec, host);
}

}  // namespace iwarp::tools::perf
