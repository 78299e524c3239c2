// Responder: Calls and Replies of well-behaved clients, as Linux makes them.
#include "tests/rpcrdma/responder_fixture.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

TEST_F(ResponderTest, AnswersNullInLine) {
  COVERS("D2005-3.3-3");
  COVERS("D2005-4.1-4");
  COVERS("D2005-3-1");
  COVERS("RFC8167-4.3.2-2");
  COVERS("RFC8167-2.1-1");
  COVERS("RFC8166-2.2.2-2");
  COVERS("RFC8166-3.5.1-1");
  COVERS("RFC8166-3.2-2");
  COVERS("RFC8166-3.3.1-1");
  COVERS("RFC8166-4.2.3-1");
  COVERS("RFC8167-4.3-1");
  COVERS("RFC8167-2.4-3");
  COVERS("RFC8167-4.1-2");
  start();
  EXPECT_EQ(server_.receives.size(), 64u + 2u);
  send(header(7), null_call(7));
  const CallToken token = expect_call(null_call(7));
  EXPECT_EQ(server_.receives.size(), 66u);  // posted again at once
  reply(token, rpc_reply(7));
  const Decoded d = received();
  EXPECT_EQ(d.header, header(7, Proc::kMsg, 64));
  EXPECT_EQ(d.payload, rpc_reply(7));
  EXPECT_FALSE(last_invalidated_);
  EXPECT_TRUE(responder_->idle());
}

TEST_F(ResponderTest, PutsReadDataIntoTheWriteChunkAndInvalidatesIt) {
  COVERS("D2005-3.4-9");
  COVERS("D2005-3.7-1");
  COVERS("D2005-3.8-2");
  COVERS("D2005-2-3");
  COVERS("RFC8166-4.3.2-3");
  COVERS("RFC8166-3.4.6-3");
  COVERS("RFC8166-3.4.6-4");
  COVERS("RFC8166-3.4.6-5");
  COVERS("RFC8166-3.4.6-6");
  COVERS("RFC8166-2.3.2-3");
  COVERS("RFC8797-4.1-1");
  COVERS("RFC8797-4.1-2");
  COVERS("RFC8267-6.4.1-4");
  COVERS("RFC8797-3.2-3");
  COVERS("RFC8166-3.4.1-1");
  COVERS("RFC8166-3.4.3-2");
  COVERS("RFC8166-3.4.4.1-1");
  COVERS("RFC8166-3.4.4.1-2");
  COVERS("RFC8166-3.5.2-2");
  COVERS("RFC8166-3.5.2-3");
  COVERS("RFC8166-4.3.2-4");
  start();
  Exposed sink(client_, Bytes(65536), RemoteAccess::kWrite);
  Header h = header(9);
  h.write_list.push_back({{sink.segment()}});
  send(h, read_call(9, 65536));
  const Bytes data = pattern(65536, 3);
  reply(expect_call(read_call(9, 65536)), read_reply(9, data));
  const Decoded d = received();
  EXPECT_EQ(sink.bytes, data);
  EXPECT_EQ(d.payload, read_reply_head(9, 65536));
  ASSERT_EQ(d.header.write_list.size(), 1u);
  EXPECT_EQ(d.header.write_list[0].segments[0], sink.segment());
  EXPECT_EQ(last_invalidated_, sink.memory.handle);
  EXPECT_EQ(server_.history.back().op, OpKind::kSend);
  EXPECT_EQ(responder_->stats().rdma_write_bytes, 65536u);
}

// The Linux client adds a segment for the padding that it must not get; two handles rule out invalidation.
TEST_F(ResponderTest, NeverWritesPaddingAndDoesNotInvalidateOneOfTwoHandles) {
  COVERS("RFC8166-3.4.6.2-2");
  COVERS("RFC8166-3.4.6.2-3");
  COVERS("RFC8166-3.4.4.4-2");
  start();
  Exposed sink(client_, Bytes(5001), RemoteAccess::kWrite);
  Exposed pad(client_, pattern(4, 99), RemoteAccess::kWrite);
  Header h = header(1);
  h.write_list.push_back({{sink.segment(), pad.segment()}});
  send(h, read_call(1, 5001));
  const Bytes data = pattern(5001, 1);
  reply(expect_call(read_call(1, 5001)), read_reply(1, data));
  const Decoded d = received();
  EXPECT_EQ(sink.bytes, data);
  EXPECT_EQ(pad.bytes, pattern(4, 99));
  EXPECT_EQ(d.payload, read_reply_head(1, 5001));
  EXPECT_EQ(d.header.write_list[0].length(), 5001u);
  EXPECT_EQ(d.header.write_list[0].segments[1].length, 0u);
  EXPECT_FALSE(last_invalidated_);
}

