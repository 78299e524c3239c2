// A real connection to a peer that says nothing, and one that is ended before the peer said anything.
#include "iwarp/stream/early_wake.h"
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

class EarlyWakes : public ::testing::Test {
 protected:
  // The peer's side of a connection that is up, with the RTR read.
  RawTcp connect(bool peer_to_peer) { return connect(client_, peer_to_peer); }
  RawTcp connect(Node& client, bool peer_to_peer) {
    mpa::Policy policy;
    policy.peer_to_peer = peer_to_peer;
    policy.rtr_read = false;
    auto connecting = start_connect(client, to_port(peer_.port(), policy));
    RawTcp peer = peer_.accept();
    EXPECT_TRUE(read_frame(peer, false).complete);
    mpa::StartupFrame reply = good_reply();
    if (!peer_to_peer) reply.enhanced_data = {.ird = 8, .ord = 8};
    reply.enhanced_data.rtr_read = false;
    EXPECT_TRUE(peer.send(octets(reply)));
    connection_ = get_outcome(std::move(connecting)).connection;
    if (peer_to_peer) {
      EXPECT_EQ(to_hex(peer.read(kEmptyWrite.size())), to_hex(kEmptyWrite));
    }
    return peer;
  }

  const Bytes kEmptyWrite = fpdu(write_segment(Stag{1}, 0, {}), true);
  RawListener peer_;
  Engine engine_;
  Node client_{engine_};
  std::shared_ptr<Connection> connection_;
};

// The first FPDU leaves in the posting thread: the timer has to run all the same.
TEST_F(EarlyWakes, FollowAFirstFpduThatNobodyAnswers) {
  RawTcp peer = connect(false);
  client_.recv(1);
  client_.send(2, 16);
  client_.expect(verbs::WcOp::kSend, 2);
  const Bytes first = fpdu(send_segment(Bytes(client_.out.begin(), client_.out.begin() + 16)), true);
  EXPECT_EQ(to_hex(peer.read(first.size())), to_hex(first));
  EXPECT_EQ(to_hex(peer.read(kEmptyWrite.size())), to_hex(kEmptyWrite));
  EXPECT_TRUE(peer.send(fpdu(send_segment(pattern(5)), true)));
  client_.expect(verbs::WcOp::kRecv, 1);
  const auto counters = connection_->counters();
  EXPECT_GE(counters.tx.wakes, 1U);
  EXPECT_NE(counters.to_string().find("tx_wake=" + std::to_string(counters.tx.wakes)), std::string::npos);
}

// Each leaves when it is due: none waits for another reason to send. A thread that is late makes up for several at
// once, so a busy machine gets more attempts.
TEST_F(EarlyWakes, AllLeaveByThemselves) {
  std::uint64_t most = 0;
  for (int attempt = 0; attempt < 5 && most < stream::EarlyWake::kAfter.size(); ++attempt) {
    Node client(engine_);
    RawTcp peer = connect(client, false);
    const auto last = std::chrono::steady_clock::now() + stream::EarlyWake::kAfter.back();
    client.send(1, 16);
    client.expect(verbs::WcOp::kSend, 1);
    const Bytes first = fpdu(send_segment(Bytes(client.out.begin(), client.out.begin() + 16)), true);
    EXPECT_EQ(to_hex(peer.read(first.size())), to_hex(first));
    std::uint64_t wakes = 0;
    do {
      ASSERT_EQ(to_hex(peer.read(kEmptyWrite.size())), to_hex(kEmptyWrite)) << wakes;
      ++wakes;
    } while (std::chrono::steady_clock::now() < last);
    EXPECT_GE(connection_->counters().tx.wakes, wakes);
    most = std::max(most, wakes);
  }
  EXPECT_EQ(most, stream::EarlyWake::kAfter.size());
}

TEST_F(EarlyWakes, PrecedeAnAbortThatCompletesAllWorkAtOnce) {
  RawTcp peer = connect(true);
  client_.recv(1);
  connection_->abort();
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  EXPECT_FALSE(connection_->disconnected());
  EXPECT_EQ(to_hex(peer.read(kEmptyWrite.size())), to_hex(kEmptyWrite));
  EXPECT_TRUE(peer.send(kEmptyWrite));
  EXPECT_EQ(ending(*connection_).reason.code, Errc::kAborted);
  EXPECT_EQ(peer.end(), RawTcp::End::kReset);
}

TEST_F(EarlyWakes, PrecedeTheFinOfAnOrderlyEnd) {
  RawTcp peer = connect(true);
  connection_->disconnect();
  EXPECT_EQ(to_hex(peer.read(kEmptyWrite.size())), to_hex(kEmptyWrite));
  EXPECT_EQ(peer.end(), RawTcp::End::kFin) << "the peer is not waited for for ever";
}

}  // namespace
}  // namespace iwarp::cm
