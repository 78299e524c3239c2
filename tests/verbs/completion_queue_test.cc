#include "iwarp/verbs/completion_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <thread>

#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using namespace std::chrono_literals;
using test::drain;
using Notify = CompletionQueue::Notify;

Completion completion(std::uint64_t id, Errc status = Errc::kOk, bool solicited = false) {
  Completion c;
  c.wr_id = id;
  c.status = status;
  c.solicited = solicited;
  return c;
}

struct Told final : Notifier {
  void notify(CompletionQueue& cq) noexcept override {
    ++times;
    last = &cq;
  }
  int times = 0;
  CompletionQueue* last = nullptr;
};

TEST(CompletionQueue, IsFirstInFirstOut) {
  CompletionQueue cq(8);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(cq.push(completion(i)));
  std::array<Completion, 3> some;
  ASSERT_EQ(cq.poll(some), 3U);
  EXPECT_EQ(some[0].wr_id, 0U);
  EXPECT_EQ(some[2].wr_id, 2U);
  ASSERT_EQ(cq.poll(some), 2U);
  EXPECT_EQ(some[1].wr_id, 4U);
  EXPECT_TRUE(cq.empty());
  EXPECT_EQ(cq.poll(some), 0U);
  EXPECT_EQ(cq.poll({}), 0U);
}

TEST(CompletionQueue, RefusesMoreThanItsCapacity) {
  CompletionQueue cq(2);
  EXPECT_TRUE(cq.push(completion(1)));
  EXPECT_TRUE(cq.push(completion(2)));
  EXPECT_FALSE(cq.push(completion(3)));
  EXPECT_EQ(drain(cq).size(), 2U);
  EXPECT_TRUE(cq.push(completion(4)));
}

TEST(CompletionQueue, TakesAsManyOfAListAsFitAndNotifiesOnce) {
  CompletionQueue cq(4);
  Told told;
  cq.arm(Notify::kSolicited, told);
  const std::array<Completion, 3> list{completion(1), completion(2, Errc::kOk, true), completion(3, Errc::kOk, true)};
  EXPECT_TRUE(cq.push(list));
  EXPECT_EQ(told.times, 1);
  EXPECT_FALSE(cq.push(list));
  const auto got = drain(cq);
  ASSERT_EQ(got.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i].wr_id, i % 3 + 1);
}

TEST(CompletionQueue, AListThatDoesNotFitWakesAThreadForWhatDoes) {
  CompletionQueue cq(1);
  auto woken = std::async(std::launch::async, [&] { return cq.wait_for(30s); });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(cq.push(std::array{completion(1), completion(2)}));
  EXPECT_EQ(woken.wait_for(10s), std::future_status::ready) << "it slept on";
  EXPECT_TRUE(woken.get());
  EXPECT_EQ(drain(cq).size(), 1U);
}

TEST(CompletionQueue, ArmNotifiesOnce) {
  CompletionQueue cq(8);
  Told told;
  ASSERT_TRUE(cq.push(completion(1)));
  cq.arm(Notify::kNext, told);
  EXPECT_EQ(told.times, 0) << "what is there already does not notify: poll after arming";
  ASSERT_TRUE(cq.push(completion(2)));
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.last, &cq);
  ASSERT_TRUE(cq.push(completion(3)));
  EXPECT_EQ(told.times, 1);
  cq.arm(Notify::kNext, told);
  ASSERT_TRUE(cq.push(completion(4)));
  EXPECT_EQ(told.times, 2);
}

TEST(CompletionQueue, SolicitedWaitsForSolicitedOrError) {
  CompletionQueue cq(8);
  Told told;
  cq.arm(Notify::kSolicited, told);
  ASSERT_TRUE(cq.push(completion(1)));
  EXPECT_EQ(told.times, 0);
  ASSERT_TRUE(cq.push(completion(2, Errc::kOk, true)));
  EXPECT_EQ(told.times, 1);
  cq.arm(Notify::kSolicited, told);
  ASSERT_TRUE(cq.push(completion(3, Errc::kFlushed)));
  EXPECT_EQ(told.times, 2);
}

TEST(CompletionQueue, TheStrongerOfTwoRequestsStands) {
  for (const auto& [first, second] :
       {std::pair{Notify::kNext, Notify::kSolicited}, std::pair{Notify::kSolicited, Notify::kNext}}) {
    CompletionQueue cq(8);
    Told told;
    cq.arm(first, told);
    cq.arm(second, told);
    ASSERT_TRUE(cq.push(completion(1)));
    EXPECT_EQ(told.times, 1);
  }
}

// Once told, the weaker is not held to what the stronger had asked for.
TEST(CompletionQueue, ARequestThatWasAnsweredDoesNotLinger) {
  CompletionQueue cq(8);
  Told told;
  cq.arm(Notify::kNext, told);
  ASSERT_TRUE(cq.push(completion(1)));
  cq.arm(Notify::kSolicited, told);
  ASSERT_TRUE(cq.push(completion(2)));
  EXPECT_EQ(told.times, 1);
}

TEST(CompletionQueue, DisarmSilences) {
  CompletionQueue cq(8);
  Told told;
  cq.arm(Notify::kNext, told);
  cq.disarm();
  ASSERT_TRUE(cq.push(completion(1)));
  EXPECT_EQ(told.times, 0);
}

TEST(CompletionQueue, ARefusedCompletionDoesNotNotify) {
  CompletionQueue cq(1);
  Told told;
  ASSERT_TRUE(cq.push(completion(1)));
  cq.arm(Notify::kNext, told);
  EXPECT_FALSE(cq.push(completion(2)));
  EXPECT_EQ(told.times, 0);
}

// The rule of ibv_req_notify_cq: arm, poll until empty, sleep. No completion is lost, however the threads interleave.
TEST(CompletionQueue, ArmPollSleepLosesNothing) {
  struct Flag final : Notifier {
    void notify(CompletionQueue&) noexcept override {
      const std::lock_guard lock(mu);
      set = true;
      cv.notify_one();
    }
    bool wait() {
      std::unique_lock lock(mu);
      return cv.wait_for(lock, 10s, [&] { return std::exchange(set, false); });
    }
    std::mutex mu;
    std::condition_variable cv;
    bool set = false;
  };
  constexpr std::uint64_t kCount = 20'000;
  CompletionQueue cq(64);
  Flag flag;
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kCount;) {
      if (cq.push(completion(i))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t next = 0;
  while (next < kCount) {
    cq.arm(Notify::kNext, flag);
    const auto got = drain(cq);
    for (const Completion& c : got) ASSERT_EQ(c.wr_id, next++);
    if (got.empty() && next < kCount) {
      ASSERT_TRUE(flag.wait()) << "lost after " << next;
    }
  }
  producer.join();
  cq.disarm();
}

TEST(CompletionQueue, WaitForWithoutEngineSleepsUntilACompletionComes) {
  CompletionQueue cq(8);
  EXPECT_FALSE(cq.wait_for(1ms));
  EXPECT_FALSE(cq.wait_for(-1s)) << "a time in the past";
  std::thread producer([&] { EXPECT_TRUE(cq.push(completion(7))); });
  EXPECT_TRUE(cq.wait_for(std::chrono::nanoseconds::max())) << "for ever must not overflow";
  producer.join();
  EXPECT_TRUE(cq.wait_for(0s));
}

}  // namespace
}  // namespace iwarp::verbs
