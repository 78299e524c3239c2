// Completion queues that are given another capacity, and fewer notifications.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "iwarp/verbs/completion_channel.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using namespace std::chrono_literals;
using test::drain;
using Notify = CompletionQueue::Notify;

class CompletionQueueControl : public ::testing::Test {
 protected:
  struct Ear final : Notifier {
    void notify(CompletionQueue&) noexcept override { ++times; }
    int times = 0;
  };
  // Does not ring by itself.
  struct Bell final : Alarm {
    bool set(TimePoint when) noexcept override {
      last = when;
      ++times;
      return works;
    }
    TimePoint last{};
    int times = 0;
    bool works = true;
  };
  void push(std::uint64_t id, Errc status = Errc::kOk, bool solicited = false) {
    Completion c;
    c.wr_id = id;
    c.status = status;
    c.solicited = solicited;
    ASSERT_TRUE(cq_.push(c));
  }
  void expect_ids(std::uint64_t from, std::uint64_t to) {
    const auto got = drain(cq_);
    ASSERT_EQ(got.size(), to - from);
    for (std::uint64_t i = from; i < to; ++i) EXPECT_EQ(got[i - from].wr_id, i);
  }

  CompletionQueue cq_{16};
  Ear ear_;
  std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
};

TEST_F(CompletionQueueControl, DropsWhatWaitsOfAQueuePair) {
  for (std::uint64_t round = 0; round < 3; ++round) {  // from another place of the ring each time
    for (std::uint64_t id = 0; id < 11; ++id) {
      Completion c;
      c.wr_id = id;
      c.qp_number = id % 3 == 0 ? 7 : 8;
      ASSERT_TRUE(cq_.push(c));
    }
    EXPECT_EQ(cq_.drop(7), 4U);
    EXPECT_EQ(cq_.drop(9), 0U);
    push(100);  // there is room again, behind the others
    std::vector<std::uint64_t> ids;
    for (const Completion& c : drain(cq_)) ids.push_back(c.wr_id);
    EXPECT_EQ(ids, std::vector<std::uint64_t>({1, 2, 4, 5, 7, 8, 10, 100}));
  }
}

TEST_F(CompletionQueueControl, IsResizedWithWhatWaits) {
  EXPECT_EQ(cq_.capacity(), 16U);
  for (std::uint64_t i = 0; i < 16; ++i) push(i);
  std::array<Completion, 5> some;
  ASSERT_EQ(cq_.poll(some), 5U);
  push(16);
  ASSERT_TRUE(cq_.resize(100).ok());
  EXPECT_EQ(cq_.capacity(), 100U);
  for (std::uint64_t i = 17; i < 105; ++i) push(i);
  EXPECT_FALSE(cq_.push(Completion{})) << "100 wait";
  expect_ids(5, 105);
  ASSERT_TRUE(cq_.resize(3).ok());
  for (std::uint64_t i = 0; i < 3; ++i) push(i);
  EXPECT_FALSE(cq_.push(Completion{}));
  ASSERT_TRUE(cq_.resize(3).ok()) << "just so many";
  expect_ids(0, 3);
}

