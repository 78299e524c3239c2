// The NFS walkers against malformed and malicious messages: no read beyond the message (run under ASan), no work beyond
// its size, no item outside.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "iwarp/rpcrdma/nfs_binding.h"
#include "tests/rpcrdma/wire_vectors.h"

namespace iwarp::rpcrdma {
namespace {

using test::Bytes;
using test::compound_call;
using test::compound_reply;
using test::Xdr;

constexpr std::uint32_t kPutrootfh = 24;
constexpr std::uint32_t kRead = 25;
constexpr std::uint32_t kReaddir = 26;

// The bytes in a heap block of exactly their size, so that ASan sees one octet too many.
struct Exact {
  explicit Exact(ConstBytes bytes) : size(bytes.size()), block(new std::byte[size]) {
    std::copy(bytes.begin(), bytes.end(), block.get());
  }
  [[nodiscard]] ConstBytes get() const { return {block.get(), size}; }
  std::size_t size;
  std::unique_ptr<std::byte[]> block;
};

void expect_items_inside(const DdpItems& items, std::size_t size) {
  for (const DdpItem& item : items) EXPECT_LE(item.offset + item.padded_length(), size);
}

void walk_everything(ConstBytes call, ConstBytes reply, const ResultBinding& binding) {
  const Exact c(call);
  const Exact r(reply);
  ArgumentWalker arguments(c.get());
  for (std::size_t n = 0; const auto item = arguments.next(); ++n) {
    ASSERT_LE(n, call.size() / 4);
    EXPECT_LE(item->offset, call.size());
    if (item->in_message) {
      EXPECT_LE(item->offset + item->padded_length(), call.size());
    }
  }
  const auto own = ResultBinding::for_call(c.get());
  expect_items_inside(own.items(r.get()), reply.size());
  expect_items_inside(binding.items(r.get(), 1000), reply.size());
  Bytes scratch(call.begin(), call.end());
  clamp_back_channel(scratch, 500);
  EXPECT_EQ(scratch.size(), call.size());
}

TEST(NfsBindingHostile, EveryPrefixAndRandomMutationsOfRecordedTraffic) {
  auto vectors = test::read_vectors("siw-nfs41.hex");
  vectors.merge(test::read_vectors("siw-nfs3-nfs40.hex"));
  const auto payload = [&](const std::string& name) {
    const Bytes& m = vectors.at(name);
    std::size_t at = 0;
    while (at + 8 < m.size() &&
           !(at >= 28 && std::equal(m.begin(), m.begin() + 4, m.begin() + static_cast<std::ptrdiff_t>(at))))
      at += 4;
    return Bytes(m.begin() + static_cast<std::ptrdiff_t>(at), m.end());
  };
  std::mt19937 random(5);
  struct Pair {
    std::string call, reply;
  };
  for (const Pair& p :
       {Pair{"v41-read-call", "v41-read-reply"}, Pair{"v3-read-call", "v3-read-reply"},
        Pair{"v41-write-call", "v41-write-reply"}, Pair{"v41-create-session-call", "v41-create-session-reply"}}) {
    SCOPED_TRACE(p.call);
    const Bytes call = payload(p.call);
    const Bytes reply = payload(p.reply);
    const auto binding = ResultBinding::for_call(call);
    for (std::size_t n = 0; n <= call.size(); ++n) walk_everything(ConstBytes(call).first(n), reply, binding);
    for (std::size_t n = 0; n <= reply.size(); ++n) walk_everything(call, ConstBytes(reply).first(n), binding);
    for (int round = 0; round < 5000; ++round) {
      Bytes bad_call = call;
      Bytes bad_reply = reply;
      for (int flips = 0; flips < 3; ++flips) {
        bad_call[random() % call.size()] = static_cast<std::byte>(random() % 4 == 0 ? 0xff : random() % 64);
        bad_reply[random() % reply.size()] = static_cast<std::byte>(random() % 4 == 0 ? 0xff : random() % 64);
      }
      walk_everything(bad_call, bad_reply, binding);
    }
  }
}

TEST(NfsBindingHostile, HugeCountsEndTheWalk) {
  // Number of operations, bitmap, array, opaque, each as large as can be said.
  EXPECT_EQ(ResultBinding::for_call(compound_call(0xffffffff).w(kRead).bytes()).max_items(), 0u);
  EXPECT_EQ(ResultBinding::for_call(compound_call(2).words({9, 0xffffffff, kRead}).fill(28).bytes()).max_items(), 0u);
  EXPECT_EQ(ResultBinding::for_call(compound_call(2).words({55, 0x40000000, kRead}).fill(28).bytes()).max_items(), 0u);
  EXPECT_EQ(ResultBinding::for_call(compound_call(2).words({22, 0xfffffffd, kRead}).fill(28).bytes()).max_items(), 0u);

  const auto binding = ResultBinding::for_call(compound_call(1).w(kRead).fill(28).bytes());
  ASSERT_EQ(binding.max_items(), 1u);
  EXPECT_TRUE(binding.items(compound_reply(0xffffffff).words({kRead, 0, 1}).opaque(8).bytes()).empty());
  for (const std::uint32_t length : {9u, 0x7fffffffu, 0xfffffffcu, 0xfffffffdu, 0xffffffffu}) {
    const Bytes reply = compound_reply(1).words({kRead, 0, 1, length}).fill(8).bytes();
    EXPECT_TRUE(binding.items(reply).empty()) << length;
    ResultWalker walker(binding, reply);
    const auto item = walker.next();
    ASSERT_TRUE(item);
    EXPECT_FALSE(item->in_message);
    EXPECT_EQ(walker.next(), std::nullopt);
  }
}

TEST(NfsBindingHostile, LongCompoundsAndListsTakeLinearTime) {
  Xdr call = compound_call(250000);
  Xdr reply = compound_reply(100000);
  for (int i = 0; i < 249999; ++i) call.w(kPutrootfh);
  for (int i = 0; i < 99999; ++i) reply.words({kPutrootfh, 0});
  const auto binding = ResultBinding::for_call(call.w(27).bytes());
  EXPECT_EQ(binding.max_items(), 1u);
  EXPECT_EQ(binding.items(reply.words({27, 0}).opaque(4).bytes()).size(), 1u);

  // A directory list of 100,000 entries: rpcgen's decoder would recurse as deep.
  Xdr list = compound_reply(2).words({kReaddir, 0}).d(0);
  for (int i = 0; i < 100000; ++i) list.w(1).d(7).opaque(1).words({0, 0});
  EXPECT_EQ(binding.items(list.words({0, 1, 27, 0}).opaque(4).bytes()).size(), 1u);
}

TEST(NfsBindingHostile, UnknownOperationsEndTheWalk) {
  for (const std::uint32_t op : {0u, 1u, 2u, 72u, 76u, 10044u, 0xffffffffu}) {
    const Bytes call = compound_call(3).w(kRead).fill(28).w(op).w(27).bytes();
    EXPECT_EQ(ResultBinding::for_call(call).max_items(), 1u) << op;
    const auto two = ResultBinding::for_call(compound_call(2).w(27).w(27).bytes());
    const Bytes reply = compound_reply(3).words({27, 0}).opaque(4).words({op, 0, 27, 0}).opaque(4).bytes();
    EXPECT_EQ(two.items(reply).size(), 1u) << op;
  }
}

TEST(NfsBindingHostile, ManyItemsAreLimited) {
  Xdr call = compound_call(1000);
  Xdr reply = compound_reply(1000);
  for (int i = 0; i < 1000; ++i) {
    call.w(27);
    reply.words({27, 0}).opaque(1);
  }
  const auto binding = ResultBinding::for_call(call.bytes());
  EXPECT_EQ(binding.max_items(), 1000u);
  EXPECT_EQ(binding.items(reply.bytes()).size(), 16u);
  EXPECT_EQ(binding.items(reply.bytes(), 1000).size(), 1000u);
}

}  // namespace
}  // namespace iwarp::rpcrdma
