// The extended way to poll: one completion at a time, of which the application asks what it wants to know.
#include "dropin/verbs/cq.h"

namespace iwarp::dropin {
namespace {

// False: there is none.
bool advance(Cq& cq) {
  verbs::Completion one;
  if (cq.take(std::span{&one, 1}) == 0) return false;
  cq.current = to_wc(one);
  cq.c.status = cq.current.status;
  cq.c.wr_id = cq.current.wr_id;
  return true;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  Cq& q = owner(cq);
  return guarded([&] {
    if (!q.single_threaded) q.poll_mutex.lock();
    bool got = false;
    const int error = guarded([&] {
      got = advance(q);
      return 0;
    });
    if (got) return 0;
    if (!q.single_threaded) q.poll_mutex.unlock();  // without end_poll()
    return error != 0 ? error : ENOENT;
  });
}

int next_poll(ibv_cq_ex* cq) {
  return guarded([&] { return advance(owner(cq)) ? 0 : ENOENT; });
}

void end_poll(ibv_cq_ex* cq) {
  if (!owner(cq).single_threaded) owner(cq).poll_mutex.unlock();
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) {
  return owner(cq).current.opcode;
}
std::uint32_t read_vendor_err(ibv_cq_ex* cq) {
  return owner(cq).current.vendor_err;
}
std::uint32_t read_byte_len(ibv_cq_ex* cq) {
  return owner(cq).current.byte_len;
}
// Also the rkey that was invalidated, as in ibv_wc.
__be32 read_imm_data(ibv_cq_ex* cq) {
  return owner(cq).current.imm_data;
}
std::uint32_t read_qp_num(ibv_cq_ex* cq) {
  return owner(cq).current.qp_num;
}
std::uint32_t read_src_qp(ibv_cq_ex* cq) {
  return owner(cq).current.src_qp;
}
unsigned read_wc_flags(ibv_cq_ex* cq) {
  return owner(cq).current.wc_flags;
}
std::uint32_t read_slid(ibv_cq_ex*) {
  return 0;
}
std::uint8_t read_nothing(ibv_cq_ex*) {
  return 0;
}

}  // namespace

void set_poll_functions(ibv_cq_ex& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_byte_len = read_byte_len;
  cq.read_imm_data = read_imm_data;
  cq.read_qp_num = read_qp_num;
  cq.read_src_qp = read_src_qp;
  cq.read_wc_flags = read_wc_flags;
  cq.read_slid = read_slid;
  cq.read_sl = read_nothing;
  cq.read_dlid_path_bits = read_nothing;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  return made<ibv_cq_ex>([&](ibv_cq_ex*& out) {
    if ((attr->wc_flags & ~std::uint64_t{IBV_WC_STANDARD_FLAGS}) != 0) return EOPNOTSUPP;
    if ((attr->comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0) return EOPNOTSUPP;
    const std::uint32_t flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;
    if ((flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0) return EOPNOTSUPP;
    if (attr->cqe > 0x7fffffff) return EINVAL;
    Cq* cq = nullptr;
    const int error =
        make_cq(context, static_cast<int>(attr->cqe), attr->cq_context, attr->channel, attr->comp_vector, cq);
    if (error != 0) return error;
    cq->single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
    set_poll_functions(cq->c);
    out = &cq->c;
    return 0;
  });
}

}  // namespace iwarp::dropin
