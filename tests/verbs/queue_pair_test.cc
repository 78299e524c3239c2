#include "iwarp/verbs/queue_pair.h"

#include <gtest/gtest.h>

#include <array>
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

class QueuePairTest : public test::TwoQueuePairs {
 protected:
  QueuePairTest() : TwoQueuePairs(256) {}
};

TEST_F(QueuePairTest, NumbersAndStreamsDiffer) {
  COVERS("RFC5040-2.4-1");
  COVERS("RFC5041-1.2-7");
  EXPECT_NE(qp_->number(), peer_->number());
  EXPECT_NE(qp_->stream(), peer_->stream());
}

TEST_F(QueuePairTest, TheApplicationMayChooseTheNumberAndWhatCompletionsCarry) {
  int mine = 0;
  QueuePair::Options o{.send_cq = &cq_, .recv_cq = &cq_, .stream = {}};
  o.number = 0xABCDEF;
  o.user = &mine;
  QueuePair qp(pd_, o);
  EXPECT_EQ(qp.number(), 0xABCDEFU);
  ASSERT_TRUE(qp.post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  qp.abort();
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].qp_number, 0xABCDEFU);
  EXPECT_EQ(got[0].user, &mine);
}

TEST_F(QueuePairTest, WorkPostedBeforeTheConnectionIsDoneAfterIt) {
  ASSERT_TRUE(peer_->post_recv({.wr_id = 1, .sges = sge(peer_mr_)}).ok());
  ASSERT_TRUE(qp_->post_send(SendWr{.wr_id = 2, .sges = sge(mr_, 0, 100)}).ok());
  EXPECT_TRUE(cq_.empty());
  Joined joined(qp_, peer_);
  const auto got = drain(peer_cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].wr_id, 1U);
  EXPECT_EQ(got[0].status, Errc::kOk);
  EXPECT_EQ(got[0].byte_len, 100U);
  EXPECT_EQ(got[0].qp_number, peer_->number());
  EXPECT_TRUE(std::equal(memory_.begin(), memory_.begin() + 100, peer_memory_.begin()));
  const auto sent = drain(cq_);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].qp_number, qp_->number());
}

TEST_F(QueuePairTest, AListOfReceivesIsPostedUpToTheOneThatIsRefused) {
  const auto small = make_qp(pd_, cq_, 2);
  const std::array<RecvWr, 3> list{RecvWr{.wr_id = 1, .sges = sge(mr_)}, RecvWr{.wr_id = 2}, RecvWr{.wr_id = 3}};
  std::size_t posted = 9;
  EXPECT_EQ(small->post_recv(list, &posted).error().code, Errc::kQueueFull);
  EXPECT_EQ(posted, 2U);
  small->abort();
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].wr_id, 1U);
  EXPECT_EQ(got[1].wr_id, 2U);
}

TEST_F(QueuePairTest, MoreCompletionsAtATimeThanAreMovedAtATime) {
  constexpr std::uint64_t kMessages = 50;
  qp_ = make_qp(pd_, cq_, kMessages);
  peer_ = make_qp(pd_, peer_cq_, kMessages);
  Joined joined(qp_, peer_);
  std::vector<SendWr> sends;
  std::vector<RecvWr> receives;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    sends.push_back({.wr_id = i, .sges = sge(mr_, 8 * i, 8)});
    receives.push_back({.wr_id = i, .sges = sge(peer_mr_, 8 * i, 8)});
  }
  ASSERT_TRUE(peer_->post_recv(receives).ok());
  ASSERT_TRUE(qp_->post_send(sends).ok());
  joined.pump();
  for (CompletionQueue* cq : {&cq_, &peer_cq_}) {
    const auto got = drain(*cq);
    ASSERT_EQ(got.size(), kMessages);
    for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_EQ(got[i].wr_id, i);
  }
  EXPECT_TRUE(std::equal(memory_.begin(), memory_.begin() + 8 * kMessages, peer_memory_.begin()));
}

