// Back-pressure without deadlock: whoever is slow slows down only its own connection, memory stays within its bounds,
// Replies always drain.
#include "tests/gateway/front_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kBig = 1u << 20;
// What the kernel may hold of one loopback connection, both ends, beside what we hold.
constexpr std::uint64_t kSocketBuffers = 16u << 20;

class RdmaFrontPressure : public FrontFixture {
 protected:
  void SetUp() override {
    options.memory_bytes = 4u << 20;  // three Calls and three Replies of 1 MiB
    server.keep_calls = false;
  }
  std::uint64_t rdma(RdmaOperation op, Way way) const {
    return front->snapshot().rdma_bytes[static_cast<std::size_t>(op)][static_cast<std::size_t>(way)];
  }
  std::uint64_t tcp_total(Way way) const { return front->snapshot().tcp_bytes[static_cast<std::size_t>(way)]; }
  // Waits until nothing has moved for a while.
  void settle() {
    Stats::Snapshot last = front->snapshot();
    do {
      last = front->snapshot();
      loop.run_for(200ms);
    } while (!(last == front->snapshot()));
  }
  void send_write(RdmaClient& c, std::uint32_t xid, const std::shared_ptr<Exposed>& content) {
    const auto data = exposed_.emplace_back(c.expose_again(content));
    const Bytes head = samples::write_call_head(xid, kBig);
    auto h = samples::header(xid);
    h.read_list = {{static_cast<std::uint32_t>(head.size()), data->segment}};
    c.send(h, head);
  }
  static void send_long_call(RdmaClient& c, std::uint32_t xid, const std::shared_ptr<Exposed>& call) {
    auto h = samples::header(xid, rpcrdma::Proc::kNomsg);
    h.read_list = {{0, call->segment}};
    c.send(h);
  }

 private:
  std::vector<std::shared_ptr<Exposed>> exposed_;
};

TEST_F(RdmaFrontPressure, ClientWritesFasterThanTheServerReads) {
  COVERS("RFC8166-3.3.1-10");
  server.start_paused = true;
  open();
  auto c = client();
  auto data = c->expose_for_read(pattern(kBig, 3));
  for (std::uint32_t xid = 1; xid <= options.credits; ++xid) send_write(*c, xid, data);
  ASSERT_TRUE(loop.until([&] { return rdma(RdmaOperation::kRead, Way::kIn) > kBig; }));
  settle();
  const std::uint64_t pulled = rdma(RdmaOperation::kRead, Way::kIn);
  EXPECT_LE(pulled - std::min(pulled, tcp_total(Way::kOut)), options.memory_bytes);
  EXPECT_LT(pulled, options.memory_bytes + kSocketBuffers);
  EXPECT_LT(pulled, std::uint64_t{options.credits} * kBig);
  EXPECT_FALSE(c->closed());
  server.start_paused = false;
  expect_still_serving();
  server.peers[0]->resume();
  for (std::uint32_t xid = 1; xid <= options.credits; ++xid) {
    ASSERT_EQ(c->await(xid).payload, samples::write_reply(xid));
  }
  expect_nothing_pending();
}

TEST_F(RdmaFrontPressure, LongCallsWaitForMemoryAndRepliesDoNot) {
  std::vector<std::pair<std::shared_ptr<TcpPeer>, std::uint32_t>> reads;
  open();
  server.on_call = [&](TcpPeer& from, const Bytes& call) {
    const auto head = rpcrdma::RpcCall::parse(call);
    if (head->procedure == 6) {
      reads.emplace_back(from.shared_from_this(), head->xid);
    } else {
      from.send(serve(call));
    }
  };
  auto c = client();
  std::map<std::uint32_t, std::shared_ptr<Exposed>> rooms;
  for (std::uint32_t xid = 1; xid <= 8; ++xid) {
    rooms[xid] = c->expose_for_write(kBig);
    auto h = samples::header(xid);
    h.write_list = {rpcrdma::WriteChunk{{rooms[xid]->segment}}};
    c->send(h, samples::read_call(xid, kBig));
  }
  ASSERT_TRUE(loop.until([&] { return reads.size() == 8; }));
  server.peers[0]->pause();  // now Calls jam, and the server answers what it has
  std::vector<std::shared_ptr<Exposed>> calls;
  for (std::uint32_t xid = 100; xid < 100 + 40; ++xid) {
    calls.push_back(c->expose_for_read(samples::write_call(xid, pattern(kBig, xid))));
    send_long_call(*c, xid, calls.back());
  }
  settle();
  for (const auto& [peer, xid] : reads) peer->send(samples::read_reply(xid, pattern(kBig, xid)));
  for (const auto& [xid, room] : rooms) {
    ASSERT_EQ(c->await(xid).payload, samples::read_reply_head(xid, kBig));
    EXPECT_TRUE(room->memory == pattern(kBig, xid));
  }
  server.peers[0]->resume();
  for (std::uint32_t xid = 100; xid < 100 + 40; ++xid) {
    ASSERT_EQ(c->await(xid).payload, samples::write_reply(xid));
  }
  expect_nothing_pending();
}

