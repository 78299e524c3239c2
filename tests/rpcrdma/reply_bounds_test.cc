#include "iwarp/rpcrdma/reply_bounds.h"

#include <gtest/gtest.h>

#include "iwarp/rpcrdma/compound_bound.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using iwarp::test::Bytes;
using iwarp::test::Xdr;
namespace wire = iwarp::test;
namespace samples = rpcrdma::test;

constexpr std::size_t kInline = 4096 - kMinHeaderBytes;  // of an RPC message, where both sides are Linux or iwarp

constexpr std::uint32_t kAccess = 3, kGetattr = 9, kGetfh = 10, kLock = 12, kLookup = 15, kOpen = 18, kPutfh = 22,
                        kRead = 25, kReaddir = 26, kReadlink = 27, kSequence = 53;

Xdr& sequence(Xdr& x) {
  return x.w(kSequence).fill(16).words({1, 2, 3, 0});
}
Xdr& putfh(Xdr& x) {
  return x.w(kPutfh).opaque(28);
}
// What Linux asks for.
Xdr& getattr(Xdr& x) {
  return x.w(kGetattr).words({2, 0x0010011a, 0x00b0a23a});
}
Bytes getattr_call(std::initializer_list<std::uint32_t> bitmap) {
  Xdr x = wire::compound_call(3);
  putfh(sequence(x)).w(kGetattr).w(static_cast<std::uint32_t>(bitmap.size())).words(bitmap);
  return x.bytes();
}
// OPEN by name for reading and writing, without creating.
Xdr& open_file(Xdr& x) {
  return x.w(kOpen).words({0, 3, 0}).d(1).opaque(24).words({0, 0}).opaque(8);
}

TEST(ReplyBounds, KnowsShortReplies) {
  COVERS("RFC8166-8.2.2.2-1");
  COVERS("RFC8166-8.2.2.3-3");
  COVERS("RFC8267-3-2");
  COVERS("RFC8267-3-3");
  COVERS("RFC8267-5.2-3");
  const auto is_short = [](const Bytes& call) {
    return reply_bound(call).value_or(SIZE_MAX) <= kDefaultInlineBytes - kMinHeaderBytes;
  };
  using namespace samples;
  EXPECT_TRUE(is_short(null_call(1)));
  EXPECT_TRUE(is_short(rpc_call(1, 100005, 3, 0)));
  EXPECT_TRUE(is_short(samples::getattr_call(1)));
  EXPECT_TRUE(is_short(write_call(1, iwarp::test::pattern(10))));
  EXPECT_TRUE(is_short(read_call(1, 4)));
  EXPECT_FALSE(is_short(read_call(1, 1024)));
  EXPECT_FALSE(is_short(readdir_call(1)));
  EXPECT_FALSE(is_short(rpc_call(1, kNfs, 3, 5)));
  EXPECT_FALSE(is_short(rpc_call(1, kNfs, 3, 17)));
  EXPECT_FALSE(is_short(rpc_call(1, kNfs, 4, 1)));
  EXPECT_TRUE(is_short(rpc_call(1, kNfs, 2, 17)));
  EXPECT_FALSE(is_short(rpc_call(1, kNfs, 3, 33)));
  EXPECT_FALSE(is_short(rpc_call(1, 100005, 3, 1)));
  EXPECT_FALSE(is_short(rpc_call(1, 100227, 3, 1)));  // NFSACL GETACL
  for (const std::uint32_t service : {1u, 2u, 3u}) {  // RPCSEC_GSS
    EXPECT_EQ(is_short(words({1, 0, 2, kNfs, 3, 1, 6, 20, 1, 0, 1, service, 0, 0, 0})), service == 1);
    EXPECT_FALSE(is_short(words({1, 0, 2, kNfs, 3, 0, 6, 20, 1, 1, 1, service, 0, 0, 0}))) << "makes a context";
  }
  EXPECT_FALSE(is_short(Bytes(10)));
}

