#include "iwarp/verbs/shared_receive_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/support/covers.h"
#include "tests/support/segments.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using test::Bytes;
using test::drain;
using test::Joined;
using test::make_qp;
using test::region;
using test::sge;

// Two connections whose responders share a queue.
class SharedReceiveQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<QueuePair> sharing(CompletionQueue& cq, SharedReceiveQueue& srq) {
    QueuePair::Options o{.send_cq = &cq, .recv_cq = &cq, .srq = &srq};
    return std::make_shared<QueuePair>(pd_, o);
  }
  std::shared_ptr<QueuePair> sharing(CompletionQueue& cq) { return sharing(cq, *srq_); }
  // Receives with ids from `first` on, each with 64 octets of its own.
  void post(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t id = first; id < first + count; ++id)
      ASSERT_TRUE(srq_->post_recv({.wr_id = id, .sges = sge(inbox_mr_, id * 64, 64)}).ok());
  }
  void send(QueuePair& from, std::size_t octets) {
    ASSERT_TRUE(from.post_send(SendWr{.sges = sge(text_mr_, 0, octets)}).ok());
  }
  std::optional<AsyncEvent> event() { return context_->poll_async_event(); }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  ProtectionDomain pd_{context_};
  CompletionQueue client_cq_{256}, cq_{256}, other_cq_{256};
  Bytes text_ = test::pattern(4096), inbox_ = Bytes(4096);
  MemoryRegion text_mr_ = region(pd_, text_), inbox_mr_ = region(pd_, inbox_);
  std::unique_ptr<SharedReceiveQueue> srq_ =
      std::make_unique<SharedReceiveQueue>(pd_, SharedReceiveQueue::Options{.depth = 16});
};

TEST_F(SharedReceiveQueueTest, RefusesImpossibleDepthsAndWhoUsesThem) {
  for (const std::size_t depth : {std::size_t{0}, (std::size_t{1} << 24) + 1}) {
    SharedReceiveQueue bad(pd_, {.depth = depth});
    EXPECT_EQ(bad.usable().error().code, Errc::kInvalidArgument);
    EXPECT_EQ(bad.post_recv(RecvWr{}).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(bad.set_limit(0).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(sharing(cq_, bad)->usable().error().code, Errc::kInvalidArgument);
  }
  EXPECT_TRUE(SharedReceiveQueue(pd_, {.depth = 1}).usable().ok());
}

TEST_F(SharedReceiveQueueTest, IsOfOneProtectionDomain) {
  const ProtectionDomain other(context_), elsewhere(std::make_shared<Context>());
  for (const ProtectionDomain& pd : {other, elsewhere}) {
    SharedReceiveQueue foreign(pd, {});
    EXPECT_EQ(sharing(cq_, foreign)->usable().error().code, Errc::kInvalidArgument);
  }
  EXPECT_TRUE(sharing(cq_)->usable().ok());
}

TEST_F(SharedReceiveQueueTest, SaysWhatIsWrongWithAPost) {
  std::vector<RecvWr> list(20);
  for (std::uint64_t i = 0; i < list.size(); ++i) list[i].wr_id = i;
  std::size_t posted = 99;
  EXPECT_EQ(srq_->post_recv(list, &posted).error().code, Errc::kQueueFull);
  EXPECT_EQ(posted, 16U);
  EXPECT_EQ(srq_->posted(), 16U);
  SharedReceiveQueue fresh(pd_, {});
  RecvWr huge;
  const Sge half{inbox_.data(), 0x80000000U, inbox_mr_.stag()};
  ASSERT_TRUE(huge.sges.add(half) && huge.sges.add(half));
  EXPECT_EQ(fresh.post_recv(huge).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(sharing(cq_)->post_recv(RecvWr{}).error().code, Errc::kInvalidArgument) << "post to the shared one";
}

TEST_F(SharedReceiveQueueTest, ServesTwoConnectionsInTheOrderPosted) {
  COVERS("RFC5042-2.3.5-1");
  COVERS("RFC5042-6.4.3.1-1");
  COVERS("RFC5040-8.1.2-9");
  COVERS("RFC5041-8.3.2-7");
  Joined one(make_qp(pd_, client_cq_), sharing(cq_)), two(make_qp(pd_, client_cq_), sharing(other_cq_));
  post(0, 5);
  for (Joined* const from : {&one, &two, &two, &one, &two}) {
    send(*from->initiator, 50);
    from->pump();
  }
  const auto first = drain(cq_), second = drain(other_cq_);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].wr_id, 0U);
  EXPECT_EQ(first[1].wr_id, 3U);
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(second[0].wr_id, 1U);
  EXPECT_EQ(second[1].wr_id, 2U);
  EXPECT_EQ(second[2].wr_id, 4U);
  for (const Completion& c : second) {
    EXPECT_EQ(c.status, Errc::kOk);
    EXPECT_EQ(c.byte_len, 50U);
    EXPECT_EQ(c.qp_number, two.responder->number());
    EXPECT_TRUE(
        std::equal(text_.begin(), text_.begin() + 50, inbox_.begin() + static_cast<std::ptrdiff_t>(c.wr_id) * 64));
  }
  EXPECT_EQ(srq_->posted(), 0U);
  EXPECT_EQ(one.responder->receives_taken(), 2U) << "who consumes how many can be told";
  EXPECT_EQ(two.responder->receives_taken(), 3U);
  EXPECT_EQ(one.initiator->receives_taken(), 0U);
}

TEST_F(SharedReceiveQueueTest, TheLimitIsToldOnceAndArmedAgain) {
  COVERS("RFC5042-6.4.3.1-1");
  Joined one(make_qp(pd_, client_cq_), sharing(cq_));
  EXPECT_EQ(srq_->set_limit(17).error().code, Errc::kInvalidArgument) << "more than the depth";
  post(0, 4);
  ASSERT_TRUE(srq_->set_limit(3).ok());
  EXPECT_EQ(srq_->limit(), 3U);
  send(*one.initiator, 1);
  one.pump();
  EXPECT_FALSE(event()) << "three are left";
  send(*one.initiator, 1);
  one.pump();
  const auto told = event();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->type, AsyncEventType::kSrqLimitReached);
  EXPECT_EQ(told->srq, srq_.get());
  EXPECT_EQ(told->cq, nullptr);
  EXPECT_EQ(srq_->limit(), 0U) << "disarmed";
  send(*one.initiator, 1);
  one.pump();
  EXPECT_FALSE(event());
  post(4, 3);
  ASSERT_TRUE(srq_->set_limit(4).ok());
  EXPECT_FALSE(event());
  ASSERT_TRUE(srq_->set_limit(5).ok());
  EXPECT_TRUE(event()) << "there are fewer already";
  ASSERT_TRUE(srq_->set_limit(2).ok());
  ASSERT_TRUE(srq_->set_limit(0).ok());
  for (int i = 0; i < 3; ++i) send(*one.initiator, 1);
  one.pump();
  EXPECT_FALSE(event());
}

