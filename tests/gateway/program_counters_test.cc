// What real traffic leaves in the counters by program, in both directions.
#include "tests/gateway/chained.h"

namespace iwarp::gateway::test {
namespace {

using ProgramCounters = Chained;

RpcStats::Program of(const Front& front, RpcProgram program) {
  return front.snapshot().rpc[static_cast<std::size_t>(program)];
}

TEST_F(ProgramCounters, CountCallsRepliesOctetsAndTime) {
  auto c = tcp_client();
  const Bytes nfs = samples::getattr_call(1);
  const Bytes mount = samples::rpc_call(2, 100005, 3, 0);
  for (const Bytes& call : {nfs, mount}) {
    c->send(call);
    (void)await(*c);
  }
  for (const Front* f : {static_cast<const Front*>(front.get()), static_cast<const Front*>(tcp_front.get())}) {
    const auto p = of(*f, RpcProgram::kNfs);
    EXPECT_EQ(p.calls, 1u);
    EXPECT_EQ(p.replies(), 1u);
    EXPECT_EQ(p.call_bytes, nfs.size());
    EXPECT_EQ(p.reply_bytes, samples::rpc_reply(1).size());
    EXPECT_GT(p.latency_ns, 0u);
    EXPECT_EQ(of(*f, RpcProgram::kMount).replies(), 1u);
    EXPECT_EQ(of(*f, RpcProgram::kNlm), RpcStats::Program{});
    const auto s = f->snapshot();
    EXPECT_GT(s.registered_bytes, 0u);
    EXPECT_GT(s.credits_granted, 1u);  // of a connection that has had an answer
    EXPECT_EQ(s.credits_used, 0u);
  }
}

TEST_F(ProgramCounters, TellWhatIsOutAndWhatWasNeverAnswered) {
  auto c = warm_client();
  server.on_call = [](TcpPeer&, const Bytes&) {};
  for (std::uint32_t xid = 1; xid <= 3; ++xid) c->send(samples::null_call(xid));
  ASSERT_TRUE(loop.until([&] { return server.calls.size() == 4; }));
  for (const Front* f : {static_cast<const Front*>(front.get()), static_cast<const Front*>(tcp_front.get())}) {
    EXPECT_EQ(of(*f, RpcProgram::kNfs).outstanding(), 3u);
    EXPECT_EQ(f->snapshot().credits_used, 3u);
  }
  c->reset();
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0 && tcp_front->snapshot().active() == 0; }));
  for (const Front* f : {static_cast<const Front*>(front.get()), static_cast<const Front*>(tcp_front.get())}) {
    const auto p = of(*f, RpcProgram::kNfs);
    EXPECT_EQ(p.outstanding(), 0u);
    EXPECT_EQ(p.unanswered, 3u);
    const auto s = f->snapshot();
    EXPECT_EQ(s.registered_bytes, 0u);
    EXPECT_EQ(s.credits_granted, 0u);
  }
}

TEST_F(ProgramCounters, TellWhatDidNotGoInSends) {
  auto c = tcp_client();
  const Bytes data(20000, std::byte{7});
  const Bytes write = samples::write_call(1, data), read = samples::read_call(2, 20000);
  server.on_call = [&](TcpPeer& peer, const Bytes& call) {
    peer.send(call.size() > 10000 ? samples::write_reply(1) : samples::read_reply(2, data));
  };
  for (const Bytes& call : {write, read}) {
    c->send(call);
    (void)await(*c);
  }
  for (const Front* f : {static_cast<const Front*>(front.get()), static_cast<const Front*>(tcp_front.get())}) {
    const auto p = of(*f, RpcProgram::kNfs);
    // The data alone: the gateway's Requester offers a chunk for them.
    EXPECT_EQ(p.read_bytes, data.size());
    EXPECT_EQ(p.write_bytes, data.size());
    EXPECT_EQ(p.call_bytes - p.read_bytes, write.size() - data.size() + read.size());
    EXPECT_EQ(p.reply_bytes - p.write_bytes,
              samples::write_reply(1).size() + samples::read_reply(2, data).size() - data.size());
  }
}

TEST_F(ProgramCounters, CountBackwardCallsAsCallbacks) {
  auto c = warm_client();
  const Bytes callback = samples::rpc_call(77, 1234567, 1, 1);  // whatever program it names
  server.peers[0]->send(callback);
  EXPECT_EQ(await(*c), callback);
  for (const Front* f : {static_cast<const Front*>(front.get()), static_cast<const Front*>(tcp_front.get())})
    EXPECT_EQ(of(*f, RpcProgram::kCallback).outstanding(), 1u);
  c->send(samples::rpc_reply(77));
  ASSERT_TRUE(loop.until([&] { return server.calls.size() == 2; }));
  for (const Front* f : {static_cast<const Front*>(front.get()), static_cast<const Front*>(tcp_front.get())}) {
    const auto p = of(*f, RpcProgram::kCallback);
    EXPECT_EQ(p.replies(), 1u);
    EXPECT_EQ(p.call_bytes, callback.size());
    EXPECT_EQ(p.outstanding(), 0u);
  }
}

}  // namespace
}  // namespace iwarp::gateway::test
