// RPC-over-RDMA of the draft of 2005: RDMA_MSGP, RDMA_DONE, Replies with Read chunks, CONFIG_RDMA.
#include <gmock/gmock.h>

#include "iwarp/trace/rpc_view.h"
#include "tests/trace/rpc_view_fixture.h"

namespace iwarp::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;
using namespace test_view;

class RpcView2005 : public RpcViewTest {};

TEST_F(RpcView2005, HeadersOfTheDraftOf2005) {
  rpcrdma::Header h;
  h.xid = kXid;
  h.credits = 32;
  h.proc = rpcrdma::Proc::kMsgp;
  h.padding = {512, 1024};
  h.draft_2005 = true;
  EXPECT_THAT(
      give(kTx, header(h, test::nfs_call(3, 6).bytes())),
      ElementsAre("RDMA_MSGP(xid=0x1a2b3c4d, vers=1, credits=32, align=512, thresh=1024, reads=[], writes=[], reply=-)",
                  StartsWith("Call(xid=0x1a2b3c4d, prog=NFS, vers=3, proc=READ")));
  h.proc = rpcrdma::Proc::kDone;
  EXPECT_THAT(give(kTx, header(h)), ElementsAre("RDMA_DONE(xid=0x1a2b3c4d, vers=1, credits=32)"));
  EXPECT_FALSE(malformed_);
}

TEST_F(RpcView2005, TheConfigurationOfAConnection) {
  const auto call = [](std::uint32_t program, std::uint32_t procedure = 1) {
    return test::nfs_call(1, procedure, program).words({8192, 4096, 4});
  };
  EXPECT_EQ(
      rpc(kTx, rdma_msg(call(rpcrdma::kConfigProgram))),
      "Call(xid=0x1a2b3c4d, prog=CONFIG_RDMA, vers=1, proc=CONF_RDMA, maxcall=8192, maxreply=4096, maxrdmaread=4, "
      "cred=AUTH_NONE, bytes=52)");
  EXPECT_EQ(
      rpc(kRx, rdma_msg(test::nfs_reply().words({16384, 512, 8}))),
      "Reply(xid=0x1a2b3c4d, call_in=10, latency_ms=1.000, proc=CONF_RDMA, stat=SUCCESS, prog=CONFIG_RDMA, vers=1, "
      "maxcall=16384, align=512, maxrdmaread=8, bytes=36)");
  EXPECT_THAT(rpc(kTx, rdma_msg(call(rpcrdma::kConfigProgram, 2))),
              StartsWith("Call(xid=0x1a2b3c4d, prog=CONFIG_RDMA, vers=1, proc=2, cred"));
  EXPECT_THAT(rpc(kTx, rdma_msg(call(400123))), StartsWith("Call(xid=0x1a2b3c4d, prog=400123, vers=1, proc=1, cred"));
  // Without arguments, and refused.
  EXPECT_THAT(rpc(kTx, rdma_msg(test::nfs_call(1, 1, rpcrdma::kConfigProgram))),
              StartsWith("Call(xid=0x1a2b3c4d, prog=CONFIG_RDMA, vers=1, proc=CONF_RDMA, cred"));
  EXPECT_THAT(rpc(kRx, rdma_msg(test::Xdr().words({kXid, 1, 0, 0, 0, 1}))),
              ::testing::HasSubstr("stat=PROG_UNAVAIL, prog=CONFIG_RDMA, vers=1, bytes=24"));
}

TEST_F(RpcView2005, TheConfigurationByAnotherNumber) {
  RpcViewOptions o = options(RpcGuess::kYes);
  o.config_program = 0x40000000;  // a client may call back by this number, too
  view_ = RpcView(o);
  EXPECT_THAT(rpc(kTx, rdma_msg(test::nfs_call(1, 1, 0x40000000).words({1, 2, 3}))),
              StartsWith("Call(xid=0x1a2b3c4d, prog=CONFIG_RDMA, vers=1, proc=CONF_RDMA, maxcall=1, maxreply=2, "
                         "maxrdmaread=3, cred"));
}

rpcrdma::Header header_of_2005(rpcrdma::Proc proc) {
  rpcrdma::Header h;
  h.xid = kXid;
  h.credits = 32;
  h.proc = proc;
  h.draft_2005 = true;
  return h;
}

