// What an end of the RoCE presentation does when its peer does not come at once, is not there, or says wrong things.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "dropin/verbs/lost_peer.h"
#include "tests/dropin/fake_peer.h"
#include "tests/dropin/roce_end.h"

namespace iwarp::dropin {
namespace {

using namespace std::chrono_literals;
using Kind = RendezvousMessage::Kind;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kPeerPsn = 0x99;

class Again : public ::testing::Test {
 protected:
  // This end connects to the peer, or knocks there.
  void begin_connecting() { begin(peer.larger()); }
  void begin_knocking() { begin(peer.smaller()); }
  void begin(std::uint32_t number) {
    of_peer = number;
    ASSERT_EQ(end.rtr(number, kPeerPsn), 0);
    ASSERT_EQ(end.rts(), 0);
  }
  [[nodiscard]] RendezvousMessage to_end(Kind kind) const {
    return {.kind = kind, .from = of_peer, .to = end.qp->qp_num, .from_psn = kPeerPsn, .to_psn = end.psn};
  }
  void expect_connected() {
    end.send(1, "arrives");
    end.expect(1, IBV_WC_SUCCESS);
    EXPECT_EQ(end.state(), IBV_QPS_RTS);
  }
  void expect_lost() {
    end.send(1, "to nobody");
    end.expect(1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(end.state(), IBV_QPS_ERR);
  }

  std::vector<std::unique_ptr<End>> unfit;
  // Its number is between those of the peer.
  std::unique_ptr<End> own = [this] {
    for (;;) {
      auto made = std::make_unique<End>(0x77);
      const std::uint32_t index = made->qp->qp_num >> 16;
      if (index > 0 && index < 0xff) return made;
      unfit.push_back(std::move(made));
    }
  }();
  End& end = *own;
  FakePeer peer;
  std::uint32_t of_peer = 0;
};

TEST_F(Again, ARequestThatMayDoLaterIsSentAgain) {
  peer.open();
  begin_connecting();
  const auto first = peer.reject(Refusal::kTooMany);
  ASSERT_TRUE(first);
  EXPECT_EQ(
      *first,
      (RendezvousMessage{
          .kind = Kind::kConnect, .from = end.qp->qp_num, .to = of_peer, .from_psn = end.psn, .to_psn = kPeerPsn}));
  EXPECT_EQ(peer.reject(Refusal::kNoQueuePair), first);
  EXPECT_EQ(peer.reject(Refusal::kTooMany), first);
  EXPECT_EQ(peer.accept(), first);
  expect_connected();
}

TEST_F(Again, ARequestThatTcpLosesIsSentAgain) {
  begin_connecting();
  std::this_thread::sleep_for(50ms);  // nobody listens yet
  for (int i = 0; i < 2; ++i) peer.reset_one();
  peer.open();
  EXPECT_TRUE(peer.accept());
  expect_connected();
}

TEST_F(Again, WhoIsRefusedIsLostAtOnce) {
  peer.open();
  begin_connecting();
  const auto begin = Clock::now();
  EXPECT_TRUE(peer.reject(Refusal::kOtherPeer));
  expect_lost();
  EXPECT_LT(Clock::now() - begin, kTries - 500ms);
  EXPECT_FALSE(peer.anybody(150ms));
}

TEST_F(Again, WhereNobodyListensIsTriedForAWhile) {
  for (const bool connects : {true, false}) {
    End one(0x70);
    const auto begin = Clock::now();
    ASSERT_EQ(one.rtr(connects ? peer.larger() : peer.smaller(), kPeerPsn), 0);
    ASSERT_EQ(one.rts(), 0);
    one.send(1, "to nobody");
    one.expect(1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_GE(Clock::now() - begin, kTries);
  }
}

TEST_F(Again, AKnockThatFailsIsMadeAgain) {
  begin_knocking();
  peer.reset_one();
  peer.open();
  const auto first = peer.reject(Refusal::kTooMany);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first,
            (RendezvousMessage{
                .kind = Kind::kKnock, .from = end.qp->qp_num, .to = of_peer, .from_psn = end.psn, .to_psn = kPeerPsn}));
  EXPECT_EQ(peer.reject(Refusal::kNoQueuePair), first);
  EXPECT_EQ(peer.reject(Refusal::kHeard), first);
  EXPECT_EQ(peer.reject(Refusal::kHeard), first) << "nothing came of the first";
  auto connected = ask(to_end(Kind::kConnect));
  expect_connected();
  EXPECT_FALSE(connected.get().error);
  EXPECT_FALSE(peer.anybody(1200ms)) << "there is no need to";
}

TEST_F(Again, AKnockThatIsRefusedLosesThePeerAndAcceptsNobody) {
  peer.open();
  begin_knocking();
  EXPECT_TRUE(peer.reject(Refusal::kOtherPeer));
  expect_lost();
  EXPECT_EQ(ask(to_end(Kind::kConnect)).get().why, Refusal::kOtherPeer);
}

TEST_F(Again, WhoIsConnectedInTimeDoesNotKnock) {
  peer.open();
  begin_knocking();
  auto connected = ask(to_end(Kind::kConnect));
  expect_connected();
  EXPECT_FALSE(connected.get().error);
  EXPECT_FALSE(peer.anybody(100ms));
}

TEST_F(Again, AKnockComesNotAtOnce) {
  peer.open();
  const auto begin = Clock::now();
  begin_knocking();
  const auto request = peer.next();
  ASSERT_NE(request, nullptr);
  EXPECT_GE(Clock::now() - begin, 20ms);
}

TEST_F(Again, FromAnotherAddressNobodyIsAccepted) {
  begin_knocking();
  EXPECT_EQ(ask(to_end(Kind::kConnect), "127.0.0.2").get().why, Refusal::kOtherPeer);
  auto connected = ask(to_end(Kind::kConnect));
  expect_connected();
  EXPECT_FALSE(connected.get().error);
}

// In RTR an end does not know its own PSN.
TEST_F(Again, WhatWasAcceptedWithAnotherPsnEndsWithRts) {
  of_peer = peer.smaller();
  ASSERT_EQ(end.rtr(of_peer, kPeerPsn), 0);
  auto message = to_end(Kind::kConnect);
  message.to_psn ^= 1;
  auto answer = ask(message).get();
  EXPECT_FALSE(answer.error) << "it cannot know better";
  EXPECT_EQ(end.state(), IBV_QPS_RTR);
  end.receive(5);
  ASSERT_EQ(end.rts(), 0);
  EXPECT_EQ(end.state(), IBV_QPS_ERR);
  end.expect(5, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ask(to_end(Kind::kConnect)).get().why, Refusal::kOtherPeer);
}

TEST_F(Again, InRtsAnotherPsnIsRefused) {
  begin_knocking();
  auto message = to_end(Kind::kConnect);
  message.to_psn ^= 1;
  EXPECT_EQ(ask(message).get().why, Refusal::kOtherPeer);
  message.from_psn ^= 1;
  message.to_psn ^= 1;
  EXPECT_EQ(ask(message).get().why, Refusal::kOtherPeer);
  auto connected = ask(to_end(Kind::kConnect));
  expect_connected();
}

// In RTR, and a knock has named another PSN: that one.
class WronglyKnocked : public Again {
 protected:
  void SetUp() override {
    Again::SetUp();
    peer.open();
    of_peer = peer.larger();
    ASSERT_EQ(end.rtr(of_peer, kPeerPsn), 0);
    auto wrong = to_end(Kind::kKnock);
    wrong.to_psn = wrong_psn = wrong.to_psn ^ 1;
    EXPECT_EQ(ask(wrong).get().why, Refusal::kHeard);
  }

