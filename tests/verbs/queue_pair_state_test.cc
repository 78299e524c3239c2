// States of queue pairs: the tables, and the calls that ask and change them.
#include "iwarp/verbs/queue_pair_state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <sstream>
#include <thread>

#include "tests/support/state_matrix.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using endpoint::Ending;
using endpoint::Phase;
using test::Bytes;
using test::drain;
using test::Joined;
using test::make_qp;
using test::region;
using test::sge;
using State = QueuePairState;

TEST(QueuePairStates, AreAsReviewed) {
  std::ostringstream is;
  for (std::size_t p = 0; p < endpoint::kPhases; ++p) {
    for (const auto& [ending, words] :
         {std::pair{Ending::kOrderly, "in order"}, std::pair{Ending::kError, "by an error"},
          std::pair{Ending::kAbrupt, "abruptly"}}) {
      const auto phase = static_cast<Phase>(p);
      is << name(phase) << ", ends " << words << " -> " << name(state_of(phase, ending)) << "\n";
    }
  }
  constexpr std::array kMoves = {"nothing is done", "orderly end", "abrupt end"};
  for (std::size_t from = 0; from < kQueuePairStates; ++from) {
    for (std::size_t to = 0; to < kQueuePairStates; ++to) {
      const auto move = move_of(static_cast<State>(from), static_cast<State>(to));
      is << name(static_cast<State>(from)) << " + " << name(static_cast<State>(to))
         << " asked for: " << (move ? kMoves[static_cast<std::size_t>(*move)] : move.error().why) << "\n";
    }
  }
  EXPECT_EQ(is.str(), test::reviewed("verbs/queue_pair.states.txt")) << is.str();
}

TEST(QueuePairStates, ARefusalNamesBoth) {
  for (std::size_t from = 0; from < kQueuePairStates; ++from) {
    for (std::size_t to = 0; to < kQueuePairStates; ++to) {
      const auto move = move_of(static_cast<State>(from), static_cast<State>(to));
      if (move) continue;
      EXPECT_EQ(move.error().code, Errc::kInvalidArgument);
      const std::string both =
          std::string(name(static_cast<State>(from))) + " -> " + name(static_cast<State>(to)) + ":";
      EXPECT_NE(std::strstr(move.error().why, both.c_str()), nullptr) << both;
    }
  }
}

class QueuePairStateTest : public test::TwoQueuePairs {
 protected:
  static stream::Phase phase(QueuePair& qp) {
    const auto lock = qp.lock();
    return qp.endpoint().phase();
  }
  void post(QueuePair& qp, std::uint64_t id, bool signaled = true) {
    ASSERT_TRUE(qp.post_send({.wr_id = id, .sges = sge(mr_, 0, 8), .signaled = signaled}).ok());
  }
};

TEST_F(QueuePairStateTest, GoesFromInitToErrorByItsConnection) {
  EXPECT_EQ(qp_->state(), State::kInit);
  Joined joined(qp_, peer_);
  EXPECT_EQ(qp_->state(), State::kRts);
  EXPECT_EQ(peer_->state(), State::kRts);
  qp_->abort();
  EXPECT_EQ(qp_->state(), State::kError);
}

TEST_F(QueuePairStateTest, IsReadyToReceiveWhileItStartsUp) {
  const TimePoint now{std::chrono::seconds(1)};
  stream::Connection core(qp_->endpoint(), {});
  {
    const auto lock = qp_->lock();
    qp_->set_driver(nullptr, &core);
    core.start(mpa::Initiator(mpa::Policy{}, {}, now), now);
  }
  EXPECT_EQ(qp_->state(), State::kRtr);
  EXPECT_EQ(qp_->modify(State::kSqDrain).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(qp_->modify(State::kError).ok());
  EXPECT_EQ(qp_->state(), State::kError);
}

TEST_F(QueuePairStateTest, ErrorEndsTheConnectionAtOnceWithoutATerminate) {
  Joined joined(qp_, peer_);
  ASSERT_TRUE(qp_->post_recv({.wr_id = 1}).ok());
  const int before = joined.initiator_driver.kicks;
  ASSERT_TRUE(qp_->modify(State::kError).ok());
  EXPECT_EQ(qp_->state(), State::kError);
  EXPECT_GT(joined.initiator_driver.kicks, before) << "the socket is to be released";
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, Errc::kFlushed);
  const auto lock = qp_->lock();
  EXPECT_EQ(test::core_of(*qp_).link_action(), stream::LinkAction::kReset);
  EXPECT_TRUE(test::core_of(*qp_).tx_buffers(TimePoint{}).empty());
  test::core_of(*qp_).tx_commit(0, TimePoint{});
}

