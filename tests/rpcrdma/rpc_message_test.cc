#include "iwarp/rpcrdma/rpc_message.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using test::Bytes;
using test::hex;
using test::Xdr;

// A Call with an RPCSEC_GSS credential: version, gss_proc, sequence, service, a handle of 5 octets.
Xdr gss_call(std::uint32_t version, std::uint32_t procedure, std::uint32_t service) {
  return Xdr()
      .words({7, 0, 2, 100003, 3, 6, kRpcsecGss, 28, version, procedure, 99, service})
      .opaque(5)
      .words({kRpcsecGss})
      .opaque(16);
}

TEST(RpcMessage, ReadsACallOfAuthSys) {
  const Bytes call =
      hex("7a9919b1 00000000 00000002 000186a3 00000003 00000006"                // xid, CALL, RPC 2, NFS, 3, READ
          "00000001 00000016 0102030405060708090a0b0c0d0e0f10111213141516 0000"  // AUTH_SYS, 22 octets, 2 of padding
          "00000000 00000000"                                                    // AUTH_NONE
          "00000014");
  const auto head = RpcCall::parse(call);
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->xid, 0x7a9919b1u);
  EXPECT_EQ(head->program, 100003u);
  EXPECT_EQ(head->version, 3u);
  EXPECT_EQ(head->procedure, 6u);
  EXPECT_EQ(head->credential.flavor, kAuthSys);
  EXPECT_EQ(head->credential.body.size(), 22u);
  EXPECT_EQ(head->verifier.flavor, kAuthNone);
  EXPECT_EQ(head->arguments_offset, 64u);
  EXPECT_FALSE(head->gss);
  EXPECT_TRUE(head->body_is_plain());
  for (std::size_t n = 0; n < 64; ++n) {
    const auto cut = RpcCall::parse(ConstBytes(call).first(n));
    ASSERT_FALSE(cut.ok()) << n;
    EXPECT_EQ(cut.error().code, Errc::kMalformedRpc);
  }
}

TEST(RpcMessage, RefusesWhatIsNoCallOfRpcVersion2) {
  const Bytes good = test::nfs_call(3, 6).bytes();
  ASSERT_TRUE(RpcCall::parse(good).ok());
  struct Row {
    const char* what;
    std::size_t offset;
    unsigned value;
  };
  for (const Row& r : {Row{"a reply", 7, 1}, Row{"RPC version 3", 11, 3}, Row{"credential of 401 octets", 30, 1},
                       Row{"credential beyond the message", 31, 16}, Row{"huge verifier", 36, 0xff}}) {
    Bytes bad = good;
    bad[r.offset] = static_cast<std::byte>(r.value);
    if (r.offset == 30) bad[31] = std::byte{0x91};
    EXPECT_FALSE(RpcCall::parse(bad).ok()) << r.what;
  }
}

TEST(RpcMessage, AcceptsCredentialsOfUpTo400Octets) {
  for (const std::size_t n : {0u, 1u, 399u, 400u, 401u}) {
    const auto call = Xdr().words({1, 0, 2, 100003, 3, 6, kAuthSys}).opaque(n).words({0, 0}).bytes();
    EXPECT_EQ(RpcCall::parse(call).ok(), n <= 400) << n;
  }
}

TEST(RpcMessage, KnowsWhenRpcsecGssLeavesTheBodyPlain) {
  COVERS("RFC8166-8.2.2-1");
  COVERS("RFC8166-8.2.2.3-2");
  struct Row {
    std::uint32_t version, procedure, service;
    bool plain;
  };
  for (const Row& r :
       {Row{1, 0, 1, true}, Row{1, 0, 2, false}, Row{1, 0, 3, false}, Row{1, 1, 1, false}, Row{1, 3, 1, false},
        Row{1, 0, 9, false}, Row{2, 0, 1, true}, Row{3, 0, 1, true}, Row{4, 0, 1, false}}) {
    const Bytes call = gss_call(r.version, r.procedure, r.service).bytes();
    const auto head = RpcCall::parse(call);
    ASSERT_TRUE(head.ok());
    ASSERT_TRUE(head->gss);
    EXPECT_EQ(head->gss->sequence, 99u);
    EXPECT_EQ(head->gss->service, r.service);
    EXPECT_EQ(head->body_is_plain(), r.plain) << r.version << r.procedure << r.service;
    EXPECT_EQ(head->arguments_offset, call.size());
  }
}

