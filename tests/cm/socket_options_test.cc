// What is asked of TCP, and what it says about a connection.
#include "iwarp/cm/socket_options.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "tests/support/covers.h"
#include "tests/support/tcp_sockets.h"

namespace iwarp::cm {
namespace {

using boost::asio::ip::tcp;

struct Joined {
  // `announced_mss`: the longest segment the client wants; 0 leaves it to the interface.
  explicit Joined(int announced_mss) {
    tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    client.open(tcp::v4());
    if (announced_mss != 0) {
      EXPECT_EQ(::setsockopt(client.native_handle(), IPPROTO_TCP, TCP_MAXSEG, &announced_mss, sizeof announced_mss), 0);
    }
    client.connect(acceptor.local_endpoint());
    acceptor.accept(server);
  }
  boost::asio::io_context io;
  tcp::socket client{io}, server{io};
};

TEST(EffectiveMss, IsWhatTcpAgreedOn) {
  COVERS("RFC5044-2-1");
  COVERS("RFC5044-5.1-2");
  Joined small(1000);
  for (tcp::socket* s : {&small.client, &small.server}) {  // options of each segment may come off it
    EXPECT_LE(effective_mss(*s), 1000U);
    EXPECT_GE(effective_mss(*s), 960U);
  }
  Joined large(0);
  EXPECT_GT(effective_mss(large.client), 1448U) << "loopback has a large MTU";
}

TEST(Prepare, SendsSegmentsAtOnce) {
  COVERS("RFC5044-5.1-4");
  Joined joined(0);
  tcp::no_delay no_delay;
  joined.client.get_option(no_delay);
  EXPECT_FALSE(no_delay.value());
  ASSERT_TRUE(prepare(joined.client, {}).ok());
  joined.client.get_option(no_delay);
  EXPECT_TRUE(no_delay.value());
  EXPECT_TRUE(joined.client.non_blocking());
}

TEST(Rebind, MovesTheConnectionToAnotherContext) {
  Joined joined(0);
  boost::asio::io_context other;
  auto moved = rebind(joined.client, tcp::v4(), other);
  ASSERT_TRUE(moved.ok());
  EXPECT_FALSE(joined.client.is_open());
  EXPECT_EQ(&moved.value().get_executor().context(), &other);
  EXPECT_EQ(moved.value().remote_endpoint(), joined.server.local_endpoint());
}

TEST(Rebind, ClosesWhatCannotBeWatched) {
  Joined joined(0);
  const int fd = joined.client.native_handle();
  boost::asio::io_context other;
  tcp::socket squatter(other);
  squatter.assign(tcp::v4(), fd);  // epoll_ctl(2) takes a descriptor once
  const auto moved = rebind(joined.client, tcp::v4(), other);
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error().code, Errc::kResource);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "a descriptor was left open";
  boost::system::error_code ignored;
  squatter.release(ignored);
}

int option(tcp::socket& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(socket.native_handle(), level, name, &value, &size), 0);
  return value;
}

TEST(Prepare, LetsTcpGiveUpOnAPeerThatVanished) {
  struct Case {
    SocketOptions options;
    int probing, idle_seconds, timeout_ms;
  };
  for (const Case& c :
       {Case{{}, 1, 30, 60'000}, Case{{std::chrono::seconds(7), std::chrono::milliseconds(1234)}, 1, 7, 1234},
        Case{{std::chrono::seconds(0), std::chrono::milliseconds(0)}, 0, 0, 0}}) {
    Joined joined(0);
    ASSERT_TRUE(prepare(joined.client, c.options).ok());
    EXPECT_EQ(option(joined.client, SOL_SOCKET, SO_KEEPALIVE), c.probing);
    EXPECT_EQ(option(joined.client, IPPROTO_TCP, TCP_USER_TIMEOUT), c.timeout_ms);
    if (c.probing == 0) continue;
    EXPECT_EQ(option(joined.client, IPPROTO_TCP, TCP_KEEPIDLE), c.idle_seconds);
    EXPECT_EQ(option(joined.client, IPPROTO_TCP, TCP_KEEPINTVL), 5);
    EXPECT_EQ(option(joined.client, IPPROTO_TCP, TCP_KEEPCNT), 5);
  }
}

TEST(MakeRoom, IsForWhatIsNotReadYet) {
  const std::size_t most = test::largest_receive_buffer();
  ASSERT_GT(most, 0U);
  for (const std::size_t window : {std::size_t{0}, std::size_t{1} << 20, SocketOptions{}.receive_window}) {
    Joined joined(0);
    const int before = option(joined.client, SOL_SOCKET, SO_RCVBUF);
    make_room(joined.client.native_handle(), window);
    const int after = option(joined.client, SOL_SOCKET, SO_RCVBUF);
    if (window == 0) {
      EXPECT_EQ(after, before);
    } else {
      EXPECT_GE(static_cast<std::size_t>(after), std::min(window, most / 2));
    }
    EXPECT_EQ(option(joined.client, SOL_SOCKET, SO_RCVLOWAT), 1) << "a single octet must be readable";
  }
}

}  // namespace
}  // namespace iwarp::cm
