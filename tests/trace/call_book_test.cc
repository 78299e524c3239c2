#include "iwarp/trace/call_book.h"

#include <gtest/gtest.h>

#include "tests/trace/endpoints.h"

namespace iwarp::trace {
namespace {

const CallBook::Pair kEnds{kClient4.address, kServer4};

SeenRpc rpc(std::uint32_t xid, std::uint64_t frame = 3) {
  SeenRpc r;
  r.xid = xid;
  r.known = true;
  r.program = 100003;
  r.version = 3;
  r.procedure = 6;
  r.call_bytes = 80;
  r.sent.frame = frame;
  return r;
}

TEST(CallBook, TheSameCallAgainOnAnyConnection) {
  CallBook book;
  EXPECT_FALSE(book.call(kEnds, "1", rpc(7)));
  const auto again = book.call(kEnds, "2", rpc(7, 9));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->connection, "1");
  EXPECT_EQ(again->frame, 3U);
  EXPECT_EQ(book.call(kEnds, "3", rpc(7, 10))->connection, "1");
}

TEST(CallBook, AnAnsweredOneIsForgotten) {
  CallBook book;
  (void)book.call(kEnds, "1", rpc(7));
  book.reply(kEnds, rpc(7));
  EXPECT_FALSE(book.call(kEnds, "1", rpc(7)));
}

TEST(CallBook, WhatDiffersIsAnotherCall) {
  CallBook book;
  (void)book.call(kEnds, "1", rpc(7));
  CallBook::Pair other = kEnds;
  other.server.port = 1;
  EXPECT_FALSE(book.call(other, "1", rpc(7)));
  SeenRpc r = rpc(7);
  r.procedure = 7;
  EXPECT_FALSE(book.call(kEnds, "1", r));
  r = rpc(7);
  r.caller = Direction::kRx;
  EXPECT_FALSE(book.call(kEnds, "1", r));
  r = rpc(7);
  r.call_bytes = 84;
  EXPECT_FALSE(book.call(kEnds, "1", r));
}

TEST(CallBook, IsBounded) {
  CallBook book;
  for (std::uint32_t xid = 0; xid <= CallBook::kMaxCalls; ++xid) (void)book.call(kEnds, "1", rpc(xid));
  EXPECT_FALSE(book.call(kEnds, "1", rpc(0)));
  EXPECT_TRUE(book.call(kEnds, "1", rpc(CallBook::kMaxCalls)));
}

}  // namespace
}  // namespace iwarp::trace
