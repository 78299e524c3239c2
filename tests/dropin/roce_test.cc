// The RoCE presentation in one process: queue pairs that ibv_modify_qp() connects, and each state in which one may go.
#include "tests/dropin/roce_end.h"
//
#include <array>
#include <thread>

#include "dropin/verbs/device.h"
#include "dropin/verbs/lost_peer.h"
#include "dropin/verbs/rendezvous.h"
#include "tests/dropin/in_child.h"
#include "tests/support/sanitized.h"

// Of the library's, and in no header.
extern "C" int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, std::size_t size);

namespace iwarp::dropin {
namespace {

using namespace std::chrono_literals;

class DropinRoce : public ::testing::TestWithParam<bool> {
 protected:
  // Either may be the smaller.
  End& one() { return GetParam() ? first_ : second_; }
  End& other() { return GetParam() ? second_ : first_; }

 private:
  End first_{0x111111}, second_{0x222222};
};
INSTANTIATE_TEST_SUITE_P(SmallerAndLarger, DropinRoce, testing::Bool());

TEST_P(DropinRoce, ConnectsAndExchangesBothWays) {
  ASSERT_EQ(one().rtr(other()), 0);
  ASSERT_EQ(one().rts(), 0);
  EXPECT_EQ(one().state(), IBV_QPS_RTS) << "without waiting for the peer";
  one().send(7, "early");
  other().receive(8);
  ASSERT_EQ(other().rtr(one()), 0);
  ASSERT_EQ(other().rts(), 0);
  one().expect(7, IBV_WC_SUCCESS);
  other().expect(8, IBV_WC_SUCCESS);
  exchange(other(), one());
  exchange(one(), other());
}

TEST_P(DropinRoce, OneThatStaysInRtrIsServedAllTheSame) {
  other().receive(1);
  ASSERT_EQ(one().rtr(other()), 0);
  ASSERT_EQ(other().rtr(one()), 0);
  one().send(1, "to who does not send");
  ASSERT_EQ(one().rts(), 0);
  one().expect(1, IBV_WC_SUCCESS);
  other().expect(1, IBV_WC_SUCCESS);
  EXPECT_EQ(other().state(), IBV_QPS_RTR);
  ASSERT_EQ(other().rts(), 0);
  exchange(other(), one(), 2);
}

TEST_P(DropinRoce, AKnockOrRequestBeforeRtrIsHeld) {
  ASSERT_EQ(one().rtr(other()), 0);
  ASSERT_EQ(one().rts(), 0);
  std::this_thread::sleep_for(50ms);
  other().receive(1);
  ASSERT_EQ(other().rtr(one()), 0);
  one().send(1, "late");
  one().expect(1, IBV_WC_SUCCESS);
  other().expect(1, IBV_WC_SUCCESS);
}

TEST_P(DropinRoce, AttributesComeBackAsSet) {
  ASSERT_EQ(one().rtr(other()), 0);
  ASSERT_EQ(one().rts(), 0);
  ibv_qp_attr attr{};
  ibv_qp_init_attr made{};
  ASSERT_EQ(ibv_query_qp(one().qp, &attr, IBV_QP_STATE, &made), 0);
  EXPECT_EQ(attr.dest_qp_num, other().qp->qp_num);
  EXPECT_EQ(attr.rq_psn, other().psn);
  EXPECT_EQ(attr.sq_psn, one().psn);
  EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(attr.max_dest_rd_atomic, 4);
  EXPECT_EQ(attr.max_rd_atomic, 3);
  EXPECT_EQ(attr.timeout, 14);
  EXPECT_EQ(attr.retry_cnt, 7);
  EXPECT_EQ(attr.rnr_retry, 7);
  EXPECT_EQ(attr.min_rnr_timer, 12);
  EXPECT_EQ(attr.ah_attr.is_global, 1);
  EXPECT_EQ(std::memcmp(&attr.ah_attr.grh.dgid, &gid(), sizeof(ibv_gid)), 0);
}

TEST_P(DropinRoce, AWrongPsnConnectsNobody) {
  one().receive(1);
  ASSERT_EQ(one().rtr(other().qp->qp_num, other().psn + 1), 0);
  ASSERT_EQ(one().rts(), 0);
  ASSERT_EQ(other().rtr(one().qp->qp_num, one().psn + 1), 0);
  ASSERT_EQ(other().rts(), 0);
  one().send(2, "nobody reads it");
  one().expect(2, IBV_WC_RETRY_EXC_ERR);
  one().expect(1, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(one().state(), IBV_QPS_ERR);
}

TEST_P(DropinRoce, AnUnknownNumber) {
  const std::uint32_t gone = other().qp->qp_num;
  other().destroy();
  one().receive(1);
  ASSERT_EQ(one().rtr(gone, 5), 0);
  ASSERT_EQ(one().rts(), 0);
  one().expect_nothing();
  EXPECT_EQ(one().state(), IBV_QPS_RTS) << "nobody hears of it before sending";
  one().send(2, "to nobody");
  one().expect(2, IBV_WC_RETRY_EXC_ERR);
  one().expect(1, IBV_WC_WR_FLUSH_ERR);
}

TEST_P(DropinRoce, WhoSendsNothingDoesNotHearOfThePeersEnd) {
  ASSERT_EQ(one().rtr(other()), 0);
  ASSERT_EQ(one().rts(), 0);
  ASSERT_EQ(other().rtr(one()), 0);
  ASSERT_EQ(other().rts(), 0);
  exchange(one(), other());
  one().receive(2);
  const auto begin = std::chrono::steady_clock::now();
  other().destroy();
  one().expect_nothing();
  EXPECT_EQ(one().state(), IBV_QPS_RTS);
  one().receive(3);
  one().expect_nothing(10ms);
  one().send(4, "too late");
  one().expect(4, IBV_WC_RETRY_EXC_ERR);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kTries) << "programs end before they hear of it";
  one().expect(2, IBV_WC_WR_FLUSH_ERR);
  one().expect(3, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(one().state(), IBV_QPS_ERR);
}

TEST_P(DropinRoce, DestroyedInEachState) {
  one().destroy();  // INIT
  End fresh(1);
  ASSERT_EQ(fresh.rtr(other()), 0);
  fresh.destroy();  // RTR
  End again(2);
  ASSERT_EQ(again.rtr(other()), 0);
  ASSERT_EQ(again.rts(), 0);
  again.send(1, "never sent");
  again.destroy();  // connecting, or knocking
  again.expect_nothing(20ms);
  End last(3);
  ASSERT_EQ(last.rtr(other()), 0);
  ASSERT_EQ(last.rts(), 0);
  ASSERT_EQ(other().rtr(last), 0);
  ASSERT_EQ(other().rts(), 0);
  exchange(last, other(), 9);
  last.destroy();
}

TEST_P(DropinRoce, ResetBeginsAnew) {
  ASSERT_EQ(one().rtr(other()), 0);
  ASSERT_EQ(one().rts(), 0);
  ASSERT_EQ(other().rtr(one()), 0);
  ASSERT_EQ(other().rts(), 0);
  exchange(one(), other());
  one().receive(5);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(one().qp, &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_modify_qp(other().qp, &attr, IBV_QP_STATE), 0);
  one().expect_nothing(10ms);
  EXPECT_EQ(one().state(), IBV_QPS_RESET);
  one().init();
  other().init();
  ASSERT_EQ(one().rtr(other()), 0);
  ASSERT_EQ(one().rts(), 0);
  ASSERT_EQ(other().rtr(one()), 0);
  ASSERT_EQ(other().rts(), 0);
  exchange(other(), one(), 6);
}

TEST_P(DropinRoce, ErrFlushes) {
  one().receive(1);
  ASSERT_EQ(one().rtr(other()), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(one().qp, &attr, IBV_QP_STATE), 0);
  one().expect(1, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(one().state(), IBV_QPS_ERR);
  EXPECT_EQ(one().rts(), EINVAL);
}

TEST(DropinRoceAlone, AQueuePairMayBeItsOwnPeer) {
  End end(0x777);
  end.receive(1);
  ASSERT_EQ(end.rtr(end), 0);
  ASSERT_EQ(end.rts(), 0);
  end.send(2, "to myself");
  std::array<bool, 3> heard{};
  for (int i = 0; i < 2; ++i) {
    const ibv_wc wc = end.next();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.qp_num, end.qp->qp_num);
    heard.at(wc.wr_id) = true;
  }
  EXPECT_TRUE(heard[1] && heard[2]);
  EXPECT_STREQ(end.memory.data() + 2048, "to myself");
  end.receive(3);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE), 0);
  end.expect(3, IBV_WC_WR_FLUSH_ERR);
}

TEST(DropinRoceAlone, AForkedChildHasQueuePairsOfItsOwn) {
  if (iwarp::test::kSanitized)
    GTEST_SKIP() << "libsanitizer's allocator does not give back at fork() what another thread has locked";
  End one(1), other(2);
  ASSERT_EQ(one.rtr(other), 0);
  ASSERT_EQ(one.rts(), 0);
  const auto connects = [] {
    End first(3), second(4);
    const bool good = first.rtr(second) == 0 && first.rts() == 0 && second.rtr(first) == 0 && second.rts() == 0;
    if (good) exchange(first, second);
    return good && !::testing::Test::HasFailure();
  };
  EXPECT_EQ(test::in_child([&] {
              ibv_qp_attr attr{};
              attr.qp_state = IBV_QPS_RESET;
              return ibv_modify_qp(one.qp, &attr, IBV_QP_STATE) == EINVAL && other.rtr(one) == EINVAL && connects();
            }),
            0);
  ASSERT_EQ(other.rtr(one), 0);
  ASSERT_EQ(other.rts(), 0);
  exchange(one, other);
}

TEST(DropinRoceAlone, WhatCannotBe) {
  End end(1);
  ibv_qp_attr attr = End::path_to(end.qp->qp_num, 1);
  attr.ah_attr.grh.dgid = {};
  EXPECT_EQ(ibv_modify_qp(end.qp, &attr, kRtrMask), EDESTADDRREQ);
  attr.ah_attr.is_global = 0;
  attr.ah_attr.dlid = 1;
  EXPECT_EQ(ibv_modify_qp(end.qp, &attr, kRtrMask), EDESTADDRREQ) << "a LID names nobody";
  attr = End::path_to(end.qp->qp_num, 1);
  EXPECT_EQ(ibv_modify_qp(end.qp, &attr, kRtrMask & ~IBV_QP_RQ_PSN), EINVAL);
  EXPECT_EQ(end.rts(), EINVAL) << "INIT to RTS";
  EXPECT_EQ(end.state(), IBV_QPS_INIT);
}

TEST(DropinRoceAlone, TheDeviceSaysThatItIsRoce) {
  ibv_context* const context = dropin::context();
  EXPECT_EQ(context->device->node_type, IBV_NODE_CA);
  EXPECT_EQ(context->device->transport_type, IBV_TRANSPORT_IB);
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid_ex(context, 1, 0, &entry, 0), 0);
  EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
  EXPECT_EQ(address_of(entry.gid).to_string(), "127.0.0.1");
  std::array<char, 32> text{};
  ASSERT_GT(ibv_read_sysfs_file(context->device->ibdev_path, "ports/1/gid_attrs/types/0", text.data(), text.size()), 0);
  EXPECT_STREQ(text.data(), "RoCE v2");
}

}  // namespace
}  // namespace iwarp::dropin
