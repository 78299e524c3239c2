// What the tests of immediate data and Atomics begin with. The process is one of `iwarp run --rfc7306`.
#pragma once

#include "tests/dropin/rdma_cm_support.h"
//
#include <cstdlib>
#include <vector>

#include "tests/dropin/completion.h"

namespace iwarp::dropin::test {

// Before anything asks for the settings.
inline const int kSwitchedOn = ::setenv("IWARP_RFC7306", "on", 1);

inline constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

inline void receive(const rdma_cm_id* id, std::uint64_t wr_id) {
  ibv_recv_wr wr{.wr_id = wr_id, .next = nullptr, .sg_list = nullptr, .num_sge = 0};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(::ibv_post_recv(id->qp, &wr, &bad), 0);
}

inline int post(const rdma_cm_id* id, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  return ::ibv_post_send(id->qp, &wr, &bad);
}

class Memory {
 public:
  Memory(const rdma_cm_id* id, int access, std::size_t octets = 4096) : octets_(octets / 8) {
    mr_ = ::ibv_reg_mr(id->pd, octets_.data(), octets, access);
    EXPECT_NE(mr_, nullptr);
  }
  ~Memory() { ::ibv_dereg_mr(mr_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] ibv_sge sge(std::uint32_t length) { return {.addr = address(), .length = length, .lkey = mr_->lkey}; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(octets_.data()); }
  [[nodiscard]] std::uint32_t rkey() const { return mr_->rkey; }
  [[nodiscard]] std::uint64_t& word(std::size_t i = 0) { return octets_[i]; }

 private:
  std::vector<std::uint64_t> octets_;
  ibv_mr* mr_ = nullptr;
};

inline ibv_send_wr write_with_immediate(std::uint64_t wr_id, ibv_sge& from, const Memory& to, std::uint32_t immediate) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &from;
  wr.num_sge = from.length == 0 ? 0 : 1;
  wr.imm_data = htonl(immediate);
  wr.wr.rdma = {.remote_addr = to.address(), .rkey = to.rkey()};
  return wr;
}

}  // namespace iwarp::dropin::test
