// The queue pair that an id connects.
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>

#include "dropin/rdmacm/cm_id.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin::rdmacm {

// That of the id or, where rdma_create_qp() made none, the one whose number `wanted` has; null with errno. From then on
// it tells the timeout that the id was given.
[[nodiscard]] std::shared_ptr<verbs::QueuePair> queue_pair_of(Id& id, const rdma_conn_param* wanted);

}  // namespace iwarp::dropin::rdmacm
