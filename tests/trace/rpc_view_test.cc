#include "iwarp/trace/rpc_view.h"

#include <gmock/gmock.h>

#include "iwarp/rpcrdma/private_data.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "iwarp/trace/rpc_names.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/trace/endpoints.h"
#include "tests/trace/rpc_view_fixture.h"

namespace iwarp::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using namespace test_view;

class RpcViewGuess : public RpcViewTest {
 protected:
  RpcViewGuess() : RpcViewTest(RpcGuess::kUnknown) {}
};

TEST_F(RpcViewGuess, CallAndReply) {
  EXPECT_THAT(give(kTx, rdma_msg(test::nfs_call(3, 6))),
              ElementsAre("RDMA_MSG(xid=0x1a2b3c4d, vers=1, credits=32, reads=[], writes=[], reply=-)",
                          "Call(xid=0x1a2b3c4d, prog=NFS, vers=3, proc=READ, cred=AUTH_NONE, bytes=40)"));
  EXPECT_EQ(rpc(kRx, rdma_msg(test::nfs_reply().w(0))),
            "Reply(xid=0x1a2b3c4d, call_in=10, latency_ms=1.000, status=NFS3_OK, proc=READ, stat=SUCCESS, prog=NFS, "
            "vers=3, bytes=28)");
  EXPECT_FALSE(malformed_ || error_);
}

// The same xid may be in use in both directions (RFC 8167).
TEST_F(RpcViewTest, ABackwardCallIsNoAnswer) {
  (void)give(kTx, rdma_msg(test::nfs_call(4, 0)));
  EXPECT_EQ(rpc(kRx, rdma_msg(test::nfs_call(1, 0, 0x40000000))),
            "Call(xid=0x1a2b3c4d, prog=NFS_CB, vers=1, proc=CB_NULL, cred=AUTH_NONE, bytes=40)");
  EXPECT_EQ(
      rpc(kTx, rdma_msg(test::nfs_reply())),
      "Reply(xid=0x1a2b3c4d, call_in=11, latency_ms=1.000, proc=CB_NULL, stat=SUCCESS, prog=NFS_CB, vers=1, bytes=24)");
  EXPECT_EQ(rpc(kRx, rdma_msg(test::nfs_reply())),
            "Reply(xid=0x1a2b3c4d, call_in=10, latency_ms=3.000, proc=NULL, stat=SUCCESS, prog=NFS, vers=4, bytes=24)");
  EXPECT_EQ(rpc(kRx, rdma_msg(test::nfs_reply())), "Reply(xid=0x1a2b3c4d, stat=SUCCESS, bytes=24)");
}

TEST_F(RpcViewTest, RefusedReplies) {
  EXPECT_EQ(rpc(kRx, rdma_msg(Xdr().words({kXid, 1, 1, 0, 2, 2}))),
            "Reply(xid=0x1a2b3c4d, stat=DENIED, why=RPC_MISMATCH, bytes=24)");
  EXPECT_TRUE(error_);
  EXPECT_EQ(rpc(kRx, rdma_msg(Xdr().words({kXid, 1, 1, 1, 5}))),
            "Reply(xid=0x1a2b3c4d, stat=DENIED, why=AUTH_TOOWEAK, bytes=20)");
  EXPECT_EQ(rpc(kRx, rdma_msg(Xdr().words({kXid, 1, 1}))), "Reply(xid=0x1a2b3c4d, stat=DENIED, bytes=12)");
  EXPECT_EQ(rpc(kRx, rdma_msg(Xdr().words({kXid, 1, 0, 0, 0, 4}))),
            "Reply(xid=0x1a2b3c4d, stat=GARBAGE_ARGS, bytes=24)");
  EXPECT_TRUE(error_);
}

TEST_F(RpcViewTest, StatusesAreErrors) {
  (void)give(kTx, rdma_msg(test::nfs_call(3, 3)));
  EXPECT_THAT(
      rpc(kRx, rdma_msg(test::nfs_reply().w(2))),
      StartsWith(
          "Reply(xid=0x1a2b3c4d, call_in=10, latency_ms=1.000, status=NFS3ERR_NOENT, proc=LOOKUP, stat=SUCCESS"));
  EXPECT_TRUE(error_);
}