TEST(ReplyBounds, RecordedRepliesFit) {
  auto vectors = wire::read_vectors("siw-nfs41.hex");
  vectors.merge(wire::read_vectors("siw-nfs3-nfs40.hex"));
  const auto payload = [](const Bytes& message) {
    return ConstBytes(message).subspan(std::get<ParsedHeader>(Header::parse(message)).payload_offset);
  };
  int bounded = 0, unbounded = 0;
  for (const auto& [name, call] : vectors) {
    if (!name.ends_with("-call")) continue;
    SCOPED_TRACE(name);
    const std::string stem = name.substr(0, name.size() - 5);
    if (!vectors.contains(stem + "-reply")) continue;
    const auto& reply = vectors.at(stem + "-reply");
    const Header header = std::get<ParsedHeader>(Header::parse(reply)).header;
    std::size_t bytes = payload(reply).size();
    for (const auto& chunk : header.write_list) bytes += static_cast<std::size_t>(chunk.length()) + 3;
    if (header.proc == Proc::kNomsg && header.reply_chunk)
      bytes = static_cast<std::size_t>(header.reply_chunk->length());
    const auto bound = reply_bound(payload(call));
    EXPECT_LE(bytes, bound.value_or(SIZE_MAX));
    ++(bound ? bounded : unbounded);
  }
  EXPECT_GE(bounded, 7);
  EXPECT_GE(unbounded, 4);  // READDIR, READLINK, EXCHANGE_ID
}

TEST(ReplyBounds, EveryPrefixOfACallIsJudgedWithoutABound) {
  for (const char* file : {"siw-nfs41.hex", "siw-nfs3-nfs40.hex"}) {
    for (const auto& [name, message] : wire::read_vectors(file)) {
      if (!name.ends_with("-call")) continue;
      SCOPED_TRACE(name);
      const auto parsed = std::get<ParsedHeader>(Header::parse(message));
      const ConstBytes call = ConstBytes(message).subspan(parsed.payload_offset);
      const auto head = RpcCall::parse(call);
      if (!head.ok() || head->version != 4 || head->procedure != 1) continue;
      for (std::size_t n = 0; n < call.size(); ++n) EXPECT_FALSE(reply_bound(call.first(n))) << n;
    }
  }
}

TEST(ReplyBounds, CompoundsOfEveryDayFitInLine) {
  COVERS("RFC8267-6.2-1");
  Xdr stat = wire::compound_call(3);
  getattr(putfh(sequence(stat)));
  Xdr lookup = wire::compound_call(5);
  getattr(putfh(sequence(lookup)).w(kLookup).opaque(255).w(kGetfh));
  Xdr open = wire::compound_call(6);
  getattr(open_file(putfh(sequence(open))).w(kGetfh).w(kAccess).w(0x2d));
  for (const Xdr* call : {&stat, &lookup, &open}) {
    const auto bound = reply_bound(call->bytes());
    ASSERT_TRUE(bound);
    EXPECT_LE(*bound, kInline);
    EXPECT_GT(*bound, 500u);
  }
}

TEST(ReplyBounds, OfReadsFollowTheCount) {
  for (const std::uint32_t count : {0u, 1u, 4096u, 65535u, 1u << 20}) {
    Xdr x = wire::compound_call(3);
    putfh(sequence(x)).w(kRead).fill(16).d(0).w(count);
    const Bytes data(count);
    const std::size_t v4_reply = wire::compound_reply(3).size() + 44 + 8 + 8 + 4 + samples::opaque(data).size();
    const auto v4 = reply_bound(x.bytes());
    const auto v3 = reply_bound(samples::read_call(7, count));
    ASSERT_TRUE(v4 && v3);
    EXPECT_GE(*v4, v4_reply);
    EXPECT_LE(*v4, v4_reply + 400);
    EXPECT_GE(*v3, samples::read_reply(7, data).size() + 84);
    EXPECT_LE(*v3, count + 1024u);
  }
}

TEST(ReplyBounds, WhatHasNoBoundHasNone) {
  for (const auto& bitmap : {std::initializer_list<std::uint32_t>{1u << 12},  // ACL
                             {1u << 24},                                      // fs_locations
                             {0, 1u << (58 - 32)},                            // dacl
                             {0, 0, 1u << (80 - 64)},                         // sec_label
                             {0, 0, 1u << (83 - 64)},                         // not defined when this was written
                             {0, 0, 0, 1}}) {
    EXPECT_FALSE(reply_bound(getattr_call(bitmap)));
  }
  EXPECT_TRUE(reply_bound(getattr_call({0x0010011a, 0x00b0a23a})));
  EXPECT_TRUE(reply_bound(getattr_call({})));
  for (const std::uint32_t op : {kReadlink, 0u, 2u, 33u, 42u, 52u, 61u, 72u, 76u, 10044u}) {
    Xdr x = wire::compound_call(1);
    x.w(op).fill(64);
    EXPECT_FALSE(reply_bound(x.bytes())) << op;
  }
  Xdr later = wire::compound_call(1, 3);  // a minor version that may mean other things
  EXPECT_FALSE(reply_bound(later.w(kGetfh).bytes()));
  EXPECT_FALSE(reply_bound(wire::nfs_call(3, 5).opaque(32).fill(64).bytes()));  // READLINK
  EXPECT_FALSE(reply_bound(wire::nfs_call(4, 1, 100227).bytes()));
  const Bytes gss = Xdr().words({1, 0, 2, 100003, 3, 1, 6, 20, 1, 0, 1, 2, 0, 0, 0}).opaque(32).bytes();
  EXPECT_FALSE(reply_bound(gss));
}

// Whose results are limited by a count of octets in the Call.
TEST(ReplyBounds, OfListsFollowTheCount) {
  COVERS("RFC8267-3-3");
  for (const std::uint32_t count : {0u, 512u, 32768u, 1u << 20}) {
    const Xdr calls[] = {wire::nfs_call(2, 16).fill(32).w(0).w(count),
                         wire::nfs_call(3, 16).opaque(32).d(0).d(0).w(count),
                         wire::nfs_call(3, 17).opaque(32).d(0).d(0).words({count / 8, count}),
                         wire::compound_call(1).w(kReaddir).d(0).d(0).words({count / 8, count, 1, 1}),
                         wire::compound_call(1).w(47).fill(16).words({1, count, 0}),
                         wire::compound_call(1).words({50, 0, 1, 1}).d(0).d(9).d(9).fill(16).w(count),
                         wire::compound_call(1, 2).w(68).fill(16).d(0).w(count),
                         wire::compound_call(1, 2).w(74).d(0).w(count)};
    for (const Xdr& call : calls) {
      const auto bound = reply_bound(call.bytes());
      ASSERT_TRUE(bound) << &call - calls;
      EXPECT_GE(*bound, count + 500u);
      EXPECT_LE(*bound, 2 * std::size_t{count} + 5000);
      EXPECT_FALSE(reply_guess(call.bytes()));
    }
  }
  const auto stateids = reply_bound(wire::compound_call(1).words({55, 3}).fill(48).bytes());
  const auto none = reply_bound(wire::compound_call(1).words({55, 0}).bytes());
  ASSERT_TRUE(stateids && none);
  EXPECT_EQ(*stateids, *none + 12);
  EXPECT_FALSE(reply_bound(wire::compound_call(1).words({55, 4}).fill(48).bytes()));
}

TEST(ReplyBounds, AnUnknownOperationTakesTheBoundAwayAndNothingElse) {
  for (const std::uint32_t op : {76u, 200u, 10044u}) {
    Xdr x = wire::compound_call(4, 2);
    putfh(sequence(x)).w(kRead).fill(16).d(0).w(8192).w(op).fill(40);
    EXPECT_FALSE(reply_bound(x.bytes())) << op;
    EXPECT_EQ(ResultBinding::for_call(x.bytes()).max_items(), 1u) << "what comes before it is known";
  }
}

TEST(ReplyBounds, AreGuessedOnlyForACompoundThatLooks) {
  COVERS("RFC8267-6.2.1-1");
  COVERS("RFC8267-3.1-5");
  const auto asks = [](std::uint32_t minor_version, std::uint32_t operations, const Xdr& before) {
    Xdr x = wire::compound_call(operations, minor_version);
    putfh(x).raw(before.bytes()).w(kGetattr).words({1, 1u << 12});
    return x.bytes();
  };
  const auto guess = reply_guess(asks(0, 2, {}));
  ASSERT_TRUE(guess);
  EXPECT_GT(*guess, 64u * 1024);
  EXPECT_LT(*guess, 66u * 1024);
  EXPECT_TRUE(reply_guess(asks(0, 3, Xdr().w(kLookup).opaque(9))));
  EXPECT_FALSE(reply_guess(asks(1, 2, {})));
  EXPECT_FALSE(reply_guess(asks(0, 3, Xdr().w(28).opaque(9)))) << "REMOVE";
  EXPECT_FALSE(reply_guess(asks(0, 3, Xdr().w(kReadlink))));
  EXPECT_FALSE(reply_guess(asks(0, 3, Xdr().w(200))));
  EXPECT_FALSE(reply_guess(asks(0, 3, {}))) << "an operation is missing";
  Xdr bounded = wire::compound_call(2, 0);
  EXPECT_FALSE(reply_guess(getattr(putfh(bounded)).bytes()));
  Xdr gss = Xdr().words({1, 0, 2, 100003, 4, 1, 6, 20, 1, 0, 1, 1, 0, 0, 0});
  gss.words({0, 0, 1, kGetattr, 1, 1u << 12});
  EXPECT_FALSE(reply_guess(gss.bytes())) << "its verifier covers the xid";
}

// The longest results, laid out by hand.
TEST(ReplyBounds, TheLongestResultsFit) {
  const auto longest = [](std::uint32_t operations) { return wire::compound_reply(operations); };
  {
    Xdr call = wire::compound_call(1);
    call.w(kLock).words({2, 0}).d(0).d(1).words({0}).fill(16).w(0);
    Xdr reply = longest(1);
    reply.w(kLock).w(10010).d(0).d(1).w(2).d(7).opaque(1024);
    const auto bound = reply_bound(call.bytes());
    ASSERT_TRUE(bound);
    EXPECT_GE(*bound, reply.size());
  }
  {
    Xdr call = wire::compound_call(1);
    open_file(call);
    Xdr reply = longest(1);
    reply.w(kOpen).w(0).fill(16).fill(20).w(0).words({3, 1, 2, 3});
    reply.w(2).fill(16).w(0).w(1).d(1).words({0, 0, 0}).opaque(kMaxNameBytes);
    const auto bound = reply_bound(call.bytes());
    ASSERT_TRUE(bound);
    EXPECT_GE(*bound, reply.size());
  }
  {
    const auto bound = reply_bound(getattr_call({0x0018091a, 0x00b0a23a}));
    Xdr reply = longest(3);
    reply.w(kSequence).w(0).fill(36).w(kPutfh).w(0).w(kGetattr).w(0).words({3, 1, 2, 3});
    Xdr values;
    values.w(1).d(1).d(2).d(3).d(4).w(0).opaque(128).d(5).w(6).w(7).opaque(kMaxNameBytes).opaque(kMaxNameBytes);
    values.d(8).d(9).fill(3 * 12).d(10);
    reply.opaque(values.size());
    ASSERT_TRUE(bound);
    EXPECT_GE(*bound, reply.size());
  }
}

TEST(ReplyBounds, HostileCountsMakeNoBound) {
  for (const std::uint32_t count : {0xFFFFFFFFu, 0x40000000u, 1000u}) {
    EXPECT_FALSE(reply_bound(wire::nfs_call(4, 1).opaque(3).w(1).w(count).bytes()));      // operations
    EXPECT_FALSE(reply_bound(wire::nfs_call(4, 1).w(count).w(1).w(0).bytes()));           // tag
    EXPECT_FALSE(reply_bound(wire::compound_call(1).w(kGetattr).w(count).w(0).bytes()));  // bitmap
    EXPECT_FALSE(reply_bound(wire::compound_call(1).w(kPutfh).w(count).w(0).bytes()));    // file handle
  }
  Xdr many = wire::compound_call(3000);
  for (int i = 0; i < 3000; ++i) many.w(kGetfh);
  EXPECT_GT(reply_bound(many.bytes()).value_or(0), 3000u * 140);
}

}  // namespace
}  // namespace iwarp::rpcrdma
