#include "iwarp/gateway/record_writer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/hex.h"

namespace iwarp::gateway {
namespace {

using test::Bytes;
using test::hex;
using test::operator+;
using test::pattern;

// Sends at most `chunk` bytes at a time until nothing is left.
Bytes drain(RecordWriter& writer, std::size_t chunk = SIZE_MAX) {
  Bytes out;
  for (;;) {
    const auto buffers = writer.tx_buffers();
    if (buffers.empty()) return out;
    std::size_t n = 0;
    for (const ConstBytes b : buffers) {
      EXPECT_FALSE(b.empty());
      const std::size_t part = std::min(b.size(), chunk - n);
      out.insert(out.end(), b.begin(), b.begin() + static_cast<std::ptrdiff_t>(part));
      n += part;
    }
    writer.tx_commit(n);
  }
}

std::vector<std::uint64_t> written(RecordWriter& writer) {
  std::vector<std::uint64_t> ids;
  while (const auto id = writer.poll_written()) ids.push_back(*id);
  return ids;
}

TEST(RecordWriter, PutsTheMarkBeforeThePieces) {
  RecordWriter w({});
  const Bytes a = hex("01020304 00000001");
  const Bytes b = hex("aabbcc");
  const ConstBytes pieces[] = {a, {}, b};
  ASSERT_TRUE(w.add(7, pieces));
  EXPECT_EQ(w.pending_records(), 1U);
  ASSERT_EQ(w.tx_buffers().size(), 3U);
  EXPECT_EQ(w.tx_buffers()[1].data(), a.data()) << "payload is not copied";
  EXPECT_EQ(drain(w), hex("8000000b | 01020304 00000001 aabbcc"));
  EXPECT_TRUE(w.empty());
  EXPECT_EQ(written(w), std::vector<std::uint64_t>{7});
}

TEST(RecordWriter, EveryPartialWriteGivesTheSameStream) {
  const Bytes a = pattern(10), b = pattern(5, 3), c = pattern(17, 9);
  const ConstBytes first[] = {a, b};
  const ConstBytes second[] = {c};
  const ConstBytes third[] = {b, c, a};
  const Bytes expected = hex("8000000f") + a + b + hex("80000011") + c + hex("80000020") + b + c + a;
  for (std::size_t chunk = 1; chunk <= expected.size() + 1; ++chunk) {
    for (const std::size_t gather : {std::size_t{1}, std::size_t{2}, std::size_t{64}}) {
      RecordWriter w({.max_gather = gather});
      ASSERT_TRUE(w.add(1, first));
      ASSERT_TRUE(w.add(2, second));
      ASSERT_TRUE(w.add(3, third));
      ASSERT_EQ(drain(w, chunk), expected) << chunk;
      EXPECT_EQ(written(w), (std::vector<std::uint64_t>{1, 2, 3}));
    }
  }
}

TEST(RecordWriter, ReportsARecordOnlyWhenItsLastByteIsGone) {
  RecordWriter w({});
  const Bytes a = pattern(8);
  const ConstBytes pieces[] = {a};
  ASSERT_TRUE(w.add(1, pieces));
  ASSERT_TRUE(w.add(2, pieces));
  w.tx_commit(11);
  EXPECT_FALSE(w.poll_written());
  w.tx_commit(2);  // the last of the first, the first of the second
  EXPECT_EQ(written(w), std::vector<std::uint64_t>{1});
  EXPECT_EQ(w.pending_records(), 1U);
  ASSERT_TRUE(w.add(3, pieces)) << "adding while a record is partly sent";
  EXPECT_EQ(drain(w), hex("000008") + a + hex("80000008") + a);
  EXPECT_EQ(written(w), (std::vector<std::uint64_t>{2, 3}));
}

TEST(RecordWriter, IsBoundedByRecordsUntilTheyAreCollected) {
  RecordWriter w({.max_records = 2});
  const Bytes a = pattern(8);
  const ConstBytes pieces[] = {a};
  ASSERT_TRUE(w.add(1, pieces));
  ASSERT_TRUE(w.add(2, pieces));
  EXPECT_EQ(w.add(3, pieces).error().code, Errc::kQueueFull);
  EXPECT_EQ(drain(w).size(), 24U);
  EXPECT_EQ(w.add(3, pieces).error().code, Errc::kQueueFull) << "two ids are waiting to be collected";
  EXPECT_EQ(w.poll_written(), 1U);
  EXPECT_TRUE(w.add(3, pieces));
}

TEST(RecordWriter, IsBoundedByPieces) {
  RecordWriter w({.max_pieces = 5});
  const Bytes a = pattern(8);
  const ConstBytes two[] = {a, a};
  const ConstBytes five[] = {a, a, a, a, a};
  EXPECT_EQ(w.add(1, five).error().code, Errc::kInvalidArgument) << "never fits: five and the mark";
  ASSERT_TRUE(w.add(1, two));
  EXPECT_EQ(w.add(2, two).error().code, Errc::kQueueFull);
  EXPECT_EQ(w.pending_records(), 1U);
  EXPECT_EQ(drain(w), hex("80000010") + a + a) << "the refused record left no trace";
  EXPECT_TRUE(w.add(2, two));
}

TEST(RecordWriter, RefusesRecordsThatNoFragmentCanHold) {
  RecordWriter w({});
  EXPECT_EQ(w.add(1, {}).error().code, Errc::kInvalidArgument);
  const ConstBytes empty[] = {{}, {}};
  EXPECT_EQ(w.add(1, empty).error().code, Errc::kInvalidArgument);
  // Lengths only: nothing is read.
  static std::byte byte{};
  const ConstBytes huge[] = {ConstBytes(&byte, 0x7FFFFFFF), ConstBytes(&byte, 1)};
  EXPECT_EQ(w.add(1, huge).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(w.empty());
  ASSERT_TRUE(w.add(1, std::span<const ConstBytes>(huge).first(1)));
  EXPECT_EQ(Bytes(w.tx_buffers()[0].begin(), w.tx_buffers()[0].end()), hex("ffffffff"));
}

}  // namespace
}  // namespace iwarp::gateway
