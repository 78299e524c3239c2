// The baselines: the same work over plain TCP. A bulk stream is a sequence of buffers of `size` octets; the first octet
// of each says what it is, so that the receiver looks at every buffer, as a real one would.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tools/perf/ping_pong.h"
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

void check_answer(const TcpSocket& socket) {
  std::byte answer{};
  if (!socket.receive_all(&answer, 1)) throw std::runtime_error("plain TCP: the other end closed the connection");
  if (answer != kGood) throw std::runtime_error("plain TCP: the data arrived damaged");
}

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Bulk final : public Active {
 public:
  Bulk(const Spec& spec, const std::string& host, std::uint16_t port)
      : spec_(spec), socket_(TcpSocket::connect(host, port, false)), region_(spec.region_bytes()) {}

  Sample run(std::chrono::nanoseconds duration) override {
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

  void verify() override {
    for (std::size_t at = 0; at < region_.size(); at += spec_.size) {
      region_[at] = kVerify;
      fill_pattern(&region_[at] + 1, spec_.size - 1, at);
      socket_.send_all(&region_[at], spec_.size);
      check_answer(socket_);
    }
  }

 private:
  Spec spec_;
  TcpSocket socket_;
  std::vector<std::byte> region_;
};

// Receives into a region as large as ours, looks at the first octet of every buffer. The socket may spin.
void sink(const Spec& spec, const TcpSocket& socket) {
  std::vector<std::byte> region(spec.region_bytes());
  std::size_t at = 0, looked = 0, verified = 0;
  for (;;) {
    const std::size_t n = socket.receive_some(&region[at], std::min<std::size_t>(spec.receive, region.size() - at));
    if (n == 0) return;
    at += n;
    for (; looked + spec.size <= at; looked += spec.size) {
      const std::byte what = region[looked];
      if (what == kData) continue;
      bool good = what == kEnd;
      if (what == kVerify)
        good = has_pattern(&region[looked] + 1, spec.size - 1, std::exchange(verified, verified + spec.size));
      const std::byte answer = good ? kGood : kBad;
      socket.send_all(&answer, 1);
    }
    if (at == region.size()) at = looked = 0;
  }
}

class PingPong final : public Active {
 public:
  PingPong(const Spec& spec, const std::string& host, std::uint16_t port)
      : socket_(TcpSocket::connect(host, port, spec.manual)), out_(spec.size), in_(spec.size) {}

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
    if (!socket_.receive_all(in_.data(), in_.size()))
      throw std::runtime_error("plain TCP: the other end closed the connection");
  }

  TcpSocket socket_;
  std::vector<std::byte> out_, in_;
};

void echo(const Spec& spec, const TcpSocket& socket) {
  std::vector<std::byte> data(spec.size);
  while (socket.receive_all(data.data(), data.size())) socket.send_all(data.data(), data.size());
}

class Connects final : public Active {
 public:
  Connects(const std::string& host, std::uint16_t port) {
    TcpSocket first = TcpSocket::connect(host, port, false);
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
    TcpSocket socket = TcpSocket::connect(peer_, false);
    std::byte octet = kGood;
    socket.send_all(&octet, 1);
    check_answer(socket);
    socket.reset();
  }

  boost::asio::ip::tcp::endpoint peer_;
};

class RawPassive final : public Passive {
 public:
  RawPassive(const Spec& spec, const std::string& host) : spec_(spec), listener_(TcpSocket::listen(host)) {}

  [[nodiscard]] std::uint16_t port() const override { return listener_.local().port(); }

  void serve(const std::atomic<bool>& stop) override {
    Spec one = spec_;
    one.size = 1;
    while (!stop && !interrupted) {
      const TcpSocket socket = listener_.accept(spec_.manual, &stop);
      if (!socket) continue;
      switch (spec_.test) {
        case Test::kTcpConnect:
          echo(one, socket);
          continue;
        case Test::kTcpLat:
          echo(spec_, socket);
          return;
        default:
          sink(spec_, socket);
          return;
      }
    }
  }

 private:
  Spec spec_;
  TcpSocket listener_;
};

}  // namespace

std::unique_ptr<Active> connect_raw(const Spec& spec, const std::string& host, std::uint16_t port) {
  switch (spec.test) {
    case Test::kTcpConnect:
      return std::make_unique<Connects>(host, port);
    case Test::kTcpLat:
      return std::make_unique<PingPong>(spec, host, port);
    default:
      return std::make_unique<Bulk>(spec, host, port);
  }
}

std::unique_ptr<Passive> listen_raw(const Spec& spec, const std::string& host) {
  return std::make_unique<RawPassive>(spec, host);
}

}  // namespace iwarp::tools::perf