TEST_F(QueuePairStateTest, SqDrainDoesWhatWasPostedAndEndsInOrder) {
  Joined joined(qp_, peer_);
  for (std::uint64_t i = 1; i <= 2; ++i) ASSERT_TRUE(peer_->post_recv({.wr_id = i, .sges = sge(peer_mr_, 0, 8)}).ok());
  ASSERT_TRUE(qp_->post_recv({.wr_id = 9, .sges = sge(mr_, 0, 8)}).ok());
  post(*qp_, 1);
  const int before = joined.initiator_driver.kicks;
  ASSERT_TRUE(qp_->modify(State::kSqDrain).ok());
  EXPECT_GT(joined.initiator_driver.kicks, before);
  EXPECT_EQ(qp_->state(), State::kSqDrain);
  EXPECT_TRUE(qp_->query().value().draining);
  EXPECT_EQ(qp_->query().value().sends_posted, 1U);
  post(*qp_, 2);
  joined.pump();
  EXPECT_EQ(qp_->state(), State::kSqDrain) << "the peer has not ended its half";
  EXPECT_FALSE(qp_->query().value().draining);
  EXPECT_EQ(qp_->query().value().sends_posted, 0U);
  EXPECT_EQ(qp_->query().value().receives_posted, 1U);
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].status, Errc::kOk);
  EXPECT_EQ(got[1].status, Errc::kFlushed);
  ASSERT_TRUE(qp_->modify(State::kSqDrain).ok()) << "it is there";
  ASSERT_TRUE(qp_->modify(State::kError).ok());
  const auto rest = drain(cq_);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].wr_id, 9U);
}

// A Terminate that is on its way still leaves.
TEST_F(QueuePairStateTest, ErrorChangesNothingOfAnErrorUnderWay) {
  Joined joined(qp_, peer_);
  ASSERT_TRUE(peer_->post_send({.wr_id = 1, .sges = sge(peer_mr_, 0, 8)}).ok());  // there is no Receive
  Bytes message;
  {
    const auto lock = peer_->lock();
    for (const ConstBytes b : test::core_of(*peer_).tx_buffers(TimePoint{}))
      message.insert(message.end(), b.begin(), b.end());
    test::core_of(*peer_).tx_commit(message.size(), TimePoint{});
  }
  {
    const auto lock = qp_->lock();
    (void)test::core_of(*qp_).rx_buffers(message);
    test::core_of(*qp_).rx_commit(message.size(), TimePoint{});
  }
  ASSERT_EQ(phase(*qp_), stream::Phase::kTerminating);
  EXPECT_EQ(qp_->state(), State::kError);
  EXPECT_TRUE(qp_->modify(State::kError).ok());
  EXPECT_EQ(phase(*qp_), stream::Phase::kTerminating);
  EXPECT_EQ(qp_->modify(State::kRts).error().code, Errc::kInvalidArgument);
}

TEST_F(QueuePairStateTest, QueryTellsWhatItWasMadeWithAndWhatWaits) {
  QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq_;
  o.stream.sq_depth = 3;
  o.stream.rq_depth = 5;
  o.stream.max_inline = 100;
  o.stream.rfc7306 = true;
  QueuePair qp(pd_, o);
  post(qp, 1);
  ASSERT_TRUE(qp.post_recv({.wr_id = 2}).ok());
  ASSERT_TRUE(qp.post_recv({.wr_id = 3}).ok());
  const auto a = qp.query().value();
  EXPECT_EQ(a.state, State::kInit);
  EXPECT_EQ(a.sq_depth, 3U);
  EXPECT_EQ(a.rq_depth, 5U);
  EXPECT_EQ(a.sends_posted, 1U);
  EXPECT_EQ(a.receives_posted, 2U);
  EXPECT_EQ(a.max_sge, rdmap::kMaxSge);
  EXPECT_EQ(a.max_inline, 100U);
  EXPECT_TRUE(a.rfc7306);
  EXPECT_FALSE(a.established);
  EXPECT_FALSE(a.crc);
  EXPECT_EQ(a.mulpdu, 0U);
  qp.abort();
  EXPECT_EQ(qp.query().value().sends_posted, 0U);
  EXPECT_EQ(qp.query().value().receives_posted, 0U);
}

