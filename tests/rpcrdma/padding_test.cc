// RDMA_MSGP: pad octets by the sender, and the way back, which leaves the data where they were received.
#include "iwarp/rpcrdma/padding.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "tests/rpcrdma/rpc_samples.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;
using iwarp::test::Xdr;

constexpr std::uint32_t kXid = 0x01020304;
constexpr std::uint32_t kAlign = 4096;
constexpr std::uint32_t kThreshold = 1024;
constexpr std::size_t kSend = 65536;

DdpItems items_of(const Bytes& call) {
  DdpItems out;
  ArgumentWalker walker(call);
  while (const auto item = walker.next()) out.push_back(*item);
  return out;
}
std::optional<PaddedLayout> plan(const Bytes& call, std::uint32_t align = kAlign, std::size_t max = kSend) {
  return plan_padding(call.size(), items_of(call), kMinMsgpHeaderBytes, align, kThreshold, max);
}
Header msgp(const Padding& padding) {
  Header h = header(kXid, Proc::kMsgp);
  h.padding = padding;
  h.draft_2005 = true;
  return h;
}
// The whole Send.
Bytes padded_send(const Bytes& message, const PaddedLayout& layout) {
  Bytes rpc(layout.padded_bytes);
  EXPECT_TRUE(write_padded(message, layout, rpc));
  return encode(msgp(layout.padding), rpc);
}
Bytes rest_of(const Bytes& message, std::size_t offset) {
  return Bytes(message.begin() + static_cast<std::ptrdiff_t>(offset), message.end());
}
// A COMPOUND that writes data of these lengths.
Bytes writes(std::initializer_list<std::size_t> lengths) {
  Xdr out = iwarp::test::compound_call(static_cast<std::uint32_t>(lengths.size()));
  for (const std::size_t n : lengths) out.w(38).words({0, 0, 0, 0}).d(0).w(2).opaque(n);
  return out.bytes();
}

TEST(Padding, PadOctetsStandBetweenCountAndData) {
  COVERS("D2005-3.5-2");
  COVERS("D2005-3.5-4");
  const Bytes data = pattern(2000);
  const Bytes call = write_call(kXid, data);
  const std::size_t head = write_call_head(kXid, 0).size();
  const auto layout = plan(call);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->padding, (Padding{kAlign, kThreshold}));
  const std::size_t pad = kAlign - kMinMsgpHeaderBytes - head;
  EXPECT_EQ(layout->gaps, (SmallVector<Gap, 4>{{head, pad}}));
  const Bytes send = padded_send(call, *layout);
  EXPECT_EQ(send, encode(msgp({kAlign, kThreshold})) + write_call_head(kXid, 2000) + Bytes(pad) + data);
  for (const std::uint32_t at : {0u, 1u, 4u, 4095u, 4096u, 4097u}) {
    EXPECT_LT(pad_octets(at, kAlign), kAlign);
    EXPECT_EQ((at + pad_octets(at, kAlign)) % kAlign, 0u);
  }
  EXPECT_EQ(pad_octets(1, kAlign), kAlign - 1);
}

TEST(Padding, TheReceiverSkipsIt) {
  COVERS("D2005-3.5-5");
  for (const std::uint32_t align : {8u, 64u, 512u, 4096u, 16384u}) {
    for (const Bytes& call : {write_call(kXid, pattern(1025)), write_call(kXid, pattern(4096)), writes({2000}),
                              writes({1500, 7, 3000}), writes({0, 1025, 1026, 1027, 1028, 512})}) {
      const auto layout = plan(call, align, 4 * kSend);
      ASSERT_TRUE(layout) << align;
      Bytes message = rest_of(padded_send(call, *layout), kMinMsgpHeaderBytes);
      const auto unpadded = unpad_call(message, msgp(layout->padding), kMinMsgpHeaderBytes);
      ASSERT_TRUE(unpadded) << align;
      EXPECT_EQ(rest_of(message, unpadded->offset), call);
      EXPECT_EQ(unpadded->gaps, layout->gaps);
    }
  }
}

TEST(Padding, Replies) {
  const Bytes data = pattern(3000);
  const Bytes reply = read_reply(kXid, data);
  const auto binding = ResultBinding::for_call(read_call(kXid, 4096));
  const auto items = binding.items(reply);
  const auto layout = plan_padding(reply.size(), items, kMinMsgpHeaderBytes, 512, kThreshold, kSend);
  ASSERT_TRUE(layout);
  Bytes message = rest_of(padded_send(reply, *layout), kMinMsgpHeaderBytes);
  const auto unpadded = unpad_reply(message, msgp(layout->padding), kMinMsgpHeaderBytes, binding);
  ASSERT_TRUE(unpadded);
  EXPECT_EQ(rest_of(message, unpadded->offset), reply);
  EXPECT_EQ((kMinMsgpHeaderBytes + unpadded->offset + items[0].offset) % 512, 0u);
  // The data were written into a Write chunk: there are none to pad.
  Header h = msgp(layout->padding);
  h.write_list.push_back({{{Stag{1}, 3000, 0}}});
  Bytes reduced = read_reply_head(kXid, 3000);
  EXPECT_EQ(unpad_reply(reduced, h, kMinMsgpHeaderBytes, binding), Unpadded{});
}

