// Two engines beside one: what 8 busy connections between two processes bring, and what the others suffer from a
// connection that keeps its engine busy. By hand; it prints tables in Markdown. Arguments: pairs of samples of each row
// (default 9), seconds of each sample (default 1).
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "bench/lib/flood.h"
#include "bench/lib/peer.h"
#include "bench/lib/process.h"

namespace iwarp::engines {
namespace {

using namespace bench;  // NOLINT(google-build-using-namespace): what all benchmarks of several processes share
using Clock = std::chrono::steady_clock;

constexpr std::size_t kConnections = 8;

// One or several that share a Context.
std::deque<cm::Engine> make_engines(std::size_t n) {
  std::deque<cm::Engine> engines(1);
  while (engines.size() < n)
    engines.emplace_back(cm::Engine::Mode::kAutomatic, cm::Engine::kUsualSpin, engines.front().context());
  return engines;
}

// Serves whoever comes, for ever. The first goes to the first engine, the others to the last, if `apart`; else each to
// the one with the fewest.
[[noreturn]] void serve(std::size_t n, bool apart, Pipe& tell) {
  std::deque<cm::Engine> engines = make_engines(n);
  cm::ListenOptions options;
  options.endpoint = {boost::asio::ip::address_v4::loopback(), 0};
  if (!apart) {
    for (cm::Engine& engine : engines) options.engines.push_back(&engine);
  }
  auto listener = cm::Listener::listen(engines.front(), options);
  if (!listener) die(listener.error().why);
  Peer memory(engines.front());
  std::deque<Peer> peers;
  tell.put(memory.target((*listener)->local().port()));
  for (;;) {
    auto [error, request] = (*listener)->async_accept(cm::as_error(boost::asio::use_future)).get();
    need(error);
    if (apart && !request->move_to(peers.empty() ? engines.front() : engines.back())) die("no place");
    Peer& peer = peers.emplace_back(request->engine(), 1U << 20);
    tell.put(peer.target((*listener)->local().port()));
    auto [failed, connection] = request->async_accept(peer.qp, {}, cm::as_error(boost::asio::use_future)).get();
    need(failed);
    peer.connection = connection;
  }
}

struct Load {
  const char* name;
  verbs::SendOp op;
  std::uint32_t length;
  std::size_t depth;
};

// Requests that complete in a second, of all connections together: a thread for each engine.
double busy(std::size_t n, const Load& load, double seconds) {
  Pipe pipe;
  Pipe done;
  const Process server([&] { serve(n, false, pipe); });
  const Target first = pipe.get<Target>();
  const Process client([&] {
    std::deque<cm::Engine> engines = make_engines(n);
    std::deque<verbs::CompletionQueue> cqs;
    for (cm::Engine& engine : engines) cqs.emplace_back(8192, &engine);
    std::deque<Peer> peers;
    std::vector<verbs::SendWr> requests;
    for (std::size_t i = 0; i < kConnections; ++i) {
      Peer& peer = peers.emplace_back(engines[i % n], 1U << 20, &cqs[i % n]);
      peer.connect(first);
      requests.push_back(peer.wr(load.op, load.length, pipe.get<Target>()));
      requests.back().wr_id = i;
    }
    std::atomic<std::uint64_t> sum{0};
    const auto begin = Clock::now();
    const auto until = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::vector<std::thread> threads;
    for (std::size_t e = 0; e < n; ++e) {
      threads.emplace_back([&, e] {
        const auto post = [&](std::uint64_t i) {
          if (!peers[i].qp->post_send(requests[i]).ok()) die("cannot post");
        };
        for (std::size_t i = e; i < kConnections; i += n) {
          for (std::size_t k = 0; k < load.depth; ++k) post(i);
        }
        std::uint64_t count = 0;
        std::array<verbs::Completion, 64> some;
        while (Clock::now() < until) {
          (void)cqs[e].wait_for(100ms);
          const std::size_t got = cqs[e].poll(some);
          for (std::size_t i = 0; i < got; ++i) {
            if (some[i].status != Errc::kOk) die("a request failed");
            post(some[i].wr_id);
          }
          count += got;
        }
        sum += count;
      });
    }
    for (std::thread& thread : threads) thread.join();
    done.put(static_cast<double>(sum.load()) / std::chrono::duration<double>(Clock::now() - begin).count());
    std::_Exit(0);
  });
  return done.get<double>();
}

// What plain TCP makes of it: octets go one way in calls of 64 KiB, over as many connections and threads. Calls of the
// receiver's that would make 64 KiB in a second.
double plain_tcp(std::size_t n, double seconds) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof to;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&to), size) != 0 || ::listen(listener, 16) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&to), &size) != 0)
    die("listen");
  // Moves octets of every n-th socket that is ready, until none is left or the time is up.
  const auto move = [n](const std::vector<int>& all, std::size_t thread, short what, Clock::time_point until) {
    std::vector<pollfd> own;
    for (std::size_t i = thread; i < all.size(); i += n) own.push_back({all[i], what, 0});
    std::vector<std::byte> memory(std::size_t{65536} * own.size());
    std::uint64_t octets = 0;
    while (Clock::now() < until) {
      if (::poll(own.data(), own.size(), 100) <= 0) continue;
      for (std::size_t i = 0; i < own.size(); ++i) {
        if ((own[i].revents & what) == 0) continue;
        std::byte* const at = memory.data() + 65536 * i;
        const ssize_t moved = what == POLLIN ? ::recv(own[i].fd, at, 65536, MSG_DONTWAIT)
                                             : ::send(own[i].fd, at, 65536, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved > 0) octets += static_cast<std::uint64_t>(moved);
      }
    }
    return octets;
  };
  const auto run = [&](const std::vector<int>& all, short what) {
    const auto begin = Clock::now();
    const auto until = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::atomic<std::uint64_t> octets{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < n; ++t) threads.emplace_back([&, t] { octets += move(all, t, what, until); });
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(octets) / 65536 / std::chrono::duration<double>(Clock::now() - begin).count();
  };
  Pipe done;
  const Process receiver([&] {
    std::vector<int> all;
    for (std::size_t i = 0; i < kConnections; ++i) all.push_back(::accept(listener, nullptr, nullptr));
    done.put(run(all, POLLIN));
  });
  const Process sender([&] {
    std::vector<int> all;
    for (std::size_t i = 0; i < kConnections; ++i) {
      all.push_back(::socket(AF_INET, SOCK_STREAM, 0));
      if (::connect(all.back(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) die("connect");
    }
    (void)run(all, POLLOUT);
    ::pause();
  });
  ::close(listener);
  return done.get<double>();
}

// Median round trip, us, of 8-octet Reads of four honest clients of one process beside one that floods.
double beside_flood(std::size_t n, double seconds) {
  Pipe pipe;
  Pipe done;
  const Process server([&] { serve(n, true, pipe); });
  const Target first = pipe.get<Target>();
  const Process neighbour([&] { flood(first); });
  (void)pipe.get<Target>();
  const Process client([&] {
    cm::Engine engine;
    std::deque<Peer> peers;
    std::vector<verbs::SendWr> requests;
    for (std::size_t i = 0; i < 4; ++i) {
      Peer& peer = peers.emplace_back(engine);
      peer.connect(first);
      requests.push_back(peer.wr(verbs::SendOp::kRead, 8, pipe.get<Target>()));
    }
    std::vector<double> us;
    const auto until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    for (std::size_t i = 0; Clock::now() < until || us.empty(); i = (i + 1) % peers.size()) {
      const auto begin = Clock::now();
      if (!peers[i].qp->post_send(requests[i]).ok()) die("cannot post");
      verbs::Completion c;
      while (peers[i].cq.poll({&c, 1}) == 0) (void)peers[i].cq.wait_for(1s);
      if (c.status != Errc::kOk) die("a Read failed");
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    std::ranges::nth_element(us, us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2));
    done.put(us[us.size() / 2]);
    std::_Exit(0);
  });
  return done.get<double>();
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

// A row of samples taken in pairs, one engine and two in turn.
void row(const char* name, std::size_t pairs, const std::function<double(std::size_t)>& sample) {
  std::vector<double> one;
  std::vector<double> two;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pairs; ++i) {
    const bool swapped = i % 2 != 0;
    const double a = sample(swapped ? 2 : 1);
    const double b = sample(swapped ? 1 : 2);
    one.push_back(swapped ? b : a);
    two.push_back(swapped ? a : b);
    ratios.push_back(two.back() / one.back());
  }
  std::printf("| %s | %.0f | %.0f | %.2f | %.2f - %.2f |\n", name, quantile(one, 0.5), quantile(two, 0.5),
              quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75));
  std::fflush(stdout);
}

}  // namespace
}  // namespace iwarp::engines

