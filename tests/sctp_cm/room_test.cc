// What waits for room: in the UDP socket, and in the buffers of an association.
#include "tests/sctp_cm/net.h"

namespace iwarp::sctp_cm {
namespace {

using sctp::Ppid;
using sctp::StreamId;

TEST(SctpUdpPort, ALostRunIsNotTheEndOfRuns) {
  boost::asio::io_context io;
  auto port = UdpPort::open(io, {boost::asio::ip::make_address("0.0.0.0"), 0}, {[](auto&&...) {}, [] {}}, {});
  ASSERT_TRUE(port);
  if (!(*port)->joins()) GTEST_SKIP() << "no UDP GSO here";
  // Without SO_BROADCAST the system refuses (EACCES).
  for (int i = 0; i < 2; ++i) (*port)->queue({boost::asio::ip::address_v4::broadcast(), 9}, octets("lost"));
  (*port)->flush();
  EXPECT_EQ((*port)->waiting(), 0u);
  EXPECT_TRUE((*port)->joins());
}

// A peer may have a UDP port 0, to which nothing can be sent (EINVAL), or a path of a smaller MTU.
TEST(SctpUdpPort, ARunThatOnePeerDoesNotTakeIsNotTheEndOfRuns) {
  boost::asio::io_context io;
  std::size_t came = 0;
  const auto open = [&io](UdpPort::Handlers handlers) {
    auto port = UdpPort::open(io, {boost::asio::ip::make_address("127.0.0.1"), 0}, std::move(handlers), {});
    EXPECT_TRUE(port);
    return *std::move(port);
  };
  const auto from = open({[](auto&&...) {}, [] {}}), to = open({[&](auto&&...) { ++came; }, [] {}});
  if (!from->joins()) GTEST_SKIP() << "no UDP GSO here";
  for (int i = 0; i < 3; ++i) from->queue({boost::asio::ip::address_v4::loopback(), 0}, octets("lost"));
  for (int i = 0; i < 3; ++i) from->queue(to->local(), octets("good"));
  from->flush();
  EXPECT_EQ(from->waiting(), 0u);
  EXPECT_TRUE(from->joins());
  const auto limit = std::chrono::steady_clock::now() + 20s;
  while (came < 3 && std::chrono::steady_clock::now() < limit) io.run_one_for(20ms);
  EXPECT_EQ(came, 3u);
}

// Messages of half a buffer: where one does not fit, smaller ones would.
class BigPackets : public SctpTransport {
 protected:
  struct Pump {
    std::shared_ptr<Association> over;
    std::size_t sent = 0;
    void send(const std::string& text, std::size_t limit) {
      while (sent < limit) {
        const auto taken = over->send(StreamId{1}, Ppid::kDdpSegment, true, octets(text));
        if (!taken || !*taken) return;
        ++sent;
      }
    }
  };
  void open() {
    start();
    big.packet_bytes = 65507;
    big.buffer_bytes = 128 << 10;
    listen("127.0.0.1", big);
    pump_a.over = join(at_a, big);
    pump_b.over = passive[0];
    at_a.when_room = [this] { pump_a.send(text, kMessages); };
    at_b().when_room = [this] { pump_b.send(text, kMessages); };
  }
  Hearer& at_b() { return *passive_users[0]; }

  static constexpr std::size_t kMessages = 1000;
  static constexpr auto kLimit = 120s;  // some 5 s, on a loaded machine much more
  const std::string text = std::string(60000, 'x');
  TransportOptions big;
  Hearer at_a;
  Pump pump_a, pump_b;
};

TEST_F(BigPackets, BothDirectionsFullGoOn) {
  open();
  at_a.when_room();
  at_b().when_room();
  ASSERT_LT(pump_a.sent, kMessages);
  ASSERT_TRUE(run([&] { return at_a.got.size() == kMessages && at_b().got.size() == kMessages; }, kLimit));
  EXPECT_LT(at_a.rooms + at_b().rooms, 20 * static_cast<int>(kMessages));
}

TEST_F(BigPackets, AFullBufferCostsNoTimeWhileNothingMoves) {
  open();
  pump_a.over->hold(true);
  pump_b.over->hold(true);
  at_a.when_room();
  at_b().when_room();
  run_for(300ms);
  const int before = at_a.rooms + at_b().rooms;
  run_for(300ms);
  EXPECT_LT(at_a.rooms + at_b().rooms - before, 100);
  pump_a.over->hold(false);
  pump_b.over->hold(false);
  ASSERT_TRUE(run([&] { return at_a.got.size() == kMessages && at_b().got.size() == kMessages; }, kLimit));
}

}  // namespace
}  // namespace iwarp::sctp_cm
