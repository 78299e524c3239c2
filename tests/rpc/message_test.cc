#include "iwarp/rpc/message.h"

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

TEST(RpcMessages, CallsParse) {
  const Octets call = encode_call({5, 6, 7}, Credential::sys("abcde", 1, 2, {3}), {9, Octets(5)}, words({8}));
  const auto head = rpcrdma::RpcCall::parse(call);
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->program, 5u);
  EXPECT_EQ(head->version, 6u);
  EXPECT_EQ(head->procedure, 7u);
  EXPECT_EQ(head->credential.flavor, rpcrdma::kAuthSys);
  // stamp, name and its padding, uid, gid, one group
  EXPECT_EQ(head->credential.body.size(), 4u + 4 + 8 + 4 + 4 + 4 + 4);
  EXPECT_EQ(head->verifier.flavor, 9u);
  EXPECT_EQ(head->verifier.body.size(), 5u);
  EXPECT_EQ(word(ConstBytes(call).subspan(head->arguments_offset)), 8u);
}

TEST(RpcMessages, LongPartsAreCut) {
  const auto who = Credential::sys(std::string(300, 'x'), 1, 2, std::vector<std::uint32_t>(40));
  EXPECT_EQ(who.body.size(), 4u + 4 + 256 + 4 + 4 + 4 + 64);
  EXPECT_TRUE(rpcrdma::RpcCall::parse(encode_call({}, {1, Octets(1000)}, {}, {})).ok());
}

TEST(RpcMessages, RepliesParse) {
  const Octets reply = encode_reply(0x1234, AcceptStat::kSuccess, words({42}));
  const auto head = rpcrdma::RpcReply::parse(reply);
  ASSERT_TRUE(head.ok());
  EXPECT_TRUE(head->success());
  EXPECT_EQ(head->xid, 0x1234u);
  EXPECT_EQ(word(ConstBytes(reply).subspan(head->results_offset)), 42u);
}

}  // namespace
}  // namespace iwarp::rpc::test