// "Exceeds" and "at or above": no data are as long as the threshold that is named, and who receives such data looks.
TEST(Padding, DataOfExactlyTheThreshold) {
  COVERS("D2005-3.5-3");
  COVERS("D2005-3.5-5");
  const Bytes call = write_call(kXid, pattern(kThreshold));
  const auto layout = plan(call);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->padding.threshold, kThreshold - 1);
  EXPECT_EQ(plan(writes({1024, 1023, 1021, 2000}))->padding.threshold, 1022u);
  EXPECT_EQ(plan(write_call(kXid, pattern(kThreshold - 1))), std::nullopt);
  // From others, with padding and without.
  const Bytes padded = rest_of(padded_send(call, *layout), kMinMsgpHeaderBytes);
  for (Bytes message : {padded, call}) {
    const auto unpadded = unpad_call(message, msgp({kAlign, kThreshold}), kMinMsgpHeaderBytes);
    ASSERT_TRUE(unpadded);
    EXPECT_EQ(rest_of(message, unpadded->offset), call);
  }
}

TEST(Padding, BesideReadChunks) {
  // The first of three WRITEs travels as a Read chunk.
  const Bytes whole = writes({1500, 1600, 1700});
  const DdpItems items = items_of(whole);
  Bytes call = Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(items[0].offset)) +
               rest_of(whole, items[0].offset + items[0].padded_length());
  DdpItems in_line;
  ArgumentWalker walker(call);
  (void)walker.next();
  walker.mark_absent();
  while (const auto item = walker.next()) in_line.push_back(*item);
  ASSERT_EQ(in_line.size(), 2u);
  Header h = msgp({});
  h.read_list.push_back({static_cast<std::uint32_t>(items[0].position), {Stag{1}, 1500, 0}});
  const std::size_t header_bytes = h.encoded_size();
  const auto layout = plan_padding(call.size(), in_line, header_bytes, 256, kThreshold, kSend);
  ASSERT_TRUE(layout);
  h.padding = layout->padding;
  Bytes message(layout->padded_bytes);
  ASSERT_TRUE(write_padded(call, *layout, message));
  const auto unpadded = unpad_call(message, h, header_bytes);
  ASSERT_TRUE(unpadded);
  EXPECT_EQ(rest_of(message, unpadded->offset), call);
  EXPECT_EQ(unpadded->gaps, layout->gaps);
}

TEST(Padding, IsLeftOutWhereItIsOfNoUse) {
  const Bytes call = write_call(kXid, pattern(2000));
  EXPECT_EQ(plan(null_call(kXid)), std::nullopt);
  EXPECT_EQ(plan(write_call(kXid, pattern(100))), std::nullopt);
  const std::size_t size = kMinMsgpHeaderBytes + plan(call)->padded_bytes;
  EXPECT_TRUE(plan(call, kAlign, size));
  EXPECT_EQ(plan(call, kAlign, size - 1), std::nullopt);
  EXPECT_EQ(plan(call, kAlign, 20), std::nullopt);
  for (const std::uint32_t align : {0u, 1u, 4u, 6u, 100u, 131072u, 0xFFFFFFFFu})
    EXPECT_EQ(plan(call, align), std::nullopt) << align;
  const DdpItems many(items_of(writes({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 2000})));
  EXPECT_EQ(plan_padding(4000, many, kMinMsgpHeaderBytes, kAlign, kThreshold, kSend), std::nullopt);
  Bytes small(plan(call)->padded_bytes - 1);
  EXPECT_FALSE(write_padded(call, *plan(call), small));
  // A threshold below what other opaque data may have is raised.
  EXPECT_EQ(plan_padding(call.size(), items_of(call), kMinMsgpHeaderBytes, kAlign, 0, kSend)->padding.threshold, 528u);
}

