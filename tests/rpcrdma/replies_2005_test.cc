// Data of Replies in Read chunks of their own (draft of 2005, s3.4, s3.6): a Responder offers them where a Reply fits
// nowhere else, and a Requester fetches them.
#include "tests/rpcrdma/responder_2005_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"
#include "tests/rpcrdma/wire_vectors.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::compound_call;
using iwarp::test::compound_reply;
using iwarp::test::kTestXid;
using iwarp::test::pattern;
using iwarp::test::Xdr;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kXid = 0x01020304;
constexpr std::uint32_t kProgram = 400'000;
constexpr std::uint32_t kReadOp = 25;

// A COMPOUND that reads data of these lengths, and its Reply.
Bytes reads_call(std::initializer_list<std::size_t> lengths) {
  Xdr out = compound_call(static_cast<std::uint32_t>(lengths.size()));
  for (const std::size_t n : lengths) out.w(kReadOp).words({0, 0, 0, 0}).d(0).w(static_cast<std::uint32_t>(n));
  return out.bytes();
}
Bytes reads_reply(std::initializer_list<std::size_t> lengths) {
  Xdr out = compound_reply(static_cast<std::uint32_t>(lengths.size()));
  for (const std::size_t n : lengths) out.w(kReadOp).w(0).w(1).opaque(n);
  return out.bytes();
}
// Results of kProgram: a word, data, and what else there is.
std::shared_ptr<const DeclaredBinding> data_of_results() {
  auto out = std::make_shared<DeclaredBinding>();
  EXPECT_TRUE(
      out->add({.program = kProgram, .version = 1, .procedure = 1, .where = BulkItem::Where::kResults, .offset = 4})
          .ok());
  return out;
}
Bytes get_call(std::uint32_t xid) {
  return rpc_call(xid, kProgram, 1, 1);
}
Bytes get_reply(std::uint32_t xid, std::size_t data, std::size_t rest) {
  return rpc_reply(xid, words({7}) + opaque(pattern(data)) + pattern(rest, 3));
}

class Replies2005 : public Responder2005Test {
 protected:
  // The message that the client makes of it: what is in line, and what it reads.
  Bytes assembled(const Decoded& d) {
    Bytes out = d.payload;
    for (const ReadSegment& s : d.header.read_list) {  // in ascending order
      Bytes data = read(s.target);
      EXPECT_EQ(data.size(), s.target.length);
      EXPECT_LE(s.position, out.size());
      data.resize((data.size() + 3) / 4 * 4);
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(s.position), data.begin(), data.end());
    }
    return out;
  }
};

TEST_F(Replies2005, DataOfAReadAreAReadChunk) {
  COVERS("D2005-3.4-2");
  COVERS("D2005-3.4-6");
  COVERS("D2005-3.4-9");
  COVERS("D2005-3.4-10");
  COVERS("D2005-3.4-12");
  start(options_2005());
  const Bytes data = pattern(20001);
  const Decoded d = answer_to(read_call(kXid, 20001), read_reply(kXid, data));
  EXPECT_EQ(d.header.proc, Proc::kMsg);
  EXPECT_EQ(d.payload, read_reply_head(kXid, 20001));
  ASSERT_EQ(d.header.read_list.size(), 1u);
  EXPECT_EQ(d.header.read_list[0].position, d.payload.size());
  EXPECT_EQ(d.header.read_list[0].target.length, 20001u);
  const Segment s = d.header.read_list[0].target;
  EXPECT_EQ(read(s), data);
  EXPECT_EQ(server_.regions.at(raw(s.handle)).memory.size(), 20001u) << "the data, and nothing beside them";
  EXPECT_EQ(responder_->replies_kept(), 1u);
  EXPECT_FALSE(responder_->idle());
  send_done(kXid);
  EXPECT_EQ(read(s), Bytes());
  EXPECT_EQ(pool_->in_use_bytes(BufferPool::Purpose::kReply), 0u);
  EXPECT_TRUE(responder_->idle());
  EXPECT_EQ(responder_->stats().replies_in_read_chunk, 1u);
  EXPECT_EQ(responder_->stats().replies_data_in_chunk, 1u);
  EXPECT_EQ(responder_->stats().dones, 1u);
}

// What fits in line goes in line.
TEST_F(Replies2005, ShortDataStayInLine) {
  start(options_2005());
  const Decoded d = answer_to(read_call(kXid, 3000), read_reply(kXid, pattern(3000)));
  EXPECT_FALSE(d.header.has_chunks());
  EXPECT_EQ(d.payload, read_reply(kXid, pattern(3000)));
}