TEST_F(QueuePairStateTest, QueryTellsWhatWasAgreedOnThoughTheDriverHasGone) {
  { const Joined joined(qp_, peer_); }
  const auto a = qp_->query().value();
  EXPECT_TRUE(a.established);
  EXPECT_TRUE(a.crc);
  EXPECT_GT(a.ird, 0U);
  EXPECT_GT(a.ord, 0U);
  EXPECT_GT(a.mulpdu, 1000U);
}

TEST_F(QueuePairStateTest, QueryTellsWhatWasAgreedOn) {
  Joined joined(qp_, peer_);
  auto a = qp_->query().value();
  EXPECT_EQ(a.state, State::kRts);
  EXPECT_TRUE(a.established);
  EXPECT_TRUE(a.crc);
  EXPECT_FALSE(a.markers_sent || a.markers_received || a.rfc7306);
  const auto lock = qp_->lock();
  EXPECT_EQ(a.ird, test::core_of(*qp_).negotiated().ird);
  EXPECT_EQ(a.ord, test::core_of(*qp_).negotiated().ord);
  EXPECT_GT(a.ord, 0U);
  EXPECT_EQ(a.mulpdu, test::core_of(*qp_).mulpdu());
  EXPECT_GT(a.mulpdu, 1000U);
}

TEST_F(QueuePairStateTest, QueryOfOneThatSharesItsReceives) {
  SharedReceiveQueue srq(pd_, {.depth = 4});
  QueuePair qp(pd_, {.send_cq = &cq_, .recv_cq = &cq_, .srq = &srq});
  ASSERT_TRUE(srq.post_recv({.wr_id = 1}).ok());
  EXPECT_EQ(qp.query().value().rq_depth, 0U);
  EXPECT_EQ(qp.query().value().receives_posted, 0U);
}

TEST_F(QueuePairStateTest, OneThatIsNotUsableSaysWhy) {
  QueuePair qp(pd_, QueuePair::Options{});
  EXPECT_EQ(qp.query().error().why, qp.usable().error().why);
  EXPECT_EQ(qp.modify(State::kError).error().why, qp.usable().error().why);
  EXPECT_EQ(qp.drain(1).error().why, qp.usable().error().why);
}

TEST_F(QueuePairStateTest, DrainCompletesWhenAllBeforeItHas) {
  Joined joined(qp_, peer_);
  for (std::uint64_t i = 1; i <= 2; ++i) ASSERT_TRUE(peer_->post_recv({.wr_id = i, .sges = sge(peer_mr_, 0, 8)}).ok());
  post(*qp_, 1, false);
  SendWr read{
      .wr_id = 2, .op = SendOp::kRead, .sges = sge(mr_, 8, 8), .remote_stag = peer_mr_.stag(), .signaled = false};
  const auto readable = region(pd_, peer_memory_, ddp::Access::kRemoteRead);
  read.remote_stag = readable.stag();
  read.remote_to = readable.base_to();
  ASSERT_TRUE(qp_->post_send(read).ok());
  ASSERT_TRUE(qp_->drain(77).ok());
  post(*qp_, 3);
  EXPECT_TRUE(cq_.empty());
  joined.pump();
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].wr_id, 77U);
  EXPECT_EQ(got[0].op, WcOp::kDrain);
  EXPECT_EQ(got[0].status, Errc::kOk);
  EXPECT_EQ(got[1].wr_id, 3U);
  EXPECT_EQ(got[1].op, WcOp::kSend);
  EXPECT_EQ(drain(peer_cq_).size(), 2U) << "it is no message";
}

TEST_F(QueuePairStateTest, DrainOfAnEmptyQueueCompletesAtOnce) {
  for (const bool over : {false, true}) {
    if (over) qp_->abort();
    ASSERT_TRUE(qp_->drain(5).ok());
    const auto got = drain(cq_);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].op, WcOp::kDrain);
    EXPECT_EQ(got[0].status, Errc::kOk);
  }
}

