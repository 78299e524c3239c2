// The RoCE presentation in one process: queue pairs that ibv_modify_qp() connects, each state in which one may go, and
// Requests that fit no queue pair.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "dropin/verbs/device.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/rendezvous.h"
#include "iwarp/cm/connector.h"

// Of the library's, and in no header.
extern "C" int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, std::size_t size);

namespace iwarp::dropin {
namespace {

using namespace std::chrono_literals;

// Before anything asks for the settings.
[[maybe_unused]] const bool kSet =
    ::setenv("IWARP_PRESENT", "roce", 1) == 0 && ::setenv("IWARP_ADDRESS", "127.0.0.1", 1) == 0;

constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

// One end, in INIT, as an application makes it.
struct End {
  explicit End(std::uint32_t of_psn) : psn(of_psn) {
    context = dropin::context();
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 64, nullptr, nullptr, 0);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(),
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
    qp = ibv_create_qp(pd, &attr);
    EXPECT_NE(qp, nullptr);
    init();
  }
  ~End() {
    destroy();
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  }
  void destroy() {
    if (qp != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    qp = nullptr;
  }
  void init() const {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(ibv_modify_qp(qp, &attr, kInitMask), 0);
  }
  [[nodiscard]] static ibv_qp_attr path_to(std::uint32_t number, std::uint32_t rq_psn) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = number;
    attr.rq_psn = rq_psn;
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.hop_limit = 1;
    EXPECT_EQ(ibv_query_gid(dropin::context(), 1, 0, &attr.ah_attr.grh.dgid), 0);
    return attr;
  }
  [[nodiscard]] int rtr(std::uint32_t number, std::uint32_t rq_psn) const {
    ibv_qp_attr attr = path_to(number, rq_psn);
    return ibv_modify_qp(qp, &attr, kRtrMask);
  }
  [[nodiscard]] int rtr(const End& peer) const { return rtr(peer.qp->qp_num, peer.psn); }
  [[nodiscard]] int rts() const {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.sq_psn = psn;
    attr.max_rd_atomic = 3;
    return ibv_modify_qp(qp, &attr, kRtsMask);
  }
  [[nodiscard]] ibv_qp_state state() const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr made{};
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &made), 0);
    return attr.qp_state;
  }
  void receive(std::uint64_t id) const {
    ibv_sge sge{.addr = address(2048), .length = 512, .lkey = mr->lkey};
    ibv_recv_wr wr{.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
  }
  void send(std::uint64_t id, const char* text) {
    std::strcpy(memory.data(), text);
    ibv_sge sge{.addr = address(0), .length = static_cast<std::uint32_t>(std::strlen(text) + 1), .lkey = mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  }
  [[nodiscard]] std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory.data()) + offset;
  }
  [[nodiscard]] ibv_wc next() const {
    ibv_wc wc{};
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
      if (std::chrono::steady_clock::now() > until) {
        ADD_FAILURE() << "no completion";
        break;
      }
    }
    return wc;
  }
  void expect(std::uint64_t id, ibv_wc_status status) const {
    const ibv_wc wc = next();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
  }
  void expect_nothing(std::chrono::milliseconds time = 100ms) const {
    ibv_wc wc{};
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  }

  std::uint32_t psn;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  std::vector<char> memory = std::vector<char>(4096);
};

void exchange(End& from, End& to, std::uint64_t id = 1) {
  to.receive(id);
  from.send(id, "a message");
  from.expect(id, IBV_WC_SUCCESS);
  to.expect(id, IBV_WC_SUCCESS);
  EXPECT_STREQ(to.memory.data() + 2048, "a message");
}

// A Request of nobody's to the port that `number` names; why it was refused.
std::optional<Refusal> refusal_of(const std::vector<std::byte>& private_data, std::uint32_t number) {
  const verbs::ProtectionDomain pd(engine().context());
  verbs::CompletionQueue cq(4);
  const auto qp = std::make_shared<verbs::QueuePair>(pd, verbs::QueuePair::Options{.send_cq = &cq, .recv_cq = &cq});
  std::promise<std::optional<Refusal>> why;
  cm::connect(
      engine(), qp,
      {.host = "127.0.0.1", .port = static_cast<std::uint16_t>(number & 0xffff), .private_data = private_data},
      [&](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
        EXPECT_EQ(error.code, Errc::kPeerRejected);
        why.set_value(connection == nullptr ? std::nullopt : parse_refusal(connection->disconnected()->private_data));
      });
  return why.get_future().get();
}

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
  other().destroy();
  one().expect_nothing();
  EXPECT_EQ(one().state(), IBV_QPS_RTS);
  one().receive(3);
  one().expect_nothing(10ms);
  one().send(4, "too late");
  one().expect(4, IBV_WC_RETRY_EXC_ERR);
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