TEST_F(Replies2005, EachItemOfACompoundHasItsPosition) {
  COVERS("D2005-3.4-12");
  start(options_2005());
  const auto check = [&](std::initializer_list<std::size_t> lengths, std::size_t chunks) {
    const Bytes reply = reads_reply(lengths);
    const Decoded d = answer_to(reads_call(lengths), reply);
    EXPECT_EQ(d.header.proc, Proc::kMsg);
    EXPECT_EQ(d.header.read_list.size(), chunks);
    EXPECT_EQ(assembled(d), reply);
    EXPECT_EQ(server_.exposed(), 1u);
    send_done(kTestXid);
    EXPECT_EQ(server_.exposed(), 0u);
  };
  check({2001, 5000, 1025}, 3);
  check({100, 9001, 0, 1023}, 1);  // those of a length that is worth it
}

TEST_F(Replies2005, WhereTheRestIsTooLongAllOfItIsOne) {
  COVERS("D2005-5.2-3");
  ResponderOptions o = options_2005();
  o.declared = data_of_results();
  start(o);
  // 28 octets of header and 24 of the Read list, 32 of head and count: the rest just fits.
  const std::size_t most = 4096 - 28 - 24 - 32;
  Bytes reply = get_reply(kXid, 2000, most);
  Decoded d = answer_to(get_call(kXid), reply);
  EXPECT_EQ(d.header.proc, Proc::kMsg);
  EXPECT_EQ(d.payload.size() + d.header.encoded_size(), 4096u);
  EXPECT_EQ(assembled(d), reply);
  send_done(kXid);
  reply = get_reply(kXid, 2000, most + 4);
  d = answer_to(get_call(kXid), reply);
  EXPECT_EQ(d.header.proc, Proc::kNomsg);
  ASSERT_EQ(d.header.read_list.size(), 1u);
  EXPECT_EQ(d.header.read_list[0].position, 0u);
  EXPECT_EQ(read(d.header.read_list[0].target), reply);
  send_done(kXid);
  EXPECT_EQ(responder_->stats().replies_in_read_chunk, 2u);
  EXPECT_EQ(responder_->stats().replies_data_in_chunk, 1u);
}

TEST_F(Replies2005, OrWhereTheOptionsSaySo) {
  ResponderOptions o = options_2005();
  o.draft_2005.data_chunks = false;
  start(o);
  const Bytes reply = read_reply(kXid, pattern(kLong));
  const Decoded d = answer_to(read_call(kXid, kLong), reply);
  EXPECT_EQ(d.header.proc, Proc::kNomsg);
  EXPECT_EQ(read(d.header.read_list[0].target), reply);
  send_done(kXid);
}

// There is no memory for what stays in line.
TEST_F(Replies2005, OrWhereMemoryIsShort) {
  ResponderOptions o = options_2005();
  BufferPool::Options memory = pool_options(o);
  memory.reply_bytes = BufferPool::charged_bytes(kLong + 1000);
  start(o, memory);
  const Bytes reply = read_reply(kXid, pattern(kLong));
  const Decoded d = answer_to(read_call(kXid, kLong), reply);
  EXPECT_EQ(d.header.proc, Proc::kNomsg);
  EXPECT_EQ(read(d.header.read_list[0].target), reply);
  send_done(kXid);
}

// Errors, denials, and what RPCSEC_GSS protects have no data of their own.
TEST_F(Replies2005, WhatHasNoItemsIsOne) {
  start(options_2005());
  const Bytes credential = words({6, 24, 1, 0, 1, 2, 4, 0xC0FFEE});  // integrity
  const Bytes call = words({kXid, 0, 2, kNfs, 3, 6}) + credential + words({0, 0}) + opaque(pattern(60));
  const Bytes reply = rpc_reply(kXid, opaque(pattern(kLong)) + opaque(pattern(20)));
  const Decoded d = answer_to(call, reply);
  EXPECT_EQ(d.header.proc, Proc::kNomsg);
  EXPECT_EQ(read(d.header.read_list[0].target), reply);
  send_done(kXid);
}

