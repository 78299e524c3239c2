// Posts to queue pairs whose connection is over, or is ending: taken, and flushed.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>

#include "tests/support/covers.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using test::Bytes;
using test::drain;
using test::Joined;
using test::make_qp;
using test::region;
using test::sge;

class PostInError : public test::TwoQueuePairs {
 protected:
  PostInError() : TwoQueuePairs(64, 4) {}

  static void expect_flushed(const std::vector<Completion>& got, std::vector<std::uint64_t> ids) {
    ASSERT_EQ(got.size(), ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(got[i].wr_id, ids[i]);
      EXPECT_EQ(got[i].status, Errc::kFlushed);
    }
  }
};

TEST_F(PostInError, CompletesAtOnceInPostingOrderOnce) {
  Joined joined(qp_, peer_);
  ASSERT_TRUE(qp_->post_recv({.wr_id = 1}).ok());
  qp_->abort();
  ASSERT_TRUE(qp_->post_send(std::array{SendWr{.wr_id = 2, .signaled = false}, SendWr{.wr_id = 3}}).ok());
  ASSERT_TRUE(qp_->post_recv(std::array{RecvWr{.wr_id = 4}, RecvWr{.wr_id = 5}}).ok());
  ASSERT_TRUE(qp_->post_send({.wr_id = 6, .op = SendOp::kRead, .sges = sge(mr_, 0, 8)}).ok());
  expect_flushed(drain(cq_), {1, 2, 3, 4, 5, 6});
  qp_->abort();
  joined.pump();
  EXPECT_TRUE(cq_.empty());
}

TEST_F(PostInError, OfOneThatWasNeverConnected) {
  ASSERT_TRUE(qp_->post_send({.wr_id = 1}).ok());
  EXPECT_TRUE(cq_.empty()) << "it waits for the connection";
  qp_->abort();
  ASSERT_TRUE(qp_->post_send({.wr_id = 2}).ok());
  ASSERT_TRUE(qp_->post_recv({.wr_id = 3}).ok());
  expect_flushed(drain(cq_), {1, 2, 3});
}

// The peer's end, a Terminate of either side, an orderly end: whatever was the cause.
TEST_F(PostInError, WhateverTheEndWas) {
  COVERS("RFC5041-6.2.1-3");
  enum class Cause { kReset, kFin, kMyTerminate, kItsTerminate };
  for (const Cause cause : {Cause::kReset, Cause::kFin, Cause::kMyTerminate, Cause::kItsTerminate}) {
    SCOPED_TRACE(static_cast<int>(cause));
    qp_ = make_qp(pd_, cq_, 4);
    peer_ = make_qp(pd_, peer_cq_, 4);
    Joined joined(qp_, peer_);
    if (cause == Cause::kReset) {
      const auto lock = qp_->lock();
      test::core_of(*qp_).rx_end(stream::TcpEnd::kReset, TimePoint{});
      qp_->drain_completions();
    } else if (cause == Cause::kFin) {
      const auto lock = qp_->lock();
      test::core_of(*qp_).rx_end(stream::TcpEnd::kFin, TimePoint{});
      qp_->drain_completions();
    } else {
      // A message for which there is no Receive.
      ASSERT_TRUE((cause == Cause::kItsTerminate ? qp_ : peer_)->post_send({.wr_id = 1, .sges = sge(mr_, 0, 8)}).ok());
      joined.pump();
    }
    (void)drain(cq_);
    ASSERT_TRUE(qp_->post_send({.wr_id = 7, .sges = sge(mr_, 0, 8)}).ok());
    ASSERT_TRUE(qp_->post_recv({.wr_id = 8, .sges = sge(mr_, 0, 8)}).ok());
    expect_flushed(drain(cq_), {7, 8});
    (void)drain(peer_cq_);
  }
}

// After disconnect() what was posted is still done; what is posted then comes behind it.
TEST_F(PostInError, WhileItDrainsASendComesBehindWhatIsStillDone) {
  Joined joined(qp_, peer_);
  for (std::uint64_t i = 1; i <= 2; ++i) ASSERT_TRUE(peer_->post_recv({.wr_id = i, .sges = sge(peer_mr_, 0, 8)}).ok());
  ASSERT_TRUE(qp_->post_send({.wr_id = 1, .sges = sge(mr_, 0, 8)}).ok());
  {
    const auto lock = qp_->lock();
    test::core_of(*qp_).disconnect(TimePoint{std::chrono::seconds(1)});
  }
  ASSERT_EQ(qp_->endpoint().phase(), stream::Phase::kDraining);
  ASSERT_TRUE(qp_->post_send({.wr_id = 2, .sges = sge(mr_, 0, 8)}).ok());
  ASSERT_TRUE(qp_->post_recv({.wr_id = 3, .sges = sge(mr_, 0, 8)}).ok());
  EXPECT_TRUE(cq_.empty()) << "the first has not left";
  joined.pump();
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 2U) << "the Receive may still get a message";
  EXPECT_EQ(got[0].wr_id, 1U);
  EXPECT_EQ(got[0].status, Errc::kOk);
  EXPECT_EQ(got[1].wr_id, 2U);
  EXPECT_EQ(got[1].status, Errc::kFlushed);
  EXPECT_EQ(drain(peer_cq_).size(), 1U) << "the second was not sent";
}

