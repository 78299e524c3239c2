// What an application makes of libibverbs for one end of a connection.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "dropin/verbs/interface.h"
#include "tests/dropin/completion.h"

namespace iwarp::dropin {

// A queue pair with room for 16 requests each way, its completion queue, and memory that the peer may read and write.
struct EndObjects {
  enum class Channel : std::uint8_t { kNone, kMade };

  EndObjects(std::size_t octets, Channel events) : memory(octets) {
    context = dropin::context();
    pd = ibv_alloc_pd(context);
    if (events == Channel::kMade) channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, 64, this, channel, 0);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(),
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
    qp = ibv_create_qp(pd, &attr);
    EXPECT_NE(qp, nullptr);
  }
  ~EndObjects() {
    destroy();
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    if (channel != nullptr) {
      EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    }
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  }
  EndObjects(const EndObjects&) = delete;
  EndObjects& operator=(const EndObjects&) = delete;

  void destroy() {
    if (qp != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    qp = nullptr;
  }
  void receive(std::uint64_t id, std::size_t offset, std::uint32_t length) const {
    ibv_sge sge{.addr = address(offset), .length = length, .lkey = mr->lkey};
    ibv_recv_wr wr{.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
  }
  [[nodiscard]] std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory.data()) + offset;
  }
  [[nodiscard]] ibv_wc next() const { return test::next_completion(cq); }

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  std::vector<char> memory;
};

}  // namespace iwarp::dropin
