#include "iwarp/rpcrdma/nfs_binding.h"

#include <gtest/gtest.h>

#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using Kind = ResultBinding::Expectation::Kind;
using test::Bytes;
using test::compound_call;
using test::compound_reply;
using test::nfs_call;
using test::nfs_reply;
using test::Xdr;

constexpr std::uint32_t kCreate = 6;
constexpr std::uint32_t kGetattr = 9;
constexpr std::uint32_t kPutfh = 22;
constexpr std::uint32_t kRead = 25;
constexpr std::uint32_t kReadlink = 27;
constexpr std::uint32_t kWrite = 38;

// The only item of a Call; a failure if there is none or more.
DdpItem only_argument(const Bytes& call) {
  ArgumentWalker walker(call);
  const auto item = walker.next();
  EXPECT_TRUE(item);
  EXPECT_EQ(walker.next(), std::nullopt);
  return item.value_or(DdpItem{});
}

void expect_item_at_end(const DdpItem& item, std::size_t length, const Bytes& message, std::size_t behind = 0) {
  EXPECT_EQ(item.length, length);
  EXPECT_EQ(item.offset + (length + 3) / 4 * 4 + behind, message.size());
  EXPECT_EQ(item.position, item.offset);
  EXPECT_TRUE(item.in_message);
}

TEST(NfsBinding, Version2Arguments) {
  COVERS("RFC8267-4-1");
  COVERS("RFC8267-4-2");
  const Bytes write = nfs_call(2, 8).fill(32).words({0, 4096, 0}).opaque(1021).bytes();
  expect_item_at_end(only_argument(write), 1021, write);
  // sattr of 32 octets follows the path.
  const Bytes symlink = nfs_call(2, 13).fill(32).opaque(5).opaque(30).fill(32).bytes();
  expect_item_at_end(only_argument(symlink), 30, symlink, 32);
}

TEST(NfsBinding, Version2Results) {
  COVERS("RFC8267-4-3");
  COVERS("RFC8267-4-4");
  const auto read = ResultBinding::for_call(nfs_call(2, 6).fill(32).words({0, 8192, 0}).bytes());
  ASSERT_EQ(read.max_items(), 1u);
  EXPECT_EQ(read.expectation(0), (ResultBinding::Expectation{Kind::kRead, 8192}));
  const Bytes data = nfs_reply().w(0).fill(68).opaque(777).bytes();
  ASSERT_EQ(read.items(data).size(), 1u);
  expect_item_at_end(read.items(data)[0], 777, data);
  EXPECT_TRUE(read.items(nfs_reply().w(2).bytes()).empty());  // NFSERR_NOENT

  const auto readlink = ResultBinding::for_call(nfs_call(2, 5).fill(32).bytes());
  const Bytes path = nfs_reply().w(0).opaque(9).bytes();
  ASSERT_EQ(readlink.items(path).size(), 1u);
  expect_item_at_end(readlink.items(path)[0], 9, path);
}

TEST(NfsBinding, Version3Arguments) {
  const Bytes write = nfs_call(3, 7).opaque(33).d(0).words({5, 2}).opaque(5).bytes();
  expect_item_at_end(only_argument(write), 5, write);
  // mode set, uid and gid not, size set, atime of the client, mtime of the server.
  const Bytes symlink =
      nfs_call(3, 10).opaque(20).opaque(7).words({1, 0777, 0, 0, 1, 0, 9, 2, 1, 2, 1}).opaque(61).bytes();
  expect_item_at_end(only_argument(symlink), 61, symlink);
}

TEST(NfsBinding, Version3Results) {
  const auto read = ResultBinding::for_call(nfs_call(3, 6).opaque(20).d(1 << 20).w(65536).bytes());
  ASSERT_EQ(read.max_items(), 1u);
  EXPECT_EQ(read.expectation(0).max_bytes, 65536u);
  for (const bool attributes : {false, true}) {
    Xdr reply = nfs_reply().w(0).w(attributes ? 1 : 0);
    if (attributes) reply.fill(84);
    const Bytes bytes = reply.words({10, 1}).opaque(10).bytes();  // count, eof, data
    ASSERT_EQ(read.items(bytes).size(), 1u);
    expect_item_at_end(read.items(bytes)[0], 10, bytes);
  }
  EXPECT_TRUE(read.items(nfs_reply().words({70, 0}).bytes()).empty());  // NFS3ERR_STALE
}

