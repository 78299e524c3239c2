#include "dropin/verbs/wr_builder.h"

#include <utility>

#include "dropin/verbs/agreement.h"
#include "dropin/verbs/qp.h"

namespace iwarp::dropin {

void WrBuilder::start() {
  mutex_.lock();
  clear();
}

void WrBuilder::clear() {
  requests_.clear();
  copies_.clear();
  inlines_.clear();
  error_ = 0;
}

void WrBuilder::add(const ibv_send_wr& in, const SendRules& rules) {
  refuse(to_send_wr(in, rules, requests_.emplace_back()));
}

void WrBuilder::pieces(std::span<const ibv_sge> some) {
  if (requests_.empty()) return refuse(EINVAL);
  refuse(some.size() > rdmap::kMaxSge ? EINVAL
                                      : to_sges(some.data(), static_cast<int>(some.size()), requests_.back().sges));
}

void WrBuilder::inline_data(std::span<const ibv_data_buf> some) {
  if (requests_.empty() || !rdmap::may_be_inline(requests_.back().op)) return refuse(EINVAL);
  const std::size_t from = copies_.size();
  for (const ibv_data_buf& piece : some) {
    const auto* const octets = static_cast<const std::byte*>(piece.addr);
    copies_.insert(copies_.end(), octets, octets + piece.length);
  }
  requests_.back().inline_data = true;
  inlines_.push_back({.request = requests_.size() - 1, .offset = from, .length = copies_.size() - from});
}

int WrBuilder::complete(verbs::QueuePair& qp) {
  const std::lock_guard lock(mutex_, std::adopt_lock);
  if (error_ != 0) return error_;
  for (const Inline& i : inlines_) {
    requests_[i.request].sges =
        rdmap::Sge{.address = copies_.data() + i.offset, .length = static_cast<std::uint32_t>(i.length)};
  }
  return answer(qp.post_all(requests_));
}

void WrBuilder::abort() {
  mutex_.unlock();
}

namespace {

// `f(builder)`; what it throws is told by complete().
template <class F>
void with_builder(ibv_qp_ex* qp, F&& f) noexcept {
  WrBuilder& builder = *owner(qp).builder;
  if (const int error = guarded([&] {
        f(builder);
        return 0;
      });
      error != 0)
    builder.refuse(error);
}

ibv_send_wr request(const ibv_qp_ex* qp, ibv_wr_opcode op) {
  ibv_send_wr wr{};
  wr.wr_id = qp->wr_id;
  wr.opcode = op;
  wr.send_flags = qp->wr_flags & ~unsigned{IBV_SEND_INLINE};  // which call gives the data says that
  return wr;
}

void add_request(ibv_qp_ex* qp, const ibv_send_wr& wr) noexcept {
  with_builder(qp, [&](WrBuilder& b) { b.add(wr, owner(qp).rules_for(opcode_of(wr))); });
}

void add_rdma(ibv_qp_ex* qp, ibv_wr_opcode op, std::uint32_t rkey, std::uint64_t remote, __be32 immediate = 0) {
  ibv_send_wr wr = request(qp, op);
  wr.wr.rdma.rkey = rkey;
  wr.wr.rdma.remote_addr = remote;
  wr.imm_data = immediate;
  add_request(qp, wr);
}

void add_atomic(ibv_qp_ex* qp, ibv_wr_opcode op, std::uint32_t rkey, std::uint64_t remote, std::uint64_t compare_add,
                std::uint64_t swap) {
  ibv_send_wr wr = request(qp, op);
  wr.wr.atomic = {.remote_addr = remote, .compare_add = compare_add, .swap = swap, .rkey = rkey};
  add_request(qp, wr);
}

void add_invalidate(ibv_qp_ex* qp, ibv_wr_opcode op, std::uint32_t rkey) {
  ibv_send_wr wr = request(qp, op);
  wr.invalidate_rkey = rkey;
  add_request(qp, wr);
}

}  // namespace

void WrBuilder::set_functions(ibv_qp_ex& qp) {
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t to, std::uint64_t compare,
                            std::uint64_t swap) { add_atomic(q, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, to, compare, swap); };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t to, std::uint64_t addend) {
    add_atomic(q, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, to, addend, 0);
  };
  qp.wr_bind_mw = [](ibv_qp_ex* q, ibv_mw*, std::uint32_t, const ibv_mw_bind_info*) {
    owner(q).builder->refuse(EOPNOTSUPP);
  };
  qp.wr_local_inv = [](ibv_qp_ex* q, std::uint32_t rkey) { add_invalidate(q, IBV_WR_LOCAL_INV, rkey); };
  qp.wr_rdma_read = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t to) { add_rdma(q, IBV_WR_RDMA_READ, rkey, to); };
  qp.wr_rdma_write = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t to) {
    add_rdma(q, IBV_WR_RDMA_WRITE, rkey, to);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t to, __be32 immediate) {
    add_rdma(q, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, to, immediate);
  };
  qp.wr_send = [](ibv_qp_ex* q) { add_request(q, request(q, IBV_WR_SEND)); };
  qp.wr_send_imm = [](ibv_qp_ex* q, __be32 immediate) {
    ibv_send_wr wr = request(q, IBV_WR_SEND_WITH_IMM);
    wr.imm_data = immediate;
    add_request(q, wr);
  };
  qp.wr_send_inv = [](ibv_qp_ex* q, std::uint32_t rkey) { add_invalidate(q, IBV_WR_SEND_WITH_INV, rkey); };
  qp.wr_send_tso = [](ibv_qp_ex* q, void*, std::uint16_t, std::uint16_t) { owner(q).builder->refuse(EOPNOTSUPP); };
  qp.wr_set_ud_addr = [](ibv_qp_ex* q, ibv_ah*, std::uint32_t, std::uint32_t) { owner(q).builder->refuse(EOPNOTSUPP); };
  qp.wr_set_xrc_srqn = [](ibv_qp_ex* q, std::uint32_t) { owner(q).builder->refuse(EOPNOTSUPP); };
  qp.wr_atomic_write = [](ibv_qp_ex* q, std::uint32_t, std::uint64_t, const void*) {
    owner(q).builder->refuse(EOPNOTSUPP);
  };
  qp.wr_set_inline_data = [](ibv_qp_ex* q, void* addr, std::size_t length) {
    const ibv_data_buf one{.addr = addr, .length = length};
    with_builder(q, [&](WrBuilder& b) { b.inline_data({&one, 1}); });
  };
  qp.wr_set_inline_data_list = [](ibv_qp_ex* q, std::size_t count, const ibv_data_buf* list) {
    with_builder(q, [&](WrBuilder& b) { b.inline_data({list, count}); });
  };
  qp.wr_set_sge = [](ibv_qp_ex* q, std::uint32_t lkey, std::uint64_t addr, std::uint32_t length) {
    const ibv_sge one{.addr = addr, .length = length, .lkey = lkey};
    with_builder(q, [&](WrBuilder& b) { b.pieces({&one, 1}); });
  };
  qp.wr_set_sge_list = [](ibv_qp_ex* q, std::size_t count, const ibv_sge* list) {
    with_builder(q, [&](WrBuilder& b) { b.pieces({list, count}); });
  };
  qp.wr_start = [](ibv_qp_ex* q) { owner(q).builder->start(); };
  qp.wr_complete = [](ibv_qp_ex* q) { return guarded([&] { return owner(q).builder->complete(*owner(q).sender); }); };
  qp.wr_abort = [](ibv_qp_ex* q) { owner(q).builder->abort(); };
}

