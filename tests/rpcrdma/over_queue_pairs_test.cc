// Requesters and Responders over queue pairs, joined in memory: what the fakes of the other tests take for granted,
// true STags, a shared receive queue and lost connections among it.
#include "iwarp/rpcrdma/requester.h"
#include "iwarp/rpcrdma/verbs_endpoint.h"
#include "iwarp/rpcrdma/verbs_shared_receives.h"
#include "tests/rpcrdma/fake_endpoint.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"
#include "tests/verbs/joined.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

constexpr EndpointLimits kLimits{.max_outstanding_reads = 4, .send_queue_depth = 64, .receive_queue_depth = 256};

std::shared_ptr<verbs::QueuePair> queue_pair(const verbs::ProtectionDomain& pd, verbs::CompletionQueue& cq,
                                             verbs::SharedReceiveQueue* srq) {
  verbs::QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq;
  o.srq = srq;
  o.stream.sq_depth = 64;
  o.stream.rq_depth = 256;
  return std::make_shared<verbs::QueuePair>(pd, o);
}

class Connection {
 public:
  Connection(const verbs::ProtectionDomain& pd, const RequesterOptions& c, const ResponderOptions& s,
             verbs::SharedReceiveQueue* srq = nullptr, ReceiveRing* ring = nullptr)
      : client_qp_(queue_pair(pd, client_cq_, nullptr)),
        server_qp_(queue_pair(pd, server_cq_, srq)),
        joined_(client_qp_, server_qp_),
        client_end_(client_qp_, kLimits),
        server_end_(server_qp_, kLimits),
        client_pool(client_end_, pool_options(c)),
        server_pool(server_end_, pool_options(s)),
        client(client_end_, client_pool, negotiate(private_data(c), private_data(s)), c),
        server(server_end_, server_pool, negotiate(private_data(c), private_data(s)), s, ring) {
    EXPECT_TRUE(client.start().ok());
    EXPECT_TRUE(server.start().ok());
  }
  ~Connection() {
    lose();
    while (client.poll_event()) {
    }
    while (server.poll_event()) {
    }
  }
  void run() {
    for (bool moved = true; moved;) {
      (void)client_end_.flush();
      (void)server_end_.flush();
      joined_.pump();
      moved = feed(client_cq_, client) | feed(server_cq_, server);
    }
  }
  void lose() {
    client_qp_->abort();
    server_qp_->abort();
    run();
    client.on_disconnect();
    server.on_disconnect();
  }

 private:
  template <class Core>
  static bool feed(verbs::CompletionQueue& cq, Core& core) {
    const auto completions = iwarp::test::drain(cq);
    for (const verbs::Completion& c : completions) core.on_completion(VerbsEndpoint::translate(c));
    return !completions.empty();
  }

  verbs::CompletionQueue client_cq_{512}, server_cq_{512};
  std::shared_ptr<verbs::QueuePair> client_qp_, server_qp_;
  iwarp::test::Joined joined_;
  VerbsEndpoint client_end_, server_end_;

 public:
  BufferPool client_pool, server_pool;
  Requester client;
  Responder server;
};

class OverQueuePairs : public ::testing::Test {
 protected:
  static void ask(Connection& c, const Bytes& call) {
    ASSERT_TRUE(c.client.call(to_buffer(c.client_pool, call, BufferPool::Purpose::kCall), {}).ok());
  }
  // The server has that Call, and answers it; the client has the Reply.
  static void serve(Connection& c, const Bytes& call, const Bytes& answer) {
    c.run();
    auto arrived = next<Responder::CallReceived>(c.server);
    ASSERT_TRUE(arrived);
    EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
    arrived->message.reset();
    ASSERT_TRUE(c.server.reply(arrived->token, to_buffer(c.server_pool, answer)).ok());
    c.run();
    const auto reply = next<Requester::ReplyReceived>(c.client);
    ASSERT_TRUE(reply);
    EXPECT_EQ(to_bytes(reply->message.bytes()), answer);
  }

  std::shared_ptr<verbs::Context> context_ = std::make_shared<verbs::Context>();
  verbs::ProtectionDomain pd_{context_};
};