TEST_F(QueuePairTest, PostTellsTheDriverOncePerList) {
  Joined joined(qp_, peer_);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(peer_->post_recv({.wr_id = i, .sges = sge(peer_mr_)}).ok());
  const int before = joined.initiator_driver.kicks;
  const std::array<SendWr, 3> list{SendWr{.wr_id = 1, .sges = sge(mr_, 0, 8)},
                                   SendWr{.wr_id = 2, .sges = sge(mr_, 8, 8)},
                                   SendWr{.wr_id = 3, .sges = sge(mr_, 16, 8)}};
  ASSERT_TRUE(qp_->post_send(std::span{list}).ok());
  EXPECT_EQ(joined.initiator_driver.kicks, before + 1);
  joined.pump();
  const auto sent = drain(cq_);
  ASSERT_EQ(sent.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(sent[i].wr_id, i + 1);
}

TEST_F(QueuePairTest, SaysWhatIsWrongWithAPost) {
  COVERS("RFC5040-1.1-1");
  COVERS("RFC5041-5.2-3");
  const auto small = make_qp(pd_, cq_, 2);
  std::array<SendWr, 3> list{SendWr{.wr_id = 1}, SendWr{.wr_id = 2}, SendWr{.wr_id = 3}};
  std::size_t posted = 99;
  const auto full = small->post_send(std::span{list}, &posted);
  EXPECT_EQ(full.error().code, Errc::kQueueFull);
  EXPECT_EQ(posted, 2U) << "those before the refused one stay";

  SendWr huge{.wr_id = 4};
  Sge quarter{memory_.data(), 0x80000000U, mr_.stag()};
  ASSERT_TRUE(huge.sges.add(quarter) && huge.sges.add(quarter));
  EXPECT_EQ(qp_->post_send(huge).error().code, Errc::kInvalidArgument);
  const SendWr longest{.wr_id = 6, .sges = Sge{memory_.data(), 0xFFFFFFFFU, mr_.stag()}};
  EXPECT_TRUE(qp_->post_send(longest).ok());

  RecvWr vast{.wr_id = 7};
  ASSERT_TRUE(vast.sges.add(quarter) && vast.sges.add(quarter));
  EXPECT_EQ(qp_->post_recv(vast).error().code, Errc::kInvalidArgument) << "its byte_len could not tell what came";
  EXPECT_TRUE(qp_->post_recv({.wr_id = 8, .sges = longest.sges}).ok());

  SendWr read{.wr_id = 5, .op = SendOp::kReadInvalidate};
  ASSERT_TRUE(read.sges.add(sge(mr_, 0, 8)) && read.sges.add(sge(mr_, 8, 8)));
  EXPECT_EQ(qp_->post_send(read).error().code, Errc::kInvalidArgument) << "one sink, one STag";

  ASSERT_TRUE(small->post_recv({.wr_id = 1}).ok());
  ASSERT_TRUE(small->post_recv({.wr_id = 2}).ok());
  EXPECT_EQ(small->post_recv({.wr_id = 3}).error().code, Errc::kQueueFull);
}

TEST_F(QueuePairTest, AbortFlushesEverything) {
  ASSERT_TRUE(qp_->post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  ASSERT_TRUE(qp_->post_send(SendWr{.wr_id = 2, .sges = sge(mr_, 0, 8), .signaled = false}).ok());
  qp_->abort();
  const auto flushed = drain(cq_);
  ASSERT_EQ(flushed.size(), 2U) << "an unsignalled request that failed completes too";
  for (const Completion& c : flushed) EXPECT_EQ(c.status, Errc::kFlushed);
  qp_->abort();
  EXPECT_TRUE(cq_.empty());
}

TEST_F(QueuePairTest, AbortWhileConnectedTellsTheDriver) {
  Joined joined(qp_, peer_);
  ASSERT_TRUE(qp_->post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  const int before = joined.initiator_driver.kicks;
  qp_->abort();
  EXPECT_GT(joined.initiator_driver.kicks, before);
  EXPECT_EQ(drain(cq_).size(), 1U);
  EXPECT_EQ(test::core_of(*qp_).link_action(), stream::LinkAction::kReset);
}

TEST_F(QueuePairTest, WhoLeavesIsToldOfNothingMoreAndTheConnectionEndsInOrder) {
  Joined joined(qp_, peer_);
  ASSERT_TRUE(peer_->post_recv({.wr_id = 1, .sges = sge(peer_mr_)}).ok());
  ASSERT_TRUE(qp_->post_send(SendWr{.wr_id = 2, .sges = sge(mr_, 0, 8)}).ok());
  joined.pump();
  ASSERT_TRUE(qp_->post_recv({.wr_id = 3, .sges = sge(mr_)}).ok());
  const int before = joined.initiator_driver.kicks;
  qp_->leave();
  EXPECT_GT(joined.initiator_driver.kicks, before);
  EXPECT_TRUE(qp_->post_send(SendWr{.wr_id = 4, .sges = sge(mr_, 0, 8)}).ok());
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 1U) << "what had completed";
  EXPECT_EQ(got[0].wr_id, 2U);
  EXPECT_EQ(qp_->state(), QueuePairState::kError);
  EXPECT_EQ(test::core_of(*qp_).link_action(), stream::LinkAction::kShutdownWrite);
  EXPECT_FALSE(context_->poll_async_event());
}

TEST_F(QueuePairTest, WhoLeavesMayHearWhatIsFlushed) {
  Joined joined(qp_, peer_);
  ASSERT_TRUE(qp_->post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  qp_->leave(QueuePair::Unfinished::kFlushed);
  ASSERT_TRUE(qp_->post_recv({.wr_id = 2, .sges = sge(mr_)}).ok());
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 2U);
  for (const Completion& c : got) EXPECT_EQ(c.status, Errc::kFlushed);
  EXPECT_EQ(test::core_of(*qp_).link_action(), stream::LinkAction::kShutdownWrite);
}

// RFC 5040 s8.1.1 item 10: a full completion queue ends the queue pair that overflows it, and no other.
TEST_F(QueuePairTest, OverflowOfACompletionQueueEndsOnlyThatQueuePair) {
  COVERS("RFC5040-8.1.1-12");
  COVERS("RFC5042-6.4.6-1");
  CompletionQueue tiny(2);
  QueuePair::Options o;
  o.send_cq = &tiny;
  o.recv_cq = &cq_;
  const auto greedy = std::make_shared<QueuePair>(pd_, o);
  const auto modest = std::make_shared<QueuePair>(pd_, o);
  const auto greedy_peer = make_qp(pd_, peer_cq_), modest_peer = make_qp(pd_, peer_cq_);
  Joined first(greedy, greedy_peer), second(modest, modest_peer);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(greedy_peer->post_recv({.wr_id = i, .sges = sge(peer_mr_)}).ok());
    ASSERT_TRUE(greedy->post_send(SendWr{.wr_id = i, .sges = sge(mr_, 0, 8)}).ok());
  }
  first.pump();
  EXPECT_EQ(greedy->endpoint().phase(), stream::Phase::kClosed);
  EXPECT_EQ(drain(tiny).size(), 2U);

  ASSERT_TRUE(modest_peer->post_recv({.wr_id = 9, .sges = sge(peer_mr_)}).ok());
  ASSERT_TRUE(modest->post_send(SendWr{.wr_id = 9, .sges = sge(mr_, 0, 8)}).ok());
  second.pump();
  const auto sent = drain(tiny);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].status, Errc::kOk);
  EXPECT_EQ(sent[0].qp_number, modest->number());
}

