#include "iwarp/rpcrdma/nfs_pnfs.h"

#include <gtest/gtest.h>

#include "iwarp/base/wire.h"
#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::Bytes;
using iwarp::test::operator+;

constexpr std::uint32_t kNon = 0x10000, kMds = 0x20000, kDs = 0x40000;
constexpr std::uint32_t kConfirmed = 0x80000000;

// client_owner4 with four octets, flags, SP4_NONE, no implementation id.
Bytes exchange_id_arguments() {
  return words({42, 1, 2, 4, 0x61626364, 0x100, 0, 0});
}
Bytes compound(std::uint32_t minor, const Bytes& operations, std::uint32_t count) {
  return rpc_call(7, kNfs, 4, 1, words({0, minor, count}) + operations);
}
// clientid, sequenceid, flags, SP4_NONE, server_owner, scope, no implementation id.
Bytes exchange_id_result(std::uint32_t flags) {
  return words({42, 0, 1, 2, 3, flags, 0, 0, 9, 0, 0, 0});
}
Bytes reply(const Bytes& results, std::uint32_t count) {
  return rpc_reply(7, words({0, 0, count}) + results);
}

TEST(NfsPnfs, FindsExchangeId) {
  EXPECT_TRUE(has_exchange_id(compound(1, exchange_id_arguments(), 1)));
  EXPECT_TRUE(has_exchange_id(compound(2, exchange_id_arguments(), 1)));
  const Bytes putrootfh = words({24});
  EXPECT_TRUE(has_exchange_id(compound(1, putrootfh + exchange_id_arguments(), 2)));
  EXPECT_FALSE(has_exchange_id(compound(1, putrootfh, 1)));
  EXPECT_FALSE(has_exchange_id(compound(0, exchange_id_arguments(), 1))) << "NFSv4.0 has no such operation";
  EXPECT_FALSE(has_exchange_id(rpc_call(7, kNfs, 3, 1, words({0, 1, 1}) + exchange_id_arguments())));
  EXPECT_FALSE(has_exchange_id(rpc_call(7, kNfs + 1, 4, 1, words({0, 1, 1}) + exchange_id_arguments())));
  EXPECT_FALSE(has_exchange_id(null_call(7)));
}

TEST(NfsPnfs, HidesLayoutsOnly) {
  struct Case {
    std::uint32_t before, after;
    bool hidden;
  };
  for (const Case& c : {Case{kMds | kConfirmed, kNon | kConfirmed, true}, Case{kMds | kDs | 0x103, kNon | 0x103, true},
                        Case{kDs, kNon, true}, Case{kNon, kNon, false}, Case{kNon | kMds, kNon, true}}) {
    Bytes message = reply(exchange_id_result(c.before), 1);
    EXPECT_EQ(hide_layouts(message), c.hidden);
    EXPECT_EQ(message, reply(exchange_id_result(c.after), 1));
  }
}

TEST(NfsPnfs, FindsTheResultBehindOthers) {
  const Bytes putrootfh = words({24, 0});
  Bytes message = reply(putrootfh + exchange_id_result(kMds) + exchange_id_result(kDs), 3);
  EXPECT_TRUE(hide_layouts(message));
  EXPECT_EQ(message, reply(putrootfh + exchange_id_result(kNon) + exchange_id_result(kNon), 3));
}

TEST(NfsPnfs, LeavesFailuresAndOtherResultsAlone) {
  for (const Bytes& same : {reply(words({42, 10008}), 1), reply(words({24, 0}), 1), rpc_reply(7), null_call(7)}) {
    Bytes message = same;
    EXPECT_FALSE(hide_layouts(message));
    EXPECT_EQ(message, same);
  }
}

// word 0 is left alone; so is 63, layout_hint, which can be set only.
constexpr std::uint32_t kAsked1 = 0xC0000001, kAsked2 = 0x0000003F;
constexpr std::uint32_t kLeft1 = 0x80000001, kLeft2 = 0x00000028;

Bytes getattr(const Bytes& bitmap) {
  return words({9}) + bitmap;
}
Bytes readdir(const Bytes& bitmap) {
  return words({26, 0, 0, 0, 0, 4096, 8192}) + bitmap;
}
// sa_stateid; a fattr4 of whatever is asked elsewhere, and no values.
Bytes setattr(const Bytes& bitmap) {
  return words({34, 0, 0, 0, 0}) + bitmap + words({0});
}
// Operations that have no bitmap, or one that asks for nothing, stand between those that have.
Bytes asking(const Bytes& bitmap) {
  return words({24}) + getattr(bitmap) + setattr(words({3, kAsked1, kAsked1, kAsked2})) + words({37}) +
         words({2, 0, 1u << 30, 0}) + readdir(bitmap);
}
constexpr std::uint32_t kAsking = 5;

TEST(NfsPnfs, NobodyAsksForLayouts) {
  for (const std::uint32_t minor : {1u, 2u}) {
    Bytes call = compound(minor, asking(words({3, kAsked1, kAsked1, kAsked2})), kAsking);
    EXPECT_TRUE(hide_layout_attributes(call));
    EXPECT_EQ(call, compound(minor, asking(words({3, kAsked1, kLeft1, kLeft2})), kAsking));
    EXPECT_FALSE(hide_layout_attributes(call)) << "a second time";
  }
  Bytes last = compound(1, getattr(words({2, 0, 1u << 30})), 1);  // as Linux asks when it mounts
  EXPECT_TRUE(hide_layout_attributes(last));
  EXPECT_EQ(last, compound(1, getattr(words({2, 0, 0})), 1));
}

