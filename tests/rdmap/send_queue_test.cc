#include "iwarp/rdmap/send_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/covers.h"

namespace iwarp::rdmap {
namespace {

std::byte memory[64];

SendWr wr(std::uint64_t id, SendOp op = SendOp::kSend) {
  SendWr w;
  w.wr_id = id;
  w.op = op;
  w.sges = Sge{memory, 10, Stag{1}};
  return w;
}
SendWr fenced(SendWr w) {
  w.fence = true;
  return w;
}
SendWr unsignaled(SendWr w) {
  w.signaled = false;
  return w;
}
std::vector<std::uint64_t> polled(SendQueue& q) {
  std::vector<std::uint64_t> ids;
  while (const auto c = q.poll()) ids.push_back(c->wr_id);
  return ids;
}
using Ids = std::vector<std::uint64_t>;

TEST(SgeList, CopiesWhatItHolds) {
  std::array<std::byte, kMaxSge> octets{};
  SgeList full;
  for (std::uint32_t i = 0; i < kMaxSge; ++i) ASSERT_TRUE(full.add({&octets[i], i, Stag{i}}));
  EXPECT_FALSE(full.add({}));
  SgeList list = full;
  ASSERT_EQ(list.view().size(), kMaxSge);
  for (std::uint32_t i = 0; i < kMaxSge; ++i) {
    EXPECT_EQ(list.view()[i].address, &octets[i]);
    EXPECT_EQ(list.view()[i].length, i);
    EXPECT_EQ(list.view()[i].lkey, Stag{i});
  }
  list = Sge{&octets[3], 5, Stag{9}};
  ASSERT_EQ(list.view().size(), 1U);
  EXPECT_EQ(list.view()[0].length, 5U);
  EXPECT_EQ(list.total(), 5U);
  list = SgeList();
  EXPECT_TRUE(list.view().empty());
  EXPECT_EQ(list.total(), 0U);
}

TEST(SendQueue, SendIsDoneWhenItsLastOctetIsSent) {
  COVERS("RFC5040-5.5-21");
  COVERS("RFC5040-5.5-10");
  COVERS("RFC5041-5.4-1");
  SendQueue q(4);
  EXPECT_EQ(q.next(1), nullptr);
  EXPECT_TRUE(q.idle());
  ASSERT_TRUE(q.post(wr(1)));
  EXPECT_FALSE(q.idle());
  ASSERT_EQ(q.next(1)->wr_id, 1U);
  const auto t = q.start();
  EXPECT_EQ(q.next(1), nullptr);
  EXPECT_FALSE(q.poll());
  q.sent(t);
  EXPECT_TRUE(q.idle());
  const auto c = q.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->wr_id, 1U);
  EXPECT_EQ(c->status, Errc::kOk);
  EXPECT_EQ(c->op, WcOp::kSend);
}

TEST(SendQueue, ReadsNeverExceedOrd) {
  COVERS("RFC5040-6.1-9");
  COVERS("RFC6581-4.1-2");
  SendQueue q(8);
  for (std::uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(q.post(wr(i, SendOp::kRead)));
  q.sent(q.start());
  EXPECT_NE(q.next(2), nullptr);
  q.sent(q.start());
  EXPECT_EQ(q.next(2), nullptr) << "two are outstanding";
  EXPECT_NE(q.next(3), nullptr);
  EXPECT_EQ(q.outstanding_reads(), 2U);
  q.read_done();
  EXPECT_EQ(q.next(2)->wr_id, 3U);
  EXPECT_EQ(q.next(0), nullptr);
}

TEST(SendQueue, ReadCountsFromTheMomentItStarts) {
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  ASSERT_TRUE(q.post(wr(2, SendOp::kRead)));
  const auto t = q.start();
  EXPECT_EQ(q.next(1), nullptr);
  // The Response may come before the driver reports that the Request is sent.
  ASSERT_TRUE(q.oldest_read());
  q.read_received(10);
  q.read_done();
  EXPECT_EQ(polled(q), Ids{1});
  q.sent(t);
  EXPECT_EQ(q.outstanding_reads(), 0U);
  EXPECT_EQ(q.next(1)->wr_id, 2U);
}

TEST(SendQueue, ReadThatWasAnsweredBeforeItsRequestWasReportedSentIsDone) {
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  const auto t = q.start();
  q.read_received(10);
  q.read_done();
  q.sent(t);
  EXPECT_EQ(polled(q), Ids{1});
  EXPECT_TRUE(q.idle());
}

TEST(SendQueue, FenceWaitsForAllReads) {
  COVERS("RFC5040-5.5-19");
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  ASSERT_TRUE(q.post(wr(2)));
  ASSERT_TRUE(q.post(fenced(wr(3))));
  q.sent(q.start());
  ASSERT_EQ(q.next(8)->wr_id, 2U) << "not fenced";
  q.sent(q.start());
  EXPECT_EQ(q.next(8), nullptr);
  q.read_done();
  EXPECT_EQ(q.next(8)->wr_id, 3U);
}

TEST(SendQueue, CompletionsComeInPostingOrder) {
  COVERS("RFC5040-5.5-22");
  COVERS("RFC5040-5.5-26");
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  ASSERT_TRUE(q.post(wr(2, SendOp::kWrite)));
  ASSERT_TRUE(q.post(wr(3, SendOp::kRead)));
  for (int i = 0; i < 3; ++i) q.sent(q.start());
  EXPECT_EQ(polled(q), Ids{}) << "the Write waits for the Read before it";
  q.read_done();
  EXPECT_EQ(polled(q), (Ids{1, 2}));
  q.read_done();
  EXPECT_EQ(polled(q), Ids{3});
}

TEST(SendQueue, OldestReadTakesTheOctets) {
  COVERS("RFC5040-5.5-29");
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  ASSERT_TRUE(q.post(wr(2, SendOp::kRead)));
  q.sent(q.start());
  q.sent(q.start());
  q.read_received(4);
  EXPECT_EQ(q.oldest_read()->wr->wr_id, 1U);
  EXPECT_EQ(q.oldest_read()->received, 4U);
  q.read_done();
  EXPECT_EQ(q.oldest_read()->wr->wr_id, 2U);
  EXPECT_EQ(q.oldest_read()->received, 0U);
  q.read_done();
  EXPECT_FALSE(q.oldest_read());
  const auto c = q.poll();
  EXPECT_EQ(c->op, WcOp::kRead);
  EXPECT_EQ(c->byte_len, 10U);
}

// A Read with pieces of 10, 0, 20 and 30 octets.
SendWr list_read(std::uint64_t id) {
  SendWr w = wr(id, SendOp::kRead);
  EXPECT_TRUE(w.sges.add({memory + 10, 0, Stag{2}}));
  EXPECT_TRUE(w.sges.add({memory + 20, 20, Stag{3}}));
  EXPECT_TRUE(w.sges.add({memory + 30, 30, Stag{4}}));
  return w;
}

TEST(SendQueue, ReadOfSeveralPiecesIsSeveralRequestsAndOneCompletion) {
  COVERS("RFC5040-6.1-9");
  COVERS("RFC5040-5.5-20");
  COVERS("RFC5040-5.5-22");
  COVERS("RFC5040-5.5-26");
  SendQueue q(8);
  ASSERT_TRUE(q.post(list_read(1)));
  ASSERT_TRUE(q.post(wr(2)));
  const auto t = q.start();
  EXPECT_EQ(q.part(t).sink, &q.request(t).sges.view()[0]);
  EXPECT_EQ(q.part(t).offset, 0U);
  ASSERT_NE(q.next(2), nullptr);
  EXPECT_EQ(q.next(2)->wr_id, 1U);
  EXPECT_EQ(q.start(), t);
  EXPECT_EQ(q.part(t).sink, &q.request(t).sges.view()[2]);
  EXPECT_EQ(q.part(t).offset, 10U);
  EXPECT_EQ(q.part(t).length(), 20U);
  EXPECT_EQ(q.outstanding_reads(), 2U);
  EXPECT_EQ(q.next(2), nullptr) << "its third Request waits, and what is behind it too";
  q.sent(t);

  EXPECT_EQ(q.oldest_read()->sink, &q.request(t).sges.view()[0]);
  EXPECT_EQ(q.oldest_read()->missing(), 10U);
  q.read_received(10);
  EXPECT_EQ(q.oldest_read()->missing(), 0U);
  q.read_done();
  EXPECT_EQ(q.oldest_read()->sink, &q.request(t).sges.view()[2]);
  EXPECT_EQ(q.oldest_read()->received, 0U);
  q.read_done();
  EXPECT_FALSE(q.oldest_read()) << "all that were sent are answered";
  EXPECT_FALSE(q.poll());
  EXPECT_EQ(q.start(), t);
  EXPECT_EQ(q.part(t).offset, 30U);
  EXPECT_EQ(q.next(2)->wr_id, 2U) << "that was its last Request";
  q.sent(t);
  q.sent(q.start());
  EXPECT_FALSE(q.poll()) << "the Send waits for the Read before it";
  q.read_done();
  const auto c = q.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->byte_len, 60U);
  EXPECT_EQ(polled(q), Ids{2});
  EXPECT_TRUE(q.idle());
}

TEST(SendQueue, FencedReadWaitsForEarlierReadsAndNotForItself) {
  COVERS("RFC5040-5.5-19");
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  ASSERT_TRUE(q.post(fenced(list_read(2))));
  ASSERT_TRUE(q.post(fenced(wr(3))));
  q.sent(q.start());
  EXPECT_EQ(q.next(8), nullptr);
  q.read_done();
  for (int i = 0; i < 3; ++i) {
    ASSERT_NE(q.next(8), nullptr) << i;
    EXPECT_EQ(q.next(8)->wr_id, 2U);
    q.sent(q.start());
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(q.next(8), nullptr) << "a fence behind it waits for each of them: " << i;
    q.read_done();
  }
  EXPECT_EQ(q.next(8)->wr_id, 3U);
}

TEST(SendQueue, ReadThatFailsBetweenItsRequests) {
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  ASSERT_TRUE(q.post(list_read(2)));
  ASSERT_TRUE(q.post(wr(3)));
  q.sent(q.start());
  const auto t = q.start();
  (void)q.start();
  q.read_done();
  q.read_done();  // its first Response
  q.fail(t, Errc::kLocalProtection);
  EXPECT_EQ(q.outstanding_reads(), 0U);
  EXPECT_FALSE(q.oldest_read());
  ASSERT_NE(q.next(8), nullptr);
  EXPECT_EQ(q.next(8)->wr_id, 3U) << "it has no more Requests";
  EXPECT_EQ(q.poll()->status, Errc::kOk);
  EXPECT_EQ(q.poll()->status, Errc::kLocalProtection);
}

TEST(SendQueue, FlushEndsAReadBetweenItsRequests) {
  SendQueue q(8);
  ASSERT_TRUE(q.post(list_read(1)));
  const auto t = q.start();
  q.flush();
  EXPECT_EQ(q.next(8), nullptr);
  EXPECT_FALSE(q.oldest_read());
  q.sent(t);
  EXPECT_EQ(q.poll()->status, Errc::kFlushed);
  EXPECT_FALSE(q.poll());
}

TEST(SendQueue, ReadOfEmptyPiecesIsOneRequest) {
  SendQueue q(8);
  SendWr w = wr(1, SendOp::kRead);
  w.sges = Sge{memory, 0, Stag{1}};
  ASSERT_TRUE(w.sges.add({memory, 0, Stag{1}}));
  ASSERT_TRUE(q.post(w));
  const auto t = q.start();
  EXPECT_EQ(q.part(t).sink, nullptr);
  EXPECT_EQ(q.part(t).length(), 0U);
  EXPECT_EQ(q.next(8), nullptr);
  EXPECT_EQ(q.oldest_read()->sink, nullptr);
  EXPECT_EQ(q.oldest_read()->missing(), 0U);
  q.read_done();
  EXPECT_EQ(q.poll()->byte_len, 0U);
}

TEST(SendQueue, InlineRequestsAreKeptUntilTheyArePolled) {
  SendQueue q(2, 8);
  std::array<std::byte, 8> octets{};
  const auto inlined = [&](std::uint64_t id, std::uint32_t first, std::uint32_t second) {
    octets.fill(std::byte{static_cast<unsigned char>(id)});
    SendWr w = wr(id);
    w.sges = Sge{octets.data(), first, Stag{0xBAD}};
    EXPECT_TRUE(w.sges.add({octets.data() + first, second, Stag{}}));
    w.inline_data = true;
    return w;
  };
  const auto kept = [&](SendQueue::Ticket t, std::uint64_t id, std::size_t length) {
    const auto sges = q.request(t).sges.view();
    ASSERT_EQ(sges.size(), 1U);
    ASSERT_EQ(sges[0].length, length);
    for (std::size_t i = 0; i < length; ++i) EXPECT_EQ(sges[0].address[i], static_cast<std::byte>(id));
  };
  ASSERT_TRUE(q.post(inlined(1, 3, 5)));
  ASSERT_TRUE(q.post(inlined(2, 1, 0)));
  EXPECT_FALSE(q.post(inlined(3, 1, 1))) << "full";
  octets.fill(std::byte{0xEE});
  const auto first = q.start(), second = q.start();
  kept(first, 1, 8);
  kept(second, 2, 1);
  const std::byte* const was = q.request(first).sges.view()[0].address;
  q.sent(first);
  ASSERT_TRUE(q.poll());
  ASSERT_TRUE(q.post(inlined(3, 4, 4)));
  const auto third = q.start();
  kept(second, 2, 1);
  kept(third, 3, 8);
  EXPECT_EQ(q.request(third).sges.view()[0].address, was) << "copies are used again";
  q.sent(second);
  q.sent(third);
  EXPECT_EQ(polled(q), (Ids{2, 3}));

  ASSERT_TRUE(q.post(inlined(4, 0, 0)));
  const auto t = q.start();
  EXPECT_TRUE(q.request(t).sges.view().empty());
  q.sent(t);
  EXPECT_EQ(polled(q), Ids{4});
  for (std::uint64_t id = 5; id < 20; ++id) {
    ASSERT_TRUE(q.post(inlined(id, 2, 2)));
    const auto again = q.start();
    kept(again, id, 4);
    q.sent(again);
    EXPECT_EQ(polled(q), Ids{id});
  }
}

SendWr local_invalidate(std::uint64_t id, Stag stag) {
  SendWr w;
  w.wr_id = id;
  w.op = SendOp::kLocalInvalidate;
  w.local_stag = stag;
  return w;
}

TEST(SendQueue, LocalInvalidateWaitsForEarlierRequestsThatNameItsStag) {
  SendQueue q(8);
  ASSERT_TRUE(q.post(list_read(1)));  // STags 1 to 4
  ASSERT_TRUE(q.post(local_invalidate(2, Stag{9})));
  ASSERT_TRUE(q.post(wr(3)));  // STag 1
  ASSERT_TRUE(q.post(local_invalidate(4, Stag{1})));
  ASSERT_TRUE(q.post(wr(5)));
  for (int i = 0; i < 3; ++i) q.sent(q.start());
  ASSERT_EQ(q.next(8)->wr_id, 2U) << "the Read names other STags";
  q.sent(q.start());
  ASSERT_EQ(q.next(8)->wr_id, 3U);
  const auto send = q.start();
  EXPECT_EQ(q.next(8), nullptr);
  for (int i = 0; i < 3; ++i) q.read_done();
  EXPECT_EQ(q.next(8), nullptr) << "the Send has not left";
  q.sent(send);
  ASSERT_EQ(q.next(8)->wr_id, 4U);
  q.sent(q.start());
  EXPECT_EQ(q.next(8)->wr_id, 5U);
  EXPECT_EQ(q.poll()->wr_id, 1U);
  const auto c = q.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->wr_id, 2U);
  EXPECT_EQ(c->op, WcOp::kLocalInvalidate);
  EXPECT_TRUE(c->invalidated);
  EXPECT_EQ(c->invalidated_stag, Stag{9});
  EXPECT_FALSE(c->silent);
  EXPECT_EQ(c->byte_len, 0U);
}