TEST_F(RdmaFrontPressure, ServerAnswersFasterThanTheClientTakes) {
  open();
  Relay relay(loop, front->local());
  RdmaClient c(loop, client_engine);
  ASSERT_TRUE(c.connect(relay.local()));
  c.call(samples::null_call(0x1000));
  (void)c.await(0x1000);
  relay.stall_replies(true);
  std::vector<std::shared_ptr<Exposed>> rooms;
  for (std::uint32_t xid = 1; xid <= options.credits; ++xid) {
    rooms.push_back(c.expose_for_write(kBig));
    auto h = samples::header(xid);
    h.write_list = {rpcrdma::WriteChunk{{rooms.back()->segment}}};
    c.send(h, samples::read_call(xid, kBig));
  }
  ASSERT_TRUE(loop.until([&] { return tcp_total(Way::kIn) > kBig; }));
  settle();
  const std::uint64_t taken = tcp_total(Way::kIn);
  EXPECT_LE(taken, options.memory_bytes + kSocketBuffers);
  EXPECT_GT(server.peers[0]->unsent_bytes(), 0u);  // it is the server that has to wait
  expect_still_serving();
  relay.stall_replies(false);
  for (std::uint32_t xid = 1; xid <= options.credits; ++xid) {
    ASSERT_EQ(c.await(xid).payload, samples::read_reply_head(xid, kBig));
    EXPECT_TRUE(rooms[xid - 1]->memory == pattern(kBig, xid));
  }
  expect_nothing_pending();
}

// Both at once: the server reads nothing before its Replies are taken, the client takes nothing before its Calls are.
TEST_F(RdmaFrontPressure, JamsInBothDirectionsDissolve) {
  open();
  Relay relay(loop, front->local());
  RdmaClient c(loop, client_engine);
  ASSERT_TRUE(c.connect(relay.local()));
  server.on_call = [](TcpPeer& from, const Bytes& call) {
    from.send(serve(call));
    from.unsent_bytes() > 0 ? from.pause() : from.resume();
  };
  const auto unpause = loop.add([&] {
    for (const auto& peer : server.peers) {
      if (peer->unsent_bytes() == 0) peer->resume();
    }
  });
  relay.stall_replies(true);
  auto data = c.expose_for_read(pattern(kBig, 3));
  std::vector<std::shared_ptr<Exposed>> rooms;
  for (std::uint32_t xid = 1; xid <= options.credits; ++xid) {
    if (xid % 2 == 0) {
      send_write(c, xid, data);
      continue;
    }
    rooms.push_back(c.expose_for_write(kBig));
    auto h = samples::header(xid);
    h.write_list = {rpcrdma::WriteChunk{{rooms.back()->segment}}};
    c.send(h, samples::read_call(xid, kBig));
  }
  settle();
  relay.stall_replies(false);
  for (std::uint32_t xid = 1; xid <= options.credits; ++xid) {
    ASSERT_EQ(c.await(xid).header.xid, xid);
  }
  loop.remove(unpause);
  expect_nothing_pending();
}

// A client that sends more Calls than it was granted ends its own connection; others go on.
TEST_F(RdmaFrontPressure, ClosesClientsThatOverrunTheirCredits) {
  COVERS("RFC8166-2.3.2-5");
  server.on_call = [](TcpPeer&, const Bytes&) {};
  open();
  auto greedy = client();
  auto other = client();
  for (std::uint32_t xid = 1; xid <= 400 && !greedy->closed(); ++xid) {
    greedy->call(samples::null_call(xid));
    if (xid % 10 == 0) loop.run_for(1ms);
  }
  ASSERT_TRUE(loop.until([&] { return greedy->closed(); }));
  EXPECT_LE(messages(MessageKind::kCall).received, 2u * options.credits);
  EXPECT_FALSE(other->closed());
  server.on_call = {};
  other->call(samples::null_call(1));
  (void)other->await(1);
}

// What can never fit is refused at once instead of waiting for ever.
TEST_F(RdmaFrontPressure, RefusesCallsThatNeverFit) {
  options.memory_bytes = 512u << 10;
  open();
  auto c = client();
  send_write(*c, 1, c->expose_for_read(pattern(kBig)));
  const Decoded answer = c->await(1);
  EXPECT_EQ(answer.header.proc, rpcrdma::Proc::kError);
  EXPECT_EQ(answer.header.error.code, rpcrdma::HeaderError::kChunk);
  c->call(samples::null_call(2));
  (void)c->await(2);
}

// The same of a Reply: nobody may wait for ever.
TEST_F(RdmaFrontPressure, ClosesWhenAReplyCanNeverFit) {
  options.memory_bytes = 512u << 10;
  open();
  auto c = client();
  auto room = c->expose_for_write(kBig);
  auto h = samples::header(1);
  h.write_list = {rpcrdma::WriteChunk{{room->segment}}};
  c->send(h, samples::read_call(1, kBig));
  ASSERT_TRUE(loop.until([&] { return c->closed(); }));
  expect_still_serving();
}

}  // namespace
}  // namespace iwarp::gateway::test
