// An end of a connection by ibv_modify_qp(), as an application makes it. The process is one of `iwarp run --present
// roce`.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dropin/verbs/interface.h"
#include "tests/dropin/completion.h"

namespace iwarp::dropin {

// Before anything asks for the settings.
inline const bool kSet = ::setenv("IWARP_PRESENT", "roce", 1) == 0 && ::setenv("IWARP_ADDRESS", "127.0.0.1", 1) == 0;

inline constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
inline constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
inline constexpr int kRtsMask =
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
  [[nodiscard]] ibv_wc next() const { return test::next_completion(cq); }
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
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  std::vector<char> memory = std::vector<char>(4096);
};

inline void exchange(End& from, End& to, std::uint64_t id = 1) {
  to.receive(id);
  from.send(id, "a message");
  from.expect(id, IBV_WC_SUCCESS);
  to.expect(id, IBV_WC_SUCCESS);
  EXPECT_STREQ(to.memory.data() + 2048, "a message");
}

}  // namespace iwarp::dropin
