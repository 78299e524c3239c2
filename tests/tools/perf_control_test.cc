// The control connection of `iwarp perf`, against a raw socket.
#include "tools/perf/control.h"

#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>

namespace iwarp::tools::perf {
namespace {

using boost::asio::ip::tcp;

class ControlTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }
  tcp::socket accept() { return acceptor_.accept(); }

 private:
  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
};

TEST_F(ControlTest, HearsWhyThePeerClosedBeforeItWasAsked) {
  Control control("127.0.0.1", port());
  tcp::socket peer = accept();
  boost::asio::write(peer, boost::asio::buffer(std::string("{\"error\": \"come again later\"}\n")));
  peer.set_option(boost::asio::socket_base::linger(true, 0));
  peer.close();  // with RST: asking fails
  try {
    (void)control.ask({{"command", "cpu"}});
    ADD_FAILURE() << "got an answer";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "the other end: come again later");
  }
}

TEST_F(ControlTest, SaysThatThePeerIsGone) {
  Control control("127.0.0.1", port());
  tcp::socket peer = accept();
  peer.set_option(boost::asio::socket_base::linger(true, 0));
  peer.close();
  try {
    (void)control.ask({{"command", "cpu"}});
    ADD_FAILURE() << "got an answer";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("the other end of the test is gone"));
  }
}

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(fd, level, name, &value, &size);
  return value;
}

// Or a client whose machine was switched off would keep all others out.
TEST_F(ControlTest, GivesUpAPeerThatVanished) {
  Control active("127.0.0.1", port());
  tcp::socket accepted = accept();
  const int fd = ::dup(accepted.native_handle());
  const Control passive(std::move(accepted));
  EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_GT(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  EXPECT_LE(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
  ::close(fd);
}

}  // namespace
}  // namespace iwarp::tools::perf
