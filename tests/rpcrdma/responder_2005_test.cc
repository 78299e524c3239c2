// A Responder that speaks the draft of 2005.
#include <gtest/gtest.h>

#include "iwarp/rpcrdma/padding.h"
#include "iwarp/rpcrdma/receive_ring.h"
#include "tests/rpcrdma/responder_2005_fixture.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kXid = 0x01020304;

class Responder2005 : public Responder2005Test {
 protected:
  // The segment of a long Reply, which has no data, to a Call that offers nothing for it.
  Segment long_reply(std::uint32_t xid, TimePoint now) {
    send(header(xid), readdir_call(xid));
    const CallToken token = expect_call(readdir_call(xid));
    message_ = rpc_reply(xid, pattern(kLong));
    EXPECT_TRUE(responder_->reply(token, to_buffer(*pool_, message_), now).ok());
    const Decoded d = received_2005();
    EXPECT_EQ(d.header.proc, Proc::kNomsg);
    if (d.header.read_list.size() != 1) throw std::runtime_error("no Read list");
    EXPECT_EQ(d.header.read_list[0].position, 0u);
    return d.header.read_list[0].target;
  }

  Bytes message_;
};

TEST_F(Responder2005, LongRepliesAreReadAndThenDone) {
  COVERS("D2005-2-4");
  COVERS("D2005-3.4-3");
  COVERS("D2005-3.4-7");
  COVERS("D2005-3.6-4");
  COVERS("D2005-5.1-1");
  COVERS("D2005-5.2-3");
  COVERS("D2005-3.8-5");
  COVERS("D2005-3.8-9");
  COVERS("D2005-6-1");
  start(options_2005());
  const std::size_t receives = server_.receives.size();
  const Segment s = long_reply(kXid, now_);
  EXPECT_EQ(read(s), message_);
  EXPECT_EQ(responder_->replies_kept(), 1u);
  EXPECT_FALSE(responder_->idle());
  send_done(kXid);
  EXPECT_EQ(read(s), Bytes());
  EXPECT_EQ(responder_->replies_kept(), 0u);
  EXPECT_TRUE(responder_->idle());
  EXPECT_EQ(pool_->in_use_bytes(BufferPool::Purpose::kReply), 0u);
  EXPECT_EQ(responder_->stats().replies_in_read_chunk, 1u);
  EXPECT_EQ(responder_->deadline(), std::nullopt);
  // Twice, and to nothing: no answer, and no harm.
  send_done(kXid);
  send_done(7);
  EXPECT_EQ(responder_->stats().dropped_messages, 2u);
  EXPECT_EQ(responder_->stats().dones, 1u);
  EXPECT_TRUE(client_.inbox.empty());
  EXPECT_EQ(server_.receives.size(), receives) << "posted again at once";
  EXPECT_FALSE(server_.broken);
}

// The Call by Read chunk, with a Write chunk that is too small, and the Reply by Read chunk.
TEST_F(Responder2005, ChunksOfEveryKindInOneRpc) {
  COVERS("D2005-3.8-10");
  start(options_2005());
  Bytes call = read_call(kXid, kLong);
  const auto exposed = client_.register_memory(call, RemoteAccess::kRead, false);
  Header h = header(kXid, Proc::kNomsg);
  h.read_list.push_back({0, {exposed->handle, static_cast<std::uint32_t>(call.size()), exposed->offset}});
  h.write_list.push_back({{{Stag{77}, 100, 0}}});
  send(h);
  const CallToken token = expect_call(call);
  message_ = read_reply(kXid, pattern(kLong));
  reply(token, message_);
  const Decoded d = received_2005();
  ASSERT_EQ(d.header.read_list.size(), 1u);
  EXPECT_EQ(read(d.header.read_list[0].target), pattern(kLong));
  ASSERT_EQ(d.header.write_list.size(), 1u);
  EXPECT_EQ(d.header.write_list[0].length(), 0u) << "unused";
  send_done(kXid);
}

