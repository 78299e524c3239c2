// Several connections that receive from one queue.
#include "iwarp/rpcrdma/requester.h"
#include "tests/rpcrdma/fake_endpoint.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

class FakeSharedQueue : public ReceiveQueue, public Registrar {
 public:
  Result<void> post_recv(std::uint64_t id, LocalSlice into) override {
    receives.emplace_back(id, into);
    return {};
  }
  Result<Stag> register_local(MutBytes) override { return Stag{++registered}; }
  void deregister_local(Stag) override { ++deregistered; }

  std::deque<std::pair<std::uint64_t, LocalSlice>> receives;
  std::uint32_t registered = 0, deregistered = 0;
};

// One end, whose peer is played by the test.
template <class Core, class Options>
struct End {
  End(const Options& options, FakeSharedQueue& queue, ReceiveRing& ring)
      : pool(endpoint, {}), core(endpoint, pool, {4096, 4096, false}, options, &ring) {
    peer.raw = true;
    FakeEndpoint::join(endpoint, peer);
    endpoint.receives_from = &queue.receives;
    endpoint.deliver = [this](const Completion& c) { core.on_completion(c); };
    EXPECT_TRUE(core.start().ok());
  }
  ~End() {
    endpoint.disconnect();
    while (core.poll_event()) {
    }
  }
  std::vector<Decoded> sent() {
    run(endpoint, peer);
    std::vector<Decoded> out;
    for (const Bytes& m : peer.inbox) out.push_back(decode(m));
    peer.inbox.clear();
    return out;
  }

  FakeEndpoint endpoint{0x100}, peer{0x900};
  BufferPool pool;
  Core core;
};

class SharedReceivesTest : public ::testing::Test {
 protected:
  FakeSharedQueue queue_;
  BufferPool pool_{queue_, {}};
  ReceiveRing ring_{queue_, pool_, 5, 4096};
};

TEST_F(SharedReceivesTest, ServeAllRespondersAlike) {
  COVERS("RFC8166-3.3.1-6");
  const ResponderOptions options{.credits = 4, .backward_credits = 1};
  End<Responder, ResponderOptions> a(options, queue_, ring_);
  {
    End<Responder, ResponderOptions> b(options, queue_, ring_);
    EXPECT_EQ(queue_.receives.size(), 5u) << "of all together";
    for (std::uint32_t xid = 1; xid <= 4; ++xid) {
      for (auto* end : {&a, &b}) {
        end->endpoint.receive(encode(header(xid), null_call(xid)));
        EXPECT_EQ(queue_.receives.size(), 5u);
        auto call = next<Responder::CallReceived>(end->core);
        ASSERT_TRUE(call);
        EXPECT_EQ(to_bytes(call->message.bytes()), null_call(xid));
        ASSERT_TRUE(end->core.reply(call->token, to_buffer(end->pool, rpc_reply(xid))).ok());
        const auto sent = end->sent();
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent[0].header.credits, 4u);
      }
    }
    ASSERT_TRUE(b.core.set_credits(300).ok());
    EXPECT_EQ(queue_.receives.size(), 5u) << "its size is its owner's business";
    // Messages that nobody gives back use them up.
    std::vector<Buffer> held;
    while (auto more = pool_.acquire(4096, BufferPool::Purpose::kControl)) held.push_back(std::move(*more));
    for (std::uint32_t xid = 1; xid <= 5; ++xid) b.endpoint.receive(encode(header(xid), null_call(xid)));
    EXPECT_TRUE(queue_.receives.empty());
    ASSERT_TRUE(b.core.send_backward_call(to_buffer(b.pool, rpc_call(9, 0x40000000, 1, 1)), {}).ok());
    EXPECT_TRUE(b.sent().empty()) << "its Reply would find no Receive";
    held.clear();
    b.core.progress();
    EXPECT_EQ(b.sent().size(), 1u);
    b.core.rest();
  }
  // The other connection is gone, the Receives are not.
  EXPECT_EQ(queue_.receives.size(), 5u);
  a.endpoint.receive(encode(header(9), null_call(9)));
  EXPECT_TRUE(next<Responder::CallReceived>(a.core));
}

TEST_F(SharedReceivesTest, ServeAllRequestersAlike) {
  const RequesterOptions options{.credits = 4, .backward_credits = 1};
  End<Requester, RequesterOptions> a(options, queue_, ring_), b(options, queue_, ring_);
  for (std::uint32_t xid = 1; xid <= 4; ++xid) {
    for (auto* end : {&a, &b}) {
      ASSERT_TRUE(end->core.call(to_buffer(end->pool, getattr_call(xid), BufferPool::Purpose::kCall), {}).ok());
      EXPECT_EQ(end->sent().size(), 1u);
    }
    for (auto* end : {&b, &a}) {
      end->endpoint.receive(encode(header(xid, Proc::kMsg, 4), rpc_reply(xid)));
      const auto reply = next<Requester::ReplyReceived>(end->core);
      ASSERT_TRUE(reply);
      EXPECT_EQ(to_bytes(reply->message.bytes()), rpc_reply(xid));
    }
  }
  ASSERT_TRUE(a.core.set_credits(300).ok());
  a.core.rest();
  EXPECT_EQ(queue_.receives.size(), 5u);
}

TEST_F(SharedReceivesTest, MessagesThatAreTooLongAreNotTaken) {
  End<Responder, ResponderOptions> a({}, queue_, ring_);
  const Completion too_long{queue_.receives.front().first, OpKind::kRecv, OpStatus::kOk, 5000, {}};
  a.core.on_completion(too_long);
  EXPECT_FALSE(a.core.poll_event());
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