TEST_F(SharedReceiveQueueTest, EmptyEndsTheConnectionThatFindsItSo) {
  COVERS("RFC5041-7.1-2");
  Joined one(make_qp(pd_, client_cq_), sharing(cq_)), two(make_qp(pd_, client_cq_), sharing(other_cq_));
  send(*one.initiator, 1);
  one.pump();
  EXPECT_GT(one.responder->endpoint().phase(), stream::Phase::kDraining);
  EXPECT_TRUE(drain(cq_).empty()) << "it had taken nothing";
  const auto fatal = event(), last = event();
  ASSERT_TRUE(fatal && last);
  EXPECT_EQ(fatal->type, AsyncEventType::kQpFatal);
  EXPECT_EQ(fatal->qp_number, one.responder->number());
  EXPECT_EQ(fatal->reason.code, Errc::kUntaggedNoBuffer);
  EXPECT_EQ(last->type, AsyncEventType::kLastWqeReached);
  EXPECT_EQ(last->qp_number, one.responder->number());
  const auto peers = event();
  ASSERT_TRUE(peers) << "the peer is of the same context, and hears a Terminate";
  EXPECT_EQ(peers->qp_number, one.initiator->number());
  EXPECT_EQ(peers->reason.code, Errc::kRemoteTerminate);
  EXPECT_FALSE(event());
  // Filling it wakes nobody, and is in time for the next message.
  post(0, 1);
  send(*two.initiator, 1);
  two.pump();
  EXPECT_EQ(drain(other_cq_).size(), 1U);
}

