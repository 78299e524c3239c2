// ibv_modify_qp() of the RoCE presentation: the states of InfiniBand, and connecting by them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "dropin/verbs/cq.h"
#include "dropin/verbs/device.h"
#include "dropin/verbs/pd.h"
#include "dropin/verbs/qp.h"
#include "dropin/verbs/rendezvous.h"
#include "iwarp/cm/link.h"

namespace iwarp::dropin {
namespace {

constexpr std::uint32_t kMostNumber = 0xffffff, kMostPsn = 0xffffff;

struct Step {
  ibv_qp_state from, to;
};
// ERR and RESET are reached from everywhere.
constexpr std::array kSteps = {Step{IBV_QPS_RESET, IBV_QPS_INIT}, Step{IBV_QPS_INIT, IBV_QPS_INIT},
                               Step{IBV_QPS_INIT, IBV_QPS_RTR}, Step{IBV_QPS_RTR, IBV_QPS_RTS},
                               Step{IBV_QPS_RTS, IBV_QPS_RTS}};

// Who says anything of the path says all of it, as InfiniBand demands. Who says nothing is connected by rdma_cm.
constexpr int kPath =
    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kSending = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

bool is_step(ibv_qp_state from, ibv_qp_state to) {
  return std::ranges::any_of(kSteps, [&](const Step& s) { return s.from == from && s.to == to; });
}

// The time that InfiniBand gives a peer that does not answer: 4.096 us * 2^timeout for each try, and adapters may take
// four times as long.
Rendezvous::Patience patience_of(const ibv_qp_attr& attr) {
  if (attr.timeout == 0) return Rendezvous::Patience::max();
  const auto once = std::chrono::nanoseconds(std::int64_t{4 * 4096} << std::min<int>(attr.timeout, 31));
  return std::chrono::duration_cast<Rendezvous::Patience>(once * (attr.retry_cnt + 1));
}

// 0 or an errno value.
int begin_connecting(Qp& qp, const ibv_qp_attr& attr) {
  const ibv_ah_attr& to = attr.ah_attr;
  const ibv_gid& there = to.grh.dgid;
  const bool is_named = std::ranges::any_of(there.raw, [](std::uint8_t octet) { return octet != 0; });
  if (to.is_global == 0 || !is_named) return EDESTADDRREQ;  // a LID alone names nobody here
  if (to.grh.sgid_index != 0 || attr.dest_qp_num > kMostNumber) return EINVAL;
  const std::uint32_t number = qp.face().qp_num;
  Ends ends{.receiver = qp.core, .sender = qp.core};
  if (attr.dest_qp_num == number && std::memcmp(there.raw, gid().raw, sizeof there.raw) == 0) {
    verbs::QueuePair::Options options = qp.options;
    options.srq = nullptr;
    ends.sender = std::make_shared<verbs::QueuePair>(owner(qp.face().pd).core, options);
    if (const auto& usable = ends.sender->usable(); !usable) return to_errno(usable.error().code);
    qp.sender = ends.sender;
  }
  qp.path_told = true;
  rendezvous().begin(number, ends, {.gid = there, .number = attr.dest_qp_num, .psn = attr.rq_psn & kMostPsn});
  return 0;
}

void leave(Qp& qp) {
  rendezvous().reset(qp.face().qp_num);
  if (qp.sender != qp.core) qp.sender->leave(verbs::QueuePair::Unfinished::kFlushed);
  qp.core->leave(verbs::QueuePair::Unfinished::kFlushed);  // the peer still gets what has completed
}

// As it was made.
int begin_anew(Qp& qp) {
  auto fresh = std::make_shared<verbs::QueuePair>(owner(qp.face().pd).core, qp.options);
  if (const auto& usable = fresh->usable(); !usable) return to_errno(usable.error().code);
  rendezvous().reset(qp.face().qp_num);
  qp.retire();
  qp.core = qp.sender = std::move(fresh);
  qp.told_mask = 0;
  qp.path_told = false;
  return 0;
}

// That brings it to RTS: who asks before or after finds that it is granted.
bool is_connected_by_rdma_cm(const Qp& qp) {
  const auto now = qp.core->state();
  return !qp.path_told && (now == verbs::QueuePairState::kRtr || now == verbs::QueuePairState::kRts);
}

int change_state(Qp& qp, const ibv_qp_attr& attr, int mask) {
  const ibv_qp_state from = qp.state(), to = attr.qp_state;
  if (to == IBV_QPS_SQD) return EOPNOTSUPP;
  if (to == IBV_QPS_RESET) return from == to ? 0 : begin_anew(qp);
  if (to == IBV_QPS_ERR) {
    leave(qp);
    return 0;
  }
  if (is_connected_by_rdma_cm(qp) && (to == IBV_QPS_INIT || to == IBV_QPS_RTR || to == IBV_QPS_RTS)) return 0;
  if (!is_step(from, to)) return EINVAL;
  if (to == IBV_QPS_RTR && (mask & kPath) != 0) {
    if ((mask & kPath) != kPath) return EINVAL;
    return begin_connecting(qp, attr);
  }
  if (to == IBV_QPS_RTS && from == IBV_QPS_RTR && qp.path_told) {
    if ((mask & kSending) != kSending) return EINVAL;
    rendezvous().ready(qp.face().qp_num, attr.sq_psn & kMostPsn, patience_of(attr));
  }
  return 0;
}

// `to` has what `from` says.
void merge(ibv_qp_attr& to, const ibv_qp_attr& from, int mask) {
  const auto take = [&](int which, auto member) {
    if ((mask & which) != 0) to.*member = from.*member;
  };
  take(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  take(IBV_QP_PORT, &ibv_qp_attr::port_num);
  take(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  take(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  take(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  take(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  take(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  take(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
}

}  // namespace

int modify_as_roce(Qp& qp, const ibv_qp_attr& attr, int mask) {
  if ((mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT)) != 0) return EOPNOTSUPP;
  if ((mask & IBV_QP_PORT) != 0 && attr.port_num != 1) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && attr.pkey_index != 0) return EINVAL;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && attr.max_rd_atomic > kMostReads) return EINVAL;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 && attr.max_dest_rd_atomic > kMostReads) return EINVAL;
  if ((mask & IBV_QP_STATE) != 0) {
    if (const int error = change_state(qp, attr, mask); error != 0) return error;
    qp.before_connection.store(attr.qp_state);
    qp.face().state = attr.qp_state;
  }
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) qp.access.store(attr.qp_access_flags);
  merge(qp.told, attr, mask);
  qp.told_mask |= mask;
  return 0;
}

void tell_as_set(const Qp& qp, ibv_qp_attr& attr) {
  merge(attr, qp.told, qp.told_mask);
}

}  // namespace iwarp::dropin
