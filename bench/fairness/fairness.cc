// What a connection suffers from its neighbours: an honest client's RDMA Reads of 8 octets beside peers that flood the
// same server, and post_send() of 8 octets while the peer writes bulk. Each peer is a process of its own. By hand; it
// prints a table in Markdown. Arguments: samples of each row (default 2000).
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "bench/lib/flood.h"
#include "bench/lib/peer.h"
#include "bench/lib/process.h"

namespace iwarp::fairness {
namespace {

using namespace bench;  // NOLINT(google-build-using-namespace): what all benchmarks of several processes share

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kBulk = 256 * 1024;

// Serves whoever comes; its background thread does all the work.
void serve(Pipe& tell) {
  cm::Engine engine;
  const auto listener = listen(engine);
  std::vector<std::unique_ptr<Peer>> peers;
  for (;;) {
    peers.push_back(std::make_unique<Peer>(engine));
    const Target target = peers.back()->target(listener->local().port());
    tell.put(target);
    auto asked = listener->async_accept(cm::as_error(boost::asio::use_future));
    auto [error, request] = asked.get();
    need(error);
    auto [failed, connection] =
        request->async_accept(peers.back()->qp, {}, cm::as_error(boost::asio::use_future)).get();
    need(failed);
    peers.back()->connection = connection;
  }
}

void bulk(verbs::SendOp op, const Target& server, std::size_t depth) {
  cm::Engine engine;
  Peer peer(engine);
  peer.connect(server);
  peer.keep_posting({peer.wr(op, kBulk, server)}, depth);
}

void print(const char* what, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double q) { return us[static_cast<std::size_t>(q * static_cast<double>(us.size() - 1))]; };
  std::printf("| %s | %.0f | %.0f | %.0f | %.0f |\n", what, at(0.5), at(0.9), at(0.99), us.back());
  std::fflush(stdout);
}

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void reads(const char* what, std::size_t neighbours, void (*neighbour)(const Target&), std::size_t samples) {
  Pipe pipe;
  const Process server([&] { serve(pipe); });
  std::vector<std::unique_ptr<Process>> crowd;
  for (std::size_t i = 0; i < neighbours; ++i) {
    const Target target = pipe.get<Target>();
    crowd.push_back(std::make_unique<Process>([&] { neighbour(target); }));
  }
  const Target target = pipe.get<Target>();
  Pipe done;
  const Process client([&] {
    cm::Engine engine;
    Peer peer(engine);
    peer.connect(target);
    const auto wr = peer.wr(verbs::SendOp::kRead, 8, target);
    std::vector<double> us;
    std::this_thread::sleep_for(200ms);
    const auto end = Clock::now() + 20s;
    while (us.size() < samples && Clock::now() < end) {
      const auto begin = Clock::now();
      if (!peer.qp->post_send(wr).ok()) die("cannot post");
      verbs::Completion c;
      while (peer.cq.poll({&c, 1}) == 0) (void)peer.cq.wait_for(1s);
      if (c.status != Errc::kOk) die("a Read failed");
      us.push_back(since(begin));
    }
    print(what, us);
    done.put(0);
  });
  done.get<int>();
}

void posts(const char* what, bool beside_bulk, std::size_t samples) {
  Pipe pipe;
  Pipe go;
  Pipe done;
  const Process poster([&] {
    cm::Engine engine;
    const auto listener = listen(engine);
    Peer peer(engine);
    pipe.put(peer.target(listener->local().port()));
    const Target other = peer.accept(*listener);
    const auto wr = peer.wr(verbs::SendOp::kWrite, 8, other);
    std::this_thread::sleep_for(200ms);
    std::vector<double> us;
    std::size_t out = 0;
    while (us.size() < samples) {
      std::array<verbs::Completion, 64> some;
      out -= peer.cq.poll(some);
      if (out < 256) {
        const auto begin = Clock::now();
        if (!peer.qp->post_send(wr).ok()) die("cannot post");
        us.push_back(since(begin));
        ++out;
      }
      std::this_thread::sleep_for(100us);
    }
    print(what, us);
    done.put(0);
  });
  const Target target = pipe.get<Target>();
  const Process writer([&] {
    if (beside_bulk) bulk(verbs::SendOp::kWrite, target, 16);
    cm::Engine engine;
    Peer peer(engine);
    peer.connect(target);
    ::pause();
  });
  done.get<int>();
}

}  // namespace
}  // namespace iwarp::fairness

int main(int argc, char** argv) {
  using namespace iwarp;            // NOLINT(google-build-using-namespace)
  using namespace iwarp::fairness;  // NOLINT(google-build-using-namespace)
  const std::size_t samples = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2000;
  std::printf("| | median, us | p90 | p99 | most |\n|---|---|---|---|---|\n");
  std::fflush(stdout);
  const auto reader = [](const Target& t) { bulk(verbs::SendOp::kRead, t, 8); };
  reads("Read of 8 octets, alone", 0, flood, samples);
  reads("beside one that floods empty Writes", 1, flood, samples);
  reads("beside four", 4, flood, samples);
  reads("beside four that Read bulk", 4, reader, samples);
  posts("post_send() of 8 octets, alone", false, samples);
  posts("while the peer writes bulk", true, samples);
}