// No Receive is left and none can be posted, since the Calls still lie in their buffers: the Replies go out all the
// same.
TEST_F(Responder2005, RepliesNeedNoReceivesForCalls) {
  COVERS("D2005-3.3-1");
  start(options_2005());
  BufferPool::Options memory;
  memory.control_bytes = 2 * BufferPool::charged_bytes(4096);
  BufferPool receives(server_, memory);
  ReceiveRing ring(server_, receives, 2, 4096);
  server_.receives.clear();  // those of start(), which are still in its ring
  Responder responder(server_, *pool_, {}, options_2005(), &ring);
  server_.deliver = [&](const Completion& c) { responder.on_completion(c); };
  ASSERT_TRUE(responder.start());
  ASSERT_EQ(server_.receives.size(), 2u);
  std::vector<Responder::CallReceived> calls;
  for (std::uint32_t xid = 1; xid <= 2; ++xid) {
    send(header(xid), null_call(xid));
    auto call = next<Responder::CallReceived>(responder);
    ASSERT_TRUE(call);
    calls.push_back(std::move(*call));
  }
  EXPECT_TRUE(server_.receives.empty());
  for (const auto& call : calls) {
    ASSERT_TRUE(responder.reply(call.token, to_buffer(*pool_, rpc_reply(call.xid))));
    const Decoded d = received_2005();
    EXPECT_EQ(d.header.xid, call.xid);
    EXPECT_EQ(d.payload, rpc_reply(call.xid));
    EXPECT_TRUE(server_.receives.empty());
  }
  calls.clear();
  responder.progress();
  EXPECT_EQ(server_.receives.size(), 2u);
  server_.disconnect();
}

TEST_F(Responder2005, WhereTheXidsDifferThatOfTheHeaderIsAnswered) {
  COVERS("D2005-4.1-2");
  start(options_2005());
  send(header(7), null_call(8));
  const Decoded d = received_2005();
  EXPECT_EQ(d.header.proc, Proc::kError);
  EXPECT_EQ(d.header.xid, 7u);
  EXPECT_EQ(next_call(), std::nullopt);
}

TEST_F(Responder2005, WithoutDoneTheMemoryIsFreedAfterATime) {
  COVERS("D2005-3.8-6");
  ResponderOptions o = options_2005();
  o.draft_2005.done.patience = seconds(2);
  start(o);
  const Segment s = long_reply(kXid, now_);
  EXPECT_EQ(responder_->deadline(), now_ + seconds(2));
  responder_->on_deadline(now_ + milliseconds(1999));
  EXPECT_EQ(read(s), message_);
  responder_->on_deadline(now_ + seconds(2));
  EXPECT_EQ(read(s), Bytes());
  EXPECT_EQ(responder_->stats().replies_not_done, 1u);
  EXPECT_EQ(closing(), std::nullopt);
  send_done(kXid);
  EXPECT_EQ(responder_->stats().dropped_messages, 1u);
}

TEST_F(Responder2005, OrTheConnectionEnds) {
  COVERS("D2005-3.8-6");
  ResponderOptions o = options_2005();
  o.draft_2005.done.late = DoneOptions::Late::kClose;
  start(o);
  const Segment s = long_reply(kXid, now_);
  responder_->on_deadline(now_ + seconds(60));
  const auto end = closing();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->error.code, Errc::kTimeout);
  EXPECT_EQ(read(s), Bytes());
}

TEST_F(Responder2005, TheEndOfTheConnectionIsTheEndOfTheChunks) {
  start(options_2005());
  const Segment s = long_reply(kXid, now_);
  responder_->on_disconnect();
  EXPECT_EQ(read(s), Bytes());
  EXPECT_EQ(responder_->deadline(), std::nullopt);
}

TEST_F(Responder2005, WhatWaitsForDoneIsBounded) {
  COVERS("D2005-3.4-8");
  ResponderOptions o = options_2005();
  o.draft_2005.done.max_replies = 1;
  start(o);
  (void)long_reply(kXid, now_);
  send(header(9), read_call(9, kLong));
  reply(expect_call(read_call(9, kLong)), read_reply(9, pattern(kLong)));
  const Decoded d = received_2005();
  EXPECT_EQ(d.header.proc, Proc::kError);
  EXPECT_EQ(d.header.error.code, HeaderError::kChunk);
  send_done(kXid);
}