TEST_F(PostInError, WhatIsMalformedIsRefused) {
  qp_->abort();
  const Sge half{memory_.data(), 0x80000000U, mr_.stag()};
  SendWr huge;
  ASSERT_TRUE(huge.sges.add(half) && huge.sges.add(half));
  EXPECT_EQ(qp_->post_send(huge).error().code, Errc::kInvalidArgument);
  RecvWr vast;
  ASSERT_TRUE(vast.sges.add(half) && vast.sges.add(half));
  EXPECT_EQ(qp_->post_recv(vast).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(qp_->post_send({.op = SendOp::kImmediate}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(qp_->post_send({.sges = sge(mr_, 0, 8), .inline_data = true}).error().code, Errc::kInvalidArgument);
  std::size_t posted = 9;
  EXPECT_FALSE(qp_->post_send(std::array{SendWr{.wr_id = 1}, huge, SendWr{.wr_id = 2}}, &posted).ok());
  EXPECT_EQ(posted, 1U);
  expect_flushed(drain(cq_), {1});
}

// A list that is longer than the queue is refused from there on, as it is before the end.
TEST_F(PostInError, AFullQueueRefuses) {
  qp_->abort();
  std::array<SendWr, 5> sends;
  std::array<RecvWr, 5> receives;
  std::size_t posted = 0;
  EXPECT_EQ(qp_->post_send(sends, &posted).error().code, Errc::kQueueFull);
  EXPECT_EQ(posted, 4U);
  EXPECT_EQ(qp_->post_recv(receives, &posted).error().code, Errc::kQueueFull);
  EXPECT_EQ(posted, 4U);
  EXPECT_EQ(drain(cq_).size(), 8U);
}

// Who posts until that is refused comes to an end, and nothing is lost.
TEST_F(PostInError, ACompletionQueueWithoutRoomRefuses) {
  qp_->abort();
  std::uint64_t posted = 0;
  while (qp_->post_send({.wr_id = posted}).ok()) ++posted;
  EXPECT_EQ(posted, 64U);
  EXPECT_EQ(qp_->post_send(SendWr{}).error().code, Errc::kQueueFull);
  EXPECT_EQ(qp_->post_recv(RecvWr{}).error().code, Errc::kQueueFull);
  EXPECT_EQ(context_->poll_async_event(), std::nullopt) << "no overflow";
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), posted);
  for (std::uint64_t i = 0; i < posted; ++i) EXPECT_EQ(got[i].wr_id, i);
  EXPECT_TRUE(qp_->post_recv({.wr_id = 99}).ok());
  expect_flushed(drain(cq_), {99});
}

// Nothing completes there before the peer is given up.
TEST_F(PostInError, OfAPeerThatWentUnnoticedNeedsNoRoom) {
  CompletionQueue narrow(2);
  QueuePair::Options options{.send_cq = &narrow, .recv_cq = &narrow};
  options.stream.outlive_peer = true;
  QueuePair qp(pd_, options);
  {
    const auto lock = qp.lock();
    qp.endpoint().end(endpoint::Input::kAbort, make_error(Errc::kConnectionRefused));
  }
  EXPECT_EQ(qp.state(), QueuePairState::kRts);
  for (std::uint64_t id = 0; id < 4; ++id) EXPECT_TRUE(qp.post_send({.wr_id = id}).ok()) << id;
  for (std::uint64_t id = 0; id < 4; ++id) EXPECT_TRUE(qp.post_recv({.wr_id = id}).ok()) << id;
  EXPECT_TRUE(narrow.empty());
  EXPECT_TRUE(narrow.resize(8).ok());
  qp.give_up_peer();
  const auto got = drain(narrow);
  ASSERT_EQ(got.size(), 8U);
  EXPECT_EQ(got[0].status, Errc::kConnectionLost);
  std::size_t taken = 0;
  while (qp.post_send(SendWr{}).ok()) ++taken;
  EXPECT_EQ(taken, 8U) << "there they complete at once";
  EXPECT_EQ(context_->poll_async_event(), std::nullopt) << "no overflow";
}

// What is taken completes: no other thread can have its place in the completion queue.
TEST_F(PostInError, OfTwoThatShareANarrowQueueCompletesOrIsRefused) {
  CompletionQueue narrow(3);
  const std::array<std::shared_ptr<QueuePair>, 2> qps{make_qp(pd_, narrow, 4), make_qp(pd_, narrow, 4)};
  for (const auto& qp : qps) qp->abort();
  std::atomic<std::uint64_t> taken{0};
  std::atomic<int> over{0};
  std::vector<std::thread> posters;
  for (const auto& qp : qps) {
    posters.emplace_back([&, qp] {
      for (int i = 0; i < 5000; ++i) {
        std::size_t posted = 0;
        (void)qp->post_send(std::array{SendWr{.wr_id = 1}, SendWr{.wr_id = 2}}, &posted);
        taken += posted;
        if (qp->post_recv({.wr_id = 3}).ok()) ++taken;
      }
      ++over;
    });
  }
  std::uint64_t completed = 0;
  while (over < 2) completed += drain(narrow).size();
  for (auto& p : posters) p.join();
  completed += drain(narrow).size();
  EXPECT_EQ(completed, taken);
  EXPECT_GT(completed, 0U);
  EXPECT_FALSE(context_->poll_async_event()) << "no overflow";
}

// Flushed requests of the other queue may not have been told of yet: places are those of the queue that promised them.
TEST_F(PostInError, PlacesAreOfTheQueueThatPromisedThem) {
  CompletionQueue sends(8), receives(8);
  QueuePair qp(pd_, {.send_cq = &sends, .recv_cq = &receives});
  ASSERT_TRUE(qp.post_send({.wr_id = 1}).ok());
  {
    const auto lock = qp.lock();
    qp.endpoint().end(endpoint::Input::kAbort, make_error(Errc::kAborted));
  }
  ASSERT_TRUE(qp.post_recv({.wr_id = 2}).ok());
  for (CompletionQueue* cq : {&sends, &receives}) {
    EXPECT_EQ(drain(*cq).size(), 1U);
    EXPECT_EQ(cq->shared()->promise(100), 8U);
  }
}

TEST_F(PostInError, AnInlineOneCompletes) {
  QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq_;
  o.stream.max_inline = 64;
  QueuePair qp(pd_, o);
  qp.abort();
  for (std::uint64_t i = 1; i <= 3; ++i)
    ASSERT_TRUE(qp.post_send({.wr_id = i, .sges = sge(mr_, 0, 64), .inline_data = true}).ok());
  expect_flushed(drain(cq_), {1, 2, 3});
}

TEST_F(PostInError, ALocalInvalidateIsNotDone) {
  qp_->abort();
  ASSERT_TRUE(qp_->post_send({.wr_id = 1, .op = SendOp::kLocalInvalidate, .local_stag = mr_.stag()}).ok());
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, Errc::kFlushed);
  EXPECT_FALSE(got[0].invalidated);
}

