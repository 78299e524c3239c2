// Rsockets as a program sees them that knows rsocket.h only: connections, data, options and ends.
#include "tests/dropin/rsocket_support.h"
//
#include <netinet/tcp.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(RsocketCall, KindsThatAreNotThereAreRefused) {
  EXPECT_EQ(::rsocket(AF_INET, SOCK_DGRAM, 0), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
  EXPECT_EQ(::rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
  EXPECT_EQ(errno, EAFNOSUPPORT);
  EXPECT_EQ(::rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
  Rsocket six(::rsocket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP));
  EXPECT_EQ(::rfcntl(six, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}

TEST(RsocketCall, NoRsocketIsEbadf) {
  char octet = 0;
  EXPECT_EQ(::rsend(0, &octet, 1, 0), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::rclose(-1), -1);
  EXPECT_EQ(errno, EBADF);
  int closed = -1;
  {
    const Rsocket socket;
    closed = socket;
  }
  EXPECT_EQ(::rlisten(closed, 1), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(RsocketCall, AnUnconnectedSocketIsEnotconn) {
  const Rsocket socket;
  EXPECT_EQ(receive_text(socket), "-ENOTCONN");
  EXPECT_EQ(send_text(socket, "x"), -1);
  EXPECT_EQ(errno, ENOTCONN);
  sockaddr_in name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(::rgetpeername(socket, reinterpret_cast<sockaddr*>(&name), &size), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(::rshutdown(socket, SHUT_RDWR), -1);
  EXPECT_EQ(errno, ENOTCONN);
}

TEST(RsocketCall, AddressesAreChecked) {
  const Rsocket socket;
  auto address = loopback(1);
  EXPECT_EQ(::rconnect(socket, as_sockaddr(address), 4), -1);
  EXPECT_EQ(errno, EINVAL);
  address.sin_family = AF_UNIX;
  EXPECT_EQ(::rbind(socket, as_sockaddr(address), sizeof address), -1);
  EXPECT_EQ(errno, EAFNOSUPPORT);
  const Rsocket six(::rsocket(AF_INET6, SOCK_STREAM, 0));
  address.sin_family = AF_INET;
  EXPECT_EQ(::rconnect(six, as_sockaddr(address), sizeof address), -1);
  EXPECT_EQ(errno, EAFNOSUPPORT);
}

TEST(RsocketCall, NobodyListens) {
  std::uint16_t port = 0;
  {
    const Rsocket gone;
    const auto any = loopback();
    ASSERT_EQ(::rbind(gone, as_sockaddr(any), sizeof any), 0);
    port = port_of(gone);
  }
  const auto address = loopback(port);
  const Rsocket socket;
  EXPECT_EQ(::rconnect(socket, as_sockaddr(address), sizeof address), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST_F(RsocketTest, APortIsListenedAtOnce) {
  const Rsocket other;
  const auto address = loopback(port_of(listener));
  EXPECT_TRUE(::rbind(other, as_sockaddr(address), sizeof address) != 0 || ::rlisten(other, 1) != 0);
  EXPECT_EQ(errno, EADDRINUSE);
}

TEST_F(RsocketTest, NamesAreThoseOfTheConnection) {
  connect();
  const auto names = [](int socket) {
    sockaddr_in own{}, peer{};
    socklen_t size = sizeof own;
    EXPECT_EQ(::rgetsockname(socket, reinterpret_cast<sockaddr*>(&own), &size), 0);
    EXPECT_EQ(::rgetpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size), 0);
    EXPECT_EQ(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    return std::pair{ntohs(own.sin_port), ntohs(peer.sin_port)};
  };
  const auto one = names(client), two = names(accepted);
  EXPECT_EQ(one.second, port_of(listener));
  EXPECT_EQ(one, std::pair(two.second, two.first));
}

TEST_F(RsocketTest, DataGoBothWays) {
  connect();
  EXPECT_EQ(send_text(client, "to the server"), 13);
  EXPECT_EQ(receive_text(accepted), "to the server");
  EXPECT_EQ(::rwrite(accepted, "and back", 8), 8);
  std::array<char, 8> back{};
  EXPECT_EQ(::rread(client, back.data(), back.size()), 8);
  EXPECT_EQ(std::string_view(back.data(), back.size()), "and back");
}

TEST(RsocketCall, Ipv6) {
  const Rsocket listener(::rsocket(AF_INET6, SOCK_STREAM, 0)), client(::rsocket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  socklen_t size = sizeof address;
  ASSERT_EQ(::rbind(listener, reinterpret_cast<sockaddr*>(&address), size), 0) << std::strerror(errno);
  ASSERT_EQ(::rlisten(listener, 1), 0);
  ASSERT_EQ(::rgetsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(::rconnect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << std::strerror(errno);
  sockaddr_in6 peer{};
  size = sizeof peer;
  const Rsocket accepted(::raccept(listener, reinterpret_cast<sockaddr*>(&peer), &size));
  EXPECT_EQ(size, sizeof peer);
  EXPECT_EQ(peer.sin6_family, AF_INET6);
  EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&peer.sin6_addr));
  const std::string octets = pattern(300'000);
  std::thread sender([&] { EXPECT_EQ(send_text(client, octets), static_cast<ssize_t>(octets.size())); });
  EXPECT_TRUE(receive_text(accepted, octets.size(), MSG_WAITALL) == octets);
  sender.join();
}

// It has no messages: what was sent in two may be received in one, and the other way round.
TEST_F(RsocketTest, ItIsAStream) {
  connect();
  EXPECT_EQ(send_text(client, "one"), 3);
  EXPECT_EQ(send_text(client, "two"), 3);
  EXPECT_EQ(receive_text(accepted, 2), "on");
  EXPECT_EQ(receive_text(accepted, 4, MSG_WAITALL), "etwo");
}

TEST_F(RsocketTest, ServerMaySendFirst) {
  connect();
  EXPECT_EQ(send_text(accepted, "hello"), 5);
  EXPECT_EQ(receive_text(client), "hello");
}

TEST_F(RsocketTest, PeekLeavesWhatItShows) {
  connect();
  EXPECT_EQ(send_text(client, "seen"), 4);
  EXPECT_EQ(receive_text(accepted, 100, MSG_PEEK), "seen");
  EXPECT_EQ(receive_text(accepted, 2, MSG_PEEK), "se");
  EXPECT_EQ(receive_text(accepted), "seen");
  EXPECT_EQ(receive_text(accepted, 100, MSG_PEEK | MSG_DONTWAIT), "-EAGAIN");
}

TEST_F(RsocketTest, NothingToReceiveIsEagainWhereNobodyWaits) {
  connect();
  EXPECT_EQ(receive_text(accepted, 1, MSG_DONTWAIT), "-EAGAIN");
  set_nonblocking(client);
  EXPECT_EQ(receive_text(client), "-EAGAIN");
  EXPECT_EQ(::rfcntl(client, F_SETFL, 0), 0);
  EXPECT_EQ(::rfcntl(client, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(RsocketTest, PiecesAreGatheredAndScattered) {
  connect();
  std::string one = "ab", none, two = "cde";
  const std::array<iovec, 3> from{{{one.data(), 2}, {none.data(), 0}, {two.data(), 3}}};
  EXPECT_EQ(::rwritev(client, from.data(), 3), 5);
  std::array<char, 1> first{};
  std::array<char, 9> rest{};
  const std::array<iovec, 2> to{{{first.data(), 1}, {rest.data(), 4}}};
  ASSERT_EQ(receive_text(accepted, 5, MSG_PEEK | MSG_WAITALL).empty(), false);
  std::size_t got = 0;
  while (got < 5) {
    const ssize_t n = got == 0 ? ::rreadv(accepted, to.data(), 2) : ::rread(accepted, rest.data() + got - 1, 5 - got);
    ASSERT_GT(n, 0);
    got += static_cast<std::size_t>(n);
  }
  EXPECT_EQ(first[0], 'a');
  EXPECT_EQ(std::string_view(rest.data(), 4), "bcde");

  msghdr message{};
  iovec piece{one.data(), 2};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  EXPECT_EQ(::rsendmsg(client, &message, 0), 2);
  piece.iov_base = rest.data();
  piece.iov_len = rest.size();
  EXPECT_EQ(::rrecvmsg(accepted, &message, 0), 2);
  EXPECT_EQ(std::string_view(rest.data(), 2), "ab");
}

TEST_F(RsocketTest, AddressesOfSendtoAndRecvfromAreThePeers) {
  connect();
  const auto elsewhere = loopback(9);
  EXPECT_EQ(::rsendto(client, "x", 1, 0, as_sockaddr(elsewhere), sizeof elsewhere), 1);
  sockaddr_in from{};
  socklen_t size = sizeof from;
  char octet = 0;
  EXPECT_EQ(::rrecvfrom(accepted, &octet, 1, 0, reinterpret_cast<sockaddr*>(&from), &size), 1);
  EXPECT_EQ(octet, 'x');
  EXPECT_EQ(ntohs(from.sin_port), port_of(client));
}

// Rings, credits and grants go round many times.
TEST_F(RsocketTest, MuchDataArriveAsTheyWere) {
  for (const int buffer : {2048, 1 << 16}) {
    set_option(listener, SOL_SOCKET, SO_RCVBUF, buffer);
    Rsocket one;
    set_option(one, SOL_SOCKET, SO_SNDBUF, buffer / 2 + 1000);
    set_option(one, SOL_SOCKET, SO_RCVBUF, buffer);
    set_option(one, SOL_RDMA, RDMA_SQSIZE, 32);
    set_option(one, SOL_RDMA, RDMA_RQSIZE, 16);
    const auto address = loopback(port_of(listener));
    ASSERT_EQ(::rconnect(one, as_sockaddr(address), sizeof address), 0);
    const Rsocket two(::raccept(listener, nullptr, nullptr));
    const std::string octets = pattern(3'000'017);
    std::thread sender([&] { EXPECT_EQ(send_text(one, octets), static_cast<ssize_t>(octets.size())); });
    std::thread echo([&] {
      std::string some(40'000, '\0');
      for (std::size_t done = 0; done < octets.size();) {
        const ssize_t got = ::rrecv(two, some.data(), some.size(), 0);
        ASSERT_GT(got, 0);
        ASSERT_EQ(::rsend(two, some.data(), static_cast<std::size_t>(got), 0), got);
        done += static_cast<std::size_t>(got);
      }
    });
    EXPECT_TRUE(receive_text(one, octets.size(), MSG_WAITALL) == octets) << buffer;
    sender.join();
    echo.join();
  }
}

// Small messages: as many as there are credits, and more.
TEST_F(RsocketTest, ManySmallMessages) {
  connect();
  std::thread sender([&] {
    for (int i = 0; i < 20'000; ++i) ASSERT_EQ(::rsend(client, &i, sizeof i, 0), static_cast<ssize_t>(sizeof i));
  });
  for (int i = 0; i < 20'000; ++i) {
    int got = -1;
    ASSERT_EQ(::rrecv(accepted, &got, sizeof got, MSG_WAITALL), static_cast<ssize_t>(sizeof got));
    ASSERT_EQ(got, i);
  }
  sender.join();
}

TEST_F(RsocketTest, WithoutRoomSendingIsEagainUntilThePeerReads) {
  set_option(listener, SOL_SOCKET, SO_RCVBUF, 4096);
  set_option(client, SOL_SOCKET, SO_SNDBUF, 4096);
  connect();
  const std::string block(1000, 'x');
  std::size_t sent = 0;
  for (auto until = Clock::now() + 200ms; Clock::now() < until;) {
    const ssize_t n = send_text(client, block, MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    ASSERT_EQ(errno, EAGAIN);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(sent, 8192U);
  EXPECT_LE(sent, 8192U + 4096U + 8192U);
  EXPECT_EQ(polled(client, POLLOUT), 0);
  EXPECT_EQ(receive_text(accepted, sent, MSG_WAITALL).size(), sent);
  EXPECT_EQ(polled(client, POLLOUT, 5000), POLLOUT);
  EXPECT_EQ(send_text(client, block, MSG_DONTWAIT), 1000);
}

TEST_F(RsocketTest, ConnectingWithoutWaiting) {
  const auto address = loopback(port_of(listener));
  set_nonblocking(client);
  EXPECT_EQ(::rconnect(client, as_sockaddr(address), sizeof address), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  EXPECT_EQ(polled(client, POLLOUT, 5000), POLLOUT);
  EXPECT_EQ(option(client, SOL_SOCKET, SO_ERROR), 0);
  EXPECT_EQ(::rconnect(client, as_sockaddr(address), sizeof address), 0);
  EXPECT_EQ(::rconnect(client, as_sockaddr(address), sizeof address), -1);
  EXPECT_EQ(errno, EISCONN);
  accepted = ::raccept(listener, nullptr, nullptr);
  EXPECT_EQ(send_text(accepted, "x"), 1);
  EXPECT_EQ(polled(client, POLLIN, 5000), POLLIN);
}

TEST(RsocketCall, ConnectingWithoutWaitingToNobody) {
  Rsocket gone;
  const auto any = loopback();
  ASSERT_EQ(::rbind(gone, as_sockaddr(any), sizeof any), 0);
  const auto address = loopback(port_of(gone));
  gone.close();
  const Rsocket socket;
  set_nonblocking(socket);
  EXPECT_EQ(::rconnect(socket, as_sockaddr(address), sizeof address), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  EXPECT_EQ(polled(socket, POLLOUT, 5000), POLLOUT | POLLERR);
  EXPECT_EQ(option(socket, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
  EXPECT_EQ(option(socket, SOL_SOCKET, SO_ERROR), 0);
}

TEST_F(RsocketTest, AcceptingWithoutWaiting) {
  set_nonblocking(listener);
  EXPECT_EQ(::raccept(listener, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  const auto address = loopback(port_of(listener));
  ASSERT_EQ(::rconnect(client, as_sockaddr(address), sizeof address), 0);
  EXPECT_EQ(polled(listener, POLLIN, 5000), POLLIN);
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  accepted = ::raccept(listener, reinterpret_cast<sockaddr*>(&peer), &size);
  ASSERT_GE(accepted, 0);
  EXPECT_EQ(ntohs(peer.sin_port), port_of(client));
  EXPECT_EQ(polled(listener, POLLIN), 0);
  EXPECT_EQ(::rfcntl(accepted, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(RsocketTest, SignalsEndAWait) {
  connect();
  interrupted([&] { EXPECT_EQ(receive_text(client), "-EINTR"); });
}

TEST_F(RsocketTest, OptionsAreTold) {
  connect();
  for (const auto& [level, name] : {std::pair{SOL_SOCKET, SO_REUSEADDR},
                                    {SOL_SOCKET, SO_KEEPALIVE},
                                    {SOL_SOCKET, SO_OOBINLINE},
                                    {int{IPPROTO_TCP}, TCP_NODELAY}}) {
    EXPECT_EQ(option(client, level, name), 0);
    set_option(client, level, name, 1);
    EXPECT_EQ(option(client, level, name), 1);
  }
  EXPECT_EQ(option(client, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
  EXPECT_EQ(option(client, SOL_SOCKET, SO_ACCEPTCONN), 0);
  EXPECT_EQ(option(listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
  const Rsocket fresh;
  set_option(fresh, SOL_SOCKET, SO_SNDBUF, 10'000);
  EXPECT_EQ(option(fresh, SOL_SOCKET, SO_SNDBUF), 20'000);
  set_option(fresh, SOL_RDMA, RDMA_IOMAPSIZE, 300);
  EXPECT_EQ(option(fresh, SOL_RDMA, RDMA_IOMAPSIZE), 256);
  set_option(fresh, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  EXPECT_EQ(option(fresh, IPPROTO_TCP, TCP_KEEPIDLE), 5);
  const linger wanted{.l_onoff = 1, .l_linger = 3};
  EXPECT_EQ(::rsetsockopt(fresh, SOL_SOCKET, SO_LINGER, &wanted, sizeof wanted), 0);
  linger told{};
  socklen_t size = sizeof told;
  EXPECT_EQ(::rgetsockopt(fresh, SOL_SOCKET, SO_LINGER, &told, &size), 0);
  EXPECT_EQ(told.l_onoff, 1);
  EXPECT_EQ(told.l_linger, 3);
  const int one = 1;
  EXPECT_EQ(::rsetsockopt(client, SOL_RDMA, RDMA_SQSIZE, &one, sizeof one), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::rsetsockopt(client, SOL_SOCKET, SO_BROADCAST, &one, sizeof one), -1);
  EXPECT_EQ(errno, ENOPROTOOPT);
}

// Two threads of each end, at random, and ends at any moment.
TEST_F(RsocketTest, ThreadsShareASocket) {
  connect();
  constexpr int kEach = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) ASSERT_EQ(send_text(client, "12345678"), 8);
    });
  std::atomic<std::size_t> got{0};
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      std::array<char, 64> some;
      while (got.load() < 2 * kEach * 8) {
        const ssize_t n = ::rrecv(accepted, some.data(), some.size(), 0);
        if (n <= 0) return;
        const std::size_t now = got.fetch_add(static_cast<std::size_t>(n)) + static_cast<std::size_t>(n);
        if (now < 2 * kEach * 8) continue;
        EXPECT_EQ(::rshutdown(accepted, SHUT_RD), 0);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(got.load(), 2U * kEach * 8U);
}

}  // namespace
}  // namespace iwarp::dropin::test