TEST_F(CompletionQueueControl, IsNotResizedBelowWhatWaits) {
  for (std::uint64_t i = 0; i < 4; ++i) push(i);
  EXPECT_EQ(cq_.resize(3).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(cq_.resize(0).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(cq_.resize(CompletionQueue::kMostCapacity + 1).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(cq_.capacity(), 16U);
  EXPECT_TRUE(cq_.resize(4).ok());
  expect_ids(0, 4);
}

TEST_F(CompletionQueueControl, IsResizedWhileOthersUseIt) {
  constexpr std::uint64_t kMany = 5000;
  std::atomic<bool> over{false};
  std::thread resizing([&] {
    for (std::size_t n = 0; !over; ++n) (void)cq_.resize(16 + n % 64);
  });
  std::thread pushing([&] {
    for (std::uint64_t i = 0; i < kMany;) {
      Completion c;
      c.wr_id = i;
      if (cq_.push(c)) ++i;
    }
  });
  std::uint64_t next = 0;
  while (next < kMany) {
    for (const Completion& c : drain(cq_)) ASSERT_EQ(c.wr_id, next++);
    std::this_thread::yield();
  }
  over = true;
  resizing.join();
  pushing.join();
}

TEST_F(CompletionQueueControl, ALargerOneTakesWhatWouldOverflow) {
  const auto context = std::make_shared<Context>();
  const ProtectionDomain pd(context);
  CompletionQueue small(2);
  const auto qp = test::make_qp(pd, small, 8);
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(qp->post_recv({.wr_id = i}).ok());
  ASSERT_TRUE(small.resize(8).ok());
  qp->abort();
  EXPECT_EQ(drain(small).size(), 8U);
  EXPECT_FALSE(context->poll_async_event());
}

TEST_F(CompletionQueueControl, TellsOfSoManyAtATime) {
  ASSERT_TRUE(cq_.moderate(3, 0us).ok());
  cq_.arm(Notify::kNext, ear_);
  push(0);
  push(1);
  EXPECT_EQ(ear_.times, 0);
  EXPECT_TRUE(cq_.wait_for(30s)) << "who waits sees them at once";
  push(2);
  EXPECT_EQ(ear_.times, 1);
  push(3);
  push(4);
  push(5);
  EXPECT_EQ(ear_.times, 1) << "it is not armed";
  cq_.arm(Notify::kNext, ear_);
  push(6);
  push(7);
  EXPECT_EQ(ear_.times, 1) << "they count from when it was armed";
  push(8);
  EXPECT_EQ(ear_.times, 2);
}

TEST_F(CompletionQueueControl, OneOrNoneIsAtOnce) {
  for (const std::size_t count : {0U, 1U}) {
    ASSERT_TRUE(cq_.moderate(5, 0us).ok());
    ASSERT_TRUE(cq_.moderate(count, 0us).ok());
    ear_.times = 0;
    cq_.arm(Notify::kNext, ear_);
    push(0);
    EXPECT_EQ(ear_.times, 1);
  }
}

TEST_F(CompletionQueueControl, FailuresAndSolicitedOnesAreToldOfAtOnce) {
  ASSERT_TRUE(cq_.moderate(5, 0us).ok());
  for (const Notify what : {Notify::kNext, Notify::kSolicited}) {
    ear_.times = 0;
    cq_.arm(what, ear_);
    push(0);
    EXPECT_EQ(ear_.times, 0);
    push(1, Errc::kFlushed);
    EXPECT_EQ(ear_.times, 1);
    cq_.arm(what, ear_);
    push(2, Errc::kOk, true);
    EXPECT_EQ(ear_.times, 2);
  }
}

// Else the queue would overflow in silence.
TEST_F(CompletionQueueControl, AFullQueueIsToldOf) {
  ASSERT_TRUE(cq_.moderate(1000, 0us).ok());
  cq_.arm(Notify::kNext, ear_);
  for (std::uint64_t i = 0; i < 15; ++i) push(i);
  EXPECT_EQ(ear_.times, 0);
  push(15);
  EXPECT_EQ(ear_.times, 1);
}

TEST_F(CompletionQueueControl, SoIsOneThatIsFullForIsSmallerNow) {
  ASSERT_TRUE(cq_.moderate(8, 0us).ok());
  cq_.arm(Notify::kNext, ear_);
  for (std::uint64_t i = 0; i < 4; ++i) push(i);
  ASSERT_TRUE(cq_.resize(5).ok());
  EXPECT_EQ(ear_.times, 0);
  ASSERT_TRUE(cq_.resize(4).ok());
  EXPECT_EQ(ear_.times, 1);
}

TEST_F(CompletionQueueControl, WhatIsPromisedOneIsKeptFromTheOthers) {
  for (std::uint64_t i = 0; i < 13; ++i) push(i);
  EXPECT_EQ(cq_.shared()->promise(2), 2U);
  EXPECT_EQ(cq_.shared()->promise(5), 1U) << "that is all";
  EXPECT_FALSE(cq_.push(Completion{}));
  EXPECT_FALSE(cq_.resize(15).ok());
  const std::array<Completion, 2> two{};
  EXPECT_TRUE(cq_.shared()->push(two, 2));
  EXPECT_TRUE(cq_.shared()->push({}, 1)) << "given back";
  EXPECT_TRUE(cq_.push(Completion{}));
  EXPECT_FALSE(cq_.push(Completion{}));
}

// It counts as full for who is to be told.
TEST_F(CompletionQueueControl, OneWhoseRestIsPromisedTellsOfWhatIsHeldBack) {
  ASSERT_TRUE(cq_.moderate(100, 0us).ok());
  cq_.arm(Notify::kNext, ear_);
  for (std::uint64_t i = 0; i < 10; ++i) push(i);
  EXPECT_EQ(cq_.shared()->promise(6), 6U);
  EXPECT_EQ(ear_.times, 0);
  EXPECT_FALSE(cq_.push(Completion{}));
  EXPECT_EQ(ear_.times, 1);
}

TEST_F(CompletionQueueControl, AChangeTellsOfWhatIsHeldBack) {
  ASSERT_TRUE(cq_.moderate(5, 0us).ok());
  cq_.arm(Notify::kNext, ear_);
  ASSERT_TRUE(cq_.moderate(4, 0us).ok());
  EXPECT_EQ(ear_.times, 0) << "nothing is";
  push(0);
  ASSERT_TRUE(cq_.moderate(2, 0us).ok());
  EXPECT_EQ(ear_.times, 1);
}

TEST_F(CompletionQueueControl, APeriodNeedsSomebodyToTellTheTime) {
  EXPECT_EQ(cq_.moderate(5, 1us).error().code, Errc::kInvalidArgument);
  cq_.set_alarm(bell_);
  EXPECT_TRUE(cq_.moderate(5, 1us).ok());
  EXPECT_EQ(cq_.moderate(5, -1us).error().code, Errc::kInvalidArgument);
}

TEST_F(CompletionQueueControl, TheFirstOneHeldBackSetsTheAlarm) {
  cq_.set_alarm(bell_);
  ASSERT_TRUE(cq_.moderate(5, 20ms).ok());
  push(0);
  EXPECT_EQ(bell_->times, 0) << "nobody is to be told";
  cq_.arm(Notify::kNext, ear_);
  const auto before = std::chrono::steady_clock::now();
  push(1);
  const auto due = bell_->last;
  EXPECT_GE(due, before + 20ms);
  push(2);
  EXPECT_EQ(bell_->times, 1) << "the second one waits with it";
  std::this_thread::sleep_until(due);
  cq_.shared()->period_over();
  EXPECT_EQ(ear_.times, 1);
  cq_.shared()->period_over();
  EXPECT_EQ(ear_.times, 1) << "it is not armed";
}

TEST_F(CompletionQueueControl, AnAlarmThatIsEarlyIsSetAgain) {
  cq_.set_alarm(bell_);
  ASSERT_TRUE(cq_.moderate(5, 1h).ok());
  cq_.arm(Notify::kNext, ear_);
  push(0);
  const auto due = bell_->last;
  cq_.shared()->period_over();
  EXPECT_EQ(ear_.times, 0);
  EXPECT_EQ(bell_->times, 2);
  EXPECT_EQ(bell_->last, due);
  bell_->works = false;
  cq_.shared()->period_over();
  EXPECT_EQ(ear_.times, 1) << "better early than never";
}

TEST_F(CompletionQueueControl, WithoutAnAlarmToBeHadItIsToldAtOnce) {
  cq_.set_alarm(bell_);
  bell_->works = false;
  ASSERT_TRUE(cq_.moderate(5, 1h).ok());
  cq_.arm(Notify::kNext, ear_);
  push(0);
  EXPECT_EQ(ear_.times, 1);
}

TEST_F(CompletionQueueControl, WhatWasPolledMeanwhileIsNotToldOf) {
  cq_.set_alarm(bell_);
  ASSERT_TRUE(cq_.moderate(5, 1us).ok());
  cq_.arm(Notify::kNext, ear_);
  push(0);
  const auto due = bell_->last;
  EXPECT_EQ(drain(cq_).size(), 1U);
  std::this_thread::sleep_until(due);
  cq_.shared()->period_over();
  EXPECT_EQ(ear_.times, 0);
  push(1);
  EXPECT_EQ(bell_->times, 2) << "it is the first again";
}

TEST_F(CompletionQueueControl, AChannelIsToldAsANotifierIs) {
  CompletionChannel channel;
  ASSERT_TRUE(cq_.moderate(2, 0us).ok());
  channel.arm(cq_);
  push(0);
  EXPECT_EQ(channel.next_event(), std::nullopt);
  push(1);
  EXPECT_EQ(channel.next_event(), &cq_);
}

TEST_F(CompletionQueueControl, AnAlarmOfADestroyedQueueTellsNobody) {
  auto cq = std::make_unique<CompletionQueue>(4);
  cq->set_alarm(bell_);
  ASSERT_TRUE(cq->moderate(5, 1us).ok());
  cq->arm(Notify::kNext, ear_);
  ASSERT_TRUE(cq->push(Completion{}));
  const auto shared = cq->shared();
  cq.reset();
  EXPECT_EQ(bell_.use_count(), 1) << "it may go with its engine";
  shared->period_over();
  EXPECT_EQ(ear_.times, 0);
}

// Those of one engine, all in turn.
TEST(CompletionQueueDrivers, AreGivenInTurn) {
  struct Idle final : Driver {
    void kick() override {}
  };
  struct Engine final : Progress {
    bool wait(CompletionQueue&, std::chrono::steady_clock::time_point) override { return false; }
    void wake(CompletionQueue&) override {}
  } engine, other;
  CompletionQueue cq(8);
  CompletionQueue::Shared& shared = *cq.shared();
  std::vector<std::shared_ptr<Driver>> drivers;
  for (int i = 0; i < 5; ++i) drivers.push_back(std::make_shared<Idle>());
  for (const auto& driver : drivers) shared.join(driver == drivers[4] ? other : engine, driver, driver.get());
  shared.join(engine, drivers[0], drivers[0].get());  // twice
  const auto next = [&](const Progress& of, std::size_t expected_of_all) {
    std::array<std::shared_ptr<Driver>, 3> out;
    std::size_t all = 0;
    const std::size_t n = shared.next_drivers(of, out, all);
    EXPECT_EQ(all, expected_of_all);
    return std::vector(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
  };
  std::map<std::shared_ptr<Driver>, int> times;
  for (int i = 0; i < 4; ++i) {
    const auto some = next(engine, 5);
    EXPECT_EQ(some.size(), 3U);
    for (const auto& driver : some) ++times[driver];
  }
  EXPECT_EQ(times.size(), 4U);
  for (const auto& [driver, n] : times) EXPECT_EQ(n, 3);
  EXPECT_EQ(next(other, 5), std::vector{drivers[4]});
  for (int i = 0; i < 3; ++i) shared.part(drivers[static_cast<std::size_t>(i)].get());
  times.clear();
  EXPECT_EQ(next(engine, 2), std::vector{drivers[3]});
  drivers.clear();
  EXPECT_TRUE(next(engine, 2).empty()) << "it is gone";
}

TEST(CompletionQueueLook, SeemsEmptyWhenItIs) {
  CompletionQueue cq(8);
  EXPECT_TRUE(cq.seems_empty());
  for (std::uint32_t i = 0; i < 3; ++i) {
    Completion c;
    c.qp_number = i;
    ASSERT_TRUE(cq.push(c));
  }
  EXPECT_FALSE(cq.seems_empty());
  EXPECT_EQ(cq.drop(1), 1U);
  EXPECT_FALSE(cq.seems_empty());
  ASSERT_TRUE(cq.resize(4).ok());
  std::array<Completion, 4> out;
  EXPECT_EQ(cq.poll(out), 2U);
  EXPECT_TRUE(cq.seems_empty());
  ASSERT_TRUE(cq.push(Completion{}));
  EXPECT_EQ(cq.drop(0), 1U);
  EXPECT_TRUE(cq.seems_empty());
}

}  // namespace
}  // namespace iwarp::verbs
