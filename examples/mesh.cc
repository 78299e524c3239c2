// All-to-all connections as an MPI library makes them: `mesh N` starts N processes ("ranks") that connect to each other
// in random order, exchange a message over every connection, and end; it prints how long the connections took.
//
// Two ranks may connect to each other at the same time, and then both connections would stand. One is enough, so the
// lower rank decides: it refuses a Request that crosses one of its own. Connections are peer-to-peer (RFC 6581), as
// iwarp makes them unless told otherwise: whoever was called may send first. Here both do.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <random>

#include "iwarp/iwarp.h"
using namespace iwarp;
using boost::asio::awaitable, boost::asio::co_spawn, boost::asio::use_awaitable;

constexpr std::chrono::seconds kPatience{60};
constexpr std::size_t kRoom = 64;  // octets of a greeting

// What a rank tells in the end.
struct Outcome {
  std::size_t connections = 0, crossed = 0;
};

// The connection with one other rank.
struct Pair {
  explicit Pair(Engine& engine, const ProtectionDomain& pd)
      : cq(engine, 8), region(MemoryRegion::register_memory(pd, buffer, {}).value()) {
    link = Link::make(pd, {&cq, &cq, {}}).value();
    link->post_recv({.sges = region.sge(0, kRoom)}).value();  // before the other end may send
  }
  CompletionQueue cq;
  std::array<std::byte, 2 * kRoom> buffer{};  // what comes, what leaves
  MemoryRegion region;
  Link link;  // goes first, and then nobody uses the others
};

class Rank {
 public:
  explicit Rank(std::size_t self) : self_(self) {}
  [[nodiscard]] std::uint16_t port() const { return listener_->local().port(); }

  // Returns when there is a connection with every other rank, and each has brought its greeting.
  Outcome run(const std::vector<std::uint16_t>& ports) {
    pairs_.resize(ports.size());
    late_.expires_after(kPatience);
    late_.async_wait([](boost::system::error_code cancelled) {
      if (!cancelled) throw std::runtime_error("no connection with every rank within 60 s");
    });
    co_spawn(io_, listen(), rethrow);
    co_spawn(io_, connect_all(ports), rethrow);
    while (outcome_.connections + 1 < ports.size()) io_.run_one();
    return outcome_;
  }

 private:
  static void rethrow(const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);  // out of run()
  }

  awaitable<void> connect_all(std::vector<std::uint16_t> ports) {
    std::vector<std::size_t> others(ports.size());
    std::iota(others.begin(), others.end(), std::size_t{0});
    std::erase(others, self_);
    std::ranges::shuffle(others, std::mt19937(std::random_device{}()));
    for (const std::size_t other : others) {
      if (pairs_[other] == nullptr) co_spawn(io_, connect(other, ports[other]), rethrow);
      co_await boost::asio::post(io_, use_awaitable);  // whoever calls meanwhile is heard
    }
  }

  awaitable<void> connect(std::size_t other, std::uint16_t port) {
    Pair& pair = *(pairs_[other] = std::make_unique<Pair>(engine_, pd_));
    const ConnectOptions options{.host = "127.0.0.1", .port = port, .private_data = {static_cast<std::byte>(self_)}};
    bool refused = false;
    try {
      co_await pair.link.async_connect(engine_, options, use_awaitable);
    } catch (const boost::system::system_error& e) {
      refused = e.code() == Errc::kPeerRejected && other < self_;
      if (!refused) throw;
    }
    if (!refused) {
      co_await greet(pair, other);
    } else if (pairs_[other].get() == &pair) {
      pairs_[other].reset();  // the lower rank's Request is on its way here
    }
  }

  awaitable<void> listen() {
    for (;;) {
      auto request = co_await listener_->async_accept(use_awaitable);
      if (request->private_data().size() != 1) continue;  // a stranger: refused, as the request goes undecided
      const auto other = std::to_integer<std::size_t>(request->private_data()[0]);
      if (other >= pairs_.size() || other == self_) continue;
      if (pairs_[other] != nullptr && self_ < other) {
        ++outcome_.crossed;
        continue;  // refused
      }
      co_spawn(io_, accept(other, std::move(request)), rethrow);
    }
  }

  awaitable<void> accept(std::size_t other, std::unique_ptr<ConnectRequest> request) {
    auto previous = std::exchange(pairs_[other], std::make_unique<Pair>(engine_, pd_));
    if (previous != nullptr) given_up_.push_back(std::move(previous));  // the other rank refuses it
    Pair& pair = *pairs_[other];
    co_await pair.link.async_accept(*request, {}, use_awaitable);
    co_await greet(pair, other);
  }

  awaitable<void> greet(Pair& pair, std::size_t other) {
    const auto greeting = [](std::size_t from, std::size_t to) {
      return "rank " + std::to_string(from) + " greets rank " + std::to_string(to);
    };
    const std::string ours = greeting(self_, other), theirs = greeting(other, self_);
    std::ranges::copy(std::as_bytes(std::span(ours)), pair.buffer.begin() + kRoom);
    pair.link->post_send({.sges = pair.region.sge(kRoom, ours.size())}).value();
    for (int i = 0; i < 2; ++i) {  // one has left, one has come: in either order
      const Completion done = co_await pair.cq.async_poll_one(use_awaitable);
      if (done.status != Errc::kOk) throw_error(make_error(done.status));
    }
    if (!std::ranges::equal(std::as_bytes(std::span(theirs)), std::span(pair.buffer).first(theirs.size())))
      throw std::runtime_error("the greeting of rank " + std::to_string(other) + " is not its own");
    ++outcome_.connections;
  }

  std::size_t self_;
  boost::asio::io_context io_;
  Engine engine_{io_};
  ProtectionDomain pd_{engine_.context()};
  boost::asio::steady_timer late_{io_};
  std::unique_ptr<Listener> listener_ =
      Listener::listen(engine_, {.endpoint = {boost::asio::ip::address_v4::loopback(), 0}}).value();
  std::vector<std::unique_ptr<Pair>> pairs_;     // by rank: connected, or about to be
  std::vector<std::unique_ptr<Pair>> given_up_;  // attempts that crossed a better one
  Outcome outcome_;
};

