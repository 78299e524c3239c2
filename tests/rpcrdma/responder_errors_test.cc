// Responder: hostile and unlucky clients, exhaustion, disconnects.
#include "tests/rpcrdma/responder_fixture.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

TEST_F(ResponderTest, AnswersABadVersionAndDropsDone) {
  COVERS("RFC8166-4.5.1-1");
  COVERS("RFC8166-4.5-5");
  COVERS("RFC8166-4.5-6");
  COVERS("RFC8166-4.6.2-2");
  COVERS("RFC8166-4.6.1-2");
  start();
  Header h = header(1);
  h.version = 2;
  send(h, null_call(1));
  const Decoded d = received();
  EXPECT_EQ(d.header.error, (ErrorBody{HeaderError::kVers, 1, 1}));
  EXPECT_EQ(d.header.version, 2u);
  EXPECT_EQ(d.header.credits, 64u);
  server_.receive(words({2, 1, 5, 3}));  // RDMA_DONE
  server_.receive(words({2, 1, 5, 3, 0, 0, 0}));
  run();
  EXPECT_TRUE(client_.inbox.empty());
  server_.receive(words({3, 1, 5, 2, 0, 0, 0, 0, 0}));  // RDMA_MSGP
  expect_err_chunk(3);
  EXPECT_EQ(server_.receives.size(), 66u);
  EXPECT_EQ(responder_->stats().dropped_messages, 2u);
  EXPECT_EQ(responder_->stats().err_vers_sent, 1u);
}

TEST_F(ResponderTest, RefusesMalformedCalls) {
  COVERS("RFC8166-4.5-3");
  COVERS("RFC8166-4.5-2");
  COVERS("RFC8166-4.5.2-3");
  COVERS("RFC8166-4.2.4-12");
  COVERS("RFC8166-4.2.4-4");
  COVERS("RFC8166-4.5-1");
  start();
  server_.receive(Bytes(27));
  run();
  EXPECT_TRUE(client_.inbox.empty());
  send(header(8), null_call(9));  // xids differ
  expect_err_chunk(8);
  send(header(8));  // no RPC message at all
  expect_err_chunk(8);
  send(header(8), words({8, 7, 2}));  // neither Call nor Reply
  expect_err_chunk(8);
  Header nomsg = header(9, Proc::kNomsg);  // Payload nowhere
  nomsg.reply_chunk = WriteChunk{{{Stag{5}, 100, 0}}};
  send(nomsg);
  expect_err_chunk(9);
  send(make_err_chunk(10, 1, 1));  // never answered
  run();
  EXPECT_TRUE(client_.inbox.empty());
  send(header(11), null_call(11));
  expect_call(null_call(11));
}

TEST_F(ResponderTest, RefusesReadChunksThatTheBindingDoesNotAllow) {
  COVERS("D2005-3.4-1");
  COVERS("RFC8166-6.1-8");
  COVERS("RFC8166-6.1-9");
  COVERS("RFC8166-3.4.2-2");
  start();
  Exposed source(client_, pattern(32, 5), RemoteAccess::kRead);
  Header h = header(1);
  h.read_list = {{44, source.segment()}};  // the file handle of a GETATTR
  send(h, rpc_call(1, kNfs, 3, 1, words({32})));
  expect_err_chunk(1);
  EXPECT_FALSE(next_call());
  EXPECT_TRUE(responder_->idle());
}

TEST_F(ResponderTest, ReassemblesAnythingIfTheBindingIsNotEnforced) {
  start({.enforce_binding = false});
  Exposed source(client_, pattern(32, 5), RemoteAccess::kRead);
  Header h = header(1);
  h.read_list = {{44, source.segment()}};
  send(h, rpc_call(1, kNfs, 3, 1, words({32})));
  expect_call(getattr_call(1));
}