// An application that catches std::bad_alloc and goes on must not take the request for refused, nor send half of it.
TEST_F(QueuePairTest, AWantOfMemoryBelowAPostEndsTheConnection) {
  struct Short final : Driver {
    void kick() override {
      if (++kicks == 1) throw std::bad_alloc();
    }
    int kicks = 0;
  };
  Joined joined(qp_, peer_);
  Short driver;
  qp_->set_driver(&driver, &joined.initiator_driver.core);
  std::size_t posted = 0;
  EXPECT_TRUE(qp_->post_send(std::array{SendWr{.wr_id = 1, .sges = sge(mr_, 0, 8)}}, &posted).ok());
  EXPECT_EQ(posted, 1U);
  EXPECT_EQ(qp_->endpoint().phase(), stream::Phase::kClosed);
  EXPECT_EQ(driver.kicks, 2) << "the socket is to be released";
  const auto ended = drain(cq_);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].status, Errc::kFlushed);
  qp_->set_driver(nullptr);
}

// The receive queue overflows when the requests to send have been looked at already.
TEST_F(QueuePairTest, OverflowOfTheReceiveQueueCompletesAnOutstandingRead) {
  COVERS("RFC5040-8.1.1-12");
  CompletionQueue tiny(1);
  QueuePair::Options o;
  o.send_cq = &cq_;
  o.recv_cq = &tiny;
  const auto qp = std::make_shared<QueuePair>(pd_, o);
  Joined joined(qp, peer_);
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(qp->post_recv({.wr_id = i, .sges = sge(mr_, 0, 8)}).ok());
  ASSERT_TRUE(
      qp->post_send({.wr_id = 5, .op = SendOp::kRead, .sges = sge(mr_, 8, 8), .remote_stag = peer_mr_.stag()}).ok());
  ASSERT_TRUE(peer_->post_send(SendWr{.wr_id = 1, .sges = sge(peer_mr_, 0, 8)}).ok());
  ASSERT_TRUE(peer_->post_send(SendWr{.wr_id = 2, .sges = sge(peer_mr_, 0, 8)}).ok());
  Bytes messages;
  for (const ConstBytes b : test::core_of(*peer_).tx_buffers(TimePoint{}))
    messages.insert(messages.end(), b.begin(), b.end());
  (void)test::core_of(*qp).rx_buffers(messages);
  test::core_of(*qp).rx_commit(messages.size(), TimePoint{});
  qp->drain_completions();
  EXPECT_EQ(qp->endpoint().phase(), stream::Phase::kClosed);
  EXPECT_EQ(drain(tiny).size(), 1U);
  const auto read = drain(cq_);
  ASSERT_EQ(read.size(), 1U) << "nobody drains a second time when the connection has ended";
  EXPECT_EQ(read[0].wr_id, 5U);
  EXPECT_EQ(read[0].status, Errc::kFlushed);
}