// What an MPI launcher does: starts the ranks, tells everybody where the others listen, and is the barrier at the end.
class Launcher {
 public:
  explicit Launcher(std::size_t ranks) {
    for (std::size_t i = 0; i < ranks; ++i) {
      std::array<int, 2> ends{};
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_error(errno);
      const pid_t pid = ::fork();
      if (pid < 0) throw_error(errno);
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (const pollfd& other : sockets_) ::close(other.fd);
        ::close(ends[0]);
        std::_Exit(be(i, ranks, ends[1]));
      }
      ::close(ends[1]);
      sockets_.push_back({ends[0], POLLIN, 0});
      pids_.push_back(pid);
    }
  }
  ~Launcher() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // One T from each rank.
  template <class T>
  std::vector<T> gather() {
    std::vector<T> all(sockets_.size());
    for (std::size_t missing = all.size(); missing > 0;) {
      if (::poll(sockets_.data(), sockets_.size(), -1) < 0) throw_error(errno);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (sockets_[i].revents == 0) continue;
        if (::recv(sockets_[i].fd, &all[i], sizeof(T), MSG_WAITALL) != sizeof(T))
          throw std::runtime_error("rank " + std::to_string(i) + " has died");
        sockets_[i].events = 0;
        --missing;
      }
    }
    for (pollfd& s : sockets_) s.events = POLLIN;
    return all;
  }
  template <class T>
  void tell(const std::vector<T>& all) {
    for (const pollfd& s : sockets_) (void)::send(s.fd, all.data(), all.size() * sizeof(T), MSG_NOSIGNAL);
  }

 private:
  [[noreturn]] static void throw_error(int error) { throw std::system_error(error, std::generic_category()); }

  // A rank's whole life; its exit status.
  static int be(std::size_t self, std::size_t ranks, int launcher) try {
    Rank rank(self);
    const std::uint16_t port = rank.port();
    std::vector<std::uint16_t> ports(ranks);
    (void)::send(launcher, &port, sizeof port, MSG_NOSIGNAL);
    if (::recv(launcher, ports.data(), ranks * sizeof port, MSG_WAITALL) <= 0) return 1;
    const Outcome outcome = rank.run(ports);
    (void)::send(launcher, &outcome, sizeof outcome, MSG_NOSIGNAL);
    (void)::recv(launcher, ports.data(), 1, 0);  // the others are done as well
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "mesh: rank " << self << ": " << e.what() << std::endl;
    return 1;
  }

  std::vector<pollfd> sockets_;
  std::vector<pid_t> pids_;
};

int main(int argc, char** argv) try {
  const int ranks = argc == 2 ? std::atoi(argv[1]) : 0;
  if (ranks < 1 || ranks > 250) {
    std::cerr << "usage: mesh N   (1 to 250 processes)\n";
    return 2;
  }
  Launcher launcher(static_cast<std::size_t>(ranks));
  const auto ports = launcher.gather<std::uint16_t>();
  const auto begin = std::chrono::steady_clock::now();
  launcher.tell(ports);
  Outcome all;
  for (const Outcome& one : launcher.gather<Outcome>()) {
    all.connections += one.connections;
    all.crossed += one.crossed;
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  launcher.tell<char>({'e'});
  std::printf("%d ranks, %zu connections, %zu Requests crossed, %.0f ms\n", ranks, all.connections / 2, all.crossed,
              took.count());
  return 0;
} catch (const std::exception& e) {
  std::cerr << "mesh: " << e.what() << std::endl;
  return 1;
}