TEST_F(RpcViewTest, CompoundByItsOperations) {
  const auto events = view_.on_send(kTx, rdma_msg(test::compound_call(3, 2).w(24).w(10).w(9).words({1, 2})), next());
  EXPECT_EQ(
      texts(events).back(),
      "Call(xid=0x1a2b3c4d, prog=NFS, vers=4.2, ops=[PUTROOTFH GETFH GETATTR], proc=COMPOUND, tag=\"\\x01\\x08\\x0f\", "
      "cred=AUTH_NONE, bytes=76)");
  EXPECT_EQ(events.back().record.rpc->name, "NFS 4.2 GETFH");
  EXPECT_THAT(
      rpc(kRx, rdma_msg(test::compound_reply(1, 10008).w(24).w(10008))),
      ::testing::HasSubstr("status=NFS4ERR_DELAY, ops=[PUTROOTFH], proc=COMPOUND, stat=SUCCESS, prog=NFS, vers=4.2"));
}

TEST_F(RpcViewTest, ProtectedBodiesAreNotLookedInto) {
  // RPCSEC_GSS with integrity: version, procedure, sequence, service, context handle.
  Xdr x = Xdr().words({kXid, 0, 2, 100003, 4, 1, 6, 20, 1, 0, 1, 2, 0, 0, 0}).raw(test::compound_call(1).w(24).bytes());
  EXPECT_EQ(rpc(kTx, rdma_msg(x)), "Call(xid=0x1a2b3c4d, prog=NFS, vers=4, proc=COMPOUND, cred=RPCSEC_GSS, bytes=" +
                                       std::to_string(x.size()) + ")");
  EXPECT_THAT(rpc(kRx, rdma_msg(test::nfs_reply().w(5))), ::testing::Not(::testing::HasSubstr("status=")));
}

TEST_F(RpcViewTest, PathOfAMount) {
  EXPECT_EQ(rpc(kTx, rdma_msg(test::nfs_call(3, 1, kMountProgram).w(5).raw(test::hex("2f 61 22 62 0a 000000")))),
            "Call(xid=0x1a2b3c4d, prog=MOUNT, vers=3, proc=MNT, path=\"/a\\x22b\\x0a\", cred=AUTH_NONE, bytes=52)");
  EXPECT_EQ(rpc(kTx, rdma_msg(test::nfs_call(3, 3, kMountProgram).w(0xFFFFFFFF))),
            "Call(xid=0x1a2b3c4d, prog=MOUNT, vers=3, proc=UMNT, cred=AUTH_NONE, bytes=44)");
}

// A Call in a Position-Zero Read chunk and its Reply in a Reply chunk.
TEST_F(RpcViewTest, MessagesInChunks) {
  const Bytes call = test::compound_call(2).w(24).w(10).bytes(), reply = test::compound_reply(1).w(24).w(0).bytes();
  rpcrdma::Header h;
  h.xid = kXid;
  h.proc = rpcrdma::Proc::kNomsg;
  h.read_list.push_back({0, {Stag{7}, static_cast<std::uint32_t>(call.size()), 0x100}});
  h.reply_chunk.emplace();
  h.reply_chunk->segments.push_back({Stag{8}, 4096, 0});
  EXPECT_THAT(give(kTx, header(h)), SizeIs(1));
  const auto request =
      view_.on_read_request(kRx, {Stag{1}, 0, static_cast<std::uint32_t>(call.size()), Stag{7}, 0x100});
  ASSERT_NE(request, nullptr);
  const auto read = view_.on_read_response(kTx, tagged(rdmap::Opcode::kReadResponse, 1, 0, call), next());
  EXPECT_EQ(read.rpc, request);
  EXPECT_THAT(
      texts(read.events),
      ElementsAre(
          "Call(xid=0x1a2b3c4d, prog=NFS, vers=4.1, ops=[PUTROOTFH GETFH], proc=COMPOUND, tag=\"\\x01\\x08\\x0f\", "
          "cred=AUTH_NONE, bytes=" +
          std::to_string(call.size()) + ", header_in=10)"));
  EXPECT_EQ(view_.on_write(kRx, tagged(rdmap::Opcode::kWrite, 8, 0, reply)), read.rpc);
  rpcrdma::Header answer;
  answer.xid = kXid;
  answer.proc = rpcrdma::Proc::kNomsg;
  answer.reply_chunk.emplace();
  answer.reply_chunk->segments.push_back({Stag{8}, static_cast<std::uint32_t>(reply.size()), 0});
  const auto events = view_.on_send(kRx, header(answer), next());
  EXPECT_EQ(texts(events).back(),
            "Reply(xid=0x1a2b3c4d, call_in=10, latency_ms=2.000, status=NFS4_OK, ops=[PUTROOTFH], "
            "proc=COMPOUND, stat=SUCCESS, prog=NFS, vers=4.1, tag=\"\\x01\\x08\\x0f\", bytes=" +
                std::to_string(reply.size()) + ")");
  EXPECT_EQ(read.rpc->read_bytes, call.size());
  EXPECT_EQ(read.rpc->write_bytes, reply.size());
  EXPECT_EQ(read.rpc->send_bytes, header(h).length + header(answer).length);
}

