// Calls whose heads cannot be read (RFC 5531 s9).
#include "iwarp/rpc/refusal.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "iwarp/base/wire.h"

namespace iwarp::rpc::test {
namespace {

Octets of(std::initializer_list<std::uint32_t> words) {
  Octets out(words.size() * 4);
  WriteCursor cursor(out);
  for (const std::uint32_t word : words) cursor.be(word);
  return out;
}

TEST(RpcRefusals, AnotherVersionOfRpcIsDenied) {
  const Octets denied = of({7, 1, 1, 0, 2, 2});  // RPC_MISMATCH, lowest and highest version
  EXPECT_EQ(refusal(of({7, 0, 3, 1, 1, 1, 0, 0, 0, 0})), denied);
  EXPECT_EQ(refusal(of({7, 0, 1})), denied);
}

TEST(RpcRefusals, WhatElseCannotBeReadIsGarbage) {
  EXPECT_EQ(refusal(of({7, 0, 2, 1})), of({7, 1, 0, 0, 0, 4}));  // it ends too early
  EXPECT_EQ(refusal(of({7, 0})), of({7, 1, 0, 0, 0, 4}));
  EXPECT_EQ(refusal({}), of({0, 1, 0, 0, 0, 4}));
}

}  // namespace
}  // namespace iwarp::rpc::test
