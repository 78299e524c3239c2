#include "iwarp/trace/chunk_view.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace iwarp::trace {
namespace {

using test::Bytes;

constexpr auto kTx = Direction::kTx;
constexpr auto kRx = Direction::kRx;

std::shared_ptr<SeenRpc> rpc(std::uint32_t xid) {
  auto r = std::make_shared<SeenRpc>();
  r->xid = xid;
  return r;
}

Message tagged(rdmap::Opcode op, std::uint32_t stag, std::uint64_t to, Bytes bytes) {
  Message m;
  m.op = op;
  m.stag = Stag{stag};
  m.to = to;
  m.length = bytes.size();
  m.head = std::move(bytes);
  return m;
}
Message write(std::uint32_t stag, std::uint64_t to, Bytes bytes) {
  return tagged(rdmap::Opcode::kWrite, stag, to, std::move(bytes));
}

rpcrdma::Header with_reply_chunk(std::uint32_t stag, std::uint64_t offset) {
  rpcrdma::Header h;
  h.reply_chunk.emplace();
  h.reply_chunk->segments.push_back({Stag{stag}, 8, offset});
  h.reply_chunk->segments.push_back({Stag{stag + 1}, 100, 0});
  return h;
}

TEST(ChunkView, ReplyChunkOfTwoSegments) {
  ChunkView view;
  const auto r = rpc(1);
  view.add(with_reply_chunk(5, 0x1000), r);
  EXPECT_EQ(view.on_write(kRx, write(5, 0x1000, test::hex("0102030405060708"))), r);
  EXPECT_EQ(view.on_write(kRx, write(6, 0, test::hex("090a"))), r);
  EXPECT_EQ(Bytes(view.reply_head(*r).begin(), view.reply_head(*r).end()), test::hex("0102030405060708090a"));
  EXPECT_EQ(r->write_bytes, 10U);
  // Not theirs: another place, the other direction, no octets.
  EXPECT_EQ(view.on_write(kRx, write(5, 0x1008, test::hex("01"))), nullptr);
  EXPECT_EQ(view.on_write(kRx, write(5, 0xFFF, test::hex("01"))), nullptr);
  EXPECT_EQ(view.on_write(kTx, write(5, 0x1000, test::hex("01"))), nullptr);
  EXPECT_EQ(view.on_write(kRx, write(5, 0x1000, {})), nullptr);
  view.remove(*r);
  EXPECT_EQ(view.on_write(kRx, write(6, 0, test::hex("09"))), nullptr);
  EXPECT_TRUE(view.reply_head(*r).empty());
}

TEST(ChunkView, WhatDoesNotContinueIsLeftOut) {
  ChunkView view;
  const auto r = rpc(1);
  view.add(with_reply_chunk(5, 0), r);
  (void)view.on_write(kRx, write(6, 0, test::hex("090a")));
  EXPECT_TRUE(view.reply_head(*r).empty());
  (void)view.on_write(kRx, write(5, 0, test::hex("0102")));
  (void)view.on_write(kRx, write(5, 1, test::hex("0203")));  // overlaps
  EXPECT_EQ(view.reply_head(*r).size(), 3U);
}

TEST(ChunkView, PositionZeroChunk) {
  ChunkView view;
  const auto r = rpc(1);
  rpcrdma::Header h;
  h.read_list.push_back({0, {Stag{7}, 6, 0x100}});
  h.read_list.push_back({44, {Stag{9}, 1000, 0}});
  view.add(h, r);
  EXPECT_EQ(view.call_bytes(*r), 6U);
  EXPECT_EQ(view.on_read_request(kRx, {Stag{1}, 0x50, 4, Stag{7}, 0x100}), r);
  EXPECT_EQ(view.on_read_request(kRx, {Stag{1}, 0x54, 2, Stag{7}, 0x104}), r);
  EXPECT_EQ(view.on_read_request(kRx, {Stag{2}, 0, 1000, Stag{9}, 0}), r);
  EXPECT_EQ(view.on_read_request(kRx, {Stag{2}, 0, 1000, Stag{10}, 0}), nullptr);
  const auto response = [&](std::uint32_t stag, std::uint64_t to, Bytes bytes) {
    return view.on_read_response(kTx, tagged(rdmap::Opcode::kReadResponse, stag, to, std::move(bytes)));
  };
  EXPECT_EQ(response(1, 0x50, test::hex("01020304")), r);
  EXPECT_FALSE(view.call_is_read(*r));
  EXPECT_EQ(response(1, 0x54, test::hex("0506")), r);
  EXPECT_TRUE(view.call_is_read(*r));
  EXPECT_EQ(response(2, 0, test::pattern(1000)), r);
  EXPECT_EQ(view.call_head(*r).size(), 6U);
  EXPECT_EQ(r->read_bytes, 1006U);
  EXPECT_EQ(response(1, 0x50, test::hex("01")), nullptr);  // answered already
}

TEST(ChunkView, KeepsABoundedBeginning) {
  ChunkView view;
  const auto r = rpc(1);
  rpcrdma::Header h;
  h.reply_chunk.emplace();
  h.reply_chunk->segments.push_back({Stag{5}, 1 << 20, 0});
  view.add(h, r);
  for (std::uint64_t to = 0; to < 4 * ChunkView::kMaxHeadBytes; to += 1000) {
    (void)view.on_write(kRx, write(5, to, test::pattern(1000)));
  }
  EXPECT_EQ(view.reply_head(*r).size(), ChunkView::kMaxHeadBytes);
}

TEST(ChunkView, ForgetsTheOldestRpc) {
  ChunkView view;
  std::vector<std::shared_ptr<SeenRpc>> all;
  for (std::uint32_t n = 0; n <= ChunkView::kMaxRpcs; ++n) {
    all.push_back(rpc(n));
    view.add(with_reply_chunk(n * 2, 0), all.back());
  }
  EXPECT_EQ(view.on_write(kRx, write(0, 0, test::hex("01"))), nullptr);
  EXPECT_EQ(view.on_write(kRx, write(2, 0, test::hex("01"))), all[1]);
}

TEST(ChunkView, HoldsABoundedNumberOfSegments) {
  ChunkView view;
  rpcrdma::Header h;
  for (std::uint32_t c = 0; c < 16; ++c) {
    rpcrdma::WriteChunk chunk;
    for (std::uint32_t s = 0; s < 256; ++s) chunk.segments.push_back({Stag{c * 256 + s}, 1, 0});
    h.write_list.push_back(chunk);
  }
  h.reply_chunk.emplace();
  h.reply_chunk->segments.push_back({Stag{77777}, 8, 0});
  const auto first = rpc(1), second = rpc(2);
  view.add(h, first);
  EXPECT_EQ(view.on_write(kRx, write(4095, 0, test::hex("01"))), first);
  EXPECT_EQ(view.on_write(kRx, write(77777, 0, test::hex("01"))), nullptr);
  view.add(h, second);
  EXPECT_EQ(view.on_write(kRx, write(4095, 0, test::hex("01"))), second);
  view.add(with_reply_chunk(5, 0x1000), rpc(2));  // the same xid again
  EXPECT_EQ(view.on_write(kRx, write(4095, 0, test::hex("01"))), nullptr);
}

}  // namespace
}  // namespace iwarp::trace