TEST_F(QueuePairTest, WithoutCompletionQueuesNothingCanBePosted) {
  CompletionQueue* const none = nullptr;
  for (const auto& [send, recv] : {std::pair{&cq_, none}, std::pair{none, &cq_}, std::pair{none, none}}) {
    QueuePair qp(pd_, QueuePair::Options{.send_cq = send, .recv_cq = recv, .stream = {}});
    std::size_t posted = 9;
    EXPECT_EQ(qp.post_send(std::array{SendWr{}}, &posted).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(posted, 0U);
    EXPECT_EQ(qp.post_recv(RecvWr{}).error().code, Errc::kInvalidArgument);
    qp.abort();
    EXPECT_TRUE(cq_.empty());
  }
}

// The overflow shows while the application posts: the driver hears of it, or the socket would stay open.
TEST_F(QueuePairTest, OverflowInsideAPostTellsTheDriver) {
  struct Sender final : Driver {
    void kick() override {
      ++kicks;
      std::size_t n = 0;
      for (const ConstBytes b : core->tx_buffers(TimePoint{})) n += b.size();
      if (n > 0) core->tx_commit(n, TimePoint{});
    }
    stream::Connection* core = nullptr;
    int kicks = 0;
  };
  CompletionQueue tiny(0);
  QueuePair::Options o;
  o.send_cq = &tiny;
  o.recv_cq = &cq_;
  const auto qp = std::make_shared<QueuePair>(pd_, o);
  Joined joined(qp, peer_);
  Sender sender;
  sender.core = &joined.initiator_driver.core;
  qp->set_driver(&sender, sender.core);
  EXPECT_TRUE(qp->post_send(SendWr{.wr_id = 1, .sges = sge(mr_, 0, 8)}).ok());
  EXPECT_EQ(qp->endpoint().phase(), stream::Phase::kClosed);
  EXPECT_EQ(sender.kicks, 2);
  qp->set_driver(nullptr);
}

TEST_F(QueuePairTest, PostsFromManyThreads) {
  constexpr std::size_t kThreads = 4, kEach = 300, kBytes = 4;
  // Whatever completes while one pump() goes on waits unpolled.
  CompletionQueue cq(kThreads * kEach), peer_cq(16);
  const auto qp = make_qp(pd_, cq, 64), peer = make_qp(pd_, peer_cq, 64);
  Bytes target(kThreads * kEach * kBytes);
  const MemoryRegion target_mr = region(pd_, target, ddp::Access::kLocalWrite | ddp::Access::kRemoteWrite);
  Joined joined(qp, peer);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kEach;) {
        const std::size_t id = t * kEach + i;
        SendWr wr{
            .wr_id = id, .op = SendOp::kWrite, .sges = sge(mr_, id % 64, kBytes), .remote_stag = target_mr.stag()};
        wr.remote_to = target_mr.base_to() + id * kBytes;
        const auto ok = qp->post_send(wr);
        if (ok) {
          ++i;
        } else if (ok.error().code == Errc::kQueueFull) {
          std::this_thread::yield();
        } else {
          ADD_FAILURE() << ok.error().why;
          return;
        }
      }
    });
  }
  std::set<std::uint64_t> ids;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (ids.size() < kThreads * kEach && std::chrono::steady_clock::now() < deadline) {
    joined.pump();
    for (const Completion& c : drain(cq)) {
      EXPECT_EQ(c.status, Errc::kOk);
      EXPECT_TRUE(ids.insert(c.wr_id).second);
    }
    std::this_thread::yield();
  }
  if (ids.size() < kThreads * kEach) qp->abort();
  for (auto& t : threads) t.join();
  ASSERT_EQ(ids.size(), kThreads * kEach);
  for (std::size_t i = 0; i < target.size(); ++i) ASSERT_EQ(target[i], memory_[(i / kBytes) % 64 + i % kBytes]) << i;
}

