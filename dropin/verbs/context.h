// An opened device: struct ibv_context within the extended verbs_context, whose operations are those that exist.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "dropin/verbs/c_face.h"
#include "dropin/verbs/sleep.h"
#include "iwarp/verbs/context.h"

namespace iwarp::dropin {

struct Opened final : verbs::AsyncBell {
  // What C sees; first.
  struct Face {
    verbs_context c{};
    Opened* owner = nullptr;
  };

  // Throws when there is no descriptor.
  Opened();
  ~Opened();
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  [[nodiscard]] static Opened& of(ibv_context* context);
  [[nodiscard]] ibv_context* shown() { return &face.c.context; }
  void ring() noexcept override { sleepers.wake(); }

  Face face;
  // The asynchronous events of its objects, with a descriptor of their own: programs change its flags.
  const std::shared_ptr<verbs::AsyncEvents> events = std::make_shared<verbs::AsyncEvents>(this);
  Sleepers sleepers{Sleepers::For::kRareEvents};  // in ibv_get_async_event()
  const verbs::ForkGuard process;
};

// The part of the engine's context that all ibv_contexts share.
[[nodiscard]] const std::shared_ptr<verbs::Context>& shared_context();

}  // namespace iwarp::dropin
