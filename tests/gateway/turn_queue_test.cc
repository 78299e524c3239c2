#include "iwarp/gateway/turn_queue.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

class TurnQueueTest : public ::testing::Test {
 protected:
  struct Bulk : TurnTaker {
    Bulk(TurnQueueTest& t, char n) : test(t), name(n) {}
    void take_turn() override {
      test.told += name;
      test.now += test.cost;
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
  std::chrono::nanoseconds now{}, cost{};  // processor time, and what a turn takes of it
  std::shared_ptr<TurnQueue> queue = std::make_shared<TurnQueue>(io, [this] { return now; });
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
  EXPECT_EQ(told, "ayxb");
}

// Else hundreds of busy sessions that move little would leave 64 KiB a round to those that move much.
TEST_F(TurnQueueTest, GivesMoreTurnsWhereTheOthersTakeLong) {
  cost = 300us;
  for (const auto& [others, expected] : {std::pair{100us, "axbcdef"}, {1000us, "abxcdef"}, {50'000us, "abcdxef"}}) {
    std::vector<std::shared_ptr<Bulk>> all;
    told.clear();
    for (const char name : {'a', 'b', 'c', 'd', 'e', 'f'}) queue->add(all.emplace_back(bulk(name)));
    something_comes('x');
    now += others;
    io.restart();
    io.run();
    EXPECT_EQ(told, expected) << "others took " << others.count() << " us";
  }
}

TEST_F(TurnQueueTest, ProcessorTimePassesWithWork) {
  const auto begin = TurnQueue::processor_time();
  while (TurnQueue::processor_time() - begin < 1ms) {
  }
  const auto worked = TurnQueue::processor_time();
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(TurnQueue::processor_time() - worked, 40ms);
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
