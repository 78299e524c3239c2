// Completion channels.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>

#include "dropin/verbs/c_face.h"
#include "iwarp/verbs/completion_channel.h"

namespace iwarp::dropin {

struct Channel {
  explicit Channel(ibv_context* context);

  ibv_comp_channel c{};
  verbs::CompletionChannel core;
  std::atomic<unsigned> users{0};  // completion queues of it
};
IWARP_C_FIRST(Channel, c);

[[nodiscard]] inline Channel& owner(ibv_comp_channel* channel) {
  return *reinterpret_cast<Channel*>(channel);
}

}  // namespace iwarp::dropin
