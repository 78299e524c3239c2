#include "iwarp/trace/tcp_reassembly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/hex.h"

namespace iwarp::trace {
namespace {

using test::Bytes;

// A stream of octets cut into segments; what comes out as text: '.' for each lost octet, '|' for FIN.
class Stream {
 public:
  explicit Stream(std::uint32_t isn = 1000) : isn_(isn) { r_.on_syn(isn); }
  Stream& segment(std::size_t at, const std::string& text, std::size_t wire = 0, bool fin = false) {
    const auto bytes = std::as_bytes(std::span(text));
    r_.on_segment(static_cast<std::uint32_t>(isn_ + 1 + at), bytes, std::max(wire, text.size()), fin);
    return drain();
  }
  Stream& ack(std::size_t at) {
    r_.on_ack(static_cast<std::uint32_t>(isn_ + 1 + at));
    return drain();
  }
  Stream& other_packets(unsigned n) {
    for (unsigned i = 0; i < n; ++i) r_.on_other_packet();
    return drain();
  }
  Stream& end() {
    r_.on_end();
    return drain();
  }
  Stream& drain() {
    while (const auto item = r_.next()) {
      if (const auto* d = std::get_if<TcpReassembly::Data>(&*item)) {
        for (const std::byte b : d->bytes) out_ += static_cast<char>(b);
      } else if (const auto* l = std::get_if<TcpReassembly::Lost>(&*item)) {
        out_.append(static_cast<std::size_t>(l->bytes), '.');
      } else {
        out_ += '|';
      }
    }
    return *this;
  }
  [[nodiscard]] const std::string& out() const { return out_; }
  TcpReassembly& reassembly() { return r_; }

 private:
  std::uint32_t isn_;
  TcpReassembly r_;
  std::string out_;
};

TEST(TcpReassembly, InOrder) {
  EXPECT_EQ(Stream().segment(0, "abc").segment(3, "de", 0, true).out(), "abcde|");
}

TEST(TcpReassembly, Reordered) {
  EXPECT_EQ(Stream().segment(3, "de").segment(5, "f", 0, true).segment(0, "abc").out(), "abcdef|");
}

TEST(TcpReassembly, RetransmissionsAndOverlaps) {
  Stream s;
  s.segment(0, "abc").segment(0, "abc").segment(1, "bcde").segment(7, "hi").segment(4, "efghij").segment(9, "j");
  EXPECT_EQ(s.out(), "abcdefghij");
  EXPECT_EQ(s.reassembly().repeated_bytes(), 3U + 2 + 1 + 2 + 1);
}

TEST(TcpReassembly, SequenceNumbersWrap) {
  EXPECT_EQ(Stream(0xFFFFFFFD).segment(4, "ef").segment(0, "ab").segment(2, "cd").segment(0, "abcd").out(), "abcdef");
}

TEST(TcpReassembly, SynAgainChangesNothing) {
  Stream s;
  s.segment(0, "ab").reassembly().on_syn(1000);
  EXPECT_EQ(s.segment(2, "cd").out(), "abcd");
  EXPECT_EQ(s.reassembly().syn(), 1000U);
}

TEST(TcpReassembly, AcknowledgedHoleIsLostAfterAWhile) {
  Stream s;
  s.segment(0, "ab").segment(4, "ef").ack(4);
  EXPECT_EQ(s.other_packets(TcpReassembly::kGracePackets - 1).out(), "ab");
  EXPECT_EQ(s.other_packets(1).out(), "ab..ef");
}

TEST(TcpReassembly, AHoleThatIsNotAcknowledgedIsWaitedFor) {
  Stream s;
  s.segment(0, "ab").segment(4, "ef").ack(2).other_packets(1000);
  EXPECT_EQ(s.out(), "ab");
  EXPECT_EQ(s.segment(2, "cd").out(), "abcdef");
}

TEST(TcpReassembly, LateWithinTheGrace) {
  EXPECT_EQ(Stream().segment(2, "cd").ack(4).other_packets(5).segment(0, "ab").out(), "abcd");
}

TEST(TcpReassembly, TooMuchBehindAHole) {
  Stream s;
  std::size_t at = 1;
  const std::string block(10000, 'x');
  while (s.out().empty() && at < 10 * TcpReassembly::kMaxHeldBytes) {
    s.segment(at, block);
    at += block.size();
  }
  EXPECT_EQ(s.out()[0], '.');
  EXPECT_LE(at, TcpReassembly::kMaxHeldBytes + 2 * block.size());
  EXPECT_EQ(s.out().size(), at);
}

// Segments of one octet cost more than that.
TEST(TcpReassembly, ManySmallSegmentsBehindAHole) {
  Stream s;
  std::size_t n = 0;
  while (s.out().empty() && n < TcpReassembly::kMaxHeldBytes) s.segment(1 + 2 * n++, "x");
  EXPECT_LE(n, TcpReassembly::kMaxHeldBytes / 50);
}

TEST(TcpReassembly, SegmentsThatTheCaptureCut) {
  EXPECT_EQ(Stream().segment(0, "ab", 6).segment(6, "gh").segment(8, "", 3, true).out(), "ab....gh...|");
}

TEST(TcpReassembly, EndOfTheCapture) {
  EXPECT_EQ(Stream().segment(0, "ab").segment(4, "ef").end().out(), "ab..ef");
  EXPECT_EQ(Stream().segment(0, "ab").ack(5).end().out(), "ab...");
  EXPECT_EQ(Stream().segment(0, "ab").ack(3).end().out(), "ab");  // that may be a FIN
  EXPECT_EQ(Stream().segment(4, "", 0, true).end().out(), "....|");
}

TEST(TcpReassembly, WithoutSynItStartsWhereDataDoes) {
  TcpReassembly r;
  const std::string text = "ab";
  r.on_segment(77, std::as_bytes(std::span(text)), 2, false);
  ASSERT_TRUE(r.next());
  r.on_segment(70, std::as_bytes(std::span(text)), 2, false);  // older than that
  EXPECT_FALSE(r.next());
  EXPECT_FALSE(r.syn());
}

TEST(TcpReassembly, KeepAlivesAndNonsense) {
  Stream s;
  s.segment(0, "abcd").segment(3, "").segment(3, "d").segment(0x50000000, "zz").ack(0x60000000);
  EXPECT_EQ(s.segment(4, "e").end().out(), "abcde");
}

TEST(TcpReassembly, AnyOrderOfOverlappingSegments) {
  std::mt19937 random(3);
  std::string all(500, ' ');
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>('a' + i % 26);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<std::size_t, std::size_t>> pieces;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t n = 1 + random() % 40;
      const std::size_t begin = at - std::min<std::size_t>(at, random() % 10);
      pieces.emplace_back(begin, std::min(all.size(), at + n) - begin);
      at += n;
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    Stream s(static_cast<std::uint32_t>(random()));
    for (const auto& [at, n] : pieces) s.segment(at, all.substr(at, n));
    ASSERT_EQ(s.out(), all) << round;
  }
}

}  // namespace
}  // namespace iwarp::trace
