// Requests for queue pairs that are not in RTR: whose are held, for how long, and how many.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/dropin/fake_peer.h"
#include "tests/dropin/roce_end.h"

namespace iwarp::dropin {
namespace {

using namespace std::chrono_literals;

class HeldRequests : public ::testing::Test {
 protected:
  // Of a queue pair of nobody's.
  [[nodiscard]] RendezvousMessage message(std::uint32_t from) const {
    return {.kind = RendezvousMessage::Kind::kKnock, .from = from, .to = end.qp->qp_num, .from_psn = 1, .to_psn = 2};
  }
  // Takes all places that a queue pair has; what waits there.
  [[nodiscard]] std::vector<std::future<Answer>> ask_for_all_places(const End& of) const {
    std::vector<std::future<Answer>> answers;
    for (std::uint32_t i = 0; i <= Rendezvous::kMostHeld; ++i) {
      auto m = message(100 + i);
      m.to = of.qp->qp_num;
      answers.push_back(ask(m));
    }
    // One of them is one too many; the others wait.
    EXPECT_EQ(take_first(answers), Refusal::kTooMany);
    return answers;
  }
  static std::optional<Refusal> take_first(std::vector<std::future<Answer>>& answers) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < until) {
      const auto first = std::ranges::find_if(answers, [](auto& answer) { return is_there(answer); });
      if (first == answers.end()) continue;
      const auto why = first->get().why;
      answers.erase(first);
      return why;
    }
    return std::nullopt;
  }

  End end{0x42};
};

TEST_F(HeldRequests, AreLimitedForEachQueuePair) {
  auto answers = ask_for_all_places(end);
  EXPECT_EQ(std::ranges::count_if(answers, [](auto& answer) { return is_there(answer); }), 0);
  const End other(0x43);
  auto elsewhere = message(100);
  elsewhere.to = other.qp->qp_num;
  auto held = ask(elsewhere);
  EXPECT_FALSE(is_there(held, 50ms));
  end.destroy();
  for (auto& answer : answers) EXPECT_EQ(answer.get().why, Refusal::kNoQueuePair);
}

TEST_F(HeldRequests, OfOneSenderAreOne) {
  auto first = ask(message(7));
  EXPECT_FALSE(is_there(first, 50ms));
  auto second = ask(message(7));
  EXPECT_EQ(first.get().why, Refusal::kTooMany);
  EXPECT_FALSE(is_there(second, 50ms));
  auto of_another_address = ask(message(7), "127.0.0.2");
  EXPECT_FALSE(is_there(of_another_address, 50ms));
  EXPECT_FALSE(is_there(second));
  end.destroy();
  EXPECT_EQ(second.get().why, Refusal::kNoQueuePair);
  EXPECT_EQ(of_another_address.get().why, Refusal::kNoQueuePair);
}

TEST_F(HeldRequests, AreHeldForSomeSecondsOnly) {
  const auto begin = std::chrono::steady_clock::now();
  auto answer = ask(message(7));
  ASSERT_TRUE(is_there(answer, 20s));
  EXPECT_EQ(answer.get().why, Refusal::kTooMany);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, Rendezvous::kHeldFor);
}

TEST_F(HeldRequests, AreLimitedForAll) {
  std::vector<std::unique_ptr<End>> ends;
  std::vector<std::future<Answer>> answers;
  const auto begin = std::chrono::steady_clock::now();
  while (answers.size() <= Rendezvous::kMostHeldOfAll) {
    ends.push_back(std::make_unique<End>(1));
    for (std::uint32_t i = 0; i < Rendezvous::kMostHeld; ++i) {
      auto m = message(100 + i);
      m.to = ends.back()->qp->qp_num;
      answers.push_back(ask(m));
    }
  }
  EXPECT_EQ(take_first(answers), Refusal::kTooMany);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Rendezvous::kHeldFor) << "not for its time was over";
  ends.clear();
  for (auto& answer : answers) EXPECT_TRUE(answer.get().why);
}

TEST_F(HeldRequests, ForAQueuePairOfRdmaCmThereAreNone) {
  auto before = ask(message(7));
  EXPECT_FALSE(is_there(before, 50ms));
  rendezvous().leave_to_rdma_cm(end.qp->qp_num);
  EXPECT_EQ(before.get().why, Refusal::kNoQueuePair);
  EXPECT_EQ(ask(message(7)).get().why, Refusal::kNoQueuePair);
  // Until it is connected by ibv_modify_qp() after all.
  ASSERT_EQ(end.rtr(7, 5), 0);
  EXPECT_EQ(ask(message(7)).get().why, Refusal::kOtherPeer);
}

// As of somebody who knows the port, and would keep the peer away.
TEST_F(HeldRequests, DoNotKeepThePeerAway) {
  for (const bool smaller : {true, false}) {
    End one(1), other(2);
    End& waits = smaller ? other : one;
    End& comes = smaller ? one : other;
    auto answers = ask_for_all_places(waits);
    ASSERT_EQ(comes.rtr(waits), 0);
    ASSERT_EQ(comes.rts(), 0);
    comes.send(1, "in spite of them");
    comes.expect_nothing();
    waits.receive(2);
    ASSERT_EQ(waits.rtr(comes), 0);
    comes.expect(1, IBV_WC_SUCCESS);
    waits.expect(2, IBV_WC_SUCCESS);
    for (auto& answer : answers) EXPECT_EQ(answer.get().why, Refusal::kOtherPeer);
  }
}

// A peer begins anew, by RESET, while this end's Request waits there.
TEST_F(HeldRequests, AResetThereIsOutlived) {
  for (const bool smaller : {true, false}) {
    End one(1), other(2);
    End& waits = smaller ? other : one;
    End& comes = smaller ? one : other;
    ASSERT_EQ(comes.rtr(waits), 0);
    ASSERT_EQ(comes.rts(), 0);
    std::this_thread::sleep_for(100ms);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(waits.qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(waits.qp, &attr, IBV_QP_STATE), 0);
    waits.init();
    ASSERT_EQ(waits.rtr(comes), 0);
    ASSERT_EQ(waits.rts(), 0);
    exchange(comes, waits);
  }
}

}  // namespace
}  // namespace iwarp::dropin