// The capture has the Call's chunk in part only, at every length; the Reply says what could be read all the same.
TEST_F(RpcViewTest, ACallCutWithinItsChunk) {
  const Bytes call = test::compound_call(2).w(24).w(10).bytes();
  for (std::size_t n = 0; n < call.size(); ++n) {
    RpcView view(options(RpcGuess::kYes));
    rpcrdma::Header h;
    h.xid = kXid;
    h.proc = rpcrdma::Proc::kNomsg;
    h.read_list.push_back({0, {Stag{7}, static_cast<std::uint32_t>(call.size()), 0}});
    (void)view.on_send(kTx, header(h), next());
    (void)view.on_read_request(kRx, {Stag{1}, 0, static_cast<std::uint32_t>(call.size()), Stag{7}, 0});
    Message response = tagged(rdmap::Opcode::kReadResponse, 1, 0, call);
    response.head.resize(n);
    EXPECT_THAT(view.on_read_response(kTx, response, next()).events, IsEmpty()) << n;
    const auto events = texts(view.on_send(kRx, rdma_msg(test::compound_reply(1).w(24).w(0)), next()));
    EXPECT_FALSE(malformed_);
    EXPECT_THAT(events.back(), StartsWith("Reply(xid=0x1a2b3c4d, call_in="));
    EXPECT_EQ(events.size(), n < 4 ? 2U : 3U) << n;
    if (n >= 40) {
      EXPECT_THAT(events[1], StartsWith("Call(xid=0x1a2b3c4d, prog=NFS, vers=4"));
    }
  }
}

// A Reply and its Call in line, captured in part only, at every length: no error, and no more than there is.
TEST_F(RpcViewTest, CutAnywhere) {
  for (const auto& [d, whole] : {std::pair{kTx, rdma_msg(test::compound_call(2).w(24).w(10))},
                                 std::pair{kRx, rdma_msg(test::compound_reply(2).w(24).w(0).w(10).w(0).opaque(8))}}) {
    for (std::size_t n = 0; n < whole.head.size(); ++n) {
      Message m = whole;
      m.head.resize(n);
      EXPECT_THAT(give(d, m), ::testing::Not(IsEmpty()));
      EXPECT_FALSE(malformed_) << n;
    }
    EXPECT_THAT(give(d, whole), SizeIs(2));
  }
}

TEST_F(RpcViewTest, DataInAReadChunk) {
  Xdr call = test::compound_call(2);
  call.w(38).fill(16).d(0).w(2).w(4096);
  rpcrdma::Header h;
  h.xid = kXid;
  h.read_list.push_back({static_cast<std::uint32_t>(call.size()), {Stag{7}, 4096, 0}});
  call.w(9).words({1, 2});
  EXPECT_THAT(rpc(kTx, header(h, call.bytes())), ::testing::HasSubstr("ops=[WRITE GETATTR]"));
}

TEST_F(RpcViewTest, RetransmissionOnTheSameConnection) {
  (void)give(kTx, rdma_msg(test::nfs_call(3, 6)));
  const auto events = view_.on_send(kTx, rdma_msg(test::nfs_call(3, 6)), next());
  EXPECT_THAT(texts(events).back(), ::testing::EndsWith(", again=1, first_in=10)"));
  EXPECT_TRUE(events.back().record.retransmission && events.back().record.error);
}

TEST(RpcViewBook, RetransmissionOnAnotherConnection) {
  const auto book = std::make_shared<CallBook>();
  RpcViewOptions o;
  o.guess = RpcGuess::kYes;
  o.book = book;
  o.ends = {kClient4.address, kServer4};
  RpcView first(o);
  o.connection = "2";
  RpcView second(o);
  (void)first.on_send(kTx, rdma_msg(test::nfs_call(3, 6)), {microseconds(1), 4});
  const auto again = second.on_send(kTx, rdma_msg(test::nfs_call(3, 6)), {microseconds(9), 8});
  EXPECT_THAT(again.back().record.pdu.str(), ::testing::EndsWith(", again=1, first_in=4, first_on=1)"));
  (void)second.on_send(kRx, rdma_msg(test::nfs_reply()), {microseconds(10), 9});
  const auto later = second.on_send(kTx, rdma_msg(test::nfs_call(3, 6)), {microseconds(11), 10});
  EXPECT_FALSE(later.back().record.retransmission);
}