TEST_F(ResponderTest, FillsSegmentsInOrderAndReportsWhatItUsed) {
  COVERS("D2005-3.7-2");
  COVERS("RFC8166-3.4.6-3");
  COVERS("RFC8166-4.4.3-1");
  start();
  Exposed sink(client_, Bytes(9000), RemoteAccess::kWrite);
  Header h = header(1);
  // Odd sizes, an empty segment in the middle, not in memory order.
  h.write_list.push_back(
      {{sink.segment(5000, 1001), sink.segment(0, 0), sink.segment(0, 4096), sink.segment(8000, 1000)}});
  send(h, read_call(1, 3000));
  const Bytes data = pattern(3000, 8);
  reply(expect_call(read_call(1, 3000)), read_reply(1, data));
  const Decoded d = received();
  EXPECT_TRUE(std::equal(data.begin(), data.begin() + 1001, sink.bytes.begin() + 5000));
  EXPECT_TRUE(std::equal(data.begin() + 1001, data.end(), sink.bytes.begin()));
  const auto& s = d.header.write_list[0].segments;
  ASSERT_EQ(s.size(), 4u);
  EXPECT_EQ(s[0].length, 1001u);
  EXPECT_EQ(s[1].length, 0u);
  EXPECT_EQ(s[2].length, 1999u);
  EXPECT_EQ(s[3].length, 0u);
  EXPECT_EQ(last_invalidated_, sink.memory.handle);  // several segments, but one handle
}

TEST_F(ResponderTest, EchoesAnUnusedWriteChunkWithZeroLengths) {
  COVERS("RFC8166-4.3.2.2-3");
  start();
  Exposed sink(client_, Bytes(65536), RemoteAccess::kWrite);
  Header h = header(2);
  h.write_list.push_back({{sink.segment()}});
  send(h, read_call(2, 65536));
  reply(expect_call(read_call(2, 65536)), read_error(2));
  const Decoded d = received();
  EXPECT_EQ(d.payload, read_error(2));
  ASSERT_EQ(d.header.write_list.size(), 1u);
  ASSERT_EQ(d.header.write_list[0].segments.size(), 1u);
  EXPECT_EQ(d.header.write_list[0].segments[0].length, 0u);
  EXPECT_EQ(d.header.write_list[0].segments[0].handle, sink.memory.handle);
}

TEST_F(ResponderTest, ReturnsInLineWhatAnEmptyWriteChunkAsksFor) {
  COVERS("RFC8166-4.3.2.3-3");
  COVERS("RFC8166-4.3.2.3-4");
  COVERS("RFC8267-6.4.1-5");
  start();
  Header h = header(2);
  h.write_list.push_back({});
  send(h, read_call(2, 100));
  reply(expect_call(read_call(2, 100)), read_reply(2, pattern(100)));
  const Decoded d = received();
  EXPECT_EQ(d.payload, read_reply(2, pattern(100)));
  ASSERT_EQ(d.header.write_list.size(), 1u);
  EXPECT_TRUE(d.header.write_list[0].is_empty());
}