TEST(NfsPnfs, WhatAsksForNoLayoutsPassesUnchanged) {
  const Bytes body = asking(words({3, kAsked1, kAsked1, kAsked2}));
  const Bytes arguments = words({0, 1, kAsking}) + body;
  const auto gss = [&](std::uint32_t service) {
    return words({7, 0, 2, kNfs, 4, 1, 6, 24, 1, 0, 9, service, 4, 0x61626364, 0, 0}) + arguments;
  };
  for (const Bytes& same :
       {compound(1, asking(words({3, kAsked1, kLeft1, kLeft2})), kAsking), compound(1, asking(words({0})), kAsking),
        compound(0, body, kAsking), rpc_call(7, kNfs, 3, 1, arguments), rpc_call(7, kNfs + 1, 4, 1, arguments),
        rpc_call(7, kNfs, 4, 0, arguments), rpc_reply(7, arguments), gss(2), gss(3)}) {
    Bytes message = same;
    EXPECT_FALSE(hide_layout_attributes(message));
    EXPECT_EQ(message, same);
  }
  Bytes plain = gss(1);
  EXPECT_TRUE(hide_layout_attributes(plain));
}

// What looks like a GETATTR, within octets that have all bits of layouts, is data.
TEST(NfsPnfs, DataPassesUnchanged) {
  const Bytes bitmap = words({3, ~0u, ~0u, ~0u});
  const Bytes data =
      opaque(getattr(bitmap) + Bytes(61, std::byte{0xFF}) + getattr(bitmap) + Bytes(40, std::byte{0xFF}));
  const Bytes write = words({38, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 2}) + data;  // stateid, offset, FILE_SYNC4
  const Bytes setxattr = words({73, 0}) + opaque(Bytes(8, std::byte{0xFF})) + data;
  for (const Bytes& operation : {write, setxattr}) {
    const Bytes before = words({22}) + opaque(Bytes(12, std::byte{0xFF})) + operation;
    Bytes call = compound(2, before + getattr(bitmap), 3);
    EXPECT_TRUE(hide_layout_attributes(call));
    EXPECT_EQ(call, compound(2, before + getattr(words({3, ~0u, ~0x40000000u, ~0x17u})), 3));
    EXPECT_FALSE(hide_layout_attributes(call)) << "a second time";
  }
}

// Every prefix, and every word of a Call replaced: only bits of layouts go, and only where a bitmap has them.
TEST(NfsPnfs, NobodyAsksForLayoutsInTruncationAndLies) {
  const Bytes good = compound(1, asking(words({3, kAsked1, kAsked1, kAsked2})), kAsking);
  const Bytes left = compound(1, asking(words({3, kAsked1, kLeft1, kLeft2})), kAsking);
  const auto check = [&](const Bytes& before) {
    Bytes call = before;
    const bool hidden = hide_layout_attributes(call);
    EXPECT_EQ(hidden, call != before);
    for (std::size_t i = 0; i < call.size(); ++i) {
      const std::byte layouts = good[i] & ~left[i];
      EXPECT_EQ(call[i] & ~before[i], std::byte{0}) << i;
      EXPECT_EQ((before[i] & ~call[i]) & ~layouts, std::byte{0}) << i;
    }
  };
  for (std::size_t n = 0; n <= good.size(); ++n)
    check(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)));
  for (std::size_t at = 0; at + 4 <= good.size(); at += 4) {
    for (const std::uint32_t lie : {0u, 1u, 2u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
      Bytes message = good;
      store_be<std::uint32_t>(MutBytes(message).subspan(at, 4), lie);
      check(message);
    }
  }
}

// Every prefix, and every word of a message replaced: nothing outside the flags changes, nothing outside is touched.
TEST(NfsPnfs, SurvivesTruncationAndLies) {
  const Bytes call = compound(1, words({24}) + exchange_id_arguments(), 2);
  const Bytes good = reply(words({24, 0}) + exchange_id_result(kMds), 2);
  for (std::size_t n = 0; n <= good.size(); ++n) {
    Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
    const Bytes before = cut;
    const bool hidden = hide_layouts(cut);
    EXPECT_EQ(hidden, cut != before);
  }
  for (std::size_t n = 0; n < call.size(); ++n) (void)has_exchange_id(ConstBytes(call).first(n));
  for (std::size_t at = 0; at + 4 <= good.size(); at += 4) {
    for (const std::uint32_t lie : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
      Bytes message = good;
      store_be<std::uint32_t>(MutBytes(message).subspan(at, 4), lie);
      const Bytes before = message;
      const bool hidden = hide_layouts(message);
      EXPECT_EQ(hidden, message != before);
      if (at + 4 > call.size()) continue;
      Bytes other = call;
      store_be<std::uint32_t>(MutBytes(other).subspan(at, 4), lie);
      (void)has_exchange_id(other);
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
