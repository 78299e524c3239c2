#include "iwarp/gateway/record_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "tests/support/hex.h"

namespace iwarp::gateway {
namespace {

using test::Bytes;
using test::hex;
using test::operator+;
using test::pattern;
using State = RecordReader::State;

// One fragment: its mark and its content.
Bytes fragment(const Bytes& content, bool last) {
  const auto n = static_cast<std::uint32_t>(content.size()) | (last ? 0x80000000U : 0U);
  return Bytes{std::byte(n >> 24), std::byte(n >> 16 & 0xFF), std::byte(n >> 8 & 0xFF), std::byte(n & 0xFF)} + content;
}

// `content` cut into fragments of at most `step` bytes.
Bytes fragmented(const Bytes& content, std::size_t step) {
  Bytes out;
  for (std::size_t at = 0; at < content.size(); at += step) {
    const std::size_t n = std::min(step, content.size() - at);
    const auto begin = content.begin() + static_cast<std::ptrdiff_t>(at);
    out = out + fragment(Bytes(begin, begin + static_cast<std::ptrdiff_t>(n)), at + n == content.size());
  }
  return out;
}

// The owner of a reader: lends exactly as much as is asked for, so that any write beyond it is seen by ASan.
class Owner {
 public:
  explicit Owner(const RecordOptions& options = {}) : reader(options) {}

  // Feeds at most `chunk` bytes at a time, as a socket would, for as long as the reader takes any.
  std::size_t feed(const Bytes& stream, std::size_t chunk = SIZE_MAX) {
    std::size_t at = 0;
    while (at < stream.size()) {
      const auto buffers = reader.rx_buffers();
      if (buffers.empty()) break;
      std::size_t n = 0;
      for (const MutBytes b : buffers) {
        const std::size_t part = std::min({b.size(), stream.size() - at - n, chunk - n});
        std::memcpy(b.data(), stream.data() + at + n, part);
        n += part;
      }
      EXPECT_GT(n, 0U) << "a receiving reader must offer room";
      if (n == 0) break;
      reader.rx_commit(n);
      at += n;
      ++reads;
      serve();
    }
    return at;
  }

  void serve() {
    for (;;) {
      if (reader.state() == State::kNeedBuffer) {
        EXPECT_EQ(buffer, nullptr) << "asked for a second one";
        buffer = std::make_unique<Bytes>(reader.wanted_bytes());
        ++buffers_given;
        reader.give_buffer(*buffer);
      } else if (reader.state() == State::kRecord) {
        records.emplace_back(reader.record().begin(), reader.record().end());
        buffer.reset();
        reader.next();
      } else {
        return;
      }
    }
  }

  RecordReader reader;
  std::unique_ptr<Bytes> buffer;
  std::vector<Bytes> records;
  int reads = 0;
  int buffers_given = 0;
};

TEST(RecordReader, DecodesAnAnnotatedCall) {
  // last fragment, 16 bytes | xid | CALL | RPC version 2 | program 100003
  Owner o;
  o.feed(hex("80000010 | 01020304 00000000 00000002 000186a3"));
  ASSERT_EQ(o.records.size(), 1U);
  EXPECT_EQ(o.records[0], hex("01020304 00000000 00000002 000186a3"));
  EXPECT_FALSE(o.reader.rx_end());
}

TEST(RecordReader, EveryPrefixOfARecordNeedsMore) {
  const Bytes stream = fragmented(pattern(40), 13);
  for (std::size_t n = 0; n < stream.size(); ++n) {
    Owner o;
    EXPECT_EQ(o.feed(Bytes(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(n))), n);
    EXPECT_TRUE(o.records.empty()) << n;
    EXPECT_EQ(o.reader.state(), State::kReceiving) << n;
    const auto ended = o.reader.rx_end();
    EXPECT_EQ(ended.has_value(), n > 0) << n;
    if (ended) {
      EXPECT_EQ(ended->code, Errc::kConnectionLost);
    }
  }
}

TEST(RecordReader, EveryFragmentationGivesTheSameRecord) {
  const Bytes content = pattern(61);
  for (std::size_t step = 1; step <= content.size(); ++step) {
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}, SIZE_MAX}) {
      Owner o;
      o.feed(fragmented(content, step), chunk);
      ASSERT_EQ(o.records, std::vector<Bytes>{content}) << "fragments of " << step << ", reads of " << chunk;
      EXPECT_FALSE(o.reader.rx_end());
    }
  }
}

