#include "iwarp/gateway/rpcbind_message.h"

#include <gtest/gtest.h>

#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::gateway {
namespace {

using iwarp::test::Bytes;
using iwarp::test::hex;
using iwarp::test::operator+;
using boost::asio::ip::make_address;
using rpcrdma::test::rpc_reply;
using rpcrdma::test::words;

TEST(RpcbindMessage, IsThatOfRfc1833) {
  const RpcbindEntry entry{100003, 4, "rdma6", "::.78.81", "0"};
  const auto call = rpcbind_call(0x11223344, RpcbindProcedure::kSet, entry, {"box", 1000, 100});
  EXPECT_EQ(call, hex("80000068"  // record mark: the last fragment, 104 octets
                      "11223344"
                      "00000000"
                      "00000002"  // xid, CALL, RPC version
                      "000186a0"
                      "00000003"
                      "00000001"  // program 100000, version 3, RPCBPROC_SET
                      "00000001"
                      "00000018"  // AUTH_SYS, 24 octets
                      "00000000"
                      "00000003"
                      "626f7800"
                      "000003e8"
                      "00000064"
                      "00000000"  // stamp, "box", uid, gid, no groups
                      "00000000"
                      "00000000"  // AUTH_NONE
                      "000186a3"
                      "00000004"  // program, version
                      "00000005"
                      "72646d6136000000"  // "rdma6"
                      "00000008"
                      "3a3a2e37382e3831"  // "::.78.81"
                      "00000001"
                      "30000000"));  // "0"
  const auto unset = rpcbind_call(1, RpcbindProcedure::kUnset, entry, {});
  EXPECT_EQ(Bytes(unset.begin() + 24, unset.begin() + 28), words({2}));
}

TEST(RpcbindMessage, BoundsTheNameOfTheHost) {
  const auto call = rpcbind_call(1, RpcbindProcedure::kSet, {}, {std::string(1000, 'h'), 0, 0});
  const auto parsed = rpcrdma::RpcCall::parse(ConstBytes(call).subspan(4));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->credential.flavor, rpcrdma::kAuthSys);
  EXPECT_LE(parsed->credential.body.size(), rpcrdma::kMaxAuthBytes);
}

TEST(RpcbindMessage, TakesTheAnswerToItsCallOnly) {
  EXPECT_EQ(rpcbind_answer(rpc_reply(7, words({1})), 7), true);
  EXPECT_EQ(rpcbind_answer(rpc_reply(7, words({0})), 7), false);
  EXPECT_EQ(rpcbind_answer(rpc_reply(8, words({1})), 7), std::nullopt);
  EXPECT_EQ(rpcbind_answer(words({7, 1, 1, 1, 5}), 7), std::nullopt);     // denied
  EXPECT_EQ(rpcbind_answer(words({7, 1, 0, 0, 0, 3}), 7), std::nullopt);  // PROC_UNAVAIL
  const Bytes good = rpc_reply(7, words({1}));
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_EQ(rpcbind_answer(ConstBytes(good).first(n), 7), std::nullopt) << n;
}

TEST(RpcbindMessage, UniversalAddresses) {
  EXPECT_EQ(universal_address({make_address("0.0.0.0"), 20049}), "0.0.0.0.78.81");
  EXPECT_EQ(universal_address({make_address("10.1.2.3"), 255}), "10.1.2.3.0.255");
  EXPECT_EQ(universal_address({make_address("::1"), 65535}), "::1.255.255");
  EXPECT_EQ(universal_address({make_address("fe80::1%1"), 256}), "fe80::1.1.0");
  EXPECT_STREQ(rdma_netid(make_address("10.1.2.3")), "rdma");
  EXPECT_STREQ(rdma_netid(make_address("::")), "rdma6");
}

}  // namespace
}  // namespace iwarp::gateway
