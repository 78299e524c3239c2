#include "dropin/verbs/channel.h"

#include "dropin/verbs/cq.h"
#include "dropin/verbs/events.h"

namespace iwarp::dropin {

Channel::Channel(ibv_context* context) {
  c.context = context;
  c.fd = core.fd();
  make_blocking(c.fd);
}

namespace {

// The queue of the oldest event, which counts as given; null: there is none.
Cq* take(Channel& channel) {
  const std::lock_guard lock(events_mutex());
  const auto core = channel.core.next_event();
  if (!core) return nullptr;
  Cq& cq = Cq::of(**core);
  ++cq.completion_events.given;
  return &cq;
}

}  // namespace
}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return made<ibv_comp_channel>([&](ibv_comp_channel*& out) {
    out = &(new Channel(context))->c;
    return 0;
  });
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  Channel& ch = owner(channel);
  if (ch.users.load() != 0) return EBUSY;
  delete &ch;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return minus_one(guarded([&] {
    for (;;) {
      if (Cq* const got = take(owner(channel))) {
        *cq = got->face();
        *cq_context = got->c.cq_context;
        return 0;
      }
      if (!sleep_for_event(channel->fd)) return errno;
    }
  }));
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned nevents) {
  (void)guarded([&] {
    acknowledge(owner(cq).completion_events, nevents);
    return 0;
  });
}
}