TEST(NfsBinding, OnlyTheNamedItemsAreEligible) {
  COVERS("RFC8267-4-5");
  COVERS("RFC8267-5.2-2");
  COVERS("RFC8166-6.1-5");
  for (std::uint32_t version : {0u, 1u, 2u, 3u, 4u, 5u}) {
    for (std::uint32_t procedure = 0; procedure < 24; ++procedure) {
      const bool item = (version == 2 && (procedure == 8 || procedure == 13)) ||
                        (version == 3 && (procedure == 7 || procedure == 10)) || (version == 4 && procedure == 1);
      const Bytes call = nfs_call(version, procedure).fill(200).bytes();
      if (!item) {
        EXPECT_EQ(ArgumentWalker(call).next(), std::nullopt) << version << ' ' << procedure;
      }
    }
  }
  // NFSACL, MOUNT and the callback program, with a body that would be a v3 WRITE.
  for (const std::uint32_t program : {100227u, 100005u, 0x40000000u}) {
    const Bytes call = nfs_call(3, 7, program).opaque(33).d(0).words({5, 2}).opaque(5).bytes();
    EXPECT_EQ(ArgumentWalker(call).next(), std::nullopt);
    EXPECT_EQ(ResultBinding::for_call(call).max_items(), 0u);
  }
}

TEST(NfsBinding, NothingIsEligibleUnderIntegrityOrPrivacy) {
  COVERS("RFC8166-8.2.2.3-2");
  for (const std::uint32_t service : {1u, 2u, 3u}) {
    Xdr read = Xdr().words({7, 0, 2, kNfsProgram, 3, 6, 6, 20, 1, 0, 1, service, 0, 0, 0});
    const Bytes call = read.opaque(20).d(0).w(100).bytes();
    EXPECT_EQ(ResultBinding::for_call(call).max_items(), service == 1 ? 1u : 0u);
    Xdr write = Xdr().words({7, 0, 2, kNfsProgram, 3, 7, 6, 20, 1, 0, 1, service, 0, 0, 0});
    const Bytes data = write.opaque(20).d(0).words({8, 0}).opaque(8).bytes();
    EXPECT_EQ(ArgumentWalker(data).next().has_value(), service == 1);
  }
}

// PUTFH WRITE CREATE(symlink) GETATTR WRITE.
Bytes busy_compound() {
  Xdr x = compound_call(5);
  x.w(kPutfh).opaque(20);
  x.w(kWrite).fill(16).d(0).w(2).opaque(1001);
  x.w(kCreate).w(5).opaque(33).opaque(4).words({1, 0x30}).opaque(8);
  x.w(kGetattr).words({2, 1, 2});
  x.w(kWrite).fill(16).d(0).w(2).opaque(6);
  return x.bytes();
}

TEST(NfsBinding, CompoundArgumentsInOrder) {
  COVERS("RFC8267-6.1-1");
  COVERS("RFC8267-6.1-2");
  COVERS("RFC8267-6.4.1-1");
  COVERS("RFC8166-3.4.4.3-2");
  COVERS("RFC8166-3.4.4.4-2");
  const Bytes call = busy_compound();
  ArgumentWalker walker(call);
  std::uint32_t ordinal = 0;
  std::vector<DdpItem> items;
  while (const auto item = walker.next()) {
    EXPECT_EQ(item->ordinal, ordinal++);
    EXPECT_TRUE(item->in_message);
    items.push_back(*item);
  }
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].length, 1001u);
  EXPECT_EQ(items[1].length, 33u);
  EXPECT_EQ(items[2].length, 6u);
  EXPECT_EQ(items[2].offset + 8, call.size());

  // Without the first two items' octets the walk gives the same Positions.
  Bytes reduced = call;
  for (const std::size_t i : {1u, 0u}) {
    const auto from = reduced.begin() + static_cast<std::ptrdiff_t>(items[i].offset);
    reduced.erase(from, from + static_cast<std::ptrdiff_t>(items[i].padded_length()));
  }
  ArgumentWalker again(reduced);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto item = again.next();
    ASSERT_TRUE(item);
    EXPECT_EQ(item->position, items[i].position);
    EXPECT_EQ(item->length, items[i].length);
    if (i < 2) again.mark_absent();
  }
  EXPECT_EQ(again.next(), std::nullopt);
}

TEST(NfsBinding, CreateOfOtherTypesHasNoItem) {
  for (const std::uint32_t type : {1u, 2u, 3u, 4u, 6u, 7u}) {
    Xdr x = compound_call(2);
    x.w(kCreate).w(type);
    if (type == 3 || type == 4) x.d(0);
    x.opaque(4).words({1, 0x30}).opaque(8);
    const Bytes call = x.w(kWrite).fill(16).d(0).w(2).opaque(6).bytes();
    expect_item_at_end(only_argument(call), 6, call);
  }
}

// Result of READ: eof, data.
Xdr& read_result(Xdr& x, std::size_t n) {
  return x.words({kRead, 0, 1}).opaque(n);
}

