#include "iwarp/verbs/async_event.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using test::drain;
using test::Joined;
using test::make_qp;

bool readable(int fd) {
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 0) == 1;
}

TEST(AsyncEvents, ComeInTheOrderRaisedEachSourceOnce) {
  const auto events = std::make_shared<AsyncEvents>();
  AsyncEvents::Source first, second;
  EXPECT_FALSE(events->poll());
  first.raise(events, {.qp_number = 1});
  second.raise(events, {.qp_number = 2});
  first.raise(events, {.qp_number = 3});
  EXPECT_EQ(events->poll()->qp_number, 1U) << "the second one waits no more than the first did";
  first.raise(events, {.qp_number = 4});
  EXPECT_EQ(events->poll()->qp_number, 2U);
  EXPECT_EQ(events->poll()->qp_number, 4U);
  EXPECT_FALSE(events->poll());
}

// A completion queue may serve queue pairs of several contexts.
TEST(AsyncEvents, AreToldWhereTheyHappened) {
  auto here = std::make_shared<AsyncEvents>();
  const auto there = std::make_shared<AsyncEvents>();
  AsyncEvents::Source source;
  source.raise(here, {.qp_number = 1});
  source.raise(there, {.qp_number = 2});
  EXPECT_FALSE(there->poll()) << "one waits already";
  EXPECT_EQ(here->poll()->qp_number, 1U);
  source.raise(there, {.qp_number = 3});
  EXPECT_FALSE(here->poll());
  EXPECT_EQ(there->poll()->qp_number, 3U);
  source.raise(here, {.qp_number = 4});
  here.reset();  // goes with the source's next event
  source.withdraw();
  source.raise(there, {.qp_number = 5});
  EXPECT_EQ(there->poll()->qp_number, 5U);
}

TEST(AsyncEvents, OfWhatIsGoneAreNotTold) {
  const auto events = std::make_shared<AsyncEvents>();
  // Withdrawn from the front, the middle and the back of the list, and all of it.
  for (std::size_t gone = 0; gone < 3; ++gone) {
    std::array<std::optional<AsyncEvents::Source>, 3> sources;
    for (std::uint32_t i = 0; i < 3; ++i) sources[i].emplace().raise(events, {.qp_number = i});
    sources[gone].reset();
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (i != gone) {
        EXPECT_EQ(events->poll()->qp_number, i);
      }
    }
    EXPECT_FALSE(events->poll());
    sources[(gone + 1) % 3]->raise(events, {});
  }
  EXPECT_FALSE(events->poll());
}

TEST(AsyncEvents, TheDescriptorIsReadableWhileOneWaits) {
  const auto events = std::make_shared<AsyncEvents>();
  AsyncEvents::Source early, late;
  early.raise(events, {.qp_number = 1});
  const int fd = events->fd().value();
  EXPECT_EQ(events->fd().value(), fd);
  EXPECT_TRUE(readable(fd)) << "what came before the descriptor counts";
  late.raise(events, {.qp_number = 2});
  EXPECT_TRUE(events->poll());
  EXPECT_TRUE(readable(fd));
  EXPECT_TRUE(events->poll());
  EXPECT_FALSE(readable(fd));
  early.raise(events, {});
  EXPECT_TRUE(readable(fd));
  early.withdraw();
  EXPECT_FALSE(readable(fd));
}

TEST(AsyncEvents, RaisedPolledAndWithdrawnByThreads) {
  const auto events = std::make_shared<AsyncEvents>();
  const int fd = events->fd().value();
  std::atomic<int> running{2};
  std::atomic<std::uint64_t> polled{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5000; ++n) {
        AsyncEvents::Source a, b;
        a.raise(events, {});
        b.raise(events, {});
      }
      --running;
    });
  }
  threads.emplace_back([&] {
    while (running > 0) polled += events->poll() ? 1 : 0;
  });
  for (auto& t : threads) t.join();
  EXPECT_FALSE(events->poll());
  EXPECT_FALSE(readable(fd));
}

class AsyncEventTest : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  ProtectionDomain pd_{context_};
  CompletionQueue cq_{256}, peer_cq_{256};
};

