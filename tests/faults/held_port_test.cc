#include "tests/faults/held_port.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace iwarp::faults {
namespace {

using boost::asio::ip::tcp;

TEST(HeldPort, IsForThoseWhoAskForItOneAfterTheOther) {
  const HeldPort held;
  const tcp::endpoint there{boost::asio::ip::address_v4::loopback(), held.port()};
  boost::asio::io_context io;
  for (int life = 0; life < 3; ++life) {
    boost::system::error_code ec;
    tcp::socket early(io);
    early.connect(there, ec);
    EXPECT_EQ(ec, boost::asio::error::connection_refused) << ec.message();
    tcp::acceptor acceptor(io, there);  // with SO_REUSEADDR
    tcp::socket client(io);
    client.connect(there, ec);
    EXPECT_FALSE(ec) << ec.message();
    (void)acceptor.accept(ec);
    EXPECT_FALSE(ec) << ec.message();
  }
}

TEST(HeldPort, IsGivenToNobodyElse) {
  const HeldPort held;
  boost::asio::io_context io;
  tcp::socket other(io, tcp::v4());
  boost::system::error_code ec;
  other.bind({boost::asio::ip::address_v4::loopback(), held.port()}, ec);
  EXPECT_EQ(ec, boost::asio::error::address_in_use) << ec.message();
}

}  // namespace
}  // namespace iwarp::faults