TEST_F(RpcViewTest, RdmaError) {
  (void)give(kTx, rdma_msg(test::nfs_call(3, 6)));
  const auto events = view_.on_send(kRx, header(rpcrdma::make_err_vers(kXid, 1, 32)), next());
  EXPECT_THAT(texts(events),
              ElementsAre("RDMA_ERROR(xid=0x1a2b3c4d, vers=1, credits=32, error=ERR_VERS, low=1, high=1)"));
  EXPECT_TRUE(error_);
  ASSERT_NE(events[0].record.rpc, nullptr);
  EXPECT_EQ(events[0].record.rpc->name, "NFS 3 READ");
  EXPECT_THAT(give(kRx, header(rpcrdma::make_err_chunk(kXid, 1, 32))),
              ElementsAre("RDMA_ERROR(xid=0x1a2b3c4d, vers=1, credits=32, error=ERR_CHUNK)"));
}

// A question for version 2 that is refused, and the same Call in version 1.
TEST_F(RpcViewGuess, VersionsAreNegotiated) {
  rpcrdma::Header h;
  h.xid = kXid;
  h.version = 2;
  h.credits = 32;
  EXPECT_THAT(give(kTx, header(h, test::nfs_call(3, 6).bytes())),
              ElementsAre("RDMA_MSG(xid=0x1a2b3c4d, vers=2, credits=32, reads=[], writes=[], reply=-)",
                          StartsWith("Call(xid=0x1a2b3c4d, prog=NFS, vers=3, proc=READ")));
  EXPECT_THAT(give(kRx, header(rpcrdma::make_err_vers(kXid, 2, 32))),
              ElementsAre("RDMA_ERROR(xid=0x1a2b3c4d, vers=2, credits=32, error=ERR_VERS, low=1, high=1)"));
  EXPECT_TRUE(error_);
  EXPECT_THAT(rpc(kTx, rdma_msg(test::nfs_call(3, 6))), StartsWith("Call("));
  EXPECT_THAT(rpc(kRx, rdma_msg(test::nfs_reply().w(0))), StartsWith("Reply(xid=0x1a2b3c4d, call_in=12"));
  EXPECT_FALSE(malformed_);
}

TEST_F(RpcViewTest, OptionsAndErrorsOfVersion2) {
  rpcrdma::Header option;
  option.xid = kXid;
  option.version = 2;
  option.credits = 32;
  option.proc = rpcrdma::Proc::kOptional;
  option.option = {7, test::pattern(3)};
  EXPECT_THAT(give(kTx, header(option)),
              ElementsAre("RDMA_OPTIONAL(xid=0x1a2b3c4d, vers=2, credits=32, opttype=7, optinfo=3)"));
  EXPECT_THAT(give(kRx, header(rpcrdma::make_inval_option(kXid, 32))),
              ElementsAre("RDMA_ERROR(xid=0x1a2b3c4d, vers=2, credits=32, error=INVAL_OPTION)"));
  EXPECT_THAT(give(kRx, header(rpcrdma::make_err_chunk(kXid, 2, 32))),
              ElementsAre("RDMA_ERROR(xid=0x1a2b3c4d, vers=2, credits=32, error=BAD_HEADER)"));
  EXPECT_FALSE(malformed_);
}

TEST_F(RpcViewGuess, OtherUsersOfSendsAreNotMistaken) {
  for (int i = 0; i < 4; ++i)
    EXPECT_THAT(give(kTx, send(test::pattern(16 + 40 * static_cast<std::size_t>(i)))), IsEmpty());
  EXPECT_THAT(give(kTx, rdma_msg(test::nfs_call(3, 6))), IsEmpty());  // the guess was made
}

TEST_F(RpcViewGuess, AnXidThatDiffersIsNoSign) {
  EXPECT_THAT(give(kTx, rdma_msg(test::nfs_call(3, 6), 1)), IsEmpty());
}

TEST_F(RpcViewGuess, PrivateDataSettlesIt) {
  EXPECT_FALSE(view_.on_private_data(test::hex("00 01 02")));
  const auto bytes = rpcrdma::PrivateData{true, 4096, 8192}.encode();
  EXPECT_EQ(view_.on_private_data(bytes)->str(), "PrivateData(send=4096, receive=8192, remote_invalidation=1)");
  EXPECT_THAT(give(kTx, send(test::pattern(16))), ElementsAre(StartsWith("Malformed(bytes=16, ")));
  EXPECT_TRUE(malformed_);
}