TEST(RecordReader, StreamCutAtEveryByteGivesTheSameRecords) {
  const std::vector<Bytes> expected = {pattern(8), pattern(33, 5), pattern(100, 9), pattern(12, 1)};
  const Bytes stream = fragmented(expected[0], 3) + fragmented(expected[1], 33) + fragmented(expected[2], 47) +
                       fragment({}, false) + fragment(expected[3], false) + fragment({}, true);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    Owner o({.read_ahead_bytes = 32});
    const auto middle = stream.begin() + static_cast<std::ptrdiff_t>(cut);
    o.feed(Bytes(stream.begin(), middle));
    o.feed(Bytes(middle, stream.end()));
    ASSERT_EQ(o.records, expected) << cut;
  }
}

TEST(RecordReader, RandomStreamsSurviveRandomChunks) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  auto up_to = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(1, n)(random); };
  for (int round = 0; round < 50; ++round) {
    std::vector<Bytes> expected;
    Bytes stream;
    for (int i = 0; i < 20; ++i) {
      expected.push_back(pattern(7 + up_to(3000), static_cast<unsigned>(i)));
      stream = stream + fragmented(expected.back(), up_to(4000));
    }
    Owner o({.read_ahead_bytes = up_to(600)});
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t n = std::min(up_to(2000), stream.size() - at);
      const auto begin = stream.begin() + static_cast<std::ptrdiff_t>(at);
      ASSERT_EQ(o.feed(Bytes(begin, begin + static_cast<std::ptrdiff_t>(n))), n);
      at += n;
    }
    ASSERT_EQ(o.records, expected) << "seed " << seed;
  }
}

TEST(RecordReader, OneReadTakesManySmallRecords) {
  Bytes stream;
  for (unsigned i = 0; i < 100; ++i) stream = stream + fragment(pattern(32, i), true);
  Owner o;
  o.feed(stream);
  EXPECT_EQ(o.records.size(), 100U);
  EXPECT_EQ(o.reads, 1);
}

TEST(RecordReader, LargeRecordIsReadStraightIntoItsBuffer) {
  const Bytes content = pattern(1 << 20);
  const Bytes stream = fragment(content, true);
  Owner o({.read_ahead_bytes = 64});
  o.feed(Bytes(stream.begin(), stream.begin() + 64));
  const auto buffers = o.reader.rx_buffers();
  ASSERT_EQ(buffers.size(), 2U);
  EXPECT_EQ(buffers[0].data(), o.buffer->data() + 60);
  EXPECT_EQ(buffers[0].size(), content.size() - 60);
  EXPECT_EQ(buffers[1].size(), 64U) << "the next header comes with the same read";
  o.feed(Bytes(stream.begin() + 64, stream.end()) + fragment(pattern(8), true));
  EXPECT_EQ(o.records, (std::vector<Bytes>{content, pattern(8)}));
  EXPECT_EQ(o.reads, 2);
  EXPECT_EQ(o.buffers_given, 2);
}

TEST(RecordReader, OneBufferIsForAllFragments) {
  Owner o;
  Bytes room(RecordOptions{}.max_record_bytes);
  EXPECT_EQ(o.reader.rx_buffers().size(), 1U);
  o.reader.rx_commit(0);
  const Bytes stream = fragmented(pattern(50), 7);
  std::memcpy(o.reader.rx_buffers()[0].data(), stream.data(), stream.size());
  o.reader.rx_commit(stream.size());
  ASSERT_EQ(o.reader.state(), State::kNeedBuffer);
  EXPECT_EQ(o.reader.wanted_bytes(), RecordOptions{}.max_record_bytes) << "nobody knows how many fragments follow";
  o.reader.give_buffer(room);
  ASSERT_EQ(o.reader.state(), State::kRecord);
  EXPECT_EQ(o.reader.record().data(), room.data());
  EXPECT_EQ(Bytes(o.reader.record().begin(), o.reader.record().end()), pattern(50));
}

// Fragments that may be empty say nothing of what follows.
TEST(RecordReader, EmptyFragmentsAskForNoBuffer) {
  RecordReader reader({});
  const Bytes stream = fragment({}, false) + fragment(pattern(9), true);
  std::memcpy(reader.rx_buffers()[0].data(), stream.data(), stream.size());
  reader.rx_commit(stream.size());
  ASSERT_EQ(reader.state(), State::kNeedBuffer);
  EXPECT_EQ(reader.wanted_bytes(), 9U);
}

