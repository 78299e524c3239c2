// What a server keeps until RDMA_DONE, and what a client counts of it.
#include "iwarp/rpcrdma/done_book.h"

#include <gtest/gtest.h>

#include <memory>

#include "iwarp/rpcrdma/credits.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Memory = std::unique_ptr<int>;  // as a Buffer: movable only
using Book = DoneBook<Memory>;

constexpr TimePoint kStart{seconds(1000)};
constexpr std::uint64_t kOne = 1, kOther = 2;  // connections
constexpr DoneOptions kSmall{.max_replies = 2, .max_bytes = 100, .max_replies_of_all = 3, .max_bytes_of_all = 150};

Memory memory(int n) {
  return std::make_unique<int>(n);
}
// Which memory it is; -1: none.
int which(const std::optional<Memory>& m) {
  return m ? **m : -1;
}

TEST(DoneBook, DoneFreesTheReply) {
  COVERS("D2005-2-4");
  COVERS("D2005-3.4-7");
  COVERS("D2005-3.6-4");
  Book book;
  EXPECT_EQ(book.deadline(), std::nullopt);
  book.add(kOne, 7, 1000, memory(70), kStart);
  book.add(kOne, 8, 500, memory(80), kStart);
  EXPECT_EQ(book.replies(), 2u);
  EXPECT_EQ(book.bytes(), 1500u);
  EXPECT_TRUE(book.on_deadline(kStart + seconds(9)).empty()) << "it is kept";
  EXPECT_EQ(which(book.on_done(kOne, 8)), 80);  // in any order
  EXPECT_EQ(which(book.on_done(kOne, 7)), 70);
  EXPECT_EQ(book.replies(), 0u);
  EXPECT_EQ(book.bytes(), 0u);
  EXPECT_EQ(book.deadline(), std::nullopt);
  EXPECT_EQ(book.unknown(), 0u);
}

TEST(DoneBook, DoneThatBelongsToNoReplyFreesNothing) {
  Book book;
  book.add(kOne, 7, 1000, memory(70), kStart);
  EXPECT_EQ(which(book.on_done(kOne, 8)), -1) << "unknown xid";
  EXPECT_EQ(which(book.on_done(kOther, 7)), -1) << "wrong connection";
  EXPECT_EQ(book.replies(), 1u);
  EXPECT_EQ(which(book.on_done(kOne, 7)), 70);
  EXPECT_EQ(which(book.on_done(kOne, 7)), -1) << "twice";
  EXPECT_EQ(book.unknown(), 3u);
  // The same xid on two connections.
  book.add(kOne, 9, 1, memory(91), kStart);
  book.add(kOther, 9, 1, memory(92), kStart);
  EXPECT_EQ(which(book.on_done(kOther, 9)), 92);
  EXPECT_EQ(which(book.on_done(kOne, 9)), 91);
}

TEST(DoneBook, OneDoneForEachOfSeveralRepliesToOneCall) {
  Book book;
  book.add(kOne, 7, 10, memory(1), kStart);
  book.add(kOne, 7, 20, memory(2), kStart + seconds(1));
  EXPECT_EQ(which(book.on_done(kOne, 7)), 1);
  EXPECT_EQ(book.bytes(), 20u);
  EXPECT_EQ(which(book.on_done(kOne, 7)), 2);
}

TEST(DoneBook, WithoutDoneItEndsAfterATime) {
  COVERS("D2005-3.8-6");
  COVERS("D2005-3.8-7");
  Book book({.patience = seconds(2), .late = DoneOptions::Late::kClose});
  EXPECT_EQ(book.options().late, DoneOptions::Late::kClose);
  EXPECT_EQ(DoneOptions().late, DoneOptions::Late::kFree);
  book.add(kOne, 7, 10, memory(1), kStart);
  book.add(kOther, 8, 10, memory(2), kStart + seconds(1));
  EXPECT_EQ(book.deadline(), kStart + seconds(2));
  EXPECT_TRUE(book.on_deadline(kStart + milliseconds(1999)).empty());
  const auto first = book.on_deadline(kStart + seconds(2));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].connection, kOne);
  EXPECT_EQ(first[0].xid, 7u);
  EXPECT_EQ(*first[0].memory, 1);
  EXPECT_EQ(book.deadline(), kStart + seconds(3));
  EXPECT_EQ(which(book.on_done(kOne, 7)), -1) << "too late";
  EXPECT_EQ(book.on_deadline(kStart + seconds(100)).size(), 1u);
  EXPECT_EQ(book.late(), 2u);
  EXPECT_EQ(book.bytes(), 0u);
  // For ever.
  Book patient({.patience = Duration::max()});
  patient.add(kOne, 7, 10, memory(1), kStart);
  EXPECT_EQ(patient.deadline(), TimePoint::max());
}