// A client that reads, or not, and never says so: what is kept for it is bounded, and freed after a time.
TEST_F(Replies2005, WithoutDone) {
  COVERS("D2005-3.8-6");
  ResponderOptions o = options_2005();
  o.draft_2005.done.max_replies = 3;
  o.draft_2005.done.patience = seconds(2);
  start(o);
  std::vector<Segment> offered;
  for (std::uint32_t xid = 1; xid <= 3; ++xid) {
    const Decoded d = answer_to(read_call(xid, kLong), read_reply(xid, pattern(kLong)));
    ASSERT_EQ(d.header.proc, Proc::kMsg);
    offered.push_back(d.header.read_list[0].target);
  }
  EXPECT_EQ(answer_to(read_call(4, kLong), read_reply(4, pattern(kLong))).header.error.code, HeaderError::kChunk);
  EXPECT_EQ(answer_to(null_call(5), rpc_reply(5)).payload, rpc_reply(5)) << "and is served on";
  responder_->on_deadline(now_ + milliseconds(1999));
  for (const Segment& s : offered) EXPECT_EQ(read(s), pattern(kLong));
  responder_->on_deadline(now_ + seconds(2));
  for (const Segment& s : offered) EXPECT_EQ(read(s), Bytes());
  EXPECT_EQ(responder_->stats().replies_not_done, 3u);
  EXPECT_EQ(pool_->in_use_bytes(BufferPool::Purpose::kReply), 0u);
  EXPECT_EQ(answer_to(read_call(6, kLong), read_reply(6, pattern(kLong))).header.read_list.size(), 1u);
  EXPECT_FALSE(server_.broken);
}

// A registration that is refused is no Reply that is offered.
TEST_F(Replies2005, WhatCannotBeExposedIsAnError) {
  start(options_2005());
  server_.registrations_to_refuse = 1;
  EXPECT_EQ(answer_to(read_call(kXid, kLong), read_reply(kXid, pattern(kLong))).header.error.code, HeaderError::kChunk);
  EXPECT_EQ(responder_->replies_kept(), 0u);
  EXPECT_EQ(server_.exposed(), 0u);
}

// Both ends; the client offers no memory for Replies.
class Replies2005Pair : public ::testing::Test {
 protected:
  static RequesterOptions client_options() {
    RequesterOptions out;
    out.draft_2005.enabled = true;
    out.draft_2005.offer_reply_memory = false;
    return out;
  }
  // Calls, and the answer is `reply`.
  static void expect_answer(Pair& p, const Bytes& call, const Bytes& reply) {
    ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, call, BufferPool::Purpose::kCall), TimePoint{}));
    p.run();
    auto got = next<Responder::CallReceived>(p.server);
    ASSERT_TRUE(got);
    got->message.reset();
    ASSERT_TRUE(p.server.reply(got->token, to_buffer(p.server_pool, reply), TimePoint{}));
    p.run();
    const auto answer = next<Requester::ReplyReceived>(p.client);
    ASSERT_TRUE(answer);
    EXPECT_EQ(to_bytes(answer->message.bytes()), reply);
    EXPECT_EQ(p.server_end.exposed(), 0u) << "fenced when RDMA_DONE came";
    EXPECT_EQ(p.client_end.exposed(), 0u);
    EXPECT_EQ(p.server.replies_kept(), 0u);
  }
};

TEST_F(Replies2005Pair, ReadsOf64KiB) {
  COVERS("D2005-3.4-2");
  COVERS("D2005-3.6-2");
  COVERS("D2005-3.6-4");
  COVERS("D2005-3.8-4");
  Pair p(client_options(), options_2005(true));
  std::uint32_t xid = 0;
  for (const std::uint32_t size : {65536u, 65535u, 65533u, 4097u, 1u << 20}) {
    ++xid;
    expect_answer(p, read_call(xid, size), read_reply(xid, pattern(size, xid)));
  }
  EXPECT_EQ(p.server.stats().replies_data_in_chunk, 5u);
  EXPECT_EQ(p.server.stats().dones, 5u);
  EXPECT_EQ(p.client.stats().replies_in_read_chunk, 5u);
  EXPECT_EQ(p.client.stats().dones_sent, 5u);
  EXPECT_TRUE(p.server.idle());
  EXPECT_TRUE(p.client.idle());
}

TEST_F(Replies2005Pair, CompoundsAndDeclaredData) {
  COVERS("D2005-3.4-13");
  ResponderOptions server = options_2005(true);
  server.declared = data_of_results();
  // A client needs no declaration: the Positions say it all.
  for (const auto& declared : {data_of_results(), std::shared_ptr<const DeclaredBinding>{}}) {
    RequesterOptions client = client_options();
    client.declared = declared;
    Pair p(client, server);
    expect_answer(p, reads_call({2001, 5000, 7, 9000}), reads_reply({2001, 5000, 7, 9000}));
    expect_answer(p, get_call(1), get_reply(1, 30001, 100));
    expect_answer(p, get_call(2), get_reply(2, 30001, 8000));  // as one chunk
    expect_answer(p, get_call(3), get_reply(3, 0, 8000));
    EXPECT_EQ(p.server.stats().replies_data_in_chunk, 2u);
    EXPECT_EQ(p.server.stats().replies_in_read_chunk, 4u);
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
