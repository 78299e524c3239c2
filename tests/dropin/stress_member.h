// A queue pair of `dropin_stress pairs`, and what it has done.
#pragma once

#include "tests/dropin/stress_support.h"
//
#include <array>
#include <cstring>
#include <mutex>
#include <vector>

namespace iwarp::stress {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr unsigned kRounds = 24;
#else
inline constexpr unsigned kRounds = 200;
#endif
inline constexpr unsigned kWindow = 4, kReceives = 16;
inline constexpr std::uint32_t kOctets = 512;
inline constexpr std::uint64_t kReceiveId = 1U << 16;  // in wr_id: a Receive; below it: which slot, or which round

// What a round does.
enum class Step : unsigned { kSend, kWrite, kRead, kLastSend };
inline Step step_of(unsigned round) {
  return static_cast<Step>(round % 4);
}
inline constexpr unsigned kSends = kRounds / 2;

enum : unsigned { kOut = 0, kTarget = kRounds, kSource = 2 * kRounds, kSink = 2 * kRounds + 1, kIn = 3 * kRounds + 1 };
inline constexpr std::size_t kPieces = kIn + kReceives;

// A queue pair, and what it has done. Several threads may have completions of it at once.
class Member {
 public:
  explicit Member(unsigned number) : number_(number), memory_(kPieces * kOctets) {
    for (unsigned i = 0; i < kRounds; ++i) fill(piece(kOut + i), origin(kOut + i));
    fill(piece(kSource), origin(kSource));
  }

  void make(ibv_context* context, ibv_pd* pd, ibv_cq* cq, rdma_cm_id* by_id) {
    id = by_id;
    mr_ = ::ibv_reg_mr(pd, memory_.data(), memory_.size(),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    DEMAND(mr_ != nullptr && context != nullptr);
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_RC;
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {
        .max_send_wr = kWindow, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    if (id != nullptr) {
      DEMAND(::rdma_create_qp(id, pd, &wanted) == 0);
      qp = id->qp;
    } else {
      qp = ::ibv_create_qp(pd, &wanted);
      DEMAND(qp != nullptr);
    }
  }
  void meet(Member& peer) { peer_ = &peer; }
  // Once it may receive.
  void post_receives() {
    for (unsigned i = 0; i < kReceives; ++i) receive(i);
  }
  void begin() {
    const std::lock_guard lock(mutex_);
    post_some();
  }
  void completed(const ibv_wc& wc) {
    DEMAND_OR_SAY(wc.status == IBV_WC_SUCCESS, ::ibv_wc_status_str(wc.status));
    DEMAND(wc.qp_num == qp->qp_num);
    const std::lock_guard lock(mutex_);
    const auto n = static_cast<unsigned>(wc.wr_id % kReceiveId);
    if (wc.wr_id >= kReceiveId) {
      arrived(n, wc.byte_len);
      receive(n);
    } else {
      if (step_of(n) == Step::kRead) DEMAND(is_from(piece(kSink + n), peer_->origin(kSource)));
      ++done_;
      post_some();
    }
  }
  [[nodiscard]] bool over() {
    const std::lock_guard lock(mutex_);
    return done_ == kRounds && arrived_ == kSends;
  }
  [[nodiscard]] std::string text() {
    const std::lock_guard lock(mutex_);
    return std::to_string(number_) + ": " + std::to_string(done_) + " done, " + std::to_string(arrived_) + " arrived";
  }
  void destroy() {
    if (id != nullptr) {
      ::rdma_destroy_qp(id);
      DEMAND(::rdma_destroy_id(id) == 0);
    } else {
      DEMAND(::ibv_destroy_qp(qp) == 0);
    }
    DEMAND(::ibv_dereg_mr(mr_) == 0);
  }

  rdma_cm_id* id = nullptr;
  ibv_qp* qp = nullptr;

 private:
  [[nodiscard]] std::span<std::byte> piece(unsigned n) { return std::span(memory_).subspan(n * kOctets, kOctets); }
  [[nodiscard]] unsigned origin(unsigned n) const { return number_ * 1024 + n; }
  [[nodiscard]] There there(unsigned n) { return {reinterpret_cast<std::uintptr_t>(piece(n).data()), mr_->rkey}; }

  void receive(unsigned slot) { DEMAND(post_receive(qp, kReceiveId + slot, piece(kIn + slot), mr_->lkey) == 0); }
  void post_some() {
    for (; posted_ < kRounds && posted_ - done_ < kWindow; ++posted_) {
      const unsigned n = posted_;
      int error = 0;
      switch (step_of(n)) {
        case Step::kSend:
        case Step::kLastSend:
          error = post_send(qp, n, IBV_WR_SEND, piece(kOut + n), mr_->lkey);
          break;
        case Step::kWrite:
          error = post_send(qp, n, IBV_WR_RDMA_WRITE, piece(kOut + n), mr_->lkey, peer_->there(kTarget + n));
          break;
        case Step::kRead:
          error = post_send(qp, n, IBV_WR_RDMA_READ, piece(kSink + n), mr_->lkey, peer_->there(kSource));
          break;
      }
      DEMAND_OR_SAY(error == 0, std::strerror(error));
    }
  }
  // Receives are taken in their order, but threads that poll one queue may overtake each other: so whatever message of
  // the peer it is.
  void arrived(unsigned slot, std::uint32_t length) {
    DEMAND(length == kOctets);
    bool known = false;
    for (unsigned n = 0; n < kRounds && !known; ++n) {
      const bool is_send = step_of(n) == Step::kSend || step_of(n) == Step::kLastSend;
      if (!is_send || heard_.at(n) || !is_from(piece(kIn + slot), peer_->origin(kOut + n))) continue;
      heard_.at(n) = known = true;
      if (step_of(n) == Step::kLastSend) DEMAND(is_from(piece(kTarget + n - 2), peer_->origin(kOut + n - 2)));
    }
    DEMAND_OR_SAY(known, "a message that is nobody's, or came twice");
    ++arrived_;
  }

  const unsigned number_;
  std::vector<std::byte> memory_;
  ibv_mr* mr_ = nullptr;
  Member* peer_ = nullptr;
  std::mutex mutex_;
  unsigned posted_ = 0, done_ = 0, arrived_ = 0;
  std::array<bool, kRounds> heard_{};
};

}  // namespace iwarp::stress