class DropinRoceAlone : public ::testing::Test {};

TEST_F(DropinRoceAlone, AQueuePairMayBeItsOwnPeer) {
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

TEST_F(DropinRoceAlone, WhatCannotBe) {
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

TEST_F(DropinRoceAlone, TheDeviceSaysThatItIsRoce) {
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

TEST_F(DropinRoceAlone, NumbersDifferAndNameAPort) {
  std::vector<std::unique_ptr<End>> ends;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < 300; ++i) {  // more than a port has
    ends.push_back(std::make_unique<End>(i));
    numbers.push_back(ends.back()->qp->qp_num);
    EXPECT_LE(numbers.back(), 0xffffffU);
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  End& one = *ends.front();
  End& other = *ends.back();
  ASSERT_EQ(one.rtr(other), 0);
  ASSERT_EQ(one.rts(), 0);
  ASSERT_EQ(other.rtr(one), 0);
  exchange(one, other);
}

TEST_F(DropinRoceAlone, RequestsThatFitNoQueuePairAreRefused) {
  End end(0x42);
  const std::uint32_t number = end.qp->qp_num;
  EXPECT_EQ(refusal_of({}, number), Refusal::kNoMessage) << "as of a program of rdma_cm";
  RendezvousMessage message{.from = 0x800001, .to = 0x800001, .from_psn = 1, .to_psn = 0x42};
  EXPECT_EQ(refusal_of(message.octets(), number), Refusal::kNoQueuePair);
  ASSERT_EQ(end.rtr(0x800001, 1), 0);  // larger: this end connects when it is in RTS
  message.to = number;
  EXPECT_EQ(refusal_of(message.octets(), number), Refusal::kOtherPeer);
  message.kind = RendezvousMessage::Kind::kKnock;
  message.from_psn = 2;
  EXPECT_EQ(refusal_of(message.octets(), number), Refusal::kOtherPeer) << "a wrong PSN";
}

TEST_F(DropinRoceAlone, TooManyRequestsForOneQueuePair) {
  End end(0x42);
  RendezvousMessage message{
      .kind = RendezvousMessage::Kind::kKnock, .from = 1, .to = end.qp->qp_num, .from_psn = 1, .to_psn = 2};
  const std::uint32_t number = end.qp->qp_num;
  std::vector<std::future<std::optional<Refusal>>> answers;
  for (int i = 0; i < 9; ++i)
    answers.push_back(std::async(std::launch::async, [&] { return refusal_of(message.octets(), number); }));
  // One of them is one too many; the others wait.
  const auto is_there = [](auto& answer) { return answer.wait_for(1ms) == std::future_status::ready; };
  auto first = answers.end();
  while (first == answers.end()) first = std::find_if(answers.begin(), answers.end(), is_there);
  EXPECT_EQ(first->get(), Refusal::kTooMany);
  answers.erase(first);
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(), is_there), 0);
  end.destroy();
  for (auto& answer : answers) EXPECT_EQ(answer.get(), Refusal::kNoQueuePair);
}

TEST(DropinRendezvousMessage, ParsesWhatItWrites) {
  const RendezvousMessage message{.kind = RendezvousMessage::Kind::kKnock,
                                  .from = 0x123456,
                                  .to = 0xfedcba,
                                  .from_psn = 0xabcdef,
                                  .to_psn = 0x000001};
  const auto octets = message.octets();
  EXPECT_EQ(RendezvousMessage::parse(octets), message);
  EXPECT_EQ(octets[12], std::byte{0});
  EXPECT_EQ(octets[13], std::byte{0x12});
  for (std::size_t n = 0; n < octets.size(); ++n)
    EXPECT_FALSE(RendezvousMessage::parse(ConstBytes{octets}.first(n))) << n;
  for (const std::size_t at : {0, 7, 8, 9, 12, 16, 20, 24}) {  // magic, version, kind, and numbers of more than 24 bits
    auto bad = octets;
    bad[at] = std::byte{0x77};
    EXPECT_FALSE(RendezvousMessage::parse(bad)) << at;
  }
  for (const Refusal why :
       {Refusal::kHeard, Refusal::kNoMessage, Refusal::kNoQueuePair, Refusal::kOtherPeer, Refusal::kTooMany})
    EXPECT_EQ(parse_refusal(octets_of(why)), why);
  EXPECT_FALSE(parse_refusal(octets));
  EXPECT_FALSE(parse_refusal({}));
}

}  // namespace
}  // namespace iwarp::dropin