TEST_F(QueuePairStateTest, DrainWaitsForTheConnectionWithWhatIsBeforeIt) {
  post(*qp_, 1);
  ASSERT_TRUE(qp_->drain(2).ok());
  EXPECT_TRUE(cq_.empty());
  qp_->abort();
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].status, Errc::kFlushed);
  EXPECT_EQ(got[1].wr_id, 2U);
  EXPECT_EQ(got[1].op, WcOp::kDrain);
}

TEST_F(QueuePairStateTest, DrainTakesAPlaceOfTheQueue) {
  const auto small = make_qp(pd_, cq_, 2);
  post(*small, 1);
  ASSERT_TRUE(small->drain(2).ok());
  EXPECT_EQ(small->drain(3).error().code, Errc::kQueueFull);
  EXPECT_EQ(small->query().value().sends_posted, 2U);
  small->abort();
  while (small->drain(4)) {
  }
  EXPECT_EQ(small->drain(4).error().code, Errc::kQueueFull) << "the completion queue has no room";
  EXPECT_EQ(drain(cq_).size(), 64U);
}

// Another thread may be between the end of the connection and its completions.
TEST_F(QueuePairStateTest, ErrorHasCompletedAllThoughSomebodyElseBeganIt) {
  Joined joined(qp_, peer_);
  for (std::uint64_t i = 1; i <= 2; ++i) ASSERT_TRUE(qp_->post_recv({.wr_id = i}).ok());
  {
    const auto lock = qp_->lock();
    test::core_of(*qp_).abort(make_error(Errc::kAborted));
  }
  EXPECT_TRUE(cq_.empty());
  ASSERT_TRUE(qp_->modify(State::kError).ok());
  EXPECT_EQ(drain(cq_).size(), 2U);
}

// The peer may still send, and those go to it.
TEST_F(QueuePairStateTest, SqDrainTakesReceivesThoughTheCompletionQueueIsFull) {
  const auto qp = make_qp(pd_, cq_, 80);
  Joined joined(qp, peer_);
  for (std::uint64_t i = 0; i < cq_.capacity(); ++i) ASSERT_TRUE(cq_.push(Completion{}));
  ASSERT_TRUE(qp->modify(State::kSqDrain).ok());
  EXPECT_TRUE(qp->post_recv({.wr_id = 1}).ok());
  qp->abort();  // which overflows
}

// A peer-to-peer Responder that has sent its Reply.
TEST_F(QueuePairStateTest, QueryTellsWhatWasAgreedOnBeforeThePeerIsHeard) {
  const TimePoint now{std::chrono::seconds(1)};
  mpa::Policy policy;
  policy.peer_to_peer = true;
  mpa::Initiator initiator(policy, {}, now);
  const Bytes request(initiator.tx_bytes().begin(), initiator.tx_bytes().end());
  mpa::Responder responder(policy, now);
  ASSERT_EQ(responder.rx(request, now), request.size());
  ASSERT_TRUE(responder.poll_event().has_value());
  ASSERT_TRUE(responder.accept(5, 6, {}).ok());
  test::CountingDriver driver(*qp_);
  {
    const auto lock = qp_->lock();
    qp_->set_driver(&driver, &driver.core);
    driver.core.start(std::move(responder), now);
    std::size_t n = 0;
    for (const ConstBytes b : driver.core.tx_buffers(now)) n += b.size();
    driver.core.tx_commit(n, now);
  }
  const auto a = qp_->query().value();
  EXPECT_EQ(a.state, State::kRts);
  EXPECT_FALSE(a.established);
  EXPECT_GT(a.ird, 0U);
  EXPECT_GT(a.mulpdu, 1000U);
  EXPECT_TRUE(a.crc);
}

TEST_F(QueuePairStateTest, MayBeAskedWhileOthersPostAndEndIt) {
  Joined joined(qp_, peer_);
  std::atomic<bool> over{false}, asked{false};
  std::thread asks([&] {
    for (; !over; asked = true) {
      const auto a = qp_->query().value();
      EXPECT_TRUE(a.state == State::kRts || a.state == State::kError);
      EXPECT_LE(a.receives_posted, a.rq_depth);
      (void)qp_->state();
      (void)qp_->drain(1);
      (void)drain(cq_);
    }
  });
  while (!asked) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) (void)qp_->post_recv({.wr_id = 1});
  EXPECT_TRUE(qp_->modify(State::kError).ok());
  over = true;
  asks.join();
  EXPECT_EQ(qp_->state(), State::kError);
}

}  // namespace
}  // namespace iwarp::verbs
