#include "iwarp/gateway/record_stream.h"

#include <gtest/gtest.h>

#include "iwarp/gateway/turn_queue.h"
#include "tests/gateway/loop.h"
#include "tests/gateway/tcp_peer.h"
#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::gateway::test {
namespace {

namespace samples = rpcrdma::test;
using Purpose = rpcrdma::BufferPool::Purpose;
using iwarp::test::operator+;
using iwarp::test::pattern;
using namespace std::chrono_literals;

constexpr std::size_t kTurn = TurnQueue::kTurnBytes;

struct Keys : rpcrdma::Registrar {
  Result<Stag> register_local(MutBytes) override { return Stag{++last}; }
  void deregister_local(Stag) override {}
  std::uint32_t last = 0;
};

class RecordStreamTest : public ::testing::Test {
 protected:
  RecordStreamTest() {
    tcp::acceptor acceptor(loop.io, {boost::asio::ip::address_v4::loopback(), 0});
    tcp::socket far(loop.io), near(loop.io);
    far.connect(acceptor.local_endpoint());
    acceptor.accept(near);
    stream = std::make_shared<RecordStream>(std::move(near), RecordOptions{}, pool, Purpose::kCall, stats);
    peer = std::make_shared<TcpPeer>(std::move(far));
    peer->start();
    stream->start([this] { ++wakes; });
    stream->start_turn(kTurn);
  }
  ~RecordStreamTest() override {
    stream->close(true);
    peer->close();
  }

  void send(const Bytes& record) {
    auto buffer = samples::to_buffer(pool, record);
    ASSERT_TRUE(stream->send(buffer));
  }
  // All that read() has now.
  std::size_t take() {
    std::size_t n = 0;
    while (auto record = stream->read()) ++n;
    return n;
  }

  Loop loop;
  Keys keys;
  rpcrdma::BufferPool pool{keys, {}};
  Stats stats;
  std::shared_ptr<RecordStream> stream;
  std::shared_ptr<TcpPeer> peer;
  unsigned wakes = 0;
};

TEST_F(RecordStreamTest, RecordsOfOneTurnLeaveTogether) {
  constexpr std::uint32_t kReplies = 32;
  stream->start_turn(kTurn);
  for (std::uint32_t xid = 1; xid <= kReplies; ++xid) send(samples::rpc_reply(xid));
  EXPECT_FALSE(stream->all_sent());
  EXPECT_FALSE(stream->worth_a_flush());
  stream->flush();
  EXPECT_TRUE(stream->all_sent());
  EXPECT_EQ(stream->system_calls().sends, 1u);
  ASSERT_TRUE(loop.until([&] { return peer->inbox.size() == kReplies; }));
  for (std::uint32_t xid = 1; xid <= kReplies; ++xid) EXPECT_EQ(peer->inbox[xid - 1], samples::rpc_reply(xid));
}

TEST_F(RecordStreamTest, WaitsWithoutLookingAgain) {
  EXPECT_EQ(take(), 0u);
  EXPECT_EQ(stream->system_calls().receives, 1u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(take(), 0u);  // other wake-ups of the owner
  EXPECT_EQ(stream->system_calls().receives, 1u);
  for (std::uint32_t n = 1; n <= 5; ++n) {
    peer->send(samples::null_call(n));
    ASSERT_TRUE(loop.until([&] { return wakes == n; }));
    EXPECT_EQ(take(), 1u);
    EXPECT_EQ(take(), 0u);
    EXPECT_EQ(stream->system_calls().receives, 1u + n);  // none that finds nothing
  }
}

TEST_F(RecordStreamTest, NoticesTheEndWhileItWaits) {
  peer->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return take() == 1; }));
  EXPECT_FALSE(stream->ended());
  peer->close();
  ASSERT_TRUE(loop.until([&] { return take() == 0 && stream->ended(); }));
  EXPECT_EQ(stream->ended()->code, Errc::kPeerClosed);
}