TEST_F(RpcViewTest, MalformedRpcMessage) {
  EXPECT_EQ(rpc(kTx, rdma_msg(Xdr().words({kXid, 0, 2}))),
            "Malformed(bytes=12, why=\"neither an RPC Call nor a Reply\")");
  EXPECT_TRUE(malformed_);
}

TEST_F(RpcViewTest, WhatTheCaptureCutIsNobodysFault) {
  Message m = rdma_msg(test::nfs_call(3, 6));
  m.head.resize(36);
  EXPECT_EQ(rpc(kTx, m), "Cut(bytes=40, captured=8)");
  EXPECT_FALSE(malformed_ || error_);
  m.head.resize(10);
  EXPECT_THAT(give(kTx, m), ElementsAre("Cut(bytes=68, captured=10)"));
}

// Of the Reply chunk less than an RPC header was captured, or nothing.
TEST_F(RpcViewTest, AReplyCutWithinItsChunk) {
  for (const std::size_t captured : {0u, 3u, 4u, 10u}) {
    rpcrdma::Header h;
    h.xid = kXid;
    h.reply_chunk.emplace();
    h.reply_chunk->segments.push_back({Stag{8}, 4096, 0});
    (void)give(kTx, header(h, test::nfs_call(3, 6).bytes()));
    Message write = tagged(rdmap::Opcode::kWrite, 8, 0, Xdr().words({kXid, 1, 0}).bytes());
    write.length = 100;
    write.head.resize(captured);
    (void)view_.on_write(kRx, write);
    h.proc = rpcrdma::Proc::kNomsg;
    h.reply_chunk->segments[0].length = 100;
    const auto events = view_.on_send(kRx, header(h), next());
    ASSERT_EQ(events.size(), 2U);
    const Record& r = events.back().record;
    EXPECT_EQ(r.pdu.str(), "Cut(bytes=100, captured=" + std::to_string(captured < 4 ? 0 : captured) + ")");
    EXPECT_FALSE(r.error || events.back().malformed);
    ASSERT_NE(r.rpc, nullptr);
    EXPECT_EQ(r.rpc->name, "NFS 3 READ");
    EXPECT_EQ(r.rpc->write_bytes, 100U);
    EXPECT_EQ(r.xid, kXid);
    EXPECT_EQ(r.latency, microseconds(1000));
  }
}

TEST_F(RpcViewTest, ForgetsCallsThatAreNeverAnswered) {
  for (std::uint32_t xid = 0; xid < 10000; ++xid) {
    (void)give(kTx, rdma_msg(Xdr().words({xid, 0, 2, 100003, 3, 0, 0, 0, 0, 0}), xid));
  }
  EXPECT_EQ(rpc(kRx, rdma_msg(Xdr().words({0, 1, 0, 0, 0, 0}), 0)), "Reply(xid=0x0, stat=SUCCESS, bytes=24)");
  EXPECT_THAT(rpc(kRx, rdma_msg(Xdr().words({9999, 1, 0, 0, 0, 0}), 9999)), ::testing::HasSubstr("proc=NULL"));
  EXPECT_EQ(view_.forgotten(), 2 * RpcView::kMaxCalls);
}

// What an RPC takes is given back with its Reply, with a Call of the same xid, and when all are forgotten.
TEST_F(RpcViewTest, Memory) {
  rpcrdma::Header h;
  h.xid = kXid;
  h.reply_chunk.emplace();
  h.reply_chunk->segments.push_back({Stag{8}, 4096, 0});
  const auto call = [&] {
    (void)give(kTx, header(h, test::nfs_call(3, 6).bytes()));
    (void)view_.on_write(kRx, tagged(rdmap::Opcode::kWrite, 8, 0, Bytes(2000)));
  };
  EXPECT_EQ(view_.memory(), 0U);
  call();
  const std::size_t one = view_.memory();
  EXPECT_GT(one, 2000U);
  call();
  EXPECT_EQ(view_.memory(), one);
  (void)give(kRx, rdma_msg(Xdr().words({kXid, 1, 0, 0, 0, 0})));
  EXPECT_EQ(view_.memory(), 0U);
  EXPECT_EQ(view_.forgotten(), 0U);
  call();
  view_.forget();
  EXPECT_EQ(view_.memory(), 0U);
  EXPECT_EQ(view_.forgotten(), 1U);
  EXPECT_EQ(rpc(kRx, rdma_msg(Xdr().words({kXid, 1, 0, 0, 0, 0}))), "Reply(xid=0x1a2b3c4d, stat=SUCCESS, bytes=24)");
}

}  // namespace
}  // namespace iwarp::trace