TEST(SendQueue, FencedLocalInvalidateWaitsForAllReads) {
  COVERS("RFC5040-5.5-19");
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  ASSERT_TRUE(q.post(fenced(local_invalidate(2, Stag{9}))));
  q.sent(q.start());
  EXPECT_EQ(q.next(8), nullptr);
  q.read_done();
  EXPECT_EQ(q.next(8)->wr_id, 2U);
}

TEST(SendQueue, WhatRevokesAnStagIsToldThoughNobodyAsked) {
  SendQueue q(8);
  ASSERT_TRUE(q.post(unsignaled(local_invalidate(1, Stag{9}))));
  ASSERT_TRUE(q.post(unsignaled(wr(2, SendOp::kReadInvalidate))));
  q.sent(q.start());
  q.sent(q.start());
  ASSERT_EQ(q.read_done()->wr_id, 2U);
  for (const Stag stag : {Stag{9}, Stag{1}}) {
    const auto c = q.poll();
    ASSERT_TRUE(c);
    EXPECT_TRUE(c->silent);
    EXPECT_TRUE(c->invalidated);
    EXPECT_EQ(c->invalidated_stag, stag);
  }
  EXPECT_FALSE(q.poll());
}

TEST(SendQueue, FlushedInvalidationsRevokeNothing) {
  SendQueue q(8);
  ASSERT_TRUE(q.post(local_invalidate(1, Stag{9})));
  ASSERT_TRUE(q.post(unsignaled(wr(2, SendOp::kReadInvalidate))));
  q.flush();
  for (int i = 0; i < 2; ++i) {
    const auto c = q.poll();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->status, Errc::kFlushed);
    EXPECT_FALSE(c->invalidated);
    EXPECT_FALSE(c->silent);
  }
}