// A peer of RFC 8166 is none of this draft.
TEST_F(Responder2005, IsOffByDefault) {
  start();
  send(header(kXid), read_call(kXid, kLong));
  reply(expect_call(read_call(kXid, kLong)), read_reply(kXid, pattern(kLong)));
  expect_err_chunk(kXid);
  Header done = header(kXid, Proc::kDone);
  done.draft_2005 = true;
  send(done);
  Header padded = header(8, Proc::kMsgp);
  padded.padding = {512, 1024};
  padded.draft_2005 = true;
  send(padded, null_call(8));
  expect_err_chunk(8);
  send(header(9), rpc_call(9, kConfigProgram, 1, 1, words({4096, 4096, 1})));
  (void)expect_call(rpc_call(9, kConfigProgram, 1, 1, words({4096, 4096, 1})));
  EXPECT_FALSE(server_.broken);
}

// And the data at an aligned place of the Receive, where they stay.
TEST_F(Responder2005, PaddedCallsArriveAsTheyWere) {
  COVERS("D2005-3.5-1");
  COVERS("D2005-3.5-5");
  COVERS("D2005-4.1-8");
  start(options_2005());
  const Bytes call = write_call(kXid, pattern(2000));
  DdpItems items;
  items.push_back(*ArgumentWalker(call).next());
  Header h = header(kXid, Proc::kMsgp);
  h.draft_2005 = true;
  const auto layout = plan_padding(call.size(), items, h.encoded_size(), 512, 1024, 4096);
  ASSERT_TRUE(layout);
  h.padding = layout->padding;
  Bytes padded(layout->padded_bytes);
  ASSERT_TRUE(write_padded(call, *layout, padded));
  send(h, padded);
  run();
  auto arrived = next_call();
  ASSERT_TRUE(arrived);
  EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arrived->message.bytes().data() + items[0].offset) % 512, 0u);
  arrived->message.reset();
  reply(arrived->token, write_reply(kXid));
  EXPECT_EQ(received_2005().payload, write_reply(kXid));
  // What it is not.
  h.padding.align = 0;
  send(h, padded);
  EXPECT_EQ(received_2005().header.error.code, HeaderError::kChunk);
  EXPECT_EQ(responder_->stats().calls_padded, 1u);
  EXPECT_FALSE(server_.broken);
}

TEST_F(Responder2005, AnswersItsConfiguration) {
  COVERS("D2005-6.1-1");
  COVERS("D2005-6.1-2");
  COVERS("D2005-6.2-5");
  // The client has announced nothing: 1024 octets, and one message at a time.
  start(options_2005(true), std::nullopt, PrivateData{});
  send(header(kXid), rpc_call(kXid, kConfigProgram, 1, 1, words({8192, 4096, 1})));
  const Decoded d = received_2005();
  EXPECT_EQ(d.payload, rpc_reply(kXid, words({4096 - 128, 512, 4})));
  EXPECT_GT(d.header.credits, 1u);
  EXPECT_EQ(next_call(), std::nullopt);
  EXPECT_EQ(responder_->config_terms().reply_bytes, 4096u);
  EXPECT_TRUE(responder_->configured());
  EXPECT_EQ(responder_->stats().configurations, 1u);
  // In line, as the client takes Replies of 4096 octets now.
  send(header(8), read_call(8, 3000));
  reply(expect_call(read_call(8, 3000)), read_reply(8, pattern(3000)));
  EXPECT_EQ(received_2005().payload, read_reply(8, pattern(3000)));
}

TEST_F(Responder2005, OneAtATimeUntilConfigured) {
  COVERS("D2005-6.1-2");
  start(options_2005(true));
  send(header(kXid), Bytes(words({kXid, 0, 2, kConfigProgram, 1, 0, 0, 0, 0, 0})));  // the null procedure
  EXPECT_EQ(received_2005().header.credits, 1u);
}

TEST_F(Responder2005, ClientsThatTakeNoReadsGetNoReadChunks) {
  COVERS("D2005-6.2-8");
  start(options_2005(true));
  send(header(kXid), rpc_call(kXid, kConfigProgram, 1, 1, words({4096, 4096, 0})));
  (void)received_2005();
  send(header(9), read_call(9, kLong));
  reply(expect_call(read_call(9, kLong)), read_reply(9, pattern(kLong)));
  EXPECT_EQ(received_2005().header.error.code, HeaderError::kChunk);
  EXPECT_EQ(responder_->replies_kept(), 0u);
  // Nor does this end read what they offer all the same.
  Header h = header(10, Proc::kNomsg);
  h.read_list.push_back({0, {Stag{1}, 100, 0}});
  send(h);
  EXPECT_EQ(received_2005().header.error.code, HeaderError::kChunk);
  EXPECT_FALSE(server_.broken);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
