// RDMA_MSGP towards the client (draft of 2005, s3.5): a Responder aligns data of Replies in line, and a Requester takes
// them. Both ways for data of a DeclaredBinding.
#include "iwarp/rpcrdma/padding.h"
#include "tests/rpcrdma/requester_fixture.h"
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

constexpr std::uint32_t kXid = 0x01020304;
constexpr std::uint32_t kProgram = 400'000;
constexpr std::uint32_t kReadOp = 25;
constexpr std::uint32_t kAlign = 512;

// Arguments and results of procedure 1: a word, and data.
std::shared_ptr<const DeclaredBinding> declared_data() {
  auto out = std::make_shared<DeclaredBinding>();
  for (const auto where : {BulkItem::Where::kArguments, BulkItem::Where::kResults})
    EXPECT_TRUE(out->add({.program = kProgram, .version = 1, .procedure = 1, .where = where, .offset = 4}).ok());
  return out;
}
Bytes data_call(std::uint32_t xid, std::size_t data) {
  return rpc_call(xid, kProgram, 1, 1, words({7}) + opaque(pattern(data)) + words({8}));
}
Bytes data_reply(std::uint32_t xid, std::size_t data) {
  return rpc_reply(xid, words({7}) + opaque(pattern(data)) + words({8}));
}
// As RDMA_MSGP, whole.
Bytes padded_message(Header h, const Bytes& message, const DdpItems& items, std::uint32_t align = kAlign) {
  h.proc = Proc::kMsgp;
  h.draft_2005 = true;
  const auto layout =
      plan_padding(message.size(), {items.data(), items.size()}, h.encoded_size(), align, 1024, std::size_t{4096});
  if (!layout) throw std::runtime_error("nothing to pad");
  h.padding = layout->padding;
  Bytes octets(layout->padded_bytes);
  EXPECT_TRUE(write_padded(message, *layout, octets));
  return encode(h, octets);
}

// --- The server's end

class PaddedReplies2005 : public Responder2005Test {
 protected:
  void start_padding(bool configure = false, const std::shared_ptr<const DeclaredBinding>& declared = nullptr) {
    ResponderOptions o = options_2005(configure);
    o.draft_2005.reply_align = kAlign;
    o.declared = declared;
    o.draft_2005.pad_declared = declared != nullptr;
    start(o);
  }
  // What a client with the binding of this Call makes of an RDMA_MSGP.
  static Bytes unpadded(const Decoded& d, const Bytes& call, const DeclaredBinding* declared = nullptr) {
    Bytes message = d.payload;
    const auto done = unpad_reply(message, d.header, d.header.encoded_size(), ResultBinding::for_call(call, declared));
    if (!done) throw std::runtime_error("cannot be unpadded");
    return Bytes(message.begin() + static_cast<std::ptrdiff_t>(done->offset), message.end());
  }
};

TEST_F(PaddedReplies2005, DataOfAReadAreAligned) {
  COVERS("D2005-3.5-1");
  COVERS("D2005-3.5-2");
  COVERS("D2005-3.5-3");
  COVERS("D2005-4.1-8");
  COVERS("D2005-4.1-14");
  start_padding();
  const Bytes reply = read_reply(kXid, pattern(2001));
  const Decoded d = answer_to(read_call(kXid, 2001), reply);
  EXPECT_EQ(d.header.proc, Proc::kMsgp);
  EXPECT_EQ(d.header.padding, (Padding{kAlign, 1024}));
  const std::size_t head = read_reply_head(kXid, 2001).size();
  const std::size_t at = pad_octets(kMinMsgpHeaderBytes + head, kAlign) + head;
  EXPECT_EQ((kMinMsgpHeaderBytes + at) % kAlign, 0u);
  EXPECT_EQ(Bytes(d.payload.begin() + static_cast<std::ptrdiff_t>(at),
                  d.payload.begin() + static_cast<std::ptrdiff_t>(at + 2001)),
            pattern(2001));
  EXPECT_EQ(unpadded(d, read_call(kXid, 2001)), reply);
  EXPECT_EQ(responder_->stats().replies_padded, 1u);
  EXPECT_EQ(responder_->stats().replies_in_line, 1u);
  EXPECT_EQ(responder_->replies_kept(), 0u) << "there is nothing to say RDMA_DONE of";
}

