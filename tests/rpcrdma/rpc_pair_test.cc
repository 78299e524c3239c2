// Our Requester against our Responder: everything each emits must be what the other takes, data included.
#include <random>

#include "iwarp/rpcrdma/rpc_message.h"
#include "tests/rpcrdma/rpc_pair.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

// What a file server would answer.
Bytes serve(const Bytes& call) {
  const auto head = RpcCall::parse(call);
  const std::uint32_t size = load_be<std::uint32_t>(ConstBytes(call).last(4));
  switch (head->procedure) {
    case 6:
      return read_reply(head->xid, pattern(size, head->xid));
    case 7:
      return write_reply(head->xid);
    case 16:
      return rpc_reply(head->xid, pattern(size, head->xid));
    default:
      return rpc_reply(head->xid);
  }
}

TEST(RpcPair, CarriesEverySizeOfCallAndReply) {
  COVERS("D2005-3.8-1");
  COVERS("RFC8166-3.5.3-10");
  COVERS("RFC8166-4-3");
  COVERS("RFC8166-3.5.3-8");
  COVERS("RFC8166-3.4.2-1");
  COVERS("RFC8166-6.1-7");
  COVERS("RFC8166-4.3.2.3-1");
  COVERS("RFC8267-6.4.1-2");
  Pair p;
  std::uint32_t xid = 0;
  for (const std::size_t size : {0, 1, 3, 1023, 3900, 3996, 4000, 4095, 4096, 65537, 1 << 20}) {
    for (const Bytes& call :
         {write_call(++xid, pattern(size, 9)), read_call(++xid, static_cast<std::uint32_t>(size))}) {
      SCOPED_TRACE(size);
      ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, call, BufferPool::Purpose::kCall), {}).ok());
      p.run();
      auto arrived = next<Responder::CallReceived>(p.server);
      ASSERT_TRUE(arrived);
      ASSERT_EQ(to_bytes(arrived->message.bytes()), call);
      const Bytes answer = serve(call);
      ASSERT_TRUE(p.server.reply(arrived->token, to_buffer(p.server_pool, answer)).ok());
      p.run();
      auto reply = next<Requester::ReplyReceived>(p.client);
      ASSERT_TRUE(reply);
      ASSERT_EQ(to_bytes(reply->message.bytes()), answer);
      EXPECT_EQ(p.client_end.exposed(), 0u);
    }
  }
  EXPECT_TRUE(p.client.idle());
  EXPECT_TRUE(p.server.idle());
}