TEST(PostAll, PostsAllOrNothing) {
  const auto context = std::make_shared<Context>();
  const ProtectionDomain pd{context};
  CompletionQueue cq{64};
  const auto qp = test::make_qp(pd, cq, 3);
  const SendWr good{.wr_id = 1};
  const SendWr bad{.wr_id = 2, .op = SendOp::kImmediate};  // not agreed on
  EXPECT_EQ(qp->post_all(std::array{good, good, bad}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(qp->query()->sends_posted, 0U);
  EXPECT_EQ(qp->post_all(std::array{good, good, good, good}).error().code, Errc::kQueueFull);
  EXPECT_EQ(qp->query()->sends_posted, 0U);
  EXPECT_TRUE(qp->post_all(std::array{good, good, good}).ok());
  EXPECT_EQ(qp->query()->sends_posted, 3U);
  EXPECT_EQ(qp->post_all(std::array{good}).error().code, Errc::kQueueFull);
}

// Behind the end each completes at once, and needs a place for that.
TEST(PostAll, NeedsRoomForAllThatIsFlushedAtOnce) {
  const auto context = std::make_shared<Context>();
  const ProtectionDomain pd{context};
  CompletionQueue cq{2};
  const auto qp = test::make_qp(pd, cq, 8);
  qp->abort();
  const SendWr good{.wr_id = 1};
  EXPECT_EQ(qp->post_all(std::array{good, good, good}).error().code, Errc::kQueueFull);
  EXPECT_EQ(test::drain(cq).size(), 0U);
  EXPECT_TRUE(qp->post_all(std::array{good, good}).ok());
  EXPECT_EQ(test::drain(cq).size(), 2U);
}

}  // namespace
}  // namespace iwarp::verbs