  std::uint32_t wrong_psn = 0;
};

// A knock names the PSN for an end that stays in RTR, but does not set it.
TEST_F(WronglyKnocked, InRtrIsMadeGood) {
  auto said = peer.reject(Refusal::kOtherPeer);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->from_psn, wrong_psn);
  // The true one comes later.
  EXPECT_EQ(ask(to_end(Kind::kKnock)).get().why, Refusal::kHeard);
  for (int i = 0; i < 20 && said->from_psn != end.psn; ++i) {
    said = peer.reject(Refusal::kOtherPeer);
    ASSERT_TRUE(said);
  }
  EXPECT_EQ(said->from_psn, end.psn);
  EXPECT_EQ(peer.accept()->from_psn, end.psn);
  ASSERT_EQ(end.rts(), 0);
  expect_connected();
}

TEST_F(WronglyKnocked, InRtrIsMadeGoodByRts) {
  const auto first = peer.next();  // under way when this end comes to RTS
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(end.rts(), 0);
  EXPECT_TRUE(first->reject(octets_of(Refusal::kOtherPeer)));
  const auto said = peer.accept();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->from_psn, end.psn);
  expect_connected();
}

TEST_F(Again, WhoTakesAWrongPsnIsLeftWithRts) {
  peer.open();
  of_peer = peer.larger();
  ASSERT_EQ(end.rtr(of_peer, kPeerPsn), 0);
  auto wrong = to_end(Kind::kKnock);
  wrong.to_psn ^= 1;
  EXPECT_EQ(ask(wrong).get().why, Refusal::kHeard);
  ASSERT_TRUE(peer.accept());
  const auto is_up = [&] { return queue_pair(end.qp).state() == verbs::QueuePairState::kRts; };
  for (int i = 0; i < 2000 && !is_up(); ++i) std::this_thread::sleep_for(5ms);
  ASSERT_TRUE(is_up());
  ASSERT_EQ(end.rts(), 0);
  for (int i = 0; i < 2000 && end.state() != IBV_QPS_ERR; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(end.state(), IBV_QPS_ERR);
}

TEST_F(Again, RememberedNowhereWhenItBeginsAnew) {
  begin_connecting();
  std::this_thread::sleep_for(20ms);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE), 0);
  end.init();
  peer.open();
  EXPECT_FALSE(peer.anybody(250ms)) << "what was given up is not tried again";
  begin_connecting();
  EXPECT_TRUE(peer.accept());
  expect_connected();
}

}  // namespace
}  // namespace iwarp::dropin
