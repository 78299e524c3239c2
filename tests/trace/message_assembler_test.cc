#include "iwarp/trace/message_assembler.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace iwarp::trace {
namespace {

using ddp::TaggedHeader;
using ddp::UntaggedHeader;
using rdmap::Opcode;

UntaggedHeader untagged(std::uint32_t msn, std::uint32_t mo, bool last, std::uint32_t qn = 0) {
  return {last, 0, 0, qn, Msn{msn}, mo};
}
TaggedHeader tagged(std::uint32_t stag, std::uint64_t to, bool last) {
  return {last, 0, Stag{stag}, to};
}

TEST(MessageAssembler, JoinsTheSegmentsOfASend) {
  MessageAssembler a;
  const test::Bytes data = test::pattern(30);
  const ConstBytes d(data);
  EXPECT_TRUE(a.add(untagged(1, 0, false), Opcode::kSend, d.first(10), 10).empty());
  EXPECT_TRUE(a.add(untagged(1, 10, false), Opcode::kSend, d.subspan(10, 10), 10).empty());
  const auto over = a.add(untagged(1, 20, true), Opcode::kSend, d.subspan(20), 10);
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].head, data);
  EXPECT_EQ(over[0].length, 30U);
  EXPECT_EQ(over[0].segments, 3U);
  EXPECT_EQ(over[0].msn, 1U);
  EXPECT_TRUE(over[0].complete);
  EXPECT_FALSE(over[0].expected_msn);
}

TEST(MessageAssembler, QueuesAndTaggedMessagesMayInterleave) {
  MessageAssembler a;
  EXPECT_TRUE(a.add(untagged(1, 0, false), Opcode::kSend, {}, 4).empty());
  EXPECT_TRUE(a.add(tagged(7, 100, false), Opcode::kWrite, {}, 8).empty());
  EXPECT_TRUE(a.add(tagged(9, 0, false), Opcode::kReadResponse, {}, 2).empty());
  EXPECT_EQ(a.add(untagged(1, 0, true, 1), Opcode::kReadRequest, {}, 28).size(), 1U);
  const auto write = a.add(tagged(7, 108, true), Opcode::kWrite, {}, 8);
  ASSERT_EQ(write.size(), 1U);
  EXPECT_EQ(write[0].stag, Stag{7});
  EXPECT_EQ(write[0].to, 100U);
  EXPECT_EQ(write[0].length, 16U);
  EXPECT_EQ(a.add(tagged(9, 2, true), Opcode::kReadResponse, {}, 2).size(), 1U);
  EXPECT_EQ(a.add(untagged(1, 4, true), Opcode::kSend, {}, 4).size(), 1U);
  EXPECT_TRUE(a.interrupt().empty());
}

TEST(MessageAssembler, ABrokenOffMessageComesFirst) {
  MessageAssembler a;
  EXPECT_TRUE(a.add(tagged(7, 0, false), Opcode::kWrite, {}, 8).empty());
  const auto over = a.add(tagged(7, 9, true), Opcode::kWrite, {}, 1);  // not where the first one ends
  ASSERT_EQ(over.size(), 2U);
  EXPECT_FALSE(over[0].complete);
  EXPECT_EQ(over[0].length, 8U);
  EXPECT_TRUE(over[1].complete);
  EXPECT_EQ(over[1].to, 9U);
}

TEST(MessageAssembler, NotesMsnsThatAreNotDue) {
  MessageAssembler a;
  EXPECT_EQ(a.add(untagged(2, 0, true), Opcode::kSend, {}, 1)[0].expected_msn, 1U);
  EXPECT_FALSE(a.add(untagged(3, 0, true), Opcode::kSend, {}, 1)[0].expected_msn);
  EXPECT_EQ(a.add(untagged(3, 0, true), Opcode::kSend, {}, 1)[0].expected_msn, 4U);
  EXPECT_TRUE(a.interrupt().empty());
  EXPECT_FALSE(a.add(untagged(900, 0, true), Opcode::kSend, {}, 1)[0].expected_msn);
}

TEST(MessageAssembler, MsnsWrap) {
  MessageAssembler a;
  (void)a.add(untagged(0xFFFFFFFF, 0, true), Opcode::kSend, {}, 1);
  EXPECT_FALSE(a.add(untagged(0, 0, true), Opcode::kSend, {}, 1)[0].expected_msn);
}

TEST(MessageAssembler, AMissingBeginningMakesItIncomplete) {
  MessageAssembler a;
  const test::Bytes data = test::pattern(4);
  const auto over = a.add(untagged(1, 8, true), Opcode::kSend, data, 4);
  ASSERT_EQ(over.size(), 1U);
  EXPECT_FALSE(over[0].complete);
  EXPECT_TRUE(over[0].head.empty());
}

TEST(MessageAssembler, InterruptGivesWhatWasUnderWay) {
  MessageAssembler a;
  (void)a.add(tagged(7, 0, false), Opcode::kWrite, {}, 8);
  (void)a.add(untagged(1, 0, false), Opcode::kSend, {}, 5);
  const auto over = a.interrupt();
  ASSERT_EQ(over.size(), 2U);
  EXPECT_FALSE(over[0].complete);
  EXPECT_FALSE(over[1].complete);
}

// Octets behind a gap are counted, but not kept where they do not belong.
TEST(MessageAssembler, KeepsOnlyWhatIsContiguous) {
  MessageAssembler a;
  const test::Bytes data = test::pattern(30);
  (void)a.add(untagged(1, 0, false), Opcode::kSend, ConstBytes(data).first(6), 10);
  const auto over = a.add(untagged(1, 10, true), Opcode::kSend, ConstBytes(data).first(20), 20);
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].head.size(), 6U);
  EXPECT_EQ(over[0].length, 30U);
}

TEST(MessageAssembler, KeepsABoundedNumberOfOctets) {
  MessageAssembler a;
  const test::Bytes data(60000);
  (void)a.add(untagged(1, 0, false), Opcode::kSend, data, data.size());
  const auto over = a.add(untagged(1, 60000, true), Opcode::kSend, data, data.size());
  EXPECT_EQ(over[0].head.size(), Message::kKeepBytes);
  EXPECT_EQ(over[0].length, 120000U);
}

TEST(MessageAssembler, SendWithInvalidateNamesItsStag) {
  MessageAssembler a;
  UntaggedHeader h = untagged(1, 0, true);
  h.rsvd_ulp_tail = 0xabcd;
  EXPECT_EQ(a.add(h, Opcode::kSendInvalidate, {}, 0)[0].stag, Stag{0xabcd});
  h.msn = Msn{2};
  EXPECT_EQ(a.add(h, Opcode::kSend, {}, 0)[0].stag, Stag{0});
}

}  // namespace
}  // namespace iwarp::trace
