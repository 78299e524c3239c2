// Many connections at once, and two ends that connect to each other.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/cm/node.h"

namespace iwarp::test {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kThreads = 8, kEach = 64, kAll = kThreads * kEach;

// Both ends of each connection are in this process.
bool room_for_descriptors(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, wanted));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur >= wanted;
}

// An engine that does nothing meanwhile: what the system holds for it is what counts.
TEST(Massed, ABusyListenerDropsNoSyn) {
  if (!room_for_descriptors(kAll + 256)) GTEST_SKIP() << "too few descriptors are allowed here";
  std::size_t held = 0;
  std::ifstream("/proc/sys/net/core/somaxconn") >> held;
  if (held < kAll) GTEST_SKIP() << "net.core.somaxconn is " << held;
  cm::Engine engine(cm::Engine::Mode::kManual);
  const auto listener = listen(engine);
  boost::asio::io_context io;
  std::vector<tcp::socket> clients;
  for (std::size_t i = 0; i < kAll; ++i) {
    tcp::socket& socket = clients.emplace_back(io, tcp::v4());
    socket.non_blocking(true);
    // Asio would wait for the end of the attempt.
    const int done =
        ::connect(socket.native_handle(), listener->local().data(), static_cast<socklen_t>(listener->local().size()));
    ASSERT_TRUE(done == 0 || errno == EINPROGRESS) << std::strerror(errno);
  }
  for (std::size_t i = 0; i < kAll; ++i) {
    pollfd writable{clients[i].native_handle(), POLLOUT, 0};
    // A SYN that was dropped is sent again after a second.
    ASSERT_EQ(::poll(&writable, 1, 900), 1) << "connection " << i << " was not taken";
    boost::system::error_code ec;
    (void)clients[i].remote_endpoint(ec);
    ASSERT_FALSE(ec) << "connection " << i << ": " << ec.message();
  }
}

TEST(Massed, ConnectsFromManyThreadsAllCome) {
  if (!room_for_descriptors(2 * kAll + 256)) GTEST_SKIP() << "too few descriptors are allowed here";
  cm::Engine servers, clients;
  const auto listener = listen(servers);
  const auto options = to(*listener);
  std::vector<std::unique_ptr<Node>> calling;
  for (std::size_t i = 0; i < kAll; ++i) calling.push_back(std::make_unique<Node>(clients, stream::Options{}, 64));
  std::vector<Connecting> attempts(kAll);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t * kEach; i < (t + 1) * kEach; ++i) attempts[i] = start_connect(*calling[i], options);
    });
  }
  std::vector<std::unique_ptr<Node>> called;
  std::vector<Connecting> accepted;
  for (std::size_t i = 0; i < kAll; ++i) {
    const auto request = next_request(*listener);
    Node& node = *called.emplace_back(std::make_unique<Node>(servers, stream::Options{}, 64));
    accepted.push_back(request->async_accept(node.qp, {}, cm::as_error(boost::asio::use_future)));
  }
  for (std::thread& t : threads) t.join();
  for (std::size_t i = 0; i < kAll; ++i) {
    EXPECT_EQ(get_outcome(std::move(attempts[i])).error.code, Errc::kOk) << i;
    EXPECT_EQ(get_outcome(std::move(accepted[i])).error.code, Errc::kOk) << i;
  }
  EXPECT_EQ(listener->failed_startups(), 0U);
}

// Peer-to-peer: on either connection either end may send first.
TEST(Crossed, BothConnectionsStand) {
  cm::Engine one, other;
  const auto listener_one = listen(one), listener_other = listen(other);
  Node calls_other(one), called_by_other(one), calls_one(other), called_by_one(other);
  auto from_one = start_connect(calls_other, to(*listener_other));
  auto from_other = start_connect(calls_one, to(*listener_one));
  const auto request_of_one = next_request(*listener_other), request_of_other = next_request(*listener_one);
  auto taken_by_other = request_of_one->async_accept(called_by_one.qp, {}, cm::as_error(boost::asio::use_future));
  auto taken_by_one = request_of_other->async_accept(called_by_other.qp, {}, cm::as_error(boost::asio::use_future));
  for (Connecting* c : {&from_one, &from_other, &taken_by_other, &taken_by_one}) {
    const Outcome outcome = get_outcome(std::move(*c));
    ASSERT_EQ(outcome.error.code, Errc::kOk) << outcome.error.why;
    EXPECT_TRUE(outcome.connection->negotiated().peer_to_peer);
  }
  ping_pong(calls_other, called_by_one);
  ping_pong(called_by_other, calls_one);  // who was called sends first
}

}  // namespace
}  // namespace iwarp::test