// Memory that was offered, and not used, comes back as with any other Reply.
TEST_F(PaddedReplies2005, BesideAnUnusedReplyChunk) {
  start_padding();
  Header h = header(kXid);
  h.reply_chunk = WriteChunk{{{Stag{77}, 9000, 0}, {Stag{78}, 9000, 0}}};
  const Bytes call = read_call(kXid, 2001), reply = read_reply(kXid, pattern(2001));
  send(h, call);
  ASSERT_TRUE(responder_->reply(expect_call(call), to_buffer(*pool_, reply), now_).ok());
  const Decoded d = received_2005();
  EXPECT_EQ(d.header.proc, Proc::kMsgp);
  ASSERT_TRUE(d.header.reply_chunk);
  EXPECT_EQ(d.header.reply_chunk->length(), 0u);
  EXPECT_EQ(unpadded(d, call), reply);
}

TEST_F(PaddedReplies2005, WhatHasNothingToAlignIsAsEver) {
  start_padding();
  const auto plain = [&](const Bytes& call, const Bytes& reply) {
    const Decoded d = answer_to(call, reply);
    EXPECT_EQ(d.header.proc, Proc::kMsg);
    EXPECT_EQ(d.payload, reply);
    EXPECT_TRUE(d.header.read_list.empty());
  };
  plain(null_call(1), rpc_reply(1));
  plain(read_call(2, 100), read_reply(2, pattern(100)));
  plain(read_call(3, 2000), read_error(3));
  plain(readdir_call(4), rpc_reply(4, pattern(2000)));
  plain(read_call(5, 3700), read_reply(5, pattern(3700)));  // with padding it would not fit in line
  plain(data_call(6, 100), data_reply(6, 2000));            // of a program that nobody has declared
  // A count that lies, and more items than can be padded.
  plain(read_call(7, 2000), read_reply_head(7, 2000) + pattern(1996));
  Xdr call = compound_call(17), reply = compound_reply(17);
  for (std::uint32_t i = 0; i < 17; ++i) {
    call.w(kReadOp).words({0, 0, 0, 0}).d(0).w(2000);
    reply.w(kReadOp).w(0).w(1).opaque(i == 16 ? 1500 : 4);
  }
  plain(call.bytes(), reply.bytes());
  EXPECT_EQ(responder_->stats().replies_padded, 0u);
}

TEST_F(PaddedReplies2005, SeveralItems) {
  start_padding();
  Xdr call = compound_call(3), reply = compound_reply(3);
  for (const std::size_t n : {1100, 7, 1200}) {
    call.w(kReadOp).words({0, 0, 0, 0}).d(0).w(2000);
    reply.w(kReadOp).w(0).w(1).opaque(n);
  }
  const Decoded d = answer_to(call.bytes(), reply.bytes());
  EXPECT_EQ(d.header.proc, Proc::kMsgp);
  EXPECT_EQ(unpadded(d, call.bytes()), reply.bytes());
}

// Who has not configured the connection may be a client of RFC 8166.
TEST_F(PaddedReplies2005, OfAClientThatIsKnownToTakeThem) {
  start_padding(true);
  const Bytes call = read_call(kXid, 2001), reply = read_reply(kXid, pattern(2001));
  EXPECT_EQ(answer_to(call, reply).payload, reply);
  EXPECT_EQ(responder_->stats().replies_padded, 0u);
}