TEST_F(ResponderTest, AnswersGarbageArgsToChunksThatContradictTheCall) {
  COVERS("RFC8166-4.5.2-5");
  COVERS("RFC8166-3.4.5.2-4");
  start({.remote_invalidation = false});
  const auto garbage = make_error_reply(3, AcceptStat::kGarbageArgs);
  const Bytes head = write_call_head(3, 1000);
  const auto position = static_cast<std::uint32_t>(head.size());
  Exposed source(client_, pattern(2000), RemoteAccess::kRead);
  Header h = header(3);
  h.read_list = {{position, source.segment(0, 996)}};  // shorter than the count word says
  send(h, head);
  EXPECT_EQ(received().payload, Bytes(garbage.begin(), garbage.end()));
  h.read_list = {{position + 400, source.segment(0, 1000)}};  // behind the end of the message
  send(h, head);
  EXPECT_EQ(received().payload, Bytes(garbage.begin(), garbage.end()));
  h.read_list = {{40, source.segment(0, 1000)}, {44, source.segment(0, 8)}};  // chunks overlap
  send(h, head);
  EXPECT_EQ(received().payload, Bytes(garbage.begin(), garbage.end()));
  EXPECT_EQ(responder_->stats().garbage_args_sent, 3u);
  EXPECT_FALSE(next_call());
}

TEST_F(ResponderTest, RefusesCallsLongerThanAllowedBeforeReadingThem) {
  COVERS("RFC8166-8.1.4-1");
  start();
  Header h = header(3, Proc::kNomsg);
  for (int i = 0; i < 17; ++i) h.read_list.push_back({0, {Stag{1}, 0xFFFFFFFF, 0}});
  send(h);
  expect_err_chunk(3);
  EXPECT_EQ(count(OpKind::kRead), 0u);
}

TEST_F(ResponderTest, RefusesALongCallOfAnotherXid) {
  COVERS("RFC8166-4.2.1-1");
  start();
  Exposed source(client_, write_call(77, pattern(5000)), RemoteAccess::kRead);
  Header h = header(3, Proc::kNomsg);
  h.read_list = {{0, source.segment()}};
  send(h);
  expect_err_chunk(3);
  EXPECT_FALSE(next_call());
}

TEST_F(ResponderTest, CannotReadWithoutOrd) {
  server_.limits_now.max_outstanding_reads = 0;
  start();
  Header h = header(3, Proc::kNomsg);
  h.read_list = {{0, {Stag{1}, 100, 0}}};
  send(h);
  expect_err_chunk(3);
}

TEST_F(ResponderTest, AnswersErrChunkWhenTheReplyDoesNotFit) {
  COVERS("RFC8166-4.5.3-3");
  COVERS("RFC8267-3.1-1");
  COVERS("RFC8267-3.1-6");
  start();
  // No Reply chunk.
  send(header(1), readdir_call(1));
  reply(expect_call(readdir_call(1)), rpc_reply(1, Bytes(5000)));
  expect_err_chunk(1);
  // Reply chunk too short.
  Exposed sink(client_, Bytes(5000), RemoteAccess::kWrite);
  Header h = header(2);
  h.reply_chunk = WriteChunk{{sink.segment()}};
  send(h, readdir_call(2));
  reply(expect_call(readdir_call(2)), rpc_reply(2, Bytes(5000)));
  expect_err_chunk(2);
  // Data longer than its Write chunk, even where it would fit in line.
  h = header(3);
  h.write_list.push_back({{sink.segment(0, 50)}});
  send(h, read_call(3, 51));
  reply(expect_call(read_call(3, 51)), read_reply(3, pattern(51)));
  expect_err_chunk(3);
  EXPECT_EQ(sink.bytes, Bytes(5000));
  EXPECT_EQ(count(OpKind::kWrite), 0u);
}

TEST_F(ResponderTest, DropsACallWhoseXidIsOutstanding) {
  start();
  send(header(5), getattr_call(5));
  const CallToken token = expect_call(getattr_call(5));
  send(header(5), getattr_call(5));
  run();
  EXPECT_FALSE(next_call());
  EXPECT_EQ(responder_->stats().duplicate_xids, 1u);
  reply(token, rpc_reply(5));
  (void)received();
  send(header(5), getattr_call(5));  // free again
  expect_call(getattr_call(5));
}

