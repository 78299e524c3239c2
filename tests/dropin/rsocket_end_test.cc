// How rsockets end: in order, at any moment, with data under way, by the death of a process.
#include "tests/dropin/rsocket_support.h"
//
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST_F(RsocketTest, EndOfWritingIsToldBehindTheData) {
  connect();
  EXPECT_EQ(send_text(client, "last"), 4);
  EXPECT_EQ(::rshutdown(client, SHUT_WR), 0);
  EXPECT_EQ(send_text(client, "more"), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(receive_text(accepted, 100, MSG_WAITALL), "last");
  EXPECT_EQ(receive_text(accepted), "");
  // The other direction is open.
  EXPECT_EQ(send_text(accepted, "answer"), 6);
  EXPECT_EQ(receive_text(client), "answer");
}

TEST_F(RsocketTest, CloseDeliversWhatWasSent) {
  connect();
  const std::string octets = pattern(60'000);
  EXPECT_EQ(send_text(client, octets), 60'000);
  client.close();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(receive_text(accepted, octets.size() + 1, MSG_WAITALL), octets);
  EXPECT_EQ(receive_text(accepted), "");
  EXPECT_EQ(send_text(accepted, "x"), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(RsocketTest, CloseIsNotSlow) {
  connect();
  const auto begin = Clock::now();
  client.close();
  EXPECT_EQ(receive_text(accepted), "");
  EXPECT_EQ(::rclose(std::exchange(accepted, -1)), 0);
  EXPECT_LT(Clock::now() - begin, 400ms);
}

TEST_F(RsocketTest, BlockedReceiverHearsOfTheEnd) {
  connect();
  auto got = std::async(std::launch::async, [&] { return receive_text(accepted); });
  EXPECT_EQ(got.wait_for(20ms), std::future_status::timeout);
  client.close();
  EXPECT_EQ(got.get(), "");
}

TEST_F(RsocketTest, ShutdownEndsABlockedReceive) {
  connect();
  auto got = std::async(std::launch::async, [&] { return receive_text(client); });
  EXPECT_EQ(got.wait_for(20ms), std::future_status::timeout);
  EXPECT_EQ(::rshutdown(client, SHUT_RD), 0);
  EXPECT_EQ(got.get(), "");
}

TEST_F(RsocketTest, BothEndsCloseAtOnce) {
  for (int i = 0; i < 20; ++i) {
    Rsocket one;
    const auto address = loopback(port_of(listener));
    ASSERT_EQ(::rconnect(one, as_sockaddr(address), sizeof address), 0);
    Rsocket two(::raccept(listener, nullptr, nullptr));
    EXPECT_EQ(send_text(one, "x"), 1);
    EXPECT_EQ(send_text(two, "y"), 1);
    std::thread closer([&] { one.close(); });
    two.close();
    closer.join();
  }
}

// Who has said that it writes no more may end: what it has sent is on its way.
TEST_F(RsocketTest, ShutdownWaitsUntilTcpHasTheData) {
  connect();
  const std::string octets = pattern(100'000);
  std::thread sender([&] {
    EXPECT_EQ(send_text(client, octets), static_cast<ssize_t>(octets.size()));
    EXPECT_EQ(::rshutdown(client, SHUT_RDWR), 0);
  });
  EXPECT_TRUE(receive_text(accepted, octets.size() + 1, MSG_WAITALL) == octets);
  sender.join();
  EXPECT_EQ(receive_text(client), "");
}

// rstream takes a receive of nothing with EAGAIN, of whatever call, for one that is to be done again.
TEST_F(RsocketTest, TheEndLeavesErrnoAlone) {
  connect();
  auto got = std::async(std::launch::async, [&] {
    errno = ENOTTY;
    const std::string text = receive_text(accepted);
    return std::pair(text, errno);
  });
  EXPECT_EQ(got.wait_for(20ms), std::future_status::timeout);
  client.close();
  EXPECT_EQ(got.get(), std::pair(std::string(), ENOTTY));
}

TEST_F(RsocketTest, PeerClosesWithDataUnderWay) {
  for (int i = 0; i < 20; ++i) {
    Rsocket one;
    const auto address = loopback(port_of(listener));
    ASSERT_EQ(::rconnect(one, as_sockaddr(address), sizeof address), 0);
    Rsocket two(::raccept(listener, nullptr, nullptr));
    const std::string octets = pattern(4'000'000);
    std::thread sender([&] {
      std::size_t sent = 0;
      ssize_t n = 0;
      while ((n = ::rsend(one, octets.data(), octets.size(), 0)) > 0) sent += static_cast<std::size_t>(n);
      EXPECT_EQ(errno, ECONNRESET);
      EXPECT_GE(sent, 100'000U);
    });
    const auto some = receive_text(two, 100'000, MSG_WAITALL);
    EXPECT_TRUE(octets.compare(0, some.size(), some) == 0);
    EXPECT_EQ(some.size(), 100'000U);
    const auto begin = Clock::now();
    two.close();
    EXPECT_LT(Clock::now() - begin, 5s);
    sender.join();
    EXPECT_EQ(receive_text(one), "");
    EXPECT_NE(polled(one, POLLIN, 5000) & POLLHUP, 0);
  }
}

// Both have data that nobody has read.
TEST_F(RsocketTest, UnreadDataDoNotKeepAnEndFromThePeer) {
  connect();
  EXPECT_EQ(send_text(client, pattern(50'000)), 50'000);
  EXPECT_EQ(send_text(accepted, pattern(30'000)), 30'000);
  client.close();
  EXPECT_TRUE(receive_text(accepted, 60'000, MSG_WAITALL) == pattern(50'000));
}

TEST_F(RsocketTest, ClosingEndsTheCallsOfOtherThreads) {
  connect();
  auto receives = std::async(std::launch::async, [&] { return receive_text(client); });
  auto accepts = std::async(std::launch::async, [&] {
    const int got = ::raccept(listener, nullptr, nullptr);
    return std::pair(got, errno);
  });
  auto polls = std::async(std::launch::async, [&] { return polled(client, POLLIN, 10'000); });
  EXPECT_EQ(receives.wait_for(20ms), std::future_status::timeout);
  EXPECT_EQ(accepts.wait_for(0ms), std::future_status::timeout);
  EXPECT_EQ(polls.wait_for(0ms), std::future_status::timeout);
  client.close();
  listener.close();
  const std::string received = receives.get();
  EXPECT_TRUE(received.empty() || received == "-EBADF") << received;
  EXPECT_EQ(accepts.get(), std::pair(-1, EBADF));
  EXPECT_NE(polls.get(), 0);
}

TEST_F(RsocketTest, ClosingAListenerRefusesThoseWhoWait) {
  const auto address = loopback(port_of(listener));
  std::vector<std::future<int>> clients;
  for (int i = 0; i < 8; ++i)  // the backlog is 4
    clients.push_back(std::async(std::launch::async, [&] {
      const Rsocket socket;
      if (::rconnect(socket, as_sockaddr(address), sizeof address) != 0) return errno;
      const std::string got = receive_text(socket);  // was connected, and is closed
      return got.empty() ? 0 : got == "-ECONNRESET" ? ECONNRESET : -1;
    }));
  std::this_thread::sleep_for(50ms);
  listener.close();
  for (auto& one : clients) {
    const int got = one.get();
    EXPECT_TRUE(got == 0 || got == ECONNREFUSED || got == ECONNRESET) << got;
  }
}

// Connections, all at once, each with data of its own, behind a short backlog.
TEST_F(RsocketTest, SixtyFourConnections) {
  constexpr int kConnections = 64;
  const auto address = loopback(port_of(listener));
  std::vector<std::thread> threads;
  for (int i = 0; i < kConnections; ++i) {
    threads.emplace_back([&, i] {
      Rsocket socket;
      ASSERT_EQ(::rconnect(socket, as_sockaddr(address), sizeof address), 0) << std::strerror(errno);
      const std::string octets =
          pattern(100'000 + static_cast<std::size_t>(i) * 1000).substr(static_cast<std::size_t>(i));
      std::thread sender([&] {
        EXPECT_EQ(send_text(socket, octets), static_cast<ssize_t>(octets.size()));
        EXPECT_EQ(::rshutdown(socket, SHUT_WR), 0);
      });
      EXPECT_TRUE(receive_text(socket, octets.size() + 1, MSG_WAITALL) == octets) << i;
      sender.join();
    });
    threads.emplace_back([&] {
      const Rsocket socket(::raccept(listener, nullptr, nullptr));
      std::string some;
      while (!(some = receive_text(socket, 30'000)).empty())
        ASSERT_EQ(send_text(socket, some), static_cast<ssize_t>(some.size())) << some.substr(0, 20);
    });
  }
  for (auto& thread : threads) thread.join();
}

// A process that uses rsockets is killed while it sends; the parent's own mean nothing to it.
TEST_F(RsocketTest, PeerIsKilled) {
  const auto address = loopback(port_of(listener));
  for (int i = 0; i < 10; ++i) {
    const int parents = client;
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      char octet = 0;
      if (::rsend(parents, &octet, 1, 0) != -1 || errno != EBADF) ::_exit(1);
      const int socket = ::rsocket(AF_INET, SOCK_STREAM, 0);
      if (::rconnect(socket, as_sockaddr(address), sizeof address) != 0) ::_exit(2);
      const std::string octets = pattern(1'000'000);
      while (::rsend(socket, octets.data(), octets.size(), 0) > 0) {
      }
      ::_exit(3);
    }
    const Rsocket socket(::raccept(listener, nullptr, nullptr));
    EXPECT_TRUE(receive_text(socket, 300'000, MSG_WAITALL) == pattern(1'000'000).substr(0, 300'000));
    ::kill(child, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    std::string rest;
    const auto begin = Clock::now();
    while (!(rest = receive_text(socket, 100'000)).empty() && rest.front() != '-') {
      ASSERT_LT(Clock::now() - begin, 10s);
    }
    EXPECT_TRUE(rest.empty() || rest == "-ECONNRESET") << rest;
    EXPECT_EQ(receive_text(socket), "");
    EXPECT_EQ(send_text(socket, "x"), -1);
    EXPECT_EQ(errno, ECONNRESET);
  }
}

// The calls are no cancellation points: the thread ends behind them.
TEST_F(RsocketTest, CancellationLeavesACallAlone) {
  connect();
  std::atomic<bool> received{false};
  char octet = 0;  // nothing of the thread lies on its stack where it ends
  std::thread receiver([&] {
    received.store(::rrecv(accepted, &octet, 1, 0) == 1);
    for (;;) ::pthread_testcancel();
  });
  std::this_thread::sleep_for(20ms);
  ASSERT_EQ(::pthread_cancel(receiver.native_handle()), 0);
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(received.load());
  EXPECT_EQ(send_text(client, "x"), 1);
  receiver.join();
  EXPECT_TRUE(received.load());
}

}  // namespace
}  // namespace iwarp::dropin::test