namespace {

// Operations that a queue pair may be asked to post: those that are agreed on with the peer only where that is wanted.
std::uint64_t operations() {
  const Agreement may = wanted(settings());
  std::uint64_t all = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
                      IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV;
  if (may.rfc7306)
    all |= IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  if (may.send_immediate) all |= IBV_QP_EX_WITH_SEND_WITH_IMM;
  return all;
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* attr) {
  return made<ibv_qp>([&](ibv_qp*& out) {
    constexpr std::uint32_t kKnown =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    const auto has = [&](std::uint32_t which) { return (attr->comp_mask & which) != 0; };
    if ((attr->comp_mask & ~kKnown) != 0) return EOPNOTSUPP;
    if (!has(IBV_QP_INIT_ATTR_PD) || attr->pd == nullptr) return EINVAL;
    if (has(IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags != 0) return EOPNOTSUPP;
    const bool posts = has(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
    if (posts && (attr->send_ops_flags & ~operations()) != 0) return EOPNOTSUPP;
    ibv_qp_init_attr plain{.qp_context = attr->qp_context,
                           .send_cq = attr->send_cq,
                           .recv_cq = attr->recv_cq,
                           .srq = attr->srq,
                           .cap = attr->cap,
                           .qp_type = attr->qp_type,
                           .sq_sig_all = attr->sq_sig_all};
    std::unique_ptr<Qp> qp;
    if (const int error = make_qp(attr->pd, plain, qp); error != 0) return error;
    attr->cap = plain.cap;
    if (posts) {
      qp->builder = std::make_unique<WrBuilder>();
      WrBuilder::set_functions(qp->c);
    }
    out = publish(std::move(qp));
    return 0;
  });
}

}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  Qp& q = owner(qp);
  return q.builder ? &q.c : nullptr;
}
