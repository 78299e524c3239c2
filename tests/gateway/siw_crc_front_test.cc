// Peers that end their connections with Terminate 2/0/2, as siw with its CRC fault does: the gateway says what to do.
#include "iwarp/mpa/startup_frame.h"
#include "tests/gateway/chained.h"
#include "tests/support/segments.h"

namespace iwarp::gateway::test {
namespace {

using iwarp::test::fpdu;
using iwarp::test::terminate_segment;

Bytes startup(bool reply) {
  mpa::StartupFrame f;
  f.is_reply = reply;
  f.crc = f.enhanced = true;
  f.enhanced_data = {.ird = 8, .ord = 8};
  Bytes out(f.size());
  f.write_to(out);
  return out;
}

// Layer, type and code in the order of the RFC, and in that of siw on a little-endian host.
const Bytes kRfcOrder = {std::byte{0x20}, std::byte{2}, std::byte{0}, std::byte{0}};
const Bytes kSiwOrder = {std::byte{0x02}, std::byte{2}, std::byte{0}, std::byte{0}};
const Bytes kOther = {std::byte{0x12}, std::byte{2}, std::byte{0}, std::byte{0}};

class SiwCrcFront : public Chained {
 protected:
  // A client of the RDMA front that is served, and then sends this Terminate.
  void client_terminates(const Bytes& terminate) {
    tcp::socket socket(loop.io);
    socket.connect(front->local());
    const auto peer = std::make_shared<TcpPeer>(std::move(socket));
    peer->start();
    const auto opened = front->snapshot().opened;
    peer->send_raw(startup(false));
    ASSERT_TRUE(loop.until([&] { return front->snapshot().opened == opened + 1; }));
    peer->send_raw(fpdu(terminate_segment(terminate), true));
    ASSERT_TRUE(loop.until([&] { return peer->ended(); }));
    peer->close();
    ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  }
};

TEST_F(SiwCrcFront, WarnsOfAClientOnceInAWhile) {
  for (const Bytes& terminate : {kSiwOrder, kOther, kRfcOrder}) client_terminates(terminate);
  EXPECT_EQ(front->snapshot().crc_terminates, 2u);
  EXPECT_EQ(front->snapshot().siw_crc_traps, 0u);
  EXPECT_EQ(log_lines("scripts/build-siw"), 0u);
  for (int i = 0; i < 3; ++i) client_terminates(kSiwOrder);
  EXPECT_EQ(front->snapshot().crc_terminates, 5u);
  EXPECT_EQ(front->snapshot().siw_crc_traps, 3u);
  EXPECT_TRUE(logged("scripts/build-siw", 1));
  EXPECT_TRUE(logged("peer address=127.0.0.1", 1));
}

TEST_F(SiwCrcFront, WarnsOfAServer) {
  tcp::acceptor rdma_server(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  open_tcp(rdma_server.local_endpoint());
  for (std::uint64_t i = 1; i <= SiwCrcTrap::kEnds; ++i) {
    EXPECT_EQ(log_lines("scripts/build-siw"), 0u);
    auto c = tcp_client();
    std::shared_ptr<TcpPeer> peer;
    rdma_server.async_accept([&](boost::system::error_code ec, tcp::socket socket) {
      ASSERT_FALSE(ec);
      peer = std::make_shared<TcpPeer>(std::move(socket));
      peer->start();
    });
    ASSERT_TRUE(loop.until([&] { return peer && peer->received_bytes > 0; }));
    peer->send_raw(startup(true));
    ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().opened == i; }));
    peer->send_raw(fpdu(terminate_segment(kSiwOrder), true));
    ASSERT_TRUE(loop.until([&] { return peer->ended(); }));
    peer->close();
    ASSERT_TRUE(loop.until([&] { return c->ended() && tcp_front->snapshot().active() == 0; }));
  }
  EXPECT_EQ(tcp_front->snapshot().crc_terminates, SiwCrcTrap::kEnds);
  EXPECT_EQ(tcp_front->snapshot().siw_crc_traps, 1u);
  EXPECT_TRUE(logged("scripts/build-siw", 1));
}

}  // namespace
}  // namespace iwarp::gateway::test
