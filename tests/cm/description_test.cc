// What log lines say of a connection's end.
#include "iwarp/cm/description.h"

#include <gtest/gtest.h>

#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

Counters busy() {
  Counters c;
  c.tx.writes = 10;
  c.tx.write_bytes = 640;
  c.tx.reads = 3;
  c.rx.read_response_bytes = 192;
  c.tx.sends = c.rx.sends = 2;
  c.tx.send_bytes = c.rx.send_bytes = 32;
  c.tx.wakes = 1;
  return c;
}

TEST(Counters, LeaveOutWhatIsZero) {
  EXPECT_EQ(Counters{}.to_string(), "");
  EXPECT_EQ(busy().to_string(), "tx_write=10/640 tx_read=3/192 tx_send=2/32 rx_send=2/32 tx_wake=1");
}

TEST(Counters, TellWhatWasPlacedEarly) {
  Counters c;
  c.rx.sends = 1;
  c.rx.send_bytes = 900;
  c.rx.early = 2;
  c.rx.early_bytes = 700;
  EXPECT_EQ(c.to_string(), "rx_send=1/900 rx_early=2/700");
}

TEST(Counters, GiveReadsTheOctetsThatTheyBring) {
  Counters c;
  c.rx.read_requests = 4;
  c.tx.read_response_bytes = 256;
  EXPECT_EQ(c.to_string(), "rx_read=4/256");
}

TEST(Counters, LeaveOutWhatDoesNotFit) {
  const std::string all = busy().to_string();
  EXPECT_EQ(busy().to_string(all.size()), all);
  for (std::size_t columns = all.size(); columns-- > 3;) {
    const std::string cut = busy().to_string(columns);
    EXPECT_LE(cut.size(), columns);
    EXPECT_EQ(cut.substr(cut.size() - 3), "...");
    EXPECT_EQ(all.rfind(cut.substr(0, cut.size() - 3), 0), 0U) << cut;
  }
}

TEST(End, IsNamedByWhatHappened) {
  Engine engine;
  Node client(engine), server(engine);
  const auto listener = listen(engine);
  const Ends ends = join(client, server, *listener);
  ASSERT_EQ(ends.client.error.code, Errc::kOk);
  ends.client.connection->disconnect();
  const auto here = ending(*ends.client.connection), there = ending(*ends.server.connection);
  const std::string at_client = describe_end(*ends.client.connection, here);
  const std::string at_server = describe_end(*ends.server.connection, there, kEndColumns, "tcp_peer=1.2.3.4:5");
  EXPECT_NE(at_client.find(" end=\"done\""), std::string::npos) << at_client;
  EXPECT_NE(at_server.find(" tcp_peer=1.2.3.4:5 end=\"client closed\""), std::string::npos) << at_server;
}

TEST(End, OfAClientThatLeavesIsUnremarkableForItsServer) {
  Engine engine;
  Node client(engine), server(engine);
  const auto listener = listen(engine);
  const Ends ends = join(client, server, *listener);
  ASSERT_EQ(ends.client.error.code, Errc::kOk);
  stream::Disconnected reset;
  reset.reason = make_error(Errc::kConnectionLost);
  reset.was_established = true;
  EXPECT_TRUE(unremarkable_end(*ends.server.connection, reset));
  EXPECT_FALSE(unremarkable_end(*ends.client.connection, reset));
  reset.reason = make_error(Errc::kCrcMismatch);
  EXPECT_FALSE(unremarkable_end(*ends.server.connection, reset));
  EXPECT_NE(describe_end(*ends.server.connection, reset).find("end=\"crc mismatch\" why=\"FPDU CRC mismatch\""),
            std::string::npos);
}

}  // namespace
}  // namespace iwarp::cm