TEST(Padding, HostileMessages) {
  const Bytes call = write_call(kXid, pattern(2000));
  for (const Padding& p : {Padding{0, 1024}, Padding{1, 1024}, Padding{6, 1024}, Padding{4095, 1024}, Padding{4096, 0},
                           Padding{4096, 511}, Padding{0xFFFFFFFF, 0xFFFFFFFF}}) {
    Bytes message = call;
    EXPECT_FALSE(good_padding(p));
    EXPECT_EQ(unpad_call(message, msgp(p), kMinMsgpHeaderBytes), std::nullopt) << p.align << ' ' << p.threshold;
  }
  // Padding that is not there, and the greatest there can be.
  for (const std::uint32_t align : {4096u, 0x80000000u, 0xFFFFFFFCu}) {
    Bytes message = call;
    EXPECT_EQ(unpad_call(message, msgp({align, 512}), kMinMsgpHeaderBytes), std::nullopt) << align;
  }
  // Every cut of a good one.
  const auto layout = plan(call, 512);
  const Bytes good = rest_of(padded_send(call, *layout), kMinMsgpHeaderBytes);
  const std::size_t count_end = items_of(call)[0].offset;
  for (std::size_t n = 0; n < good.size(); ++n) {
    Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
    const auto got = unpad_call(cut, msgp(layout->padding), kMinMsgpHeaderBytes);
    EXPECT_EQ(got.has_value(), n < count_end) << n;  // no count: no item, and it is for the program to complain
  }
  // More padded data than there may be, each of them whole.
  Xdr many = iwarp::test::compound_call(17);
  for (int i = 0; i < 17; ++i) many.w(38).words({0, 0, 0, 0}).d(0).w(2).opaque(516);
  Bytes message = many.bytes();
  EXPECT_EQ(unpad_call(message, msgp({4, 512}), kMinMsgpHeaderBytes), std::nullopt);
  // Padded data behind an operation that nobody knows, a Reply where a Call should be, and other versions of NFS.
  Xdr odd = iwarp::test::compound_call(2);
  odd.w(99).w(38).words({0, 0, 0, 0}).d(0).w(2).opaque(1100);
  Xdr later = iwarp::test::compound_call(1, 9);
  later.w(38).words({0, 0, 0, 0}).d(0).w(2).opaque(1100);
  for (Bytes unknown :
       {odd.bytes(), later.bytes(), read_reply(kXid, pattern(1100)), rpc_call(kXid, 100003, 5, 7) + pattern(1100)}) {
    EXPECT_EQ(unpad_call(unknown, msgp({kAlign, kThreshold}), kMinMsgpHeaderBytes), std::nullopt);
    EXPECT_EQ(unpad_call(unknown, msgp({kAlign, 2048}), kMinMsgpHeaderBytes), Unpadded{}) << "too short for any";
  }
  EXPECT_FALSE(items_to_pad(ArgumentWalker(odd.bytes()))) << "nor is it sent";
  for (const Bytes& asked : {odd.bytes(), later.bytes()}) {
    Bytes reply = read_reply(kXid, pattern(1100));
    EXPECT_EQ(unpad_reply(reply, msgp({kAlign, kThreshold}), kMinMsgpHeaderBytes, ResultBinding::for_call(asked)),
              std::nullopt);
  }
  Bytes call_as_reply = call;
  EXPECT_EQ(unpad_reply(call_as_reply, msgp({kAlign, kThreshold}), kMinMsgpHeaderBytes, ResultBinding::for_call(call)),
            std::nullopt);
  // A length that is beyond any message.
  Bytes liar = write_call_head(kXid, 0xFFFFFFFF) + Bytes(4096);
  EXPECT_EQ(unpad_call(liar, msgp({kAlign, kThreshold}), kMinMsgpHeaderBytes), std::nullopt);
}

TEST(Padding, SurvivesMutation) {
  std::mt19937 random(2005);
  const Bytes call = writes({1500, 7, 3000, 0, 1025});
  const auto layout = plan(call, 512);
  const Bytes good = rest_of(padded_send(call, *layout), kMinMsgpHeaderBytes);
  for (int i = 0; i < 20000; ++i) {
    Bytes message = good;
    if (i % 3 == 0) message.resize(random() % message.size());
    for (std::size_t flips = random() % 4; flips > 0 && !message.empty(); --flips) {
      // Mostly where the counts are.
      const std::size_t at =
          i % 2 == 0 ? random() % message.size() : random() % std::min<std::size_t>(message.size(), 120);
      message[at] ^= static_cast<std::byte>(1u << random() % 8);
    }
    const std::uint32_t align = std::uint32_t{4} << random() % 30;
    const auto got =
        unpad_call(message, msgp({align, 512 + static_cast<std::uint32_t>(random() % 2000)}), random() % 4096);
    if (got) {
      ASSERT_LE(got->offset, message.size());
      ASSERT_LE(got->gaps.size(), kMaxPaddedItems);
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
