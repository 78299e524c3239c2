// A Requester that uses chunks for data, against a server played by the test.
#include "iwarp/rpcrdma/offer_plan.h"
#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

class RequesterChunks : public RequesterTest {
 protected:
  // The octets behind a Read segment of the Call.
  Bytes read_remote(const Segment& from) {
    Buffer sink = *pool_of_server_.acquire(from.length, BufferPool::Purpose::kCall);
    EXPECT_TRUE(server_.post_read(1, sink.slice(), from.handle, from.offset).ok());
    run();
    return to_bytes(sink.bytes());
  }
  // The Reply header to a Call with Write chunks of which so many octets were used.
  static Header filled(const Decoded& call, std::initializer_list<std::uint32_t> written) {
    Header h = header(call.header.xid, Proc::kMsg, 64);
    h.write_list = call.header.write_list;
    std::size_t i = 0;
    for (const std::uint32_t n : written) h.write_list[i++].segments[0].length = n;
    return h;
  }
};

TEST_F(RequesterChunks, DataOfAWriteGoByReadChunkAndTheRestInLine) {
  COVERS("D2005-3.4-2");
  COVERS("D2005-3.4-15");
  COVERS("RFC8166-3.4.5-1");
  COVERS("RFC8166-3.4.5-2");
  COVERS("RFC8166-3.4.5.2-1");
  COVERS("RFC8166-3.4.5.2-4");
  COVERS("RFC5042-6.3.4-1");
  start();
  for (const std::uint32_t size : {65'536u, 65'537u}) {
    const Bytes data = pattern(size, size);
    ASSERT_TRUE(call(write_call(1, data)).ok());
    const Decoded d = received();
    EXPECT_EQ(d.header.proc, Proc::kMsg);
    EXPECT_EQ(d.payload, write_call_head(1, size));
    ASSERT_EQ(d.header.read_list.size(), 1u);
    EXPECT_EQ(d.header.read_list[0].position, d.payload.size());
    const Segment s = d.header.read_list[0].target;
    EXPECT_EQ(s.length, size);
    EXPECT_EQ(client_.regions.at(raw(s.handle)).memory.size(), size) << "the data, and no octet beside them";
    EXPECT_EQ(read_remote(s), data);
    answer(header(1, Proc::kMsg, 64), write_reply(1));
    EXPECT_EQ(client_.exposed(), 0u);
    auto reply = next<Requester::ReplyReceived>(*requester_);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->read_bytes, size);
    EXPECT_EQ(reply->written, 0u);
  }
  EXPECT_EQ(requester_->stats().calls_reduced, 2u);
}

TEST_F(RequesterChunks, WhatIsTooLongWithoutItsDataGoesByPositionZeroBesideThem) {
  COVERS("RFC8166-3.5.3-9");
  start({.offers = {.with_position_zero = true}}, std::nullopt, PrivateData{});
  // SYMLINK of a long name to a long path.
  const Bytes name = pattern(1200), path = pattern(901, 3);
  const Bytes message =
      rpc_call(1, kNfs, 3, 10, file_handle() + opaque(name) + words({0, 0, 0, 0, 0, 0}) + opaque(path));
  ASSERT_TRUE(call(message).ok());
  const Decoded d = received();
  EXPECT_EQ(d.header.proc, Proc::kNomsg);
  EXPECT_TRUE(d.payload.empty());
  ASSERT_EQ(d.header.read_list.size(), 2u);
  EXPECT_EQ(d.header.read_list[0].position, 0u);
  EXPECT_EQ(d.header.read_list[1].position, message.size() - 904);
  Bytes whole = read_remote(d.header.read_list[0].target) + read_remote(d.header.read_list[1].target);
  whole.resize(message.size());
  EXPECT_EQ(whole, message);
  EXPECT_EQ(d.header.read_list[0].target.handle, d.header.read_list[1].target.handle);
}

