// An opened device: struct ibv_context within the extended verbs_context, whose operations are those that exist.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "iwarp/verbs/context.h"

namespace iwarp::dropin {

// The part of the engine's context that all ibv_contexts share.
[[nodiscard]] const std::shared_ptr<verbs::Context>& shared_context();

}  // namespace iwarp::dropin