TEST(SendQueue, UnsignaledSuccessIsSilentAndFreesItsEntry) {
  SendQueue q(2);
  ASSERT_TRUE(q.post(unsignaled(wr(1))));
  ASSERT_TRUE(q.post(wr(2)));
  EXPECT_FALSE(q.post(wr(3)));
  q.sent(q.start());
  q.sent(q.start());
  EXPECT_EQ(polled(q), Ids{2});
  EXPECT_TRUE(q.post(wr(3)));
  EXPECT_TRUE(q.post(wr(4)));
}

// An unsignalled request would otherwise keep its entry until a later one completes: posting must not depend on polling
// then.
TEST(SendQueue, OnlyUnsignaledRequestsNeverFillTheQueueForGood) {
  SendQueue q(2);
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(q.post(unsignaled(wr(i)))) << i;
    q.sent(q.start());
    EXPECT_FALSE(q.poll());
  }
}

TEST(SendQueue, UnsignaledFailureIsTold) {
  SendQueue q(2);
  ASSERT_TRUE(q.post(unsignaled(wr(1))));
  q.fail(q.start(), Errc::kLocalProtection);
  const auto c = q.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->status, Errc::kLocalProtection);
}

TEST(SendQueue, FailedReadIsNotOutstanding) {
  SendQueue q(4);
  ASSERT_TRUE(q.post(wr(1, SendOp::kRead)));
  q.fail(q.start(), Errc::kLocalProtection);
  EXPECT_EQ(q.outstanding_reads(), 0U);
  EXPECT_FALSE(q.oldest_read());
}