TEST_F(PaddedReplies2005, OfAClientThatHasConfigured) {
  start_padding(true);
  send(header(7), rpc_call(7, kConfigProgram, 1, 1, words({4096, 3000, 1})));
  (void)received_2005();
  const Bytes call = read_call(kXid, 2001), reply = read_reply(kXid, pattern(2001));
  EXPECT_EQ(unpadded(answer_to(call, reply), call), reply);
  EXPECT_EQ(responder_->stats().replies_padded, 1u);
  // Padded it would be longer than what the client takes, 3000 octets.
  EXPECT_EQ(answer_to(read_call(8, 2800), read_reply(8, pattern(2800))).payload, read_reply(8, pattern(2800)));
}

TEST_F(PaddedReplies2005, OrNot) {
  start(options_2005());
  const Bytes call = read_call(kXid, 2001), reply = read_reply(kXid, pattern(2001));
  EXPECT_EQ(answer_to(call, reply).payload, reply) << "by default they are not";
}

TEST_F(PaddedReplies2005, DeclaredDataWhereTheOptionsSaySo) {
  start_padding(false, declared_data());
  const Decoded d = answer_to(data_call(kXid, 10), data_reply(kXid, 2001));
  EXPECT_EQ(d.header.proc, Proc::kMsgp);
  const auto declared = declared_data();
  EXPECT_EQ(unpadded(d, data_call(kXid, 10), declared.get()), data_reply(kXid, 2001));
}

TEST_F(PaddedReplies2005, DeclaredDataAreNotPaddedByDefault) {
  ResponderOptions o = options_2005();
  o.draft_2005.reply_align = kAlign;
  o.declared = declared_data();
  start(o);
  EXPECT_EQ(answer_to(data_call(kXid, 10), data_reply(kXid, 2001)).payload, data_reply(kXid, 2001));
}

// Calls with declared data, to who knows them and to who does not.
TEST_F(PaddedReplies2005, CallsWithDeclaredData) {
  COVERS("D2005-3.5-5");
  COVERS("D2005-5.3-5");
  ResponderOptions o = options_2005();
  o.declared = declared_data();
  start(o);
  const auto items = [](const Bytes& call, const DeclaredBinding* declared) {
    return *items_to_pad(ArgumentWalker(call, declared));
  };
  const Bytes call = data_call(kXid, 2001);
  const auto declared = declared_data();
  server_.receive(padded_message(header(kXid), call, items(call, declared.get())));
  run();
  auto arrived = next_call();
  ASSERT_TRUE(arrived);
  EXPECT_EQ(to_bytes(arrived->message.bytes()), call);
  const auto* data = arrived->message.bytes().data() + rpc_call(kXid, kProgram, 1, 1).size() + 8;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % kAlign, 0u);
  arrived->message.reset();
  reply(arrived->token, data_reply(kXid, 4));
  (void)received_2005();
  // Another procedure: where its padding is, nobody knows. Short ones have none.
  for (const std::size_t octets : {2000u, 1020u, 1000u}) {
    const Bytes other = rpc_call(9, kProgram, 1, 2, opaque(pattern(octets)));
    Header h = header(9, Proc::kMsgp);
    h.draft_2005 = true;
    h.padding = {kAlign, 1024};
    send(h, other);
    if (octets <= 1020) {
      reply(expect_call(other), rpc_reply(9));
      EXPECT_EQ(received_2005().payload, rpc_reply(9));
    } else {
      EXPECT_EQ(received_2005().header.error.code, HeaderError::kChunk);
    }
  }
  EXPECT_EQ(responder_->stats().calls_padded, 3u);
  EXPECT_FALSE(server_.broken);
}

// Nothing is answered to what may be a Reply.
TEST_F(PaddedReplies2005, ABackwardReplyIsDropped) {
  COVERS("RFC8166-4.5-4");
  start(options_2005());
  Header h = header(kXid, Proc::kMsgp);
  h.draft_2005 = true;
  h.padding = {512, 1024};
  send(h, rpc_reply(kXid, opaque(pattern(2000))));
  run();
  EXPECT_TRUE(client_.inbox.empty());
  EXPECT_EQ(responder_->stats().dropped_messages, 1u);
  send(header(kXid), null_call(kXid));
  (void)expect_call(null_call(kXid));
  EXPECT_FALSE(server_.broken);
}