TEST_F(RecordStreamTest, ThePeerOwesNothingWhileThereIsNoMemory) {
  const Bytes record = samples::write_call(1, pattern(100u << 10));
  std::vector<rpcrdma::Buffer> all;
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{4096}}) {
    while (auto buffer = pool.acquire(bytes, Purpose::kCall)) all.push_back(std::move(*buffer));
  }
  peer->send_raw(record_mark(200, false) + Bytes(record.begin(), record.begin() + 200));
  EXPECT_FALSE(loop.until([&] { return take() == 0 && stream->in_record(); }, 50ms));
  all.clear();
  ASSERT_TRUE(loop.until([&] { return take() == 0 && stream->in_record(); }));
  peer->send_raw(record_mark(record.size() - 200) + Bytes(record.begin() + 200, record.end()));
  ASSERT_TRUE(loop.until([&] { return take() == 1; }));
  EXPECT_FALSE(stream->in_record());
}

TEST_F(RecordStreamTest, ATurnReadsABoundedAmount) {
  constexpr std::size_t kRecords = 8;
  constexpr std::size_t kBytes = 200u << 10;
  for (std::uint32_t xid = 1; xid <= kRecords; ++xid) peer->send(samples::write_call(xid, pattern(kBytes)));
  std::size_t turns = 0;
  std::size_t records = 0;
  ASSERT_TRUE(loop.until([&] {
    stream->start_turn(kTurn);
    const std::size_t n = take();
    EXPECT_LE(n, kTurn / kBytes + 1);
    records += n;
    turns += n > 0 ? 1 : 0;
    return records == kRecords;
  }));
  EXPECT_GE(turns, kRecords * kBytes / (kTurn + kBytes));
}

// A write of which TCP took a part is not tried again before TCP says so.
TEST_F(RecordStreamTest, WaitsWhenTcpTakesNoMore) {
  tcp::acceptor acceptor(loop.io, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket far(loop.io), near(loop.io);  // nobody reads at the far end
  far.connect(acceptor.local_endpoint());
  acceptor.accept(near);
  near.set_option(boost::asio::socket_base::send_buffer_size(4096));
  const auto slow = std::make_shared<RecordStream>(std::move(near), RecordOptions{}, pool, Purpose::kCall, stats);
  slow->start_turn(8u << 20);
  auto buffer = samples::to_buffer(pool, samples::read_reply(1, pattern(1u << 20)));
  ASSERT_TRUE(slow->send(buffer));
  for (int i = 0; i < 3; ++i) slow->flush();
  EXPECT_FALSE(slow->all_sent());
  EXPECT_FALSE(slow->turn_is_over());
  EXPECT_EQ(slow->system_calls().sends, 1u);
  slow->close(true);
}

TEST_F(RecordStreamTest, TellsBulkDataFromAFewSmallRecords) {
  const auto turn_with = [&](const Bytes& record) {
    peer->send(record);
    stream->start_turn(kTurn);
    EXPECT_FALSE(stream->moved_much());
    EXPECT_TRUE(loop.until([&] { return take() == 1; }));
    return stream->moved_much();
  };
  EXPECT_TRUE(turn_with(samples::write_call(1, pattern(RecordStream::kMuch))));
  EXPECT_FALSE(turn_with(samples::write_call(2, pattern(RecordStream::kMuch / 2))));
}

TEST_F(RecordStreamTest, ATurnWritesABoundedAmount) {
  constexpr std::size_t kBytes = 1u << 20;
  for (std::uint32_t xid = 1; xid <= 4; ++xid) send(samples::read_reply(xid, pattern(kBytes)));
  EXPECT_TRUE(stream->worth_a_flush());
  EXPECT_FALSE(stream->moved_much());
  stream->flush();
  EXPECT_EQ(stream->system_calls().sends, 1u);
  EXPECT_TRUE(stream->turn_is_over());
  EXPECT_TRUE(stream->moved_much());
  EXPECT_FALSE(stream->all_sent());
  ASSERT_TRUE(loop.until([&] {
    stream->start_turn(kTurn);
    stream->flush();
    return peer->inbox.size() == 4;
  }));
  for (std::uint32_t xid = 1; xid <= 4; ++xid)
    EXPECT_EQ(peer->inbox[xid - 1], samples::read_reply(xid, pattern(kBytes)));
}

}  // namespace
}  // namespace iwarp::gateway::test
