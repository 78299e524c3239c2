#include "dropin/verbs/pd.h"

#include <memory>

#include "dropin/verbs/context.h"

namespace iwarp::dropin {

Pd::Pd(ibv_context* context) : core(shared_context(), Opened::of(context).events) {
  c.context = context;
  c.handle = static_cast<std::uint32_t>(core.id());
}

}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return made<ibv_pd>([&](ibv_pd*& out) {
    if (!Opened::of(context).process.alive()) return EINVAL;
    out = &(new Pd(context))->c;
    return 0;
  });
}

int ibv_dealloc_pd(ibv_pd* pd) {
  return guarded([&] {
    Pd& p = owner(pd);
    if (!p.process.alive()) return 0;
    if (p.users.load() != 0) return EBUSY;
    delete &p;
    return 0;
  });
}
}