TEST(NfsBinding, CompoundResultsInOrder) {
  COVERS("RFC8267-6.1-3");
  COVERS("RFC8267-6.1-4");
  COVERS("RFC8267-6.4.3-1");
  COVERS("RFC8166-2.2.4.2-1");
  Xdr call = compound_call(5);
  call.w(kPutfh).opaque(20);
  call.w(kRead).fill(16).d(0).w(1000);
  call.w(kReadlink);
  call.w(kRead).fill(16).d(0).w(2000);
  call.w(kGetattr).words({1, 1});
  const auto binding = ResultBinding::for_call(call.bytes());
  ASSERT_EQ(binding.max_items(), 3u);
  EXPECT_EQ(binding.expectation(0), (ResultBinding::Expectation{Kind::kRead, 1000}));
  EXPECT_EQ(binding.expectation(1), (ResultBinding::Expectation{Kind::kReadlink, 0}));
  EXPECT_EQ(binding.expectation(2), (ResultBinding::Expectation{Kind::kRead, 2000}));

  Xdr reply = compound_reply(5);
  reply.words({kPutfh, 0});
  read_result(reply, 999);
  reply.words({kReadlink, 0}).opaque(3);
  read_result(reply, 0);
  reply.words({kGetattr, 0, 1, 1}).opaque(8);
  const DdpItems items = binding.items(reply.bytes());
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].length, 999u);
  EXPECT_EQ(items[1].length, 3u);
  EXPECT_EQ(items[2].length, 0u);
  EXPECT_EQ(items[2].ordinal, 2u);
  EXPECT_EQ(binding.items(reply.bytes(), 1).size(), 1u);

  // First and second item absent, as after RDMA Writes.
  Bytes reduced = reply.bytes();
  for (const std::size_t i : {1u, 0u}) {
    const auto from = reduced.begin() + static_cast<std::ptrdiff_t>(items[i].offset);
    reduced.erase(from, from + static_cast<std::ptrdiff_t>(items[i].padded_length()));
  }
  ResultWalker walker(binding, reduced);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto item = walker.next();
    ASSERT_TRUE(item);
    EXPECT_EQ(item->position, items[i].position);
    if (i < 2) walker.mark_absent();
  }
  EXPECT_EQ(walker.next(), std::nullopt);
}

TEST(NfsBinding, AFailedOperationEndsTheResults) {
  Xdr call = compound_call(2);
  for (int i = 0; i < 2; ++i) call.w(kRead).fill(16).d(0).w(1000);
  const auto binding = ResultBinding::for_call(call.bytes());
  Xdr reply = compound_reply(2, 13);
  read_result(reply, 8);
  reply.words({kRead, 13});
  EXPECT_EQ(binding.items(reply.bytes()).size(), 1u);
}

TEST(NfsBinding, NoMoreItemsThanTheCallAskedFor) {
  const auto binding = ResultBinding::for_call(compound_call(1).w(kReadlink).bytes());
  Xdr reply = compound_reply(2);
  read_result(reply, 8);
  read_result(reply, 8);
  EXPECT_EQ(binding.items(reply.bytes()).size(), 1u);
  EXPECT_TRUE(ResultBinding().items(reply.bytes()).empty());
}

TEST(NfsBinding, UnknownMinorVersionsHaveNoItems) {
  COVERS("RFC8267-7-1");
  for (const std::uint32_t minor : {0u, 1u, 2u, 3u, 9u}) {
    const Bytes call = compound_call(1, minor).w(kRead).fill(16).d(0).w(9).bytes();
    EXPECT_EQ(ResultBinding::for_call(call).max_items(), minor <= 2 ? 1u : 0u);
  }
}

TEST(NfsBinding, ReadPlusIsNotEligible) {
  COVERS("RFC8267-6.1-5");
  COVERS("RFC8166-6.1-5");
  const auto binding = ResultBinding::for_call(compound_call(2, 2).w(68).fill(16).d(0).w(9).w(kReadlink).bytes());
  EXPECT_EQ(binding.max_items(), 1u);
  Xdr reply = compound_reply(2);
  reply.words({68, 0, 1, 2}).w(0).d(0).opaque(11).w(1).d(0).d(5);  // a data and a hole segment
  const Bytes bytes = reply.words({kReadlink, 0}).opaque(4).bytes();
  ASSERT_EQ(binding.items(bytes).size(), 1u);
  expect_item_at_end(binding.items(bytes)[0], 4, bytes);
}

TEST(NfsBinding, ErrorRepliesHaveNoItems) {
  const auto binding = ResultBinding::for_call(compound_call(1).w(kReadlink).bytes());
  EXPECT_TRUE(binding.items(Xdr().words({1, 1, 0, 0, 0, 4}).fill(64).bytes()).empty());  // GARBAGE_ARGS
  EXPECT_TRUE(binding.items(Xdr().words({1, 1, 1, 1, 1}).fill(64).bytes()).empty());     // denied
  EXPECT_TRUE(binding.items({}).empty());
}

}  // namespace
}  // namespace iwarp::rpcrdma
