// Shared receive queues.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <optional>

#include "dropin/verbs/c_face.h"
#include "dropin/verbs/events.h"
#include "iwarp/verbs/shared_receive_queue.h"

namespace iwarp::dropin {

struct Srq {
  Srq(ibv_pd* pd, const ibv_srq_init_attr& attr);

  // The owner of a queue that the core names.
  [[nodiscard]] static Srq& of(verbs::SharedReceiveQueue& core) { return static_cast<Core&>(core).owner; }

  struct Core final : verbs::SharedReceiveQueue {
    Core(const verbs::ProtectionDomain& pd, const Options& options, Srq& o)
        : verbs::SharedReceiveQueue(pd, options), owner(o) {}
    Srq& owner;
  };

  ibv_srq c{};
  std::optional<Core> core;
  EventCount async_events;
  std::atomic<unsigned> users{0};  // queue pairs of it
  const verbs::ForkGuard process;
};
IWARP_C_FIRST(Srq, c);

[[nodiscard]] inline Srq& owner(ibv_srq* srq) {
  return *reinterpret_cast<Srq*>(srq);
}

// Operation of ibv_context.
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad);

}  // namespace iwarp::dropin
