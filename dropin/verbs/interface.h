// What the rdma_cm half of libibverbs.so.1 uses of its verbs half. All of rdma_cm is in libibverbs.so.1, as functions
// `extern "C" iwarp_NAME` for each symbol NAME of librdmacm.so.1, which only jumps to them: so there is one engine, one
// copy of everything. Thread-safe unless said otherwise.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "dropin/verbs/settings.h"
#include "iwarp/cm/engine.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin {

// The engine of this process: automatic, made at first use, never destroyed. Throws when it cannot be made.
[[nodiscard]] cm::Engine& engine();
// The queue pair behind `qp`, which ibv_create_qp() made. To be shared with connections; ibv_destroy_qp() gives the
// library's reference back.
[[nodiscard]] std::shared_ptr<verbs::QueuePair> shared_queue_pair(ibv_qp* qp);
// The same; alive until ibv_destroy_qp().
[[nodiscard]] verbs::QueuePair& queue_pair(ibv_qp* qp);
// What ibv_query_qp() tells as long as the queue pair is not connected (QueuePairState::kInit), where the core has one
// state and verbs have four: who resolves, connects and accepts moves it. From the connection on the core's counts.
void set_state(ibv_qp* qp, ibv_qp_state state);
// The one context that rdma_cm ids name in ->verbs, opened at first use and never closed; null with errno.
[[nodiscard]] ibv_context* context();
// The one device.
[[nodiscard]] ibv_device* device();

}  // namespace iwarp::dropin