TEST(SendQueue, FlushEndsAllThatIsNotDone) {
  COVERS("RFC5040-5.4-9");
  COVERS("RFC5040-6.2.1-2");
  COVERS("RFC5041-6.2.2-4");
  COVERS("RFC5041-3-4");
  SendQueue q(8);
  ASSERT_TRUE(q.post(wr(1)));
  ASSERT_TRUE(q.post(wr(2, SendOp::kRead)));
  ASSERT_TRUE(q.post(unsignaled(wr(3))));
  ASSERT_TRUE(q.post(wr(4)));
  q.sent(q.start());
  q.sent(q.start());
  const auto under_way = q.start();
  q.flush();
  q.sent(under_way);  // its octets may still leave
  EXPECT_EQ(q.next(9), nullptr);
  EXPECT_TRUE(q.idle());
  EXPECT_EQ(q.outstanding_reads(), 0U);
  EXPECT_EQ(q.poll()->status, Errc::kOk);
  for (const std::uint64_t id : {2U, 3U, 4U}) {
    const auto c = q.poll();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->wr_id, id);
    EXPECT_EQ(c->status, Errc::kFlushed);
  }
  q.sent(under_way);  // even when it was polled
  EXPECT_FALSE(q.poll());
}

TEST(SendQueue, APostThatIsFlushedKeepsItsPlace) {
  SendQueue q(4, 16);
  ASSERT_TRUE(q.post(wr(1)));
  SendWr lost = wr(2, SendOp::kRead);
  ASSERT_TRUE(q.post_flushed(lost));
  ASSERT_TRUE(q.post_flushed(unsignaled(wr(3))));
  SendWr copied = wr(4);
  copied.inline_data = true;
  copied.sges = Sge{memory, 8, Stag{}};
  ASSERT_TRUE(q.post_flushed(copied));
  EXPECT_FALSE(q.post_flushed(wr(5))) << "full";
  EXPECT_FALSE(q.poll()) << "behind the first";
  EXPECT_FALSE(q.idle());
  ASSERT_NE(q.next(8), nullptr);
  EXPECT_EQ(q.next(8)->wr_id, 1U);
  q.sent(q.start());
  EXPECT_EQ(q.next(8), nullptr) << "the others are never started";
  EXPECT_TRUE(q.idle());
  EXPECT_EQ(q.poll()->status, Errc::kOk);
  for (std::uint64_t id = 2; id <= 4; ++id) {
    const auto c = q.poll();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->wr_id, id);
    EXPECT_EQ(c->status, Errc::kFlushed);
  }
  // The queue has not taken the memory of the inline request for its own.
  ASSERT_TRUE(q.post(copied));
  EXPECT_NE(q.next(8)->sges.view()[0].address, memory);
}