TEST(RpcMessage, RefusesATruncatedGssCredential) {
  EXPECT_FALSE(RpcCall::parse(Xdr().words({7, 0, 2, 100003, 3, 6, kRpcsecGss, 16, 1, 0, 99, 1, 0, 0}).bytes()).ok());
  // The handle may not leave the credential.
  EXPECT_FALSE(
      RpcCall::parse(Xdr().words({7, 0, 2, 100003, 3, 6, kRpcsecGss, 20, 1, 0, 99, 1, 4, 0, 0, 5, 5}).bytes()).ok());
}

TEST(RpcMessage, ReadsReplies) {
  const Bytes accepted = Xdr().words({5, 1, 0, kRpcsecGss}).opaque(10).words({0, 42}).bytes();
  const auto reply = RpcReply::parse(accepted);
  ASSERT_TRUE(reply.ok());
  EXPECT_TRUE(reply->success());
  EXPECT_EQ(reply->verifier.body.size(), 10u);
  EXPECT_EQ(reply->results_offset, accepted.size() - 4);
  for (std::size_t n = 0; n < accepted.size() - 4; ++n)
    EXPECT_FALSE(RpcReply::parse(ConstBytes(accepted).first(n)).ok()) << n;

  const auto denied = RpcReply::parse(Xdr().words({5, 1, 1, 1, 1}).bytes());
  ASSERT_TRUE(denied.ok());
  EXPECT_FALSE(denied->accepted);
  EXPECT_FALSE(denied->success());
  EXPECT_FALSE(RpcReply::parse(Xdr().words({5, 1, 2, 0, 0, 0}).bytes()).ok());
  EXPECT_FALSE(RpcReply::parse(Xdr().words({5, 0, 0, 0, 0, 0}).bytes()).ok());
}

TEST(RpcMessage, TellsXidAndDirection) {
  COVERS("RFC8166-2.2.2-1");
  const Bytes call = test::nfs_call(3, 0).bytes();
  EXPECT_EQ(rpc_xid(call), test::kTestXid);
  EXPECT_EQ(rpc_direction(call), RpcDirection::kCall);
  EXPECT_EQ(rpc_direction(test::nfs_reply().bytes()), RpcDirection::kReply);
  EXPECT_EQ(rpc_direction(Xdr().words({1, 2}).bytes()), std::nullopt);
  EXPECT_EQ(rpc_direction(ConstBytes(call).first(7)), std::nullopt);
  EXPECT_EQ(rpc_xid(ConstBytes(call).first(3)), std::nullopt);
}

TEST(RpcMessage, BuildsErrorReplies) {
  COVERS("RFC8166-2.2.2-2");
  const auto reply = make_error_reply(0x01020304, AcceptStat::kGarbageArgs);
  EXPECT_EQ(test::to_hex(reply), "010203040000000100000000000000000000000000000004");
  const auto parsed = RpcReply::parse(make_error_reply(9, AcceptStat::kSystemErr));
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->accepted);
  EXPECT_EQ(parsed->accept_stat, AcceptStat::kSystemErr);
  EXPECT_EQ(parsed->results_offset, kErrorReplyBytes);
}

TEST(RpcMessage, SurvivesMutation) {
  std::mt19937 random(2);
  const Bytes call = gss_call(1, 0, 1).bytes();
  for (int round = 0; round < 20000; ++round) {
    Bytes bad(call.begin(), call.begin() + static_cast<std::ptrdiff_t>(random() % (call.size() + 1)));
    for (int flips = 0; flips < 3 && !bad.empty(); ++flips)
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    if (const auto head = RpcCall::parse(bad)) {
      EXPECT_LE(head->arguments_offset, bad.size());
    }
    if (const auto head = RpcReply::parse(bad)) {
      EXPECT_LE(head->results_offset, bad.size());
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma
