#include "iwarp/trace/compound_view.h"

#include <gtest/gtest.h>

#include "iwarp/rpcrdma/padding.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "tests/rpcrdma/wire_vectors.h"

namespace iwarp::trace {
namespace {

using test::Bytes;
using test::Xdr;

constexpr std::size_t kArguments = 40, kResults = 24;  // of test::nfs_call(), test::nfs_reply()

// SEQUENCE, PUTFH, WRITE of 5 octets, GETATTR.
Xdr write_call(bool with_data) {
  Xdr x = test::compound_call(4);
  x.w(53).fill(16).words({1, 0, 0, 0}).w(22).opaque(20).w(38).fill(16).d(0).w(2).w(5);
  if (with_data) x.fill(5).pad();
  return x.w(9).words({1, 0x18});
}

// SEQUENCE, PUTFH, READ of 5 octets, GETATTR.
Xdr read_reply(bool with_data) {
  Xdr x = test::compound_reply(4);
  x.w(53).w(0).fill(16).words({1, 0, 0, 0, 0}).w(22).w(0).w(25).w(0).w(1).w(5);
  if (with_data) x.fill(5).pad();
  return x.w(9).w(0).words({1, 0x18}).opaque(8);
}

CompoundView call_view(ConstBytes message, std::vector<std::uint32_t> positions = {}) {
  return view_compound_call(message, kArguments, false, {.read_positions = std::move(positions)});
}

TEST(CompoundView, CallInLine) {
  const CompoundView v = call_view(write_call(true).bytes());
  EXPECT_EQ(v.ops_list(false), "[SEQUENCE PUTFH WRITE GETATTR]");
  EXPECT_EQ(v.minor_version, 1U);
  EXPECT_EQ(v.tag->size(), 3U);
  EXPECT_EQ(v.main_op(false), 38U);
}

TEST(CompoundView, DataOfACallInAReadChunk) {
  const Xdr call = write_call(false);
  const auto position = static_cast<std::uint32_t>(call.size() - 12);
  EXPECT_EQ(call_view(call.bytes(), {position}).ops_list(false), "[SEQUENCE PUTFH WRITE GETATTR]");
  EXPECT_NE(call_view(call.bytes(), {position + 4}).ops_list(false), "[SEQUENCE PUTFH WRITE GETATTR]");
}

TEST(CompoundView, SymbolicLinkInAReadChunk) {
  Xdr x = test::compound_call(2);
  x.w(6).w(5).w(9);
  const auto position = static_cast<std::uint32_t>(x.size());
  x.opaque(4).words({0, 0}).w(10);  // name, attributes, GETFH
  EXPECT_EQ(call_view(x.bytes(), {position}).ops_list(false), "[CREATE GETFH]");
}

TEST(CompoundView, ReplyWithDataInAWriteChunk) {
  EXPECT_EQ(view_compound_reply(read_reply(true).bytes(), kResults, false, {}).ops_list(false),
            "[SEQUENCE PUTFH READ GETATTR]");
  EXPECT_EQ(view_compound_reply(read_reply(false).bytes(), kResults, false, {.write_chunks = {true}}).ops_list(false),
            "[SEQUENCE PUTFH READ GETATTR]");
  // An empty chunk: the data is in line.
  EXPECT_EQ(view_compound_reply(read_reply(true).bytes(), kResults, false, {.write_chunks = {false}}).ops_list(false),
            "[SEQUENCE PUTFH READ GETATTR]");
}

// Of the draft of 2005: Positions count the whole message, those behind each other as well.
TEST(CompoundView, ReplyWithDataInReadChunks) {
  Xdr x = test::compound_reply(3);
  x.w(25).w(0).w(1).w(6);
  const auto first = static_cast<std::uint32_t>(x.size());
  x.w(25).w(0).w(1).w(100);
  const auto second = static_cast<std::uint32_t>(x.size() + 8);
  x.w(9).w(0).words({1, 0x18}).opaque(8);
  const auto seen = [&](std::vector<std::uint32_t> positions) {
    return view_compound_reply(x.bytes(), kResults, false, {.read_positions = std::move(positions)}).ops_list(false);
  };
  EXPECT_EQ(seen({first, second}), "[READ READ GETATTR]");
  EXPECT_NE(seen({first, second - 8}), "[READ READ GETATTR]");
  EXPECT_NE(seen({}), "[READ READ GETATTR]");
}

TEST(CompoundView, PaddedData) {
  constexpr std::size_t kHeader = 36;
  const auto add = [](Xdr& x, std::size_t n) {  // its octets are not zero, and so are no operations
    x.w(static_cast<std::uint32_t>(n));
    if (n > 512) x.fill(rpcrdma::pad_octets(kHeader + x.size(), 256));
    x.fill(n).pad();
  };
  const DataPlaces places{.padding = {256, 512}, .header_bytes = kHeader};
  Xdr reply = test::compound_reply(4), call = test::compound_call(4);
  for (const std::size_t n : {513, 512, 1000}) {
    add(reply.w(25).w(0).w(1), n);
    add(call.w(38).words({0, 0, 0, 0}).d(0).w(2), n);
  }
  reply.w(10).w(0).opaque(8);
  call.w(10);
  const CompoundView seen = view_compound_reply(reply.bytes(), kResults, false, places);
  EXPECT_EQ(seen.ops_list(false), "[READ READ READ GETFH]");
  EXPECT_EQ(view_compound_call(call.bytes(), kArguments, false, places).ops_list(false), "[WRITE WRITE WRITE GETFH]");
  EXPECT_NE(view_compound_reply(reply.bytes(), kResults, false, {}).ops_list(false), "[READ READ READ GETFH]");
  for (std::size_t n = kArguments; n < call.size(); ++n) {
    const auto cut = ConstBytes(call.bytes()).first(n);
    EXPECT_LE(view_compound_call(cut, kArguments, false, places).ops.size(), 4U);
  }
}

TEST(CompoundView, FailedOperationIsTheLast) {
  const Xdr x = test::compound_reply(2, 2).w(22).w(0).w(15).w(2);
  const CompoundView v = view_compound_reply(x.bytes(), kResults, false, {});
  EXPECT_EQ(v.status, 2U);
  EXPECT_EQ(v.ops_list(false), "[PUTFH LOOKUP]");
}

TEST(CompoundView, Callbacks) {
  Xdr x = test::nfs_call(1, 1, 0x40000000).opaque(0).w(1).w(7).w(2);  // tag, minor version, ident, count
  x.w(11).fill(16).words({1, 0, 0, 0}).w(1).fill(16).w(1).words({3, 4}).w(4).fill(16).w(0).opaque(20);
  const CompoundView call = view_compound_call(x.bytes(), kArguments, true, {});
  EXPECT_EQ(call.ops_list(true), "[CB_SEQUENCE CB_RECALL]");
  EXPECT_EQ(call.main_op(true), 4U);
  const Xdr reply = test::nfs_reply().w(0).opaque(0).w(2).w(11).w(0).fill(16).words({1, 0, 0, 0}).w(4).w(0);
  EXPECT_EQ(view_compound_reply(reply.bytes(), kResults, true, {}).ops_list(true), "[CB_SEQUENCE CB_RECALL]");
}

// Cut at every octet: what is read is a beginning of the whole, and what is missing shows.
TEST(CompoundView, CutAnywhere) {
  const Bytes call = write_call(true).bytes(), reply = read_reply(true).bytes();
  const auto whole = call_view(call).ops, results = view_compound_reply(reply, kResults, false, {}).ops;
  for (std::size_t n = kArguments; n < call.size(); ++n) {
    const Bytes cut(call.begin(), call.begin() + static_cast<std::ptrdiff_t>(n));
    const CompoundView v = call_view(cut);
    ASSERT_LE(v.ops.size(), whole.size());
    EXPECT_TRUE(std::equal(v.ops.begin(), v.ops.end(), whole.begin())) << n;
    EXPECT_EQ(v.count > 0 && v.ops.size() < 4, v.ops_list(false).ends_with("...]")) << n;
  }
  for (std::size_t n = kResults; n < reply.size(); ++n) {
    const Bytes cut(reply.begin(), reply.begin() + static_cast<std::ptrdiff_t>(n));
    const CompoundView v = view_compound_reply(cut, kResults, false, {});
    EXPECT_EQ(v.status.has_value(), n >= kResults + 4);
    ASSERT_LE(v.ops.size(), results.size());
    EXPECT_TRUE(std::equal(v.ops.begin(), v.ops.end(), results.begin())) << n;
  }
}

TEST(CompoundView, LengthsAndCountsAreNotBelieved) {
  EXPECT_FALSE(call_view(test::nfs_call(4, 1).w(0xFFFFFFFF).fill(64).bytes()).tag);
  const CompoundView many = call_view(test::nfs_call(4, 1).w(0).w(1).w(0xFFFFFFFF).w(10).w(10).bytes());
  EXPECT_EQ(many.ops_list(false), "[GETFH GETFH ...]");
  const CompoundView data = call_view(test::nfs_call(4, 1).w(0).w(1).w(2).w(38).fill(28).w(0xFFFFFFFF).w(9).bytes());
  EXPECT_EQ(data.ops_list(false), "[WRITE ...]");
  const CompoundView unknown = call_view(test::nfs_call(4, 1).w(0).w(1).w(2).w(9999).w(9).bytes());
  EXPECT_EQ(unknown.ops_list(false), "[9999 ...]");
}

TEST(CompoundView, MainOperation) {
  const auto main = [](std::vector<std::uint32_t> ops) {
    CompoundView v;
    v.ops = std::move(ops);
    return v.main_op(false);
  };
  EXPECT_EQ(main({}), std::nullopt);
  EXPECT_EQ(main({53}), 53U);
  EXPECT_EQ(main({53, 24, 10, 9}), 10U);
}

}  // namespace
}  // namespace iwarp::trace
