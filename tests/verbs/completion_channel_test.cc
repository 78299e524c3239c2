#include "iwarp/verbs/completion_channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

bool readable(const CompletionChannel& channel, int timeout_ms = 0) {
  pollfd p{channel.fd(), POLLIN, 0};
  return ::poll(&p, 1, timeout_ms) == 1;
}

TEST(CompletionChannel, DescriptorIsReadableWhileAnEventWaits) {
  CompletionChannel channel;
  CompletionQueue cq(8);
  EXPECT_FALSE(readable(channel));
  EXPECT_EQ(channel.next_event(), std::nullopt);
  channel.arm(cq);
  ASSERT_TRUE(cq.push(Completion{}));
  EXPECT_TRUE(readable(channel));
  ASSERT_TRUE(cq.push(Completion{}));
  EXPECT_EQ(channel.next_event(), &cq);
  EXPECT_FALSE(readable(channel)) << "one arm(), one event";
  EXPECT_EQ(channel.next_event(), std::nullopt);
}

TEST(CompletionChannel, ServesManyQueuesInOrderOfTheirEvents) {
  CompletionChannel channel;
  CompletionQueue a(8), b(8), c(8);
  for (CompletionQueue* cq : {&a, &b, &c}) channel.arm(*cq);
  ASSERT_TRUE(b.push(Completion{}));
  ASSERT_TRUE(c.push(Completion{}));
  ASSERT_TRUE(a.push(Completion{}));
  EXPECT_EQ(channel.next_event(), &b);
  EXPECT_TRUE(readable(channel));
  EXPECT_EQ(channel.next_event(), &c);
  EXPECT_EQ(channel.next_event(), &a);
  EXPECT_FALSE(readable(channel));
}

TEST(CompletionChannel, SolicitedEventsOnly) {
  CompletionChannel channel;
  CompletionQueue cq(8);
  channel.arm(cq, CompletionQueue::Notify::kSolicited);
  Completion plain, wanted;
  wanted.solicited = true;
  ASSERT_TRUE(cq.push(plain));
  EXPECT_FALSE(readable(channel));
  ASSERT_TRUE(cq.push(wanted));
  EXPECT_TRUE(readable(channel));
}

TEST(CompletionChannel, MayGoBeforeAQueueThatIsArmed) {
  CompletionQueue told(8), untold(8);
  {
    CompletionChannel channel;
    channel.arm(told);
    channel.arm(untold);
  }
  ASSERT_TRUE(told.push(Completion{}));
  EXPECT_FALSE(told.empty());
}

TEST(CompletionChannel, MayGoOnceTheQueuesAreDisarmed) {
  CompletionQueue cq(8);
  {
    CompletionChannel channel;
    channel.arm(cq);
    cq.disarm();
  }
  EXPECT_TRUE(cq.push(Completion{}));
}

TEST(CompletionChannel, WakesAPollingThread) {
  CompletionChannel channel;
  CompletionQueue a(256), b(256);
  constexpr int kEach = 200;
  std::thread producer([&] {
    for (int i = 0; i < kEach; ++i) {
      EXPECT_TRUE(a.push(Completion{}));
      EXPECT_TRUE(b.push(Completion{}));
    }
  });
  std::size_t got = 0;
  channel.arm(a);
  channel.arm(b);
  got += test::drain(a).size() + test::drain(b).size();
  while (got < 2 * kEach) {
    ASSERT_TRUE(readable(channel, 10'000)) << got;
    const auto cq = channel.next_event();
    ASSERT_TRUE(cq.has_value());
    channel.arm(**cq);
    got += test::drain(**cq).size();
  }
  producer.join();
  a.disarm();
  b.disarm();
}

// Another thread of the parent arms all the time, so that the child inherits locks that are held.
TEST(CompletionChannel, OfAParentDoesNothingInItsChild) {
  auto channel = std::make_unique<CompletionChannel>();
  CompletionQueue cq(8), busy(8);
  channel->arm(cq);
  ASSERT_TRUE(cq.push(Completion{}));
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) channel->arm(busy);
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(20);
      channel->arm(busy);
      const bool nothing = !channel->next_event();
      channel.reset();
      ::_exit(nothing ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0) << "round " << i;
    EXPECT_TRUE(readable(*channel)) << "the child took an event of its parent";
  }
  over = true;
  other.join();
  EXPECT_EQ(channel->next_event(), &cq);
}

}  // namespace
}  // namespace iwarp::verbs