// What RPCSEC_GSS protects is opaque: the same WRITE and READ that are reduced otherwise travel whole, octet for octet.
TEST(RpcPair, CarriesWhatRpcsecGssProtectsWhole) {
  COVERS("D2005-11-1");
  COVERS("RFC8166-8.2.2.3-2");
  COVERS("RFC8166-8.2.2.3-3");
  COVERS("RFC8166-8.2.2-1");
  Pair p({.offers = {.read_chunks = 4, .with_position_zero = true, .write_chunks = 4, .with_reply_chunk = true}});
  std::uint32_t xid = 0;
  for (const std::uint32_t service : {2u, 3u}) {      // integrity, privacy
    for (const std::uint32_t procedure : {6u, 7u}) {  // READ, WRITE
      ++xid;
      const Bytes credential = words({6, 24, 1, 0, xid, service, 4, 0xC0FFEE}), verifier = words({6, 4, 0x5EA1});
      const Bytes call = words({xid, 0, 2, kNfs, 3, procedure}) + credential + verifier +
                         opaque(words({xid}) + pattern(70'000, xid)) + opaque(pattern(20, service));
      ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, call, BufferPool::Purpose::kCall), {}).ok());
      p.run();
      auto arrived = next<Responder::CallReceived>(p.server);
      ASSERT_TRUE(arrived);
      EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
      EXPECT_EQ(arrived->write_chunk_bytes, 0u);
      arrived->message.reset();
      const Bytes answer = words({xid, 1, 0}) + verifier + words({0}) + opaque(words({xid}) + pattern(80'000, 99)) +
                           opaque(pattern(20, 1));
      ASSERT_TRUE(p.server.reply(arrived->token, to_buffer(p.server_pool, answer)).ok());
      p.run();
      const auto reply = next<Requester::ReplyReceived>(p.client);
      ASSERT_TRUE(reply);
      EXPECT_EQ(to_bytes(reply->message.bytes()), answer);
      EXPECT_TRUE(reply->in_reply_chunk);
    }
  }
  EXPECT_EQ(p.client.stats().calls_reduced + p.client.stats().write_chunks_offered, 0u);
  EXPECT_EQ(p.client.stats().calls_in_read_chunk, 4u);
  EXPECT_EQ(p.server.stats().replies_reduced, 0u);
}

// Each direction has a threshold of its own, from 1024 octets to 256 KiB.
TEST(RpcPair, KeepsToAThresholdForEachDirection) {
  COVERS("RFC8166-3.3.2-1");
  COVERS("RFC8797-4.2-4");
  COVERS("RFC8797-4.2-5");
  std::uint32_t xid = 0;
  for (const auto& [call_bytes, reply_bytes] :
       {std::pair{1024u, 8192u}, {8192u, 1024u}, {1024u, 262'144u}, {262'144u, 1024u}, {2048u, 3072u}}) {
    SCOPED_TRACE(call_bytes);
    Pair p({.inline_bytes = reply_bytes, .send_bytes = call_bytes},
           {.inline_bytes = call_bytes, .send_bytes = reply_bytes});
    for (const std::size_t over : {0u, 4u}) {
      const Bytes head = write_call_head(++xid, 0);
      const Bytes call = write_call(xid, pattern(call_bytes - kMinHeaderBytes - head.size() + over));
      ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, call, BufferPool::Purpose::kCall), {}).ok());
      p.run();
      auto arrived = next<Responder::CallReceived>(p.server);
      ASSERT_TRUE(arrived);
      EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
      EXPECT_EQ(arrived->read_chunk_bytes > 0, over > 0);
      ASSERT_TRUE(p.server.reply(arrived->token, to_buffer(p.server_pool, write_reply(xid))).ok());
      p.run();
      ASSERT_TRUE(next<Requester::ReplyReceived>(p.client));

      // A READLINK, whose Reply has no known bound: in line, or in its Reply chunk, which is repeated then.
      ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, readlink_call(++xid), BufferPool::Purpose::kCall), {}).ok());
      p.run();
      arrived = next<Responder::CallReceived>(p.server);
      ASSERT_TRUE(arrived);
      EXPECT_GT(arrived->reply_chunk_bytes, 0u);
      const std::size_t repeated = 4 + Segment::kSize;
      const Bytes answer = rpc_reply(xid, pattern(reply_bytes - kMinHeaderBytes - repeated - 24 + over));
      ASSERT_TRUE(p.server.reply(arrived->token, to_buffer(p.server_pool, answer)).ok());
      p.run();
      auto reply = next<Requester::ReplyReceived>(p.client);
      ASSERT_TRUE(reply);
      EXPECT_EQ(to_bytes(reply->message.bytes()), answer);
      EXPECT_EQ(reply->in_reply_chunk, over > 0);
    }
  }
}