int main(int argc, char** argv) {
  using namespace iwarp::engines;  // NOLINT(google-build-using-namespace)
  using iwarp::verbs::SendOp;
  const std::size_t pairs = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 9;
  const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 1;
  std::printf("8 connections between two processes, requests in a second:\n\n");
  std::printf("| | one engine | two | ratio | quartiles |\n|---|---|---|---|---|\n");
  std::fflush(stdout);
  for (const Load& load : {Load{"Write, 64 KiB, 8 outstanding each", SendOp::kWrite, 65536, 8},
                           Load{"Read, 64 KiB, 8 outstanding each", SendOp::kRead, 65536, 8},
                           Load{"Write, 8 octets, 16 outstanding each", SendOp::kWrite, 8, 16},
                           Load{"Read, 8 octets, 16 outstanding each", SendOp::kRead, 8, 16},
                           Load{"Read, 8 octets, 1 outstanding each", SendOp::kRead, 8, 1}})
    row(load.name, pairs, [&](std::size_t n) { return busy(n, load, seconds); });
  row("the ceiling: plain TCP, 64 KiB, a thread or two", pairs, [&](std::size_t n) { return plain_tcp(n, seconds); });
  std::printf("\nRead of 8 octets beside a connection that floods its engine, median round trip in us:\n\n");
  std::printf("| | one engine | two | ratio | quartiles |\n|---|---|---|---|---|\n");
  std::fflush(stdout);
  row("four honest clients", pairs, [&](std::size_t n) { return beside_flood(n, seconds); });
}
