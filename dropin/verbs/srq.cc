#include "dropin/verbs/srq.h"

#include <memory>

#include "dropin/verbs/device.h"
#include "dropin/verbs/pd.h"
#include "dropin/verbs/post.h"

namespace iwarp::dropin {

Srq::Srq(ibv_pd* pd, const ibv_srq_init_attr& attr) {
  core.emplace(dropin::owner(pd).core, verbs::SharedReceiveQueue::Options{.depth = attr.attr.max_wr}, *this);
  c.context = pd->context;
  c.srq_context = attr.srq_context;
  c.pd = pd;
  ::pthread_mutex_init(&c.mutex, nullptr);
  ::pthread_cond_init(&c.cond, nullptr);
  dropin::owner(pd).users.fetch_add(1);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  *bad = list;
  return guarded([&] {
    return post_list<rdmap::RecvWr>(list, bad, to_recv_wr,
                                    [&](std::span<const rdmap::RecvWr> some, std::size_t* posted) {
                                      return owner(srq).core->post_recv(some, posted);
                                    });
  });
}

}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return made<ibv_srq>([&](ibv_srq*& out) {
    if (!owner(pd).process.alive()) return EINVAL;
    if (attr->attr.max_wr < 1 || attr->attr.max_wr > static_cast<std::uint32_t>(kMostRequests)) return EINVAL;
    if (attr->attr.max_sge > iwarp::rdmap::kMaxSge) return EINVAL;
    auto srq = std::make_unique<Srq>(pd, *attr);
    attr->attr.max_sge = iwarp::rdmap::kMaxSge;
    out = &srq.release()->c;
    return 0;
  });
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  return guarded(
      [&] { return owner(srq).process.alive() ? answer(owner(srq).core->set_limit(attr->srq_limit)) : EINVAL; });
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  return guarded([&] {
    if (!owner(srq).process.alive()) return EINVAL;
    const auto& core = *owner(srq).core;
    *attr = {.max_wr = static_cast<std::uint32_t>(core.depth()),
             .max_sge = iwarp::rdmap::kMaxSge,
             .srq_limit = static_cast<std::uint32_t>(core.limit())};
    return 0;
  });
}

int ibv_destroy_srq(ibv_srq* srq) {
  return guarded([&] {
    Srq& s = owner(srq);
    if (!s.process.alive()) return 0;
    if (s.users.load() != 0) return EBUSY;
    {
      std::unique_lock lock(events_mutex());
      wait_settled(s.async_events, lock);
      s.core.reset();  // no event names it from here on
    }
    owner(srq->pd).users.fetch_sub(1);
    ::pthread_mutex_destroy(&srq->mutex);
    ::pthread_cond_destroy(&srq->cond);
    delete &s;
    return 0;
  });
}
}