// --- The client's end

class PaddedReplies2005Client : public RequesterTest {
 protected:
  void start_2005(const std::shared_ptr<const DeclaredBinding>& declared = nullptr) {
    RequesterOptions o;
    o.draft_2005.enabled = true;
    o.draft_2005.configure = false;
    o.draft_2005.offer_reply_memory = false;
    o.declared = declared;
    start(o);
  }
  void called(const Bytes& message) {
    ASSERT_TRUE(call(message));
    (void)received();
  }
  DdpItems items(const Bytes& call, const Bytes& reply, const DeclaredBinding* declared = nullptr) {
    return *items_to_pad(ResultWalker(ResultBinding::for_call(call, declared), reply));
  }
};

// And the data at an aligned place of the Receive, where they stay.
TEST_F(PaddedReplies2005Client, ArriveAsTheyWere) {
  COVERS("D2005-3.5-1");
  COVERS("D2005-3.5-5");
  COVERS("D2005-4.1-8");
  start_2005();
  for (const std::uint32_t align : {8u, 512u, 1024u}) {
    const Bytes ask = read_call(kXid, 2001), reply = read_reply(kXid, pattern(2001));
    called(ask);
    client_.receive(padded_message(header(kXid), reply, items(ask, reply), align));
    auto got = next<Requester::ReplyReceived>(*requester_);
    ASSERT_TRUE(got);
    EXPECT_EQ(to_bytes(got->message.bytes()), reply);
    EXPECT_GE(got->message.headroom(), kHeadroomBytes);
    const auto* data = got->message.bytes().data() + read_reply_head(kXid, 2001).size();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % align, 0u);
  }
  EXPECT_EQ(requester_->stats().replies_padded, 3u);
  EXPECT_EQ(requester_->stats().dones_sent, 0u);
}

TEST_F(PaddedReplies2005Client, DeclaredData) {
  const auto declared = declared_data();
  start_2005(declared);
  const Bytes ask = data_call(kXid, 10), reply = data_reply(kXid, 2001);
  called(ask);
  client_.receive(padded_message(header(kXid), reply, items(ask, reply, declared.get())));
  expect_reply(reply);
}

// Alignment, threshold and lengths that lie: the RPC ends, and nothing else.
TEST_F(PaddedReplies2005Client, ThatLieEndTheirRpcOnly) {
  COVERS("D2005-5.3-1");
  start_2005(declared_data());
  const auto fails = [&](const Bytes& ask, Padding padding, const Bytes& payload) {
    called(ask);
    Header h = header(*rpc_xid(ask), Proc::kMsgp);
    h.draft_2005 = true;
    h.padding = padding;
    answer(h, payload);
    const auto failed = next<Requester::CallFailed>(*requester_);
    ASSERT_TRUE(failed) << padding.align << ' ' << padding.threshold;
    EXPECT_EQ(failed->why, Requester::Failure::kBadReply);
    EXPECT_TRUE(requester_->idle());
  };
  const Bytes ask = read_call(kXid, 2000), reply = read_reply(kXid, pattern(2000));
  for (const Padding& p : {Padding{0, 1024}, Padding{6, 1024}, Padding{512, 4}, Padding{512, 0},
                           Padding{0x80000000, 1024}, Padding{512, 1024}})  // the last: there is none
    fails(ask, p, reply);
  fails(ask, {512, 1024}, read_reply_head(kXid, 0xFFFFFFFF) + pattern(2000));
  // Where padding is, nobody knows: another procedure than what is declared, and what RPCSEC_GSS protects.
  fails(rpc_call(9, kProgram, 1, 2), {512, 1024}, rpc_reply(9, opaque(pattern(2000))));
  const Bytes credential = words({6, 24, 1, 0, 1, 2, 4, 0xC0FFEE});  // integrity
  fails(words({10, 0, 2, kNfs, 3, 6}) + credential + words({0, 0}) + opaque(pattern(60)), {512, 1024},
        rpc_reply(10, opaque(pattern(1500))));
  // A threshold above all data, and no data: nothing is skipped.
  called(ask);
  Header h = header(kXid, Proc::kMsgp);
  h.draft_2005 = true;
  h.padding = {512, 4096};
  answer(h, reply);
  expect_reply(reply);
  called(null_call(11));
  h.xid = 11;
  h.padding = {512, 1024};
  answer(h, rpc_reply(11));
  expect_reply(rpc_reply(11));
  EXPECT_FALSE(client_.broken);
  // Of no Call: a Reply that cannot be read may be anybody's.
  h.xid = 12;
  h.padding = {0, 1024};
  answer(h, rpc_reply(12));
  EXPECT_TRUE(next<Requester::MustClose>(*requester_));
}