TEST_F(AsyncEventTest, AnErrorIsFatalAnEndInOrderIsNot) {
  Joined broken(make_qp(pd_, cq_), make_qp(pd_, peer_cq_)), closed(make_qp(pd_, cq_), make_qp(pd_, peer_cq_));
  {
    const auto lock = closed.initiator->lock();
    test::core_of(*closed.initiator).disconnect(TimePoint{std::chrono::seconds(1)});
  }
  closed.pump();
  {
    const auto lock = closed.responder->lock();
    test::core_of(*closed.responder).rx_end(stream::TcpEnd::kFin, TimePoint{std::chrono::seconds(1)});
    closed.responder->drain_completions();
  }
  closed.initiator->abort();
  EXPECT_EQ(closed.responder->endpoint().phase(), stream::Phase::kClosed);
  EXPECT_FALSE(context_->poll_async_event()) << "neither was an error";

  ASSERT_TRUE(broken.initiator->post_send(SendWr{}).ok());
  broken.pump();
  const auto at_peer = context_->poll_async_event();
  ASSERT_TRUE(at_peer);
  EXPECT_EQ(at_peer->type, AsyncEventType::kQpFatal);
  EXPECT_EQ(at_peer->qp_number, broken.responder->number());
  EXPECT_EQ(at_peer->reason.code, Errc::kUntaggedNoBuffer);
  const auto here = context_->poll_async_event();
  ASSERT_TRUE(here);
  EXPECT_EQ(here->qp_number, broken.initiator->number());
  EXPECT_EQ(here->reason.code, Errc::kRemoteTerminate);
  broken.initiator->abort();
  EXPECT_FALSE(context_->poll_async_event()) << "each once";
}

TEST_F(AsyncEventTest, AnAttemptThatFailsIsNoFatalEnd) {
  const auto qp = make_qp(pd_, cq_);
  stream::Connection core(qp->endpoint(), {});
  const auto lock = qp->lock();
  core.start(mpa::Initiator({}, {}, TimePoint{}), TimePoint{});
  core.rx_end(stream::TcpEnd::kReset, TimePoint{});
  core.abort(make_error(Errc::kConnectionLost));
  EXPECT_EQ(qp->endpoint().phase(), stream::Phase::kClosed);
  qp->drain_completions();
  EXPECT_FALSE(context_->poll_async_event());
}

TEST_F(AsyncEventTest, AnOverflowNamesTheQueueAndWhoseCompletionItWas) {
  CompletionQueue small(1);
  {
    const auto qp = make_qp(pd_, small, 4);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(qp->post_recv(RecvWr{}).ok());
    qp->abort();
    const auto told = context_->poll_async_event();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->type, AsyncEventType::kCqOverflow);
    EXPECT_EQ(told->cq, &small);
    EXPECT_EQ(told->qp_number, qp->number());
    EXPECT_FALSE(context_->poll_async_event());
  }
  // Those of two connections that are told of before anybody polls are one.
  for (int i = 0; i < 2; ++i) {
    const auto qp = make_qp(pd_, small, 4);
    ASSERT_TRUE(qp->post_recv(RecvWr{}).ok());
    qp->abort();
  }
  EXPECT_EQ(context_->poll_async_event()->type, AsyncEventType::kCqOverflow);
  EXPECT_FALSE(context_->poll_async_event());
}

TEST_F(AsyncEventTest, AnOverflowOfAQueueThatIsGoneIsNotTold) {
  auto small = std::make_unique<CompletionQueue>(0);
  const auto qp = make_qp(pd_, *small, 4), later = make_qp(pd_, *small, 4);
  ASSERT_TRUE(qp->post_recv(RecvWr{}).ok() && later->post_recv(RecvWr{}).ok());
  qp->abort();
  small.reset();
  later->abort();
  EXPECT_FALSE(context_->poll_async_event());
}

TEST_F(AsyncEventTest, AQueuePairThatGoesTakesItsEventsWithIt) {
  const auto held = make_qp(pd_, cq_);
  {
    Joined broken(held, make_qp(pd_, peer_cq_));
    ASSERT_TRUE(held->post_send(SendWr{}).ok());
    broken.pump();
    EXPECT_GT(held->endpoint().phase(), stream::Phase::kDraining);
  }
  held->drop_events();  // while somebody else still shares it
  EXPECT_FALSE(context_->poll_async_event());
  held->abort();
  EXPECT_FALSE(context_->poll_async_event());
}

TEST_F(AsyncEventTest, AForkedChildHearsNothing) {
  AsyncEvents::Source source;
  source.raise(context_->async_events(), {.qp_number = 1});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool silent = !context_->poll_async_event() && !context_->async_event_fd();
    source.withdraw();
    ::_exit(silent ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(context_->poll_async_event());
}

}  // namespace
}  // namespace iwarp::verbs
