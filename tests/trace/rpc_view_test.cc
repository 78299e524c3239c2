#include "iwarp/trace/rpc_view.h"

#include <gtest/gtest.h>

#include "iwarp/rpcrdma/private_data.h"
#include "tests/rpcrdma/wire_vectors.h"

namespace iwarp::trace {
namespace {

using test::Bytes;
using test::Xdr;

constexpr std::uint32_t kXid = test::kTestXid;

Message send(Bytes bytes) {
  Message m;
  m.op = rdmap::Opcode::kSend;
  m.length = bytes.size();
  m.head = std::move(bytes);
  return m;
}
// RDMA_MSG without chunks around an RPC message.
Message rdma_msg(const Xdr& rpc, std::uint32_t xid = kXid) {
  return send(Xdr().words({xid, 1, 32, 0, 0, 0, 0}).raw(rpc.bytes()).bytes());
}

TEST(RpcView, CallAndReply) {
  RpcView view(RpcGuess::kUnknown);
  const auto call = view.on_send(Direction::kTx, rdma_msg(test::nfs_call(3, 6)));
  EXPECT_EQ(call.header, "RDMA_MSG(xid=0x1a2b3c4d, vers=1, credits=32, reads=[], writes=[], reply=-)");
  EXPECT_EQ(call.rpc, "Call(xid=0x1a2b3c4d, prog=100003, vers=3, proc=6, cred=0, bytes=40)");
  const auto reply = view.on_send(Direction::kRx, rdma_msg(test::nfs_reply()));
  EXPECT_EQ(reply.rpc, "Reply(xid=0x1a2b3c4d, stat=SUCCESS, prog=100003, vers=3, proc=6, bytes=24)");
  EXPECT_FALSE(call.malformed || reply.malformed);
}

// The same xid may be in use in both directions (RFC 8167).
TEST(RpcView, ABackwardCallIsNoAnswer) {
  RpcView view(RpcGuess::kYes);
  (void)view.on_send(Direction::kTx, rdma_msg(test::nfs_call(4, 1)));
  (void)view.on_send(Direction::kRx, rdma_msg(test::nfs_call(1, 1, 0x40000000)));
  EXPECT_EQ(view.on_send(Direction::kTx, rdma_msg(test::nfs_reply())).rpc,
            "Reply(xid=0x1a2b3c4d, stat=SUCCESS, prog=1073741824, vers=1, proc=1, bytes=24)");
  EXPECT_EQ(view.on_send(Direction::kRx, rdma_msg(test::nfs_reply())).rpc,
            "Reply(xid=0x1a2b3c4d, stat=SUCCESS, prog=100003, vers=4, proc=1, bytes=24)");
  EXPECT_EQ(view.on_send(Direction::kRx, rdma_msg(test::nfs_reply())).rpc,
            "Reply(xid=0x1a2b3c4d, stat=SUCCESS, bytes=24)");
}

TEST(RpcView, RefusedReplies) {
  RpcView view(RpcGuess::kYes);
  EXPECT_EQ(view.on_send(Direction::kRx, rdma_msg(Xdr().words({kXid, 1, 1, 0, 2, 2}))).rpc,
            "Reply(xid=0x1a2b3c4d, stat=DENIED, bytes=24)");
  EXPECT_EQ(view.on_send(Direction::kRx, rdma_msg(Xdr().words({kXid, 1, 0, 0, 0, 4}))).rpc,
            "Reply(xid=0x1a2b3c4d, stat=GARBAGE_ARGS, bytes=24)");
}

TEST(RpcView, OtherUsersOfSendsAreNotMistaken) {
  RpcView view(RpcGuess::kUnknown);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(view.on_send(Direction::kTx, send(test::pattern(16 + 40 * i))).header, "");
  EXPECT_EQ(view.on_send(Direction::kTx, rdma_msg(test::nfs_call(3, 6))).header, "");  // the guess was made
}

TEST(RpcView, AnXidThatDiffersIsNoSign) {
  RpcView view(RpcGuess::kUnknown);
  EXPECT_EQ(view.on_send(Direction::kTx, rdma_msg(test::nfs_call(3, 6), 1)).header, "");
}

TEST(RpcView, PrivateDataSettlesIt) {
  RpcView view(RpcGuess::kUnknown);
  EXPECT_FALSE(view.on_private_data(test::hex("00 01 02")));
  const auto bytes = rpcrdma::PrivateData{true, 4096, 8192}.encode();
  EXPECT_EQ(view.on_private_data(bytes), "PrivateData(send=4096, receive=8192, remote_invalidation=1)");
  const auto bad = view.on_send(Direction::kTx, send(test::pattern(16)));
  EXPECT_TRUE(bad.malformed);
  EXPECT_EQ(bad.header.substr(0, 20), "Malformed(bytes=16, ");
}

TEST(RpcView, MalformedRpcMessage) {
  RpcView view(RpcGuess::kYes);
  const auto d = view.on_send(Direction::kTx, rdma_msg(Xdr().words({kXid, 0, 2})));
  EXPECT_TRUE(d.malformed);
  EXPECT_EQ(d.rpc, "Malformed(bytes=12, why=\"neither an RPC Call nor a Reply\")");
}

TEST(RpcView, WhatTheCaptureCutIsNobodysFault) {
  RpcView view(RpcGuess::kYes);
  Message m = rdma_msg(test::nfs_call(3, 6));
  m.head.resize(36);
  const auto rpc = view.on_send(Direction::kTx, m);
  EXPECT_FALSE(rpc.malformed);
  EXPECT_EQ(rpc.rpc, "Cut(bytes=40, captured=8)");
  m.head.resize(10);
  EXPECT_EQ(view.on_send(Direction::kTx, m).header, "Cut(bytes=68, captured=10)");
}

TEST(RpcView, ForgetsCallsThatAreNeverAnswered) {
  RpcView view(RpcGuess::kYes);
  for (std::uint32_t xid = 0; xid < 10000; ++xid) {
    (void)view.on_send(Direction::kTx, rdma_msg(Xdr().words({xid, 0, 2, 100003, 3, 0, 0, 0, 0, 0}), xid));
  }
  EXPECT_EQ(view.on_send(Direction::kRx, rdma_msg(Xdr().words({0, 1, 0, 0, 0, 0}), 0)).rpc,
            "Reply(xid=0x0, stat=SUCCESS, bytes=24)");
  EXPECT_EQ(view.on_send(Direction::kRx, rdma_msg(Xdr().words({9999, 1, 0, 0, 0, 0}), 9999)).rpc,
            "Reply(xid=0x270f, stat=SUCCESS, prog=100003, vers=3, proc=0, bytes=24)");
}

}  // namespace
}  // namespace iwarp::trace