TEST_F(ResponderTest, RefusesRepliesThatBelongToNoCall) {
  COVERS("RFC8166-3.3.1-9");
  COVERS("RFC8167-2-1");
  start();
  send(header(5), getattr_call(5));
  const CallToken token = expect_call(getattr_call(5));
  Buffer wrong = to_buffer(*pool_, rpc_reply(6));
  EXPECT_EQ(responder_->reply(token, std::move(wrong)).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(wrong);  // untouched
  EXPECT_EQ(responder_->reply({token.slot + 1, 0}, to_buffer(*pool_, rpc_reply(5))).error().code,
            Errc::kInvalidArgument);
  reply(token, rpc_reply(5));
  EXPECT_FALSE(responder_->reply(token, to_buffer(*pool_, rpc_reply(5))).ok());  // answered already
}

TEST_F(ResponderTest, GrantsWhatItHasReceivesFor) {
  COVERS("RFC8166-3.3.1-3");
  COVERS("RFC8166-3.3.1-7");
  COVERS("RFC8167-4.3.2-1");
  start({.credits = 3, .backward_credits = 0});
  for (std::uint32_t xid = 1; xid <= 3; ++xid) send(header(xid), getattr_call(xid));
  std::vector<CallToken> tokens;
  for (std::uint32_t xid = 1; xid <= 3; ++xid) tokens.push_back(expect_call(getattr_call(xid)));
  EXPECT_EQ(server_.receives.size(), 3u);
  for (std::uint32_t xid = 1; xid <= 3; ++xid) {
    reply(tokens[xid - 1], rpc_reply(xid));
    EXPECT_EQ(received().header.credits, 3u);
  }
  for (std::uint32_t xid = 11; xid <= 13; ++xid) send(header(xid), getattr_call(xid));
  EXPECT_EQ(responder_->outstanding_calls(), 3u);
  send(header(14), getattr_call(14));  // one too many
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(next_call());
  const auto end = next<Responder::MustClose>(*responder_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->error.code, Errc::kUntaggedNoBuffer);
}

TEST_F(ResponderTest, AClientThatReceivesNothingCannotPileUpAnswers) {
  server_.limits_now.send_queue_depth = 2;
  start({.credits = 4, .backward_credits = 0});
  int accepted = 0;
  while (accepted < 100 && !server_.receives.empty()) {
    server_.receive(encode(header(1)));  // each owes an ERR_CHUNK
    if (next<Responder::MustClose>(*responder_)) break;
    ++accepted;
  }
  EXPECT_EQ(accepted, 2 + 4);
}

TEST_F(ResponderTest, DelaysReadsUntilMemoryIsFree) {
  auto memory = pool_options(ResponderOptions{});
  memory.call_bytes = BufferPool::charged_bytes(60'000);  // one Call at a time
  start({.remote_invalidation = false}, memory);
  const Bytes data = pattern(60'000, 6);
  Exposed source(client_, data, RemoteAccess::kRead);
  for (std::uint32_t xid = 1; xid <= 3; ++xid) {
    const Bytes head = write_call_head(xid, 60'000);
    Header h = header(xid);
    h.read_list = {{static_cast<std::uint32_t>(head.size()), source.segment()}};
    send(h, head);
  }
  run();
  EXPECT_EQ(count(OpKind::kRead), 1u);
  EXPECT_EQ(responder_->stats().delayed_calls, 2u);
  for (std::uint32_t xid = 1; xid <= 3; ++xid) {
    auto call = next_call();
    ASSERT_TRUE(call);
    EXPECT_EQ(to_bytes(call->message.bytes()), write_call(xid, data));
    EXPECT_FALSE(next_call());
    // Replies do not need the memory that Calls wait for.
    reply(call->token, write_reply(xid));
    EXPECT_EQ(received().header.xid, xid);
    call->message.reset();
    responder_->progress();
    run();
  }
}

TEST_F(ResponderTest, ACallThatCanNeverFitIsRefusedInsteadOfDelayed) {
  auto memory = pool_options(ResponderOptions{});
  memory.call_bytes = 100'000;
  start({}, memory);
  Header h = header(3, Proc::kNomsg);
  h.read_list = {{0, {Stag{1}, 200'000, 0}}};
  send(h);
  expect_err_chunk(3);
}

class NarrowSendQueue : public ResponderTest, public ::testing::WithParamInterface<std::size_t> {};

// With room for one, all that is posted of a message has completed before the rest is.
TEST_P(NarrowSendQueue, IsRespectedByWritesOfManySegments) {
  server_.limits_now.send_queue_depth = GetParam();
  start();
  Exposed sink(client_, Bytes(16'000), RemoteAccess::kWrite);
  Header h = header(9);
  WriteChunk chunk;
  for (std::size_t i = 0; i < 16; ++i) chunk.segments.push_back(sink.segment(i * 1000, 1000));
  h.write_list.push_back(chunk);
  send(h, read_call(9, 15'999));
  const Bytes data = pattern(15'999);
  reply(expect_call(read_call(9, 15'999)), read_reply(9, data));
  EXPECT_EQ(received().header.write_list[0].length(), 15'999u);
  EXPECT_EQ(Bytes(sink.bytes.begin(), sink.bytes.end() - 1), data);
  EXPECT_EQ(server_.max_posted_seen, GetParam());
}
INSTANTIATE_TEST_SUITE_P(All, NarrowSendQueue, ::testing::Values(1u, 3u));

TEST_F(ResponderTest, TakesNoMoreOutOfAReceiveThanItHolds) {
  start();
  const auto [id, into] = server_.receives.front();
  server_.receives.pop_front();
  const Bytes call = encode(header(1), getattr_call(1));
  std::copy(call.begin(), call.end(), into.bytes.begin());
  responder_->on_completion({.id = id, .byte_len = static_cast<std::uint32_t>(into.bytes.size()) + 1});
  EXPECT_FALSE(next_call());
  EXPECT_EQ(server_.receives.size(), 66u);
}

TEST_F(ResponderTest, FailedAccessClosesTheConnection) {
  COVERS("RFC8166-4.5.3-1");
  start();
  Header h = header(3, Proc::kNomsg);
  h.read_list = {{0, {Stag{0x666}, 100, 0}}};
  send(h);
  run();
  ASSERT_TRUE(next<Responder::MustClose>(*responder_));
  EXPECT_FALSE(responder_->poll_event());
  EXPECT_EQ(responder_->reply({}, Buffer{}).error().code, Errc::kNotConnected);
}

TEST_F(ResponderTest, ClosesWhenTheEndpointRefuses) {
  COVERS("RFC8166-4.5.4-3");
  start();
  send(header(5), getattr_call(5));
  const CallToken token = expect_call(getattr_call(5));
  server_.refuse_posts = true;
  EXPECT_TRUE(responder_->reply(token, to_buffer(*pool_, rpc_reply(5))).ok());
  ASSERT_TRUE(next<Responder::MustClose>(*responder_));
}

// Disconnect in the middle of everything; TearDown finds leaks.
TEST_F(ResponderTest, FlushLeaksNothing) {
  start();
  Exposed source(client_, pattern(60'000), RemoteAccess::kRead);
  for (std::uint32_t xid = 1; xid <= 20; ++xid) {
    const Bytes head = write_call_head(xid, 60'000);
    Header h = header(xid);
    h.read_list = {{static_cast<std::uint32_t>(head.size()), source.segment()}};
    send(h, head);
  }
  send(header(99), getattr_call(99));
  auto call = next_call();
  ASSERT_TRUE(call);
  ASSERT_TRUE(responder_->reply(call->token, to_buffer(*pool_, rpc_reply(99))).ok());
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, rpc_call(5, 1, 1, 1)), now_).ok());
  server_.step();
  server_.disconnect();
  bool closed = false;
  while (auto e = responder_->poll_event()) closed |= std::holds_alternative<Responder::MustClose>(*e);
  EXPECT_TRUE(closed);
}

// Every one-bit change of a chunked Call, and every truncation, ends in an answer, a Call or silence.
TEST_F(ResponderTest, SurvivesEveryBitFlipInItsInput) {
  start({.credits = 64, .backward_credits = 0});
  Exposed source(client_, pattern(64), RemoteAccess::kRead);
  Exposed sink(client_, Bytes(64), RemoteAccess::kWrite);
  const Bytes head = write_call_head(1, 64);
  Header h = header(1);
  h.read_list = {{static_cast<std::uint32_t>(head.size()), source.segment()}};
  h.write_list.push_back({{sink.segment()}});
  h.reply_chunk = WriteChunk{{sink.segment()}};
  const Bytes good = encode(h, head);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    if (bit % 3 == 0) bad.resize(bit / 8);
    FakeEndpoint server(0x100);
    FakeEndpoint client(0x900);
    client.raw = true;
    client.regions = client_.regions;
    FakeEndpoint::join(server, client);
    BufferPool pool(server, pool_options(ResponderOptions{}));
    Responder responder(server, pool, {4096, 4096, true}, {});
    server.deliver = [&](const Completion& c) { responder.on_completion(c); };
    ASSERT_TRUE(responder.start().ok());
    server.receive(bad);
    test::run(server, client);
    while (auto e = responder.poll_event()) {
      if (auto* call = std::get_if<Responder::CallReceived>(&*e)) {
        (void)responder.reply(call->token, to_buffer(pool, rpc_reply(call->xid, Bytes(40))));
        test::run(server, client);
      }
    }
    server.disconnect();
    while (responder.poll_event()) {
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
