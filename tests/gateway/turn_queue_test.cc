#include "iwarp/gateway/turn_queue.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <functional>
#include <string>

namespace iwarp::gateway::test {
namespace {

class TurnQueueTest : public ::testing::Test {
 protected:
  struct Bulk : TurnTaker {
    Bulk(TurnQueueTest& t, char n) : test(t), name(n) {}
    void take_turn() override {
      test.told += name;
      if (then) then();
    }
    TurnQueueTest& test;
    char name;
    std::function<void()> then;
  };
  std::shared_ptr<Bulk> bulk(char name) { return std::make_shared<Bulk>(*this, name); }
  // Something that the event loop finds ready when it looks next.
  void something_comes(char name) {
    boost::asio::post(io, [this, name] { told += name; });
  }

  boost::asio::io_context io{1};
  std::shared_ptr<TurnQueue> queue = std::make_shared<TurnQueue>(io);
  std::string told;
};

TEST_F(TurnQueueTest, GivesTurnsInTheOrderOfComing) {
  const auto a = bulk('a'), b = bulk('b'), c = bulk('c');
  for (const auto& each : {b, a, c}) queue->add(each);
  EXPECT_EQ(told, "") << "inside add()";
  io.run();
  EXPECT_EQ(told, "bac");
}

TEST_F(TurnQueueTest, ServesWhatCameBetweenTwoTurns) {
  const auto a = bulk('a'), b = bulk('b');
  a->then = [&] { something_comes('x'); };
  for (const auto& each : {a, b}) queue->add(each);
  something_comes('y');
  io.run();
  EXPECT_EQ(told, "aybx") << "b's turn was asked for before x came, and no other is";
}

TEST_F(TurnQueueTest, NobodyWaitsTwice) {
  const auto a = bulk('a'), b = bulk('b');
  for (const auto& each : {a, b, a, a}) queue->add(each);
  io.run();
  EXPECT_EQ(told, "ab");
}

TEST_F(TurnQueueTest, WhoHasMoreToDoComesBehindTheOthers) {
  const auto a = bulk('a'), b = bulk('b');
  for (const auto& each : {a, b})
    each->then = [&, me = each.get()] {
      if (told.size() < 6) queue->add(me == a.get() ? a : b);
    };
  for (const auto& each : {a, b}) queue->add(each);
  io.run();
  EXPECT_EQ(told.substr(0, 6), "ababab");
}

TEST_F(TurnQueueTest, PassesOverWhoIsGone) {
  auto a = bulk('a');
  const auto b = bulk('b');
  for (const auto& each : {a, b}) queue->add(each);
  a.reset();
  io.run();
  EXPECT_EQ(told, "b");
}

TEST_F(TurnQueueTest, GoesWithoutGivingTurns) {
  const auto a = bulk('a');
  queue->add(a);
  queue.reset();
  io.run();
  EXPECT_EQ(told, "");
}

TEST_F(TurnQueueTest, TurnsAreShorterWhileOthersWait) {
  const auto a = bulk('a'), b = bulk('b');
  EXPECT_EQ(queue->octets(), TurnQueue::kTurnBytes);
  queue->add(a);
  EXPECT_EQ(queue->octets(), TurnQueue::kTurnBytes / 4);
  std::size_t alone = 0;
  a->then = [&] { alone = queue->octets(); };
  io.run();
  EXPECT_EQ(alone, TurnQueue::kTurnBytes);
}

}  // namespace
}  // namespace iwarp::gateway::test