TEST(RecordReader, ReadsNothingWhileItWaitsForItsOwner) {
  RecordReader reader({});
  const Bytes stream = fragment(pattern(8), true) + fragment(pattern(9), true);
  std::memcpy(reader.rx_buffers()[0].data(), stream.data(), stream.size());
  reader.rx_commit(stream.size());
  ASSERT_EQ(reader.state(), State::kNeedBuffer);
  EXPECT_TRUE(reader.rx_buffers().empty());
  EXPECT_TRUE(reader.rx_end());
  Bytes room(16);
  reader.give_buffer(room);
  ASSERT_EQ(reader.state(), State::kRecord);
  EXPECT_TRUE(reader.rx_buffers().empty());
  reader.next();
  EXPECT_EQ(reader.state(), State::kNeedBuffer) << "the second record was read with the first";
  EXPECT_EQ(reader.wanted_bytes(), 9U);
}

TEST(RecordReader, RefusesHostileLengths) {
  const RecordOptions options{.max_record_bytes = 100, .max_empty_fragments = 3};
  const struct {
    const char* name;
    Bytes stream;
    Errc error;
  } cases[] = {
      {"one byte too long", hex("80000065"), Errc::kRecordTooLong},
      {"longest possible fragment", hex("ffffffff"), Errc::kRecordTooLong},
      {"longest possible, not the last", hex("7fffffff"), Errc::kRecordTooLong},
      {"too long in sum", fragment(pattern(60), false) + hex("80000029"), Errc::kRecordTooLong},
      {"sum that would wrap 32 bits", fragment(pattern(60), false) + hex("ffffffff"), Errc::kRecordTooLong},
      {"too long in sum, more to come", fragment(pattern(100), false) + hex("00000001"), Errc::kRecordTooLong},
      {"empty record", hex("80000000"), Errc::kRecordTooShort},
      {"no direction", fragment(pattern(7), true), Errc::kRecordTooShort},
      {"too short in sum", fragment(pattern(3), false) + fragment(pattern(4), true), Errc::kRecordTooShort},
      {"empty after all", hex("00000000 80000000"), Errc::kRecordTooShort},
      {"empty fragments at the beginning", hex("00000000 00000000 00000000 00000000"), Errc::kEmptyFragments},
      {"empty fragments between", hex("00000000 00000000") + fragment(pattern(8), false) + hex("00000000 00000000"),
       Errc::kEmptyFragments},
      {"something else: an HTTP request", hex("47455420 2f204854 54502f31"), Errc::kRecordTooLong},
  };
  for (const auto& c : cases) {
    for (const std::size_t chunk : {std::size_t{1}, SIZE_MAX}) {
      Owner o(options);
      o.feed(c.stream, chunk);
      ASSERT_EQ(o.reader.state(), State::kError) << c.name;
      EXPECT_EQ(o.reader.error().code, c.error) << c.name;
      EXPECT_TRUE(o.reader.rx_buffers().empty()) << c.name;
      EXPECT_TRUE(o.records.empty()) << c.name;
      ASSERT_TRUE(o.reader.rx_end()) << c.name;
      EXPECT_EQ(o.reader.rx_end()->code, c.error) << c.name;
    }
  }
}

TEST(RecordReader, AcceptsTheLimitsThemselves) {
  Owner o({.max_record_bytes = 100, .max_empty_fragments = 3});
  o.feed(fragment(pattern(8), true) + fragment(pattern(100), true) + hex("00000000 00000000") +
         fragment(pattern(99), false) + hex("00000000") + fragment(pattern(1, 99 * 7), true) +
         // empty fragments are counted for each record anew; the last one may be empty
         hex("00000000 00000000") + fragment(pattern(8), false) + hex("80000000"));
  EXPECT_EQ(o.reader.state(), State::kReceiving);
  EXPECT_EQ(o.records, (std::vector<Bytes>{pattern(8), pattern(100), pattern(100), pattern(8)}));
}

TEST(RecordReader, GoodRecordsBeforeABadOneAreDelivered) {
  Owner o;
  o.feed(fragment(pattern(20), true) + hex("80000001 00"));
  EXPECT_EQ(o.records.size(), 1U);
  EXPECT_EQ(o.reader.state(), State::kError);
}

}  // namespace
}  // namespace iwarp::gateway
