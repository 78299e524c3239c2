// Children forked while transfers run: whatever they inherited refuses at once, and the parent's transfers go on.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/system_executor.hpp>
#include <csignal>
#include <functional>
#include <thread>

#include "iwarp/verbs/completion_channel.h"
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/sanitized.h"
#include "tests/support/tcp_sockets.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

// What the child did not get done in time names itself by its number; 0: all.
int in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    ::_exit(body());
  }
  int status = -1;
  EXPECT_TRUE(eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }, 60s));
  EXPECT_FALSE(WIFSIGNALED(status)) << "killed by signal " << WTERMSIG(status)
                                    << (WTERMSIG(status) == SIGALRM ? ": something never returned" : "");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// One pair of a process, and everything that can be asked of it.
struct Pair {
  std::unique_ptr<Engine> server_engine = std::make_unique<Engine>(), client_engine = std::make_unique<Engine>();
  std::unique_ptr<Listener> listener = listen(*server_engine);
  std::unique_ptr<Node> server = std::make_unique<Node>(*server_engine, stream::Options{}, 1 << 20);
  std::unique_ptr<Node> client = std::make_unique<Node>(*client_engine, stream::Options{}, 1 << 20);
  Ends ends = join(*client, *server, *listener);
};

// In a child: the number of the first thing that did not refuse, or 0.
int use_everything(Pair& pair, std::unique_ptr<ConnectRequest>& request) {
  Connection& c = *pair.ends.client.connection;
  Node& node = *pair.client;
  int told = 0;
  Errc last = Errc::kOk;
  auto hear = boost::asio::bind_executor(boost::asio::system_executor(), [&](const Error& e, auto&&) {
    ++told;
    last = e.code;
  });
  const auto heard = [&](int times) { return told == times && last == Errc::kInvalidArgument; };

  if (node.qp->post_send(verbs::SendWr{}).error().code != Errc::kInvalidArgument) return 1;
  if (node.qp->post_recv(verbs::RecvWr{}).error().code != Errc::kInvalidArgument) return 2;
  node.qp->abort();
  verbs::Completion taken;
  if (node.cq.poll({&taken, 1}) != 0 || !node.cq.empty() || node.cq.wait_for(1h)) return 3;
  verbs::CompletionChannel channel;
  channel.arm(node.cq);
  node.cq.disarm();
  node.in_mr.invalidate();
  node.in_mr.reset();
  if (verbs::MemoryRegion::register_memory(node.pd, node.in, {}).ok()) return 4;

  (void)c.counters();
  (void)c.negotiated();
  (void)c.private_data();
  (void)c.to_string();
  if (!c.disconnected() || c.disconnected()->reason.code != Errc::kInvalidArgument) return 5;
  c.disconnect();
  c.abort();
  Errc ended = Errc::kOk;
  c.async_wait_disconnected([&](const stream::Disconnected& how) { ended = how.reason.code; });
  if (ended != Errc::kInvalidArgument) return 6;

  connect(*pair.client_engine, node.qp, to(*pair.listener), [&](const Error& e, const std::shared_ptr<Connection>&) {
    ended = e.code;
    ++told;
  });
  if (told != 1) return 7;
  async_connect(*pair.client_engine, node.qp, to(*pair.listener), hear);
  if (!heard(2)) return 8;
  async_connect(*pair.client_engine, node.qp, to(*pair.listener),
                [&](const Error& e, const std::shared_ptr<Connection>&) {
                  last = e.code;
                  ++told;
                });
  if (!heard(3)) return 9;
  pair.listener->async_accept(hear);
  if (!heard(4)) return 10;
  if (pair.listener->local().port() == 0 || pair.listener->failed_startups() != 0) return 11;
  request->async_accept(node.qp, {}, hear);
  if (!heard(5)) return 12;
  if (request->reject(ConstBytes{}).ok()) return 13;
  if (Listener::listen(*pair.server_engine, {}).ok()) return 14;
  pair.client_engine->poll();
  std::promise<void> never;
  if (pair.client_engine->wait_for(never.get_future(), 1h)) return 15;

  request.reset();
  pair.listener.reset();
  pair.ends = {};
  pair.server.reset();
  pair.client.reset();
  pair.server_engine.reset();
  pair.client_engine.reset();
  return 0;
}