// Random traffic in both directions with scarce credits, memory and queues; answers out of order.
TEST(RpcPair, SurvivesRandomTrafficWithEverythingScarce) {
  COVERS("RFC8167-2.3-1");
  COVERS("RFC8166-3.3.1-4");
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(rng() % n); };
    ResponderOptions so{.credits = 5, .backward_credits = 2};
    auto memory = pool_options(so);
    memory.call_bytes = 2 * BufferPool::charged_bytes(60'000);
    Pair p({.credits = 8, .backward_credits = 2, .max_reply_bytes = 100'000, .max_queued_calls = 4}, so, &memory, 3);
    std::map<std::uint32_t, Bytes> expected;  // by xid
    std::map<std::uint32_t, Bytes> expected_back;
    std::vector<Responder::CallReceived> calls;
    std::vector<Requester::BackwardCall> back_calls;
    std::uint32_t xid = 100;
    std::size_t answered = 0;
    for (int round = 0; round < 1500; ++round) {
      if (below(3) == 0 && p.client.can_take_call() && round < 1000) {
        const auto size = static_cast<std::uint32_t>(below(below(2) != 0 ? 5000 : 60'000));
        const Bytes call = below(2) != 0 ? write_call(++xid, pattern(size)) : read_call(++xid, size);
        auto b = p.client_pool.acquire(call.size(), BufferPool::Purpose::kCall);
        if (b) {
          std::copy(call.begin(), call.end(), b->bytes().begin());
          ASSERT_TRUE(p.client.call(std::move(*b), {}).ok());
          expected[xid] = call;
        }
      }
      if (below(8) == 0 && round < 1000) {
        const Bytes call = rpc_call(++xid, 0x40000000, 1, 1, pattern(below(1000) / 4 * 4));
        if (p.server.send_backward_call(to_buffer(p.server_pool, call), TimePoint{}).ok()) expected_back[xid] = call;
      }
      if (below(2) != 0) p.client_end.step();
      if (below(2) != 0) p.server_end.step();
      while (auto e = p.server.poll_event()) {
        if (auto* c = std::get_if<Responder::CallReceived>(&*e)) {
          ASSERT_EQ(to_bytes(c->message.bytes()), expected.at(c->xid));
          calls.push_back(std::move(*c));
        } else if (auto* r = std::get_if<Responder::BackwardReply>(&*e)) {
          ASSERT_EQ(to_bytes(r->message.bytes()), rpc_reply(r->xid));
          ASSERT_EQ(expected_back.erase(r->xid), 1u);
        } else {
          FAIL() << "server closes";
        }
      }
      while (auto e = p.client.poll_event()) {
        if (auto* r = std::get_if<Requester::ReplyReceived>(&*e)) {
          ASSERT_EQ(to_bytes(r->message.bytes()), serve(expected.at(r->xid)));
          expected.erase(r->xid);
          ++answered;
        } else if (auto* c = std::get_if<Requester::BackwardCall>(&*e)) {
          ASSERT_EQ(to_bytes(c->message.bytes()), expected_back.at(c->xid));
          back_calls.push_back(std::move(*c));
        } else {
          FAIL() << "client closes or fails a Call";
        }
      }
      if (!calls.empty() && below(3) == 0) {
        const std::size_t i = below(calls.size());
        const Bytes answer = serve(to_bytes(calls[i].message.bytes()));
        calls[i].message.reset();
        ASSERT_TRUE(p.server.reply(calls[i].token, to_buffer(p.server_pool, answer)).ok());
        calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (!back_calls.empty() && below(3) == 0) {
        const std::uint32_t x = back_calls.front().xid;
        ASSERT_TRUE(p.client.reply_backward(back_calls.front().token, to_buffer(p.client_pool, rpc_reply(x))).ok());
        back_calls.erase(back_calls.begin());
      }
      p.client.progress();
      p.server.progress();
    }
    // Drain.
    for (int round = 0; round < 5000 && !(p.client.idle() && p.server.idle()); ++round) {
      p.run();
      while (auto e = p.server.poll_event()) {
        if (auto* c = std::get_if<Responder::CallReceived>(&*e)) calls.push_back(std::move(*c));
      }
      while (auto e = p.client.poll_event()) {
        if (auto* c = std::get_if<Requester::BackwardCall>(&*e)) back_calls.push_back(std::move(*c));
      }
      for (auto& c : calls) {
        const Bytes answer = serve(to_bytes(c.message.bytes()));
        c.message.reset();
        ASSERT_TRUE(p.server.reply(c.token, to_buffer(p.server_pool, answer)).ok());
      }
      calls.clear();
      for (auto& c : back_calls) {
        ASSERT_TRUE(p.client.reply_backward(c.token, to_buffer(p.client_pool, rpc_reply(c.xid))).ok());
      }
      back_calls.clear();
      p.client.progress();
      p.server.progress();
    }
    EXPECT_TRUE(p.client.idle());
    EXPECT_TRUE(p.server.idle());
    EXPECT_GT(answered, 20u);
    EXPECT_EQ(p.client_end.exposed(), 0u);
    EXPECT_EQ(p.client.stats().dropped_messages + p.client.stats().unknown_xids, 0u);
    EXPECT_EQ(p.server.stats().dropped_messages + p.server.stats().duplicate_xids, 0u);
  }
}

TEST(RpcPair, BackwardCallsAndReplies) {
  COVERS("RFC8167-5.2-4");
  COVERS("RFC8167-5.2-1");
  COVERS("RFC8167-5.2-2");
  COVERS("RFC8167-5.2-3");
  COVERS("RFC8167-5.2-5");
  COVERS("RFC8167-2.2-1");
  COVERS("RFC8267-6.5.2-1");
  COVERS("RFC8167-2.4-3");
  COVERS("BIDIR-1.3.3-1");
  Pair p;
  const Bytes call = rpc_call(7, 0x40000000, 1, 1, pattern(400));
  ASSERT_TRUE(p.server.send_backward_call(to_buffer(p.server_pool, call), TimePoint{}).ok());
  p.run();
  auto arrived = next<Requester::BackwardCall>(p.client);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
  EXPECT_GE(arrived->message.headroom(), kHeadroomBytes);
  EXPECT_EQ(p.server_end.exposed(), 0u) << "a server exposes nothing";
  // What cannot go is refused, and the Call stays open for something shorter.
  Buffer big = to_buffer(p.client_pool, rpc_reply(7, Bytes(5000)));
  EXPECT_EQ(p.client.reply_backward(arrived->token, std::move(big)).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(big);
  EXPECT_FALSE(p.client.reply_backward(arrived->token, to_buffer(p.client_pool, rpc_reply(8))).ok());
  ASSERT_TRUE(p.client.reply_backward(arrived->token, to_buffer(p.client_pool, rpc_reply(7))).ok());
  EXPECT_FALSE(p.client.reply_backward(arrived->token, to_buffer(p.client_pool, rpc_reply(7))).ok());
  p.run();
  auto reply = next<Responder::BackwardReply>(p.server);
  ASSERT_TRUE(reply);
  EXPECT_EQ(to_bytes(reply->message.bytes()), rpc_reply(7));
  EXPECT_TRUE(p.client.idle());
  EXPECT_TRUE(p.server.idle());
}

TEST(RpcPair, ClientRefusesBackwardCallsWithChunks) {
  COVERS("RFC8167-5.3-4");
  COVERS("RFC8167-5.3-1");
  COVERS("BIDIR-1.3.4-1");
  Pair p;
  Header h = header(7);
  h.reply_chunk = WriteChunk{{{Stag{5}, 100, 0}}};
  p.client_end.receive(encode(h, rpc_call(7, 1, 1, 1)));
  h = header(8, Proc::kNomsg);
  h.read_list = {{0, {Stag{5}, 100, 0}}};
  p.client_end.receive(encode(h));
  EXPECT_FALSE(p.client.poll_event());
  EXPECT_EQ(p.client.stats().err_chunk_sent, 2u);
  p.run();
  EXPECT_EQ(p.server.stats().dropped_messages, 2u);  // it had sent nothing like that
}

TEST(RpcPair, ClientBoundsBackwardCalls) {
  COVERS("RFC8167-4.3.1-1");
  Pair p({.credits = 4, .backward_credits = 2});
  for (std::uint32_t xid = 1; xid <= 2; ++xid) p.client_end.receive(encode(header(xid), rpc_call(xid, 1, 1, 1)));
  p.client_end.receive(encode(header(2), rpc_call(2, 1, 1, 1)));  // the same again: dropped
  EXPECT_TRUE(next<Requester::BackwardCall>(p.client));
  EXPECT_TRUE(next<Requester::BackwardCall>(p.client));
  EXPECT_FALSE(p.client.poll_event());
  p.client_end.receive(encode(header(3), rpc_call(3, 1, 1, 1)));
  EXPECT_TRUE(next<Requester::MustClose>(p.client));
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