TEST_F(ResponderTest, PullsWriteDataWithoutPaddingIntoPlace) {
  COVERS("D2005-3.8-3");
  COVERS("RFC8166-3.4.5-3");
  COVERS("RFC8166-3.4.5.1-1");
  COVERS("RFC8166-3.4.5.2-1");
  COVERS("RFC8166-3.4.5-5");
  COVERS("RFC8166-4.2.4-6");
  COVERS("RFC8166-6.1-7");
  COVERS("RFC8166-3.4.1-1");
  start();
  const Bytes data = pattern(70'001, 2);
  Exposed source(client_, data, RemoteAccess::kRead);
  const Bytes head = write_call_head(3, 70'001);
  Header h = header(3);
  const auto position = static_cast<std::uint32_t>(head.size());
  h.read_list = {{position, source.segment(0, 4097)}, {position, source.segment(4097, 70'001 - 4097)}};
  send(h, head);
  const CallToken token = expect_call(write_call(3, data));
  EXPECT_EQ(count(OpKind::kRead), 2u);
  reply(token, write_reply(3));
  const Decoded d = received();
  EXPECT_EQ(d.payload, write_reply(3));
  EXPECT_TRUE(d.header.read_list.empty());
  EXPECT_EQ(last_invalidated_, source.memory.handle);
  EXPECT_EQ(responder_->stats().rdma_read_bytes, 70'001u);
}

TEST_F(ResponderTest, TakesPaddingInsideTheReadChunkToo) {
  COVERS("RFC8166-3.4.5.2-2");
  COVERS("RFC8166-3.4.5.2-3");
  start({.remote_invalidation = false});
  Bytes data = pattern(5001, 2);
  const Bytes whole = write_call(3, data);
  data.resize(5004);
  Exposed source(client_, data, RemoteAccess::kRead);
  const Bytes head = write_call_head(3, 5001);
  Header h = header(3);
  const auto position = static_cast<std::uint32_t>(head.size());
  h.read_list = {{position, source.segment()}};
  send(h, head);
  reply(expect_call(whole), write_reply(3));
  h.read_list = {{position, source.segment(0, 5001)}, {position, source.segment(5001, 3)}};
  send(h, head);
  expect_call(whole);
}

TEST_F(ResponderTest, TakesALongCallThatWouldFitInLine) {
  COVERS("RFC8166-3.5.3-5");
  start();
  Exposed source(client_, getattr_call(4), RemoteAccess::kRead);
  Header h = header(4, Proc::kNomsg);
  h.read_list = {{0, source.segment()}};
  send(h);
  expect_call(getattr_call(4));
}

TEST_F(ResponderTest, PullsALongCall) {
  COVERS("D2005-3.3-6");
  COVERS("RFC8166-3.3.1-10");
  COVERS("RFC8166-3.5.3-3");
  COVERS("RFC8166-3.5.3-5");
  COVERS("RFC8166-2.3.2-4");
  COVERS("RFC8166-3.4.5.1-2");
  COVERS("RFC8166-4.2.4-2");
  COVERS("RFC8166-6.1-6");
  start();
  const Bytes call = write_call(4, pattern(9000));
  Exposed source(client_, call, RemoteAccess::kRead);
  Header h = header(4, Proc::kNomsg);
  for (std::size_t at = 0; at < call.size(); at += 1001) {
    h.read_list.push_back({0, source.segment(at, std::min<std::size_t>(1001, call.size() - at))});
  }
  send(h);
  reply(expect_call(call), write_reply(4));
  EXPECT_EQ(received().payload, write_reply(4));
  EXPECT_LE(server_.max_reads_seen, 4u);
}

TEST_F(ResponderTest, JoinsAPositionZeroChunkWithADataChunk) {
  COVERS("RFC8267-6.4.2-3");
  COVERS("RFC8267-6.4.2-2");
  start();
  const Bytes data = pattern(30'001, 4);
  const Bytes head = write_call_head(5, 30'001);
  Exposed call(client_, head, RemoteAccess::kRead);
  Exposed source(client_, data, RemoteAccess::kRead);
  Header h = header(5, Proc::kNomsg);
  h.read_list = {{static_cast<std::uint32_t>(head.size()), source.segment()}, {0, call.segment()}};
  send(h);
  const CallToken token = expect_call(write_call(5, data));
  reply(token, write_reply(5));
  (void)received();
  EXPECT_FALSE(last_invalidated_);  // two handles
}

TEST_F(ResponderTest, SendsALongReplyThroughTheReplyChunk) {
  COVERS("D2005-5.2-2");
  COVERS("RFC8166-3.5.3-7");
  COVERS("RFC8166-4.3.3-5");
  COVERS("RFC8166-3.5.3-9");
  COVERS("RFC8166-3.5.3-10");
  COVERS("RFC8166-6.1-6");
  start();
  Exposed sink(client_, Bytes(70'000), RemoteAccess::kWrite);
  Header h = header(6);
  h.reply_chunk = WriteChunk{{sink.segment(0, 40'000), sink.segment(40'000, 30'000)}};
  send(h, readdir_call(6));
  const Bytes answer = rpc_reply(6, pattern(50'000));
  reply(expect_call(readdir_call(6)), answer);
  const Decoded d = received();
  EXPECT_EQ(d.header.proc, Proc::kNomsg);
  EXPECT_TRUE(d.payload.empty());
  ASSERT_TRUE(d.header.reply_chunk);
  EXPECT_EQ(d.header.reply_chunk->length(), answer.size());
  EXPECT_EQ(Bytes(sink.bytes.begin(), sink.bytes.begin() + static_cast<std::ptrdiff_t>(answer.size())), answer);
  EXPECT_EQ(last_invalidated_, sink.memory.handle);
}

TEST_F(ResponderTest, PrefersInLineToTheReplyChunk) {
  COVERS("RFC8166-4.3.3-3");
  COVERS("RFC8166-4.3.3-4");
  start();
  Exposed sink(client_, Bytes(70'000), RemoteAccess::kWrite);
  Header h = header(6);
  h.reply_chunk = WriteChunk{{sink.segment()}};
  send(h, readdir_call(6));
  reply(expect_call(readdir_call(6)), rpc_reply(6));
  const Decoded d = received();
  EXPECT_EQ(d.header.proc, Proc::kMsg);
  EXPECT_EQ(d.payload, rpc_reply(6));
  ASSERT_TRUE(d.header.reply_chunk);
  EXPECT_EQ(d.header.reply_chunk->segments.size(), 1u);
  EXPECT_EQ(d.header.reply_chunk->length(), 0u);
}

TEST_F(ResponderTest, PlainSendsIfTheClientDoesNotSupportInvalidation) {
  COVERS("RFC8797-4.1-3");
  COVERS("RFC8797-5.1-1");
  COVERS("RFC8797-3.2-2");
  start({}, std::nullopt, PrivateData{});
  Exposed sink(client_, Bytes(65536), RemoteAccess::kWrite, false);
  Header h = header(9);
  h.write_list.push_back({{sink.segment()}});
  send(h, read_call(9, 65536));
  reply(expect_call(read_call(9, 65536)), read_reply(9, pattern(65536)));
  (void)received();
  EXPECT_FALSE(last_invalidated_);
}

// Without private data 1024 octets, header included, are the limit.
TEST_F(ResponderTest, KeepsToTheInlineThreshold) {
  COVERS("RFC8166-3.3.3-5");
  COVERS("RFC8166-4.2.4-13");
  COVERS("RFC8166-2.3.2-2");
  COVERS("RFC8166-3.3-1");
  COVERS("RFC8166-3.3.2-2");
  COVERS("RFC8166-3.3.3-1");
  COVERS("RFC8166-3.5.1-1");
  start({}, std::nullopt, PrivateData{});
  send(header(1), getattr_call(1));
  reply(expect_call(getattr_call(1)), rpc_reply(1, Bytes(1024 - 28 - 24)));
  EXPECT_EQ(received().payload.size(), 1024u - 28);
  send(header(2), getattr_call(2));
  reply(expect_call(getattr_call(2)), rpc_reply(2, Bytes(1024 - 28 - 20)));
  expect_err_chunk(2);
}

TEST_F(ResponderTest, ManyPiecesThanOneSendGathersAreCopied) {
  server_.limits_now.max_sge = 2;
  start();
  Exposed sink(client_, Bytes(2000), RemoteAccess::kWrite);
  Header h = header(9);
  h.write_list.push_back({{sink.segment()}});
  const Bytes call =
      rpc_call(9, kNfs, 4, 1, words({0, 0, 3, 22}) + file_handle() + words({25, 1, 2, 3, 4, 0, 0, 2000, 10}));
  send(h, call);
  // PUTFH ok; READ ok, eof, data; GETFH with a handle behind the data.
  const Bytes tail = words({10, 0}) + file_handle();
  const Bytes head = rpc_reply(9, words({0, 0, 3, 22, 0, 25, 0, 1, 2000}));
  const Bytes data = pattern(2000, 7);
  reply(expect_call(call), head + data + tail);
  const Decoded d = received();
  EXPECT_EQ(sink.bytes, data);
  EXPECT_EQ(d.payload, head + tail);
}

TEST_F(ResponderTest, EveryReceiveTakes1024Octets) {
  COVERS("D2005-5-1");
  COVERS("RFC8166-3.3.3-4");
  COVERS("RFC8166-3.3.3-1");
  start({.inline_bytes = 1024});
  for (const auto& r : server_.receives) EXPECT_EQ(r.second.bytes.size(), 1024u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