TEST_F(OverQueuePairs, ConnectionsReceiveFromOneSharedQueue) {
  COVERS("RFC8166-3.3.1-6");
  verbs::SharedReceiveQueue srq(pd_, {.depth = 16});
  VerbsSharedReceives queue(srq, pd_);
  BufferPool pool(queue, {});
  ReceiveRing ring(queue, pool, 12, 4096);
  const RequesterOptions c{.credits = 4, .backward_credits = 2};
  const ResponderOptions s{.credits = 4, .backward_credits = 2};
  {
    Connection first(pd_, c, s, &srq, &ring);
    std::uint32_t xid = 0;
    {
      Connection second(pd_, c, s, &srq, &ring);
      EXPECT_EQ(srq.posted(), 12u) << "of both together";
      for (int i = 0; i < 8; ++i) {
        for (Connection* connection : {&first, &second}) {
          ++xid;
          ask(*connection, write_call(xid, pattern(10'001, xid)));
          serve(*connection, write_call(xid, pattern(10'001, xid)), write_reply(xid));
          ask(*connection, read_call(xid, 9999));
          serve(*connection, read_call(xid, 9999), read_reply(xid, pattern(9999, xid)));
          EXPECT_EQ(srq.posted(), 12u);
        }
      }
    }
    ask(first, null_call(xid));
    serve(first, null_call(xid), rpc_reply(xid));
    EXPECT_EQ(srq.posted(), 12u);
  }
}

// Of any length up to that of a Receive, into Receives that were there before, in the order sent.
TEST_F(OverQueuePairs, SendsArriveInOrder) {
  COVERS("D2005-2-2");
  Connection c(pd_, {.draft_2005 = {.enabled = true, .configure = false}}, {.draft_2005 = {.enabled = true}});
  ask(c, null_call(1));
  serve(c, null_call(1), rpc_reply(1));  // and with it credits
  // With a Reply chunk, since nobody knows how long its Reply may be.
  const std::size_t longest = 4096 - kMinHeaderBytes - WriteChunk{{{}}}.encoded_size() - rpc_call(0, 1, 1, 1).size();
  std::vector<Bytes> calls;
  for (const std::size_t bytes : {longest, std::size_t{0}, longest - 4, std::size_t{4}, longest, std::size_t{1000}}) {
    calls.push_back(rpc_call(static_cast<std::uint32_t>(10 + calls.size()), 400'000, 1, 1, pattern(bytes)));
    ask(c, calls.back());
  }
  c.run();
  EXPECT_EQ(c.client.stats().calls_in_line, 1 + calls.size());
  for (const Bytes& call : calls) {
    const auto arrived = next<Responder::CallReceived>(c.server);
    ASSERT_TRUE(arrived);
    EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
  }
}

TEST_F(OverQueuePairs, BackwardChunksAreExposedAndFenced) {
  COVERS("RFC8167-5.3-1");
  Connection c(pd_, {.backward_chunks = true}, {.backward_chunks = true});
  const Bytes call = rpc_call(1, 0x40000000, 1, 1, pattern(30'000));
  const Bytes answer = rpc_reply(1, pattern(40'000, 3));
  ASSERT_TRUE(c.server.send_backward_call(to_buffer(c.server_pool, call), {}).ok());
  c.run();
  auto arrived = next<Requester::BackwardCall>(c.client);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
  arrived->message.reset();
  ASSERT_TRUE(c.client.reply_backward(arrived->token, to_buffer(c.client_pool, answer)).ok());
  c.run();
  const auto reply = next<Responder::BackwardReply>(c.server);
  ASSERT_TRUE(reply);
  EXPECT_EQ(to_bytes(reply->message.bytes()), answer);
}

TEST_F(OverQueuePairs, CallsOfALostConnectionAreAnsweredOnTheNext) {
  COVERS("RFC8166-4.5.5-1");
  const RequesterOptions options{.retransmission = true};
  const Bytes write = write_call(2, pattern(50'000)), read = read_call(3, 50'000);
  std::vector<OutstandingCall> outstanding;
  {
    Connection first(pd_, options, {});
    ask(first, null_call(1));
    serve(first, null_call(1), rpc_reply(1));
    ask(first, write);
    ask(first, read);
    first.run();
    EXPECT_TRUE(next<Responder::CallReceived>(first.server)) << "it is lost with what it has executed";
    first.lose();
    outstanding = first.client.take_outstanding();
  }
  ASSERT_EQ(outstanding.size(), 2u);
  Connection second(pd_, options, {});
  for (OutstandingCall& c : outstanding) ASSERT_TRUE(second.client.call_again(std::move(c)).ok());
  serve(second, write, write_reply(2));
  serve(second, read, read_reply(3, pattern(50'000, 7)));
  EXPECT_TRUE(second.client.idle());
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
