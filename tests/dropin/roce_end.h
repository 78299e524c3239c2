// An end of a connection by ibv_modify_qp(), as an application makes it. The process is one of `iwarp run --present
// roce`.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/dropin/end.h"

namespace iwarp::dropin {

// Before anything asks for the settings.
inline const bool kSet = ::setenv("IWARP_PRESENT", "roce", 1) == 0 && ::setenv("IWARP_ADDRESS", "127.0.0.1", 1) == 0;

inline constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
inline constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
inline constexpr int kRtsMask =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

// One end, in INIT.
struct End : EndObjects {
  explicit End(std::uint32_t of_psn) : EndObjects(4096, Channel::kNone), psn(of_psn) { init(); }
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
  using EndObjects::receive;
  void receive(std::uint64_t id) const { receive(id, 2048, 512); }
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
  void expect(std::uint64_t id, ibv_wc_status status) const {
    const ibv_wc wc = next();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
  }
  void expect_nothing(std::chrono::milliseconds time = std::chrono::milliseconds(100)) const {
    ibv_wc wc{};
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  }

  std::uint32_t psn;
};

inline void exchange(End& from, End& to, std::uint64_t id = 1) {
  to.receive(id);
  from.send(id, "a message");
  from.expect(id, IBV_WC_SUCCESS);
  to.expect(id, IBV_WC_SUCCESS);
  EXPECT_STREQ(to.memory.data() + 2048, "a message");
}

}  // namespace iwarp::dropin