// One without a limit in time, as of an owner that does not say what time it is, holds up no other.
TEST(DoneBook, DeadlinesAreKeptInOrder) {
  Book book({.patience = seconds(2)});
  book.add(kOne, 7, 10, memory(70), TimePoint::max());
  book.add(kOne, 8, 10, memory(80), kStart + seconds(1));
  book.add(kOne, 8, 10, memory(81), kStart + seconds(1));
  book.add(kOne, 9, 10, memory(90), kStart);
  EXPECT_EQ(book.deadline(), kStart + seconds(2));
  EXPECT_EQ(book.on_deadline(kStart + seconds(2)).size(), 1u);
  EXPECT_EQ(book.deadline(), kStart + seconds(3));
  EXPECT_EQ(which(book.on_done(kOne, 8)), 80) << "the older one of two";
  EXPECT_EQ(book.on_deadline(kStart + seconds(3)).size(), 1u);
  EXPECT_EQ(book.deadline(), TimePoint::max());
  EXPECT_TRUE(book.on_deadline(kStart + seconds(1000)).empty());
  EXPECT_EQ(which(book.on_done(kOne, 7)), 70);
}

TEST(DoneBook, IsBounded) {
  Book book(kSmall);
  EXPECT_TRUE(book.admits(kOne, 100));
  EXPECT_FALSE(book.admits(kOne, 101));
  EXPECT_FALSE(book.admits(kOne, SIZE_MAX));
  book.add(kOne, 1, 60, memory(1), kStart);
  EXPECT_TRUE(book.admits(kOne, 40));
  EXPECT_FALSE(book.admits(kOne, 41));
  EXPECT_TRUE(book.admits(kOther, 90));
  EXPECT_FALSE(book.admits(kOther, 91));  // those of all together
  book.add(kOne, 2, 1, memory(2), kStart);
  EXPECT_FALSE(book.admits(kOne, 1));
  book.add(kOther, 1, 1, memory(3), kStart);
  EXPECT_FALSE(book.admits(kOther, 1));
  EXPECT_EQ(which(book.on_done(kOne, 1)), 1);
  EXPECT_TRUE(book.admits(kOther, 1));
  EXPECT_TRUE(book.admits(kOne, 1));
}

TEST(DoneBook, AConnectionThatEndsTakesItsRepliesAlong) {
  Book book(kSmall);
  book.add(kOne, 1, 10, memory(1), kStart);
  book.add(kOther, 2, 20, memory(2), kStart);
  book.add(kOne, 3, 30, memory(3), kStart);
  const auto gone = book.drop(kOne);
  ASSERT_EQ(gone.size(), 2u);
  EXPECT_EQ(*gone[0] + *gone[1], 4);
  EXPECT_EQ(book.replies(), 1u);
  EXPECT_EQ(book.bytes(), 20u);
  EXPECT_EQ(which(book.on_done(kOther, 2)), 2);
  EXPECT_TRUE(book.drop(kOther).empty());
}

TEST(DoneBook, CountsByConnection) {
  Book book;
  book.add(kOne, 1, 10, memory(1), kStart);
  book.add(kOne, 2, 10, memory(2), kStart);
  book.add(kOther, 3, 10, memory(3), kStart);
  EXPECT_EQ(book.replies(kOne), 2u);
  EXPECT_EQ(book.replies(kOther), 1u);
  EXPECT_EQ(which(book.on_done(kOne, 1)), 1);
  EXPECT_EQ(book.replies(kOne), 1u);
  EXPECT_EQ(book.replies(99), 0u);
}

TEST(DoneCredits, ADoneIsInFlightUntilALaterCallIsAnswered) {
  COVERS("D2005-3.8-8");
  DoneCredits dones;
  CreditWindow window(8);
  window.on_grant(3);
  window.on_call_sent();
  const std::uint64_t before = dones.mark();
  EXPECT_TRUE(dones.admits_call(window.available(), window.in_flight()));
  dones.on_done_sent();
  EXPECT_TRUE(dones.admits_call(window.available(), window.in_flight()));
  dones.on_done_sent();
  EXPECT_EQ(dones.in_flight(), 2u);
  EXPECT_FALSE(dones.admits_call(window.available(), window.in_flight())) << "3 messages are in flight";
  const std::uint64_t after = dones.mark();
  dones.on_reply(before);  // of a Call before them: says nothing of them
  EXPECT_EQ(dones.in_flight(), 2u);
  dones.on_reply(after);
  EXPECT_EQ(dones.in_flight(), 0u);
  dones.on_done_sent();
  dones.on_reply(after);
  EXPECT_EQ(dones.in_flight(), 1u);
}

TEST(DoneCredits, DonesAloneStopNobody) {
  DoneCredits dones;
  for (int i = 0; i < 5; ++i) dones.on_done_sent();
  EXPECT_TRUE(dones.admits_call(1, 0));
  EXPECT_FALSE(dones.admits_call(1, 1));
  EXPECT_FALSE(dones.admits_call(0, 0));
  dones.on_reply(dones.mark());
  EXPECT_TRUE(dones.admits_call(1, 1));
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