// The draft has no backward direction, but the profile may have both: the xid of a padded backward Call says nothing of
// a Call of this end.
TEST_F(PaddedReplies2005Client, ABackwardCallIsRefusedAndTheCallOfItsXidGoesOn) {
  COVERS("RFC8167-5.1-4");
  RequesterOptions o;
  o.draft_2005.enabled = true;
  o.draft_2005.configure = false;
  o.backward_credits = 2;
  start(o);
  called(read_call(kXid, 2000));
  Header h = header(kXid, Proc::kMsgp);
  h.draft_2005 = true;
  h.padding = {512, 1024};
  answer(h, write_call(kXid, pattern(2000)));
  const auto refused = received().header;
  EXPECT_EQ(refused.xid, kXid);
  EXPECT_EQ(refused.error.code, HeaderError::kChunk);
  EXPECT_FALSE(requester_->poll_event());
  answer(header(kXid), read_reply(kXid, pattern(20)));
  expect_reply(read_reply(kXid, pattern(20)));
  EXPECT_FALSE(client_.broken);
}

// --- Both ends

TEST(PaddedReplies2005Pair, BothWays) {
  COVERS("D2005-3.5-5");
  RequesterOptions client;
  client.draft_2005.enabled = client.draft_2005.pad_declared = true;
  client.draft_2005.offer_reply_memory = false;
  client.declared = declared_data();
  ResponderOptions server = options_2005(true);
  server.draft_2005.reply_align = kAlign;
  server.draft_2005.pad_declared = true;
  server.declared = declared_data();
  Pair p(client, server);
  const auto expect_answer = [&](const Bytes& call, const Bytes& reply, std::size_t data_at) {
    ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, call, BufferPool::Purpose::kCall), TimePoint{}));
    p.run();
    auto got = next<Responder::CallReceived>(p.server);
    ASSERT_TRUE(got);
    EXPECT_EQ(to_bytes(got->message.bytes()), call);
    got->message.reset();
    ASSERT_TRUE(p.server.reply(got->token, to_buffer(p.server_pool, reply), TimePoint{}));
    p.run();
    const auto answer = next<Requester::ReplyReceived>(p.client);
    ASSERT_TRUE(answer);
    EXPECT_EQ(to_bytes(answer->message.bytes()), reply);
    if (data_at == 0) return;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(answer->message.bytes().data() + data_at) % kAlign, 0u);
  };
  for (std::uint32_t size = 1025; size < 3000; size += 329) {
    expect_answer(read_call(1, size), read_reply(1, pattern(size)), read_reply_head(1, size).size());
    expect_answer(write_call(2, pattern(size)), write_reply(2), 0);
    expect_answer(data_call(3, size), data_reply(3, size), rpc_reply(3).size() + 8);
  }
  // Of seven sizes two of three: the Call of a READ and the Reply to a WRITE have no data.
  for (const std::uint64_t n : {p.client.stats().calls_padded, p.server.stats().calls_padded,
                                p.server.stats().replies_padded, p.client.stats().replies_padded})
    EXPECT_EQ(n, 14u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