TEST(SendQueue, ADrainCompletesBehindAllBeforeIt) {
  SendQueue q(3);
  ASSERT_TRUE(q.post(unsignaled(wr(1, SendOp::kRead))));
  ASSERT_TRUE(q.post_drain(2));
  ASSERT_TRUE(q.post(wr(3)));
  EXPECT_FALSE(q.post_drain(4)) << "full";
  EXPECT_EQ(q.posted(), 3U);
  q.sent(q.start());
  ASSERT_NE(q.next(8), nullptr);
  EXPECT_EQ(q.next(8)->wr_id, 3U) << "it is never started";
  q.sent(q.start());
  EXPECT_FALSE(q.poll());
  q.read_done();
  const auto c = q.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->wr_id, 2U);
  EXPECT_EQ(c->op, WcOp::kDrain);
  EXPECT_EQ(c->status, Errc::kOk);
  EXPECT_EQ(q.poll()->op, WcOp::kSend);
  ASSERT_TRUE(q.post(wr(5)));
  q.flush();
  EXPECT_EQ(q.poll()->op, WcOp::kSend) << "the place of a drain is one of any request again";
}

TEST(SendQueue, RefusedReadsDoNotBlockWhatIsBehindThem) {
  SendQueue q(8);
  for (std::uint64_t id = 1; id <= 5; ++id) ASSERT_TRUE(q.post(wr(id, id % 2 == 0 ? SendOp::kSend : SendOp::kRead)));
  EXPECT_TRUE(q.refuse_queued_reads(Errc::kInvalidArgument));
  for (std::uint64_t id : {2, 4}) {
    ASSERT_NE(q.next(0), nullptr);
    EXPECT_EQ(q.next(0)->wr_id, id);
    q.sent(q.start());
  }
  EXPECT_EQ(q.next(0), nullptr);
  for (std::uint64_t id = 1; id <= 5; ++id) {
    const auto c = q.poll();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->wr_id, id);
    EXPECT_EQ(c->status, id % 2 == 0 ? Errc::kOk : Errc::kInvalidArgument);
  }
  EXPECT_TRUE(q.idle());
}

TEST(SendQueue, WrapsAround) {
  SendQueue q(3);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    ASSERT_TRUE(q.post(wr(i)));
    ASSERT_TRUE(q.post(wr(100 + i, SendOp::kRead)));
    q.sent(q.start());
    q.sent(q.start());
    q.read_done();
    EXPECT_EQ(polled(q), (Ids{i, 100 + i}));
  }
}

}  // namespace
}  // namespace iwarp::rdmap