TEST_F(RequesterChunks, DataOfAReadComeIntoAWriteChunkAndStayThere) {
  COVERS("D2005-3.4-4");
  COVERS("D2005-3.4-5");
  COVERS("D2005-3.7-3");
  COVERS("RFC8166-3.4.6-2");
  COVERS("RFC8166-3.4.6.2-1");
  COVERS("RFC8166-3.4.6.1-1");
  COVERS("RFC8166-4.3.2.1-1");
  COVERS("RFC8166-4.3.2.2-4");
  start();
  for (const std::uint32_t size : {65'536u, 65'535u, 1u}) {
    ASSERT_TRUE(call(read_call(1, 65'536)).ok());
    const Decoded d = received();
    EXPECT_EQ(d.header.proc, Proc::kMsg);
    EXPECT_FALSE(d.header.reply_chunk);
    ASSERT_EQ(d.header.write_list.size(), 1u);
    ASSERT_EQ(d.header.write_list[0].segments.size(), 1u);
    const Segment s = d.header.write_list[0].segments[0];
    EXPECT_EQ(s.length, 65'536u);
    EXPECT_EQ(client_.regions.at(raw(s.handle)).memory.size(), 65'536u);
    EXPECT_TRUE(client_.regions.at(raw(s.handle)).access == RemoteAccess::kWrite);
    const std::byte* const chunk = client_.regions.at(raw(s.handle)).memory.data();
    write_remote(s, pattern(size, size));
    EXPECT_EQ(client_.exposed(), 1u);
    answer(filled(d, {size}), read_reply_head(1, size));
    EXPECT_EQ(client_.exposed(), 0u);
    auto reply = next<Requester::ReplyReceived>(*requester_);
    ASSERT_TRUE(reply);
    EXPECT_EQ(to_bytes(reply->message.bytes()), read_reply(1, pattern(size, size)));
    EXPECT_EQ(reply->message.bytes().data() + read_reply_head(1, size).size(), chunk) << "not moved";
    EXPECT_EQ(reply->written, size);
    EXPECT_FALSE(reply->in_reply_chunk);
    EXPECT_GE(reply->message.headroom(), kHeadroomBytes);
  }
  EXPECT_EQ(requester_->stats().replies_reduced, 3u);
}

TEST_F(RequesterChunks, AReadThatFailsLeavesItsChunkUnused) {
  start();
  for (const bool echoed : {true, false}) {
    ASSERT_TRUE(call(read_call(1, 65'536)).ok());
    Decoded d = received();
    answer(echoed ? filled(d, {0}) : header(1, Proc::kMsg, 64), read_error(1));
    expect_reply(read_error(1));
  }
}

TEST_F(RequesterChunks, ChunksThatWereNotOfferedOrDoNotFitEndTheRpc) {
  COVERS("RFC8166-6.1-10");
  COVERS("RFC8166-6.1-11");
  start();
  const auto expect_bad = [&](const Header& h, const Bytes& payload) {
    answer(h, payload);
    const auto failed = next<Requester::CallFailed>(*requester_);
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->why, Requester::Failure::kBadReply);
    EXPECT_EQ(client_.exposed(), 0u);
  };
  const auto ask = [&] {
    EXPECT_TRUE(call(read_call(1, 65'536)).ok());
    return received();
  };
  Decoded d = ask();
  expect_bad(filled(d, {65'537}), read_reply_head(1, 65'537));
  d = ask();
  expect_bad(filled(d, {100}), read_reply_head(1, 200));
  d = ask();
  expect_bad(filled(d, {0}), read_reply(1, pattern(100)));  // in line, though there was a chunk
  d = ask();
  Header other = filled(d, {100});
  other.write_list[0].segments[0].handle = Stag{77};
  expect_bad(other, read_reply_head(1, 100));
  d = ask();
  Header moved = filled(d, {100});
  ++moved.write_list[0].segments[0].offset;
  expect_bad(moved, read_reply_head(1, 100));
  d = ask();
  Header two = filled(d, {100});
  two.write_list.push_back(two.write_list[0]);
  expect_bad(two, read_reply_head(1, 100));
  d = ask();
  Header none = filled(d, {100});
  none.write_list[0].segments.clear();
  expect_bad(none, read_reply_head(1, 100));
  ASSERT_TRUE(call(getattr_call(1)).ok());
  Header unasked = header(1, Proc::kMsg, 64);
  unasked.write_list = d.header.write_list;
  received();
  expect_bad(unasked, rpc_reply(1));
  EXPECT_TRUE(requester_->idle());
}

TEST_F(RequesterChunks, MemoryThatCannotBeExposedFailsTheCallOnly) {
  start();
  client_.refuse_registrations = false;
  for (const Bytes& message : {read_call(1, 65'536), write_call(1, pattern(65'536)), readdir_call(1)}) {
    // What the pool needs is registered before.
    (void)pool_->acquire(80'000, BufferPool::Purpose::kReply, kHeadroomBytes);
    Buffer buffer = to_buffer(*pool_, message, BufferPool::Purpose::kCall);
    client_.refuse_registrations = true;
    ASSERT_TRUE(requester_->call(std::move(buffer), now_).ok());
    client_.refuse_registrations = false;
    if (auto failed = next<Requester::CallFailed>(*requester_)) {
      EXPECT_EQ(failed->why, Requester::Failure::kLocal);
    } else {
      requester_->progress();  // there was no memory to receive into
      received();
      answer(header(1, Proc::kMsg, 64), rpc_reply(1));
      (void)requester_->poll_event();
    }
    EXPECT_EQ(client_.exposed(), 0u);
  }
  EXPECT_TRUE(requester_->idle());
}

// A small READ among large ones is answered in line.
TEST(RpcPairChunks, AnEmptyWriteChunkAsksForAResultInLine) {
  COVERS("RFC8166-4.3.2.3-2");
  COVERS("RFC8166-4.3.2.3-3");
  COVERS("RFC8166-4.3.2.3-4");
  RequesterOptions c;
  c.offers = {.write_chunks = 4, .empty_write_chunks = true};
  Pair pair(c, {});
  std::uint32_t xid = 0;
  const std::vector<std::vector<std::uint32_t>> cases = {
      {5000, 100, 6000}, {100, 5000, 100}, {100, 101, 5001}, {7000, 99}};
  for (const auto& sizes : cases) {
    for (const std::uint32_t less : {0u, 1u, 90u}) {  // octets that there are not
      SCOPED_TRACE(std::to_string(sizes[0]) + ' ' + std::to_string(less));
      ++xid;
      const auto n = static_cast<std::uint32_t>(sizes.size());
      Bytes arguments = words({0, 1, n}), results = words({0, 0, n});
      std::uint64_t room = 0;
      for (const std::uint32_t size : sizes) {
        arguments = arguments + words({25, 1, 2, 3, 4, 0, 0, size});
        results = results + words({25, 0, 1}) + opaque(pattern(size - less, size));
        room += size < 512 ? 0 : size;
      }
      const Bytes message = rpc_call(xid, kNfs, 4, 1, arguments), answer = rpc_reply(xid, results);
      ASSERT_TRUE(pair.client.call(to_buffer(pair.client_pool, message, BufferPool::Purpose::kCall), {}).ok());
      pair.run();
      auto call = next<Responder::CallReceived>(pair.server);
      ASSERT_TRUE(call);
      EXPECT_EQ(call->write_chunk_bytes, room);
      EXPECT_EQ(call->reply_chunk_bytes, 0u);
      call->message = {};
      ASSERT_TRUE(pair.server.reply(call->token, to_buffer(pair.server_pool, answer)).ok());
      pair.run();
      const auto reply = next<Requester::ReplyReceived>(pair.client);
      ASSERT_TRUE(reply);
      EXPECT_EQ(to_bytes(reply->message.bytes()), answer);
      EXPECT_EQ(pair.client_end.exposed(), 0u);
    }
  }
}

TEST_F(RequesterChunks, AnEmptyWriteChunkComesBackEmpty) {
  start({.offers = {.write_chunks = 2, .empty_write_chunks = true}});
  const Bytes message =
      rpc_call(1, kNfs, 4, 1, words({0, 1, 2, 25, 1, 2, 3, 4, 0, 0, 5000, 25, 1, 2, 3, 4, 0, 0, 100}));
  ASSERT_TRUE(call(message).ok());
  Decoded d = received();
  ASSERT_EQ(d.header.write_list.size(), 2u);
  EXPECT_TRUE(d.header.write_list[1].is_empty());
  Header filled_one = filled(d, {0});
  filled_one.write_list[1].segments.push_back({Stag{9}, 4, 0});
  answer(filled_one, rpc_reply(1));
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kBadReply);
}

// The gaps around Write chunks are more than this memory has; a Reply chunk needs none.
TEST_F(RequesterChunks, AReplyChunkWhereThereIsNoRoomForWriteChunks) {
  RequesterOptions options;
  auto memory = pool_options(options);
  const Bytes some = read_call(1, 65'536);
  const auto plan = plan_offer(some, ResultBinding::for_call(some), {}, 4096, 4096, options.max_reply_bytes);
  ASSERT_EQ(plan.write_chunks.size(), 1u);
  memory.reply_bytes = BufferPool::charged_bytes(65'536);
  const auto data = static_cast<std::uint32_t>((memory.reply_bytes - kHeadroomBytes - plan.reply_rest) / 4 * 4);
  start(options, memory);
  ASSERT_TRUE(call(read_call(1, data)).ok());
  const Decoded d = received();
  EXPECT_TRUE(d.header.write_list.empty());
  ASSERT_TRUE(d.header.reply_chunk);
  const Bytes whole = read_reply(1, pattern(data));
  write_remote(d.header.reply_chunk->segments[0], whole);
  Header h = header(1, Proc::kNomsg, 64);
  h.reply_chunk = d.header.reply_chunk;
  h.reply_chunk->segments[0].length = static_cast<std::uint32_t>(whole.size());
  answer(h);
  expect_reply(whole, true);
}

// As an endpoint does that has no STag left for a while.
TEST_F(RequesterChunks, AReplyChunkWhereAWriteChunkCannotBeExposed) {
  start();
  (void)pool_->acquire(80'000, BufferPool::Purpose::kReply, kHeadroomBytes);
  client_.registrations_to_refuse = 1;
  ASSERT_TRUE(call(read_call(1, 65'536)).ok());
  Decoded d = received();
  EXPECT_TRUE(d.header.write_list.empty());
  EXPECT_TRUE(d.header.reply_chunk);
  EXPECT_EQ(client_.exposed(), 1u);
  EXPECT_EQ(requester_->credits().in_flight(), 1u);
  answer(header(1, Proc::kMsg, 64), read_error(1));
  expect_reply(read_error(1));
  EXPECT_EQ(client_.exposed(), 0u);
  // Neither of them, nor when the pool has given up what is idle: that Call fails.
  client_.registrations_to_refuse = 3;
  ASSERT_TRUE(call(read_call(2, 65'536)).ok());
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kLocal);
  ASSERT_TRUE(call(read_call(3, 65'536)).ok());
  EXPECT_EQ(received().header.write_list.size(), 1u);
}

TEST_F(RequesterChunks, OfTwoWriteChunksBothOrNone) {
  start({.offers = {.write_chunks = 2}});
  (void)pool_->acquire(80'000, BufferPool::Purpose::kReply, kHeadroomBytes);
  client_.refuse_registration_number = 2;
  const Bytes message =
      rpc_call(1, kNfs, 4, 1, words({0, 1, 2, 25, 1, 2, 3, 4, 0, 0, 5000, 25, 1, 2, 3, 4, 0, 0, 6000}));
  ASSERT_TRUE(call(message).ok());
  const Decoded d = received();
  EXPECT_TRUE(d.header.write_list.empty());
  EXPECT_TRUE(d.header.reply_chunk);
  EXPECT_EQ(client_.exposed(), 1u) << "the first is fenced";
  answer(header(1, Proc::kMsg, 64), rpc_reply(1, words({5, 0, 0})));
  EXPECT_EQ(client_.exposed(), 0u);
}

// Nor can the first be fenced: the connection ends, and with it whatever else would have gone.
TEST_F(RequesterChunks, NothingHappensAfterAFenceThatFails) {
  COVERS("RFC8166-4.5.4-2");
  for (const Bytes& data : {Bytes{}, pattern(5000)}) {
    SCOPED_TRACE(data.size());
    RequesterOptions options{.retransmission = true, .offers = {.write_chunks = 2}};
    auto memory = pool_options(options);
    memory.reply_bytes = BufferPool::charged_bytes(80'000);
    start(options, memory);
    ASSERT_TRUE(call(null_call(1)).ok());
    const Bytes message =  // WRITE and two READs; a longer one goes in a Read chunk
        rpc_call(2, kNfs, 4, 1,
                 words({0, 1, 3, 38, 1, 2, 3, 4, 0, 0, 2}) + opaque(data) +
                     words({25, 1, 2, 3, 4, 0, 0, 5000, 25, 1, 2, 3, 4, 0, 0, 6000}));
    ASSERT_TRUE(call(message).ok());
    ASSERT_TRUE(call(readlink_call(3)).ok());  // there is never memory for its Reply
    (void)received();
    client_.refuse_registration_number = 2;
    client_.refuse_invalidation = true;
    answer(header(1, Proc::kMsg, 64), rpc_reply(1));
    EXPECT_TRUE(next<Requester::ReplyReceived>(*requester_));
    EXPECT_TRUE(next<Requester::MustClose>(*requester_));
    EXPECT_FALSE(requester_->poll_event());
    EXPECT_TRUE(nothing_received());
    const auto outstanding = requester_->take_outstanding();
    ASSERT_EQ(outstanding.size(), 2u);
    EXPECT_EQ(outstanding[0].message, message);
    EXPECT_EQ(outstanding[1].message, readlink_call(3));
    TearDown();
    client_.refuse_invalidation = client_.broken = false;
  }
}

// Both in one Call, between two ends of iwarp.
TEST(RpcPairChunks, WriteChunksBesideAReplyChunk) {
  RequesterOptions c;
  c.inline_bytes = 1024;
  c.offers = {.write_chunks = 4, .with_reply_chunk = true};
  Pair pair(c, {.inline_bytes = 1024});
  for (const auto& sizes : {std::vector<std::uint32_t>{5000, 6000}, {5000, 0}, {0, 6000}, {1, 5999}, {0, 0}}) {
    const std::uint32_t handles = 8;  // GETFHs, whose results are too long for a line together
    Bytes arguments = words({0, 1, handles + 2, 25, 1, 2, 3, 4, 0, 0, 5000});
    Bytes results = words({0, 0, handles + 2, 25, 0, 1}) + opaque(pattern(sizes[0], 1));
    for (std::uint32_t i = 0; i < handles; ++i) {
      arguments = arguments + words({10});
      results = results + words({10, 0}) + opaque(pattern(128, i));
    }
    arguments = arguments + words({25, 1, 2, 3, 4, 0, 0, 6000});
    results = results + words({25, 0, 1}) + opaque(pattern(sizes[1], 2));
    const Bytes message = rpc_call(1, kNfs, 4, 1, arguments);
    ASSERT_TRUE(pair.client.call(to_buffer(pair.client_pool, message, BufferPool::Purpose::kCall), {}).ok());
    pair.run();
    auto call = next<Responder::CallReceived>(pair.server);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->write_chunk_bytes, 11'000u);
    EXPECT_GT(call->reply_chunk_bytes, 0u);
    call->message = {};
    ASSERT_TRUE(pair.server.reply(call->token, to_buffer(pair.server_pool, rpc_reply(1, results))).ok());
    pair.run();
    auto answer = next<Requester::ReplyReceived>(pair.client);
    ASSERT_TRUE(answer) << sizes[0] << ' ' << sizes[1];
    EXPECT_EQ(to_bytes(answer->message.bytes()), rpc_reply(1, results));
    EXPECT_TRUE(answer->in_reply_chunk);
    EXPECT_GE(answer->written, sizes[0] + sizes[1] + 128 * handles);
    EXPECT_EQ(pair.client_end.exposed(), 0u);
  }
}

// Paths of READLINK by Write chunk, between two ends of iwarp; longer ones than were asked for end their RPC.
TEST(RpcPairChunks, APathComesByWriteChunk) {
  COVERS("RFC8267-4-4");
  COVERS("RFC8267-6.1-4");
  RequesterOptions c;
  c.inline_bytes = 1024;
  c.offers.readlink_bytes = 4095;
  Pair pair(c, {.inline_bytes = 1024});
  std::uint32_t xid = 0;
  for (const std::uint32_t version : {3u, 4u}) {
    for (const std::size_t octets : {1u, 2000u, 4095u, 4096u}) {
      SCOPED_TRACE(std::to_string(version) + ' ' + std::to_string(octets));
      ++xid;
      const Bytes path = opaque(pattern(octets, version));
      const Bytes message =
          version == 3 ? rpc_call(xid, kNfs, 3, 5, file_handle()) : rpc_call(xid, kNfs, 4, 1, words({0, 1, 1, 27}));
      const Bytes results = (version == 3 ? words({0, 0}) : words({0, 0, 1, 27, 0})) + path;
      ASSERT_TRUE(pair.client.call(to_buffer(pair.client_pool, message, BufferPool::Purpose::kCall), {}).ok());
      pair.run();
      auto call = next<Responder::CallReceived>(pair.server);
      ASSERT_TRUE(call);
      EXPECT_EQ(call->write_chunk_bytes, 4095u);
      EXPECT_EQ(call->reply_chunk_bytes, 0u);
      call->message = {};
      ASSERT_TRUE(pair.server.reply(call->token, to_buffer(pair.server_pool, rpc_reply(xid, results))).ok());
      pair.run();
      EXPECT_EQ(pair.client_end.exposed(), 0u);
      if (octets > 4095) {
        EXPECT_TRUE(next<Requester::CallFailed>(pair.client));
        continue;
      }
      const auto answer = next<Requester::ReplyReceived>(pair.client);
      ASSERT_TRUE(answer);
      EXPECT_EQ(to_bytes(answer->message.bytes()), rpc_reply(xid, results));
      EXPECT_EQ(answer->written, octets);
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