TEST_F(PostInError, SharedReceivesStayWithTheSharedQueue) {
  SharedReceiveQueue srq(pd_, {.depth = 4});
  QueuePair qp(pd_, {.send_cq = &cq_, .recv_cq = &cq_, .srq = &srq});
  ASSERT_TRUE(srq.post_recv({.wr_id = 1}).ok());
  qp.abort();
  ASSERT_TRUE(srq.post_recv({.wr_id = 2}).ok());
  EXPECT_EQ(qp.post_recv({.wr_id = 3}).error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(qp.post_send({.wr_id = 4}).ok());
  expect_flushed(drain(cq_), {4});
  EXPECT_EQ(srq.posted(), 2U);
}

TEST_F(PostInError, TellsANotifierAndAWaitingThread) {
  struct Ear final : Notifier {
    void notify(CompletionQueue&) noexcept override { ++times; }
    int times = 0;
  };
  qp_->abort();
  Ear told;
  cq_.arm(CompletionQueue::Notify::kSolicited, told);
  ASSERT_TRUE(qp_->post_recv({.wr_id = 1}).ok());
  EXPECT_EQ(told.times, 1) << "an error";
  EXPECT_TRUE(cq_.wait_for(std::chrono::seconds(30)));
  cq_.disarm();
}

// What is posted while the connection ends completes once: as done or as flushed.
TEST_F(PostInError, RacesWithTheEnd) {
  constexpr std::uint64_t kThreads = 3, kEach = 50;
  for (int round = 0; round < 20; ++round) {
    CompletionQueue cq(2 * kThreads * kEach);
    const auto qp = make_qp(pd_, cq, kThreads * kEach);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < kEach; ++i) {
          EXPECT_TRUE(qp->post_send({.wr_id = 2 * (t * kEach + i)}).ok());
          EXPECT_TRUE(qp->post_recv({.wr_id = 2 * (t * kEach + i) + 1}).ok());
        }
      });
    }
    qp->abort();
    for (auto& t : threads) t.join();
    std::set<std::uint64_t> ids;
    for (const Completion& c : drain(cq)) {
      EXPECT_EQ(c.status, Errc::kFlushed);
      EXPECT_TRUE(ids.insert(c.wr_id).second) << c.wr_id;
    }
    EXPECT_EQ(ids.size(), 2 * kThreads * kEach);
  }
}

}  // namespace
}  // namespace iwarp::verbs