// Data of the Reply in a Read chunk: the client fetches them, and says so.
TEST_F(RpcView2005, DoneBelongsToItsReply) {
  (void)give(kTx, rdma_msg(test::nfs_call(3, 6)));
  rpcrdma::Header reply = header_of_2005(rpcrdma::Proc::kMsg);
  reply.read_list.push_back({40, {Stag{7}, 100, 0x1000}});
  EXPECT_THAT(rpc(kRx, header(reply, test::nfs_reply().w(0).bytes())),
              StartsWith("Reply(xid=0x1a2b3c4d, call_in=10, latency_ms=1.000, status=NFS3_OK, proc=READ"));
  const auto read = view_.on_read_request(kTx, {Stag{9}, 0, 100, Stag{7}, 0x1000});
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->name, "NFS 3 READ");
  EXPECT_EQ(view_.on_read_response(kRx, tagged(rdmap::Opcode::kReadResponse, 9, 0, test::pattern(100)), next()).rpc,
            read);
  const auto done = view_.on_send(kTx, header(header_of_2005(rpcrdma::Proc::kDone)), next());
  EXPECT_THAT(texts(done), ElementsAre("RDMA_DONE(xid=0x1a2b3c4d, vers=1, credits=32, reply_in=11, kept_ms=2.000)"));
  EXPECT_EQ(done[0].record.rpc, read);
  EXPECT_EQ(read->read_bytes, 100U);
  // Again, and from the server: of no Reply.
  EXPECT_THAT(give(kTx, header(header_of_2005(rpcrdma::Proc::kDone))),
              ElementsAre("RDMA_DONE(xid=0x1a2b3c4d, vers=1, credits=32)"));
  EXPECT_EQ(view_.on_read_request(kTx, {Stag{9}, 0, 100, Stag{7}, 0x1000}), nullptr);
  EXPECT_FALSE(malformed_ || error_);
}

// A COMPOUND of NFSv4 that reads 1500 octets.
test::Xdr read_1500() {
  return test::compound_call(2).w(25).words({0, 0, 0, 0}).d(0).w(1500).w(10);
}

TEST_F(RpcView2005, OperationsBehindDataInAReadChunk) {
  (void)give(kTx, rdma_msg(read_1500()));
  rpcrdma::Header reply = header_of_2005(rpcrdma::Proc::kMsg);
  test::Xdr message = test::compound_reply(2);
  message.w(25).w(0).w(1).w(1500);
  reply.read_list.push_back({static_cast<std::uint32_t>(message.size()), {Stag{7}, 1500, 0x1000}});
  // Of a Write chunk that was too short.
  reply.write_list.push_back({{{Stag{8}, 0, 0}}});
  message.w(10).w(0).opaque(8);
  EXPECT_THAT(rpc(kRx, header(reply, message.bytes())), ::testing::HasSubstr("status=NFS4_OK, ops=[READ GETFH]"));
}

TEST_F(RpcView2005, PaddedReplies) {
  (void)give(kTx, rdma_msg(read_1500()));
  rpcrdma::Header reply = header_of_2005(rpcrdma::Proc::kMsgp);
  reply.padding = {512, 1024};
  test::Xdr message = test::compound_reply(2);
  message.w(25).w(0).w(1).w(1500);
  const std::size_t at = reply.encoded_size() + message.size();
  message.fill(512 - at % 512).fill(1500).w(10).w(0).opaque(8);
  const auto all = give(kRx, header(reply, message.bytes()));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_THAT(all[0], StartsWith("RDMA_MSGP(xid=0x1a2b3c4d, vers=1, credits=32, align=512, thresh=1024, reads=[]"));
  EXPECT_THAT(all[1], StartsWith("Reply(xid=0x1a2b3c4d, call_in=10, latency_ms=1.000, status=NFS4_OK, "
                                 "ops=[READ GETFH]"));
  EXPECT_FALSE(malformed_ || error_);
}

TEST_F(RpcView2005, PaddedCalls) {
  rpcrdma::Header h = header_of_2005(rpcrdma::Proc::kMsgp);
  h.padding = {512, 1024};
  test::Xdr message = test::compound_call(2);
  message.w(38).words({0, 0, 0, 0}).d(0).w(2).w(1500);
  const std::size_t at = h.encoded_size() + message.size();
  message.fill(512 - at % 512).fill(1500).w(10);
  EXPECT_THAT(rpc(kTx, header(h, message.bytes())), ::testing::HasSubstr("ops=[WRITE GETFH]"));
}

TEST_F(RpcView2005, LongRepliesByReadChunk) {
  (void)give(kTx, rdma_msg(test::nfs_call(3, 6)));
  rpcrdma::Header reply = header_of_2005(rpcrdma::Proc::kNomsg);
  const Bytes message = test::nfs_reply().w(0).fill(76).bytes();
  reply.read_list.push_back({0, {Stag{7}, 100, 0x1000}});
  EXPECT_THAT(
      give(kRx, header(reply)),
      ElementsAre("RDMA_NOMSG(xid=0x1a2b3c4d, vers=1, credits=32, reads=[0/0x7:100@0x1000], writes=[], reply=-)"));
  (void)view_.on_read_request(kTx, {Stag{9}, 0, 100, Stag{7}, 0x1000});
  (void)view_.on_read_response(kRx, tagged(rdmap::Opcode::kReadResponse, 9, 0, message), next());
  EXPECT_THAT(
      give(kTx, header(header_of_2005(rpcrdma::Proc::kDone))),
      ElementsAre("RDMA_DONE(xid=0x1a2b3c4d, vers=1, credits=32, reply_in=11, kept_ms=2.000)",
                  "Reply(xid=0x1a2b3c4d, call_in=10, latency_ms=3.000, status=NFS3_OK, proc=READ, stat=SUCCESS, "
                  "prog=NFS, vers=3, bytes=100)"));
  EXPECT_FALSE(malformed_ || error_);
}

}  // namespace
}  // namespace iwarp::trace
