#include "iwarp/ddp/untagged_receiver.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"

namespace iwarp::ddp {
namespace {

UntaggedHeader segment(std::uint32_t msn, std::uint32_t mo, bool last = true) {
  return UntaggedHeader{.last = last, .msn = Msn{msn}, .mo = mo};
}

// Checks and commits; the message length when it was the last segment.
std::optional<std::uint32_t> take(UntaggedReceiver& r, const UntaggedHeader& h, std::size_t bytes,
                                  std::uint64_t buffer) {
  const auto offset = r.check(h, bytes, buffer);
  EXPECT_TRUE(offset.ok());
  EXPECT_EQ(*offset, h.mo);
  return r.commit(h, bytes);
}

TEST(UntaggedReceiver, FirstMessageHasMsnOne) {
  COVERS("RFC5041-4.3-10");
  COVERS("RFC5041-7.1-5");
  COVERS("RFC5041-7.2-10");
  const UntaggedReceiver r;
  EXPECT_EQ(r.expected(), Msn{1});
  for (const std::uint32_t wrong : {0U, 2U, 0xFFFFFFFFU}) {
    EXPECT_EQ(r.check(segment(wrong, 0), 1, 10).error().tell_peer, (TerminateCode{1, 2, 3})) << wrong;
  }
  EXPECT_TRUE(r.check(segment(1, 0), 1, 10).ok());
}

TEST(UntaggedReceiver, MessageOfSeveralSegments) {
  COVERS("RFC5041-5.4-2");
  COVERS("RFC5041-5.4-6");
  COVERS("RFC5041-5.4-7");
  COVERS("RFC5041-4.3-9");
  COVERS("RFC5040-3.1-7");
  COVERS("RFC5040-3.1-13");
  COVERS("RFC5041-4.1-9");
  COVERS("RFC5041-5.3-7");
  COVERS("RFC5041-5.3-8");
  UntaggedReceiver r;
  EXPECT_EQ(take(r, segment(1, 0, false), 1482, 2048), std::nullopt);
  EXPECT_EQ(take(r, segment(1, 1482), 566, 2048), 2048U);
  EXPECT_EQ(r.expected(), Msn{2});
  EXPECT_EQ(r.check(segment(1, 0), 1, 2048).error().tell_peer, (TerminateCode{1, 2, 3})) << "delivered once";
  EXPECT_EQ(r.check(segment(3, 0), 1, 2048).error().tell_peer, (TerminateCode{1, 2, 3})) << "and in order";
  EXPECT_EQ(take(r, segment(2, 0), 3, 2048), 3U);
}

TEST(UntaggedReceiver, CheckAloneChangesNothing) {
  UntaggedReceiver r;
  EXPECT_TRUE(r.check(segment(1, 0), 5, 10).ok());
  EXPECT_TRUE(r.check(segment(1, 0), 5, 10).ok());
  EXPECT_EQ(r.expected(), Msn{1});
}

TEST(UntaggedReceiver, ZeroLengthMessageUsesUpItsMsn) {
  COVERS("RFC5041-5.2-14");
  UntaggedReceiver r;
  EXPECT_EQ(take(r, segment(1, 0), 0, 0), 0U);
  EXPECT_EQ(r.expected(), Msn{2});
}

TEST(UntaggedReceiver, NoBuffer) {
  COVERS("RFC5041-7.1-2");
  COVERS("RFC5041-7.2-9");
  COVERS("RFC5041-7.1-6");
  COVERS("RFC5041-7.1-10");
  const UntaggedReceiver r;
  EXPECT_EQ(r.check(segment(1, 0), 1, std::nullopt).error().tell_peer, (TerminateCode{1, 2, 2}));
  EXPECT_EQ(r.check(segment(1, 0), 0, std::nullopt).error().tell_peer, (TerminateCode{1, 2, 2}));
  // A wrong MSN is the first thing seen.
  EXPECT_EQ(r.check(segment(2, 0), 1, std::nullopt).error().tell_peer, (TerminateCode{1, 2, 3}));
}

TEST(UntaggedReceiver, OffsetsLeaveNoGapAndDoNotGoBack) {
  COVERS("RFC5041-7.1-3");
  COVERS("RFC5041-7.2-11");
  COVERS("RFC5041-1.2-4");
  UntaggedReceiver r;
  EXPECT_EQ(r.check(segment(1, 4), 1, 100).error().tell_peer, (TerminateCode{1, 2, 4}));
  EXPECT_EQ(r.check(segment(1, 0xFFFFFFFF), 1, 100).error().tell_peer, (TerminateCode{1, 2, 4}));
  (void)take(r, segment(1, 0, false), 10, 100);
  for (const std::uint32_t wrong : {0U, 9U, 11U}) {
    EXPECT_EQ(r.check(segment(1, wrong), 1, 100).error().tell_peer, (TerminateCode{1, 2, 4})) << wrong;
  }
}

TEST(UntaggedReceiver, MessageTooLongForItsBuffer) {
  COVERS("RFC5041-7.1-4");
  COVERS("RFC5041-7.2-12");
  COVERS("RFC5041-1.2-2");
  UntaggedReceiver r;
  EXPECT_EQ(r.check(segment(1, 0), 11, 10).error().tell_peer, (TerminateCode{1, 2, 5}));
  (void)take(r, segment(1, 0, false), 6, 10);
  EXPECT_EQ(r.check(segment(1, 6), 5, 10).error().tell_peer, (TerminateCode{1, 2, 5}));
  EXPECT_TRUE(r.check(segment(1, 6), 4, 10).ok());
  // Octets that fill the buffer exactly, then nothing.
  EXPECT_EQ(take(r, segment(1, 6, false), 4, 10), std::nullopt);
  EXPECT_EQ(take(r, segment(1, 10), 0, 10), 10U);
}

TEST(UntaggedReceiver, SegmentsOfTheNextMessageDoNotMixIn) {
  COVERS("RFC5041-4.3-12");
  UntaggedReceiver r;
  (void)take(r, segment(1, 0, false), 6, 10);
  EXPECT_EQ(r.check(segment(2, 0), 1, 10).error().tell_peer, (TerminateCode{1, 2, 3}));
}

TEST(UntaggedReceiver, MsnWrapsToZero) {
  COVERS("RFC5041-4.3-11");
  // Message after message up to the wrap would take too long: start just before it.
  Msn m{0xFFFFFFFF};
  m.advance();
  EXPECT_EQ(m, Msn{0});
  EXPECT_EQ(Msn{0}.distance_from(Msn{0xFFFFFFFF}), 1);
  UntaggedReceiver r(Msn{0xFFFFFFFF});
  EXPECT_EQ(take(r, segment(0xFFFFFFFF, 0), 1, 10), 1U);
  EXPECT_EQ(r.check(segment(1, 0), 1, 10).error().tell_peer, (TerminateCode{1, 2, 3}));
  EXPECT_EQ(take(r, segment(0, 0), 1, 10), 1U);
  EXPECT_EQ(take(r, segment(1, 0), 1, 10), 1U);
}

}  // namespace
}  // namespace iwarp::ddp