TEST(Fork, WhileTransfersRunEverythingRefusesAtOnce) {
  if (kSanitized)
    GTEST_SKIP() << "libsanitizer's allocator does not give back at fork() what another thread has locked";
  Pair pair;
  RawTcp peer = RawTcp::connect(pair.listener->local().port());
  ASSERT_TRUE(peer.send(octets(good_request())));
  auto request = next_request(*pair.listener);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> done{0};
  std::thread transfers([&] {
    for (std::uint64_t i = 0; !over; ++i, ++done) {
      pair.client->write(i, *pair.server, 1 << 20);
      pair.client->expect(verbs::WcOp::kWrite, i);
    }
  });
  // A thread that registers memory, so that the child inherits that lock, too.
  std::thread registers([&] {
    while (!over) {
      Bytes memory(64);
      auto mr = verbs::MemoryRegion::register_memory(pair.client->pd, memory, {});
      EXPECT_TRUE(mr.ok());
    }
  });
  for (int i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) {
    const std::uint64_t before = done;
    EXPECT_EQ(in_child([&] { return use_everything(pair, request); }), 0);
    EXPECT_TRUE(eventually([&] { return done > before + 1; })) << "the parent's transfers stopped";
  }
  over = true;
  registers.join();
  transfers.join();
  ping_pong(*pair.client, *pair.server);
}

// The child's sockets must not come into the epoll set that it shares with its parent.
TEST(Fork, AnEngineThatWasNotStartedYetConnectsNobodyInTheChild) {
  Engine server_engine, engine;
  const auto listener = listen(server_engine);
  for (int i = 0; i < 3; ++i) {
    Node unused(engine);
    EXPECT_EQ(in_child([&] {
                Errc how = Errc::kOk;
                connect(engine, unused.qp, to(*listener),
                        [&](const Error& e, const std::shared_ptr<Connection>&) { how = e.code; });
                return how == Errc::kInvalidArgument ? 0 : 1;
              }),
              0);
  }
  Node server(server_engine), client(engine);
  const Ends ends = join(client, server, *listener);
  ping_pong(client, server);
}

// A child may well have an engine of its own.
TEST(Fork, AChildConnectsWithItsOwnEngine) {
  Engine server_engine;
  const auto listener = listen(server_engine);
  Node server(server_engine);
  auto accepted = listener->async_accept(cm::as_error(boost::asio::use_future));
  std::thread accepting([&] {
    auto [error, request] = get(std::move(accepted));
    ASSERT_EQ(error.code, Errc::kOk);
    EXPECT_EQ(std::get<0>(get(request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future)))).code,
              Errc::kOk);
  });
  const ConnectOptions options = to(*listener);
  EXPECT_EQ(in_child([&] {
              Engine engine(Engine::Mode::kManual);
              Node client(engine);
              auto connecting = start_connect(client, options);
              return engine.wait_for(connecting, 10s) && std::get<0>(connecting.get()).code == Errc::kOk ? 0 : 1;
            }),
            0);
  accepting.join();
}

// Held by it, a connection would outlive its end here: the peer would never hear of that.
TEST(Descriptors, AProgramThatAChildExecutesDoesNotGetThem) {
  Pair pair;
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor bound(io);
  bound.open(boost::asio::ip::tcp::v4());
  bound.bind({boost::asio::ip::address_v4::loopback(), 0});
  const auto second = Listener::listen(*pair.server_engine, std::move(bound), {});
  ASSERT_TRUE(second.ok());
  std::size_t seen = 0;
  for (const std::uint16_t port : {pair.listener->local().port(), second.value()->local().port()}) {
    for (const auto ask : {&::getsockname, &::getpeername}) {
      for (const int fd : tcp_sockets(port, ask)) {
        EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) << fd;
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen, 4U) << "two that listen, and both ends of a connection";
}

}  // namespace
}  // namespace iwarp::cm