TEST_F(SharedReceiveQueueTest, AnEndAmidAMessageFlushesWhatItTook) {
  Joined one(make_qp(pd_, client_cq_), sharing(cq_)), two(make_qp(pd_, client_cq_), sharing(other_cq_));
  post(0, 2);
  Bytes half = test::fpdu(test::send_segment(test::pattern(40), {.msn = 1, .last = false}), true);
  {
    const auto lock = one.responder->lock();
    Bytes scratch(half.size());
    ASSERT_FALSE(test::core_of(*one.responder).rx_buffers(scratch).empty());
    std::copy(half.begin(), half.end(), scratch.begin());
    test::core_of(*one.responder).rx_commit(half.size(), TimePoint{std::chrono::seconds(1)});
    one.responder->drain_completions();
  }
  EXPECT_EQ(srq_->posted(), 1U);
  EXPECT_EQ(one.responder->receives_taken(), 1U);
  one.responder->abort();
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].wr_id, 0U);
  EXPECT_EQ(got[0].status, Errc::kFlushed);
  const auto last = event();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->type, AsyncEventType::kLastWqeReached) << "and no fatal one: the application wished it";
  EXPECT_FALSE(event());
  send(*two.initiator, 1);
  two.pump();
  EXPECT_EQ(drain(other_cq_).at(0).wr_id, 1U);
}

TEST_F(SharedReceiveQueueTest, MayGoBeforeItsQueuePairs) {
  const auto qp = sharing(cq_);
  Joined one(make_qp(pd_, client_cq_), qp);
  post(0, 3);
  ASSERT_TRUE(srq_->set_limit(3).ok());
  send(*one.initiator, 1);
  one.pump();
  EXPECT_EQ(drain(cq_).size(), 1U);
  srq_.reset();
  EXPECT_FALSE(event()) << "no event names what is gone";
  send(*one.initiator, 1);
  one.pump();
  EXPECT_TRUE(drain(cq_).empty());
  EXPECT_EQ(event()->reason.code, Errc::kUntaggedNoBuffer) << "to its queue pairs it is empty";
}

TEST_F(SharedReceiveQueueTest, WithoutAQueuePairItHoldsNothingBack) {
  post(0, 3);
  const auto qp = sharing(cq_);
  qp->abort();
  EXPECT_TRUE(drain(cq_).empty()) << "what was not taken is not the queue pair's";
  EXPECT_EQ(srq_->posted(), 3U);
  EXPECT_EQ(event()->type, AsyncEventType::kLastWqeReached);
}

// Two connections driven by two threads, a third fills the queue, and all of them end with every Receive told once.
TEST_F(SharedReceiveQueueTest, IsDrawnFromByThreads) {
  constexpr std::uint64_t kMessages = 2000;
  SharedReceiveQueue srq(pd_, {.depth = 2 * kMessages});
  CompletionQueue one_cq(kMessages + 16), two_cq(kMessages + 16);
  Joined one(make_qp(pd_, client_cq_), sharing(one_cq, srq)), two(make_qp(pd_, client_cq_), sharing(two_cq, srq));
  std::atomic<std::uint64_t> filled{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (std::uint64_t id = 0; id < 2 * kMessages; ++id) {
      EXPECT_TRUE(srq.post_recv({.wr_id = id, .sges = sge(inbox_mr_, 0, 64)}).ok());
      filled = id + 1;
    }
  });
  std::atomic<std::uint64_t> sent{0};
  for (Joined* connection : {&one, &two}) {
    threads.emplace_back([&, connection] {
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        while (filled < std::min(sent + 2, 2 * kMessages)) std::this_thread::yield();  // one for each thread
        ++sent;
        EXPECT_TRUE(connection->initiator->post_send(SendWr{.signaled = false}).ok());
        connection->pump();
        if (i % 100 == 0) (void)srq.set_limit(1 + i % 50);
      }
    });
  }
  threads.emplace_back([&] {
    while (sent < 2 * kMessages) (void)context_->poll_async_event();
  });
  for (auto& t : threads) t.join();
  std::set<std::uint64_t> ids;
  for (CompletionQueue* cq : {&one_cq, &two_cq}) {
    std::optional<std::uint64_t> before;
    for (const Completion& c : drain(*cq)) {
      EXPECT_EQ(c.status, Errc::kOk);
      EXPECT_TRUE(!before || *before < c.wr_id) << "each connection takes them in order";
      before = c.wr_id;
      EXPECT_TRUE(ids.insert(c.wr_id).second);
    }
  }
  EXPECT_EQ(ids.size(), 2 * kMessages);
  EXPECT_EQ(one.responder->receives_taken() + two.responder->receives_taken(), 2 * kMessages);
}

}  // namespace
}  // namespace iwarp::verbs
