// Asynchronous events of a context.
#include "dropin/verbs/context.h"
#include "dropin/verbs/cq.h"
#include "dropin/verbs/events.h"
#include "dropin/verbs/qp.h"
#include "dropin/verbs/srq.h"

namespace iwarp::dropin {
namespace {

// Names the object and gives the count of its events; null: it is being destroyed. With events_mutex() held.
EventCount* name(const verbs::AsyncEvent& from, ibv_async_event& to) {
  to.event_type = to_event_type(from.type);
  switch (from.type) {
    case verbs::AsyncEventType::kSrqLimitReached: {
      Srq& srq = Srq::of(*from.srq);
      to.element.srq = &srq.c;
      return &srq.async_events;
    }
    case verbs::AsyncEventType::kCqOverflow: {
      Cq& cq = Cq::of(*from.cq);
      to.element.cq = cq.face();
      return &cq.async_events;
    }
    case verbs::AsyncEventType::kQpFatal:
    case verbs::AsyncEventType::kLastWqeReached: {
      Qp* const qp = Qp::find(from.qp_number);
      if (qp == nullptr) return nullptr;
      to.element.qp = &qp->face();
      return &qp->async_events;
    }
  }
  return nullptr;
}

// The count of what an event of the application's names; null: nothing is counted.
EventCount* count_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SRQ_ERR:
      return &owner(event.element.srq).async_events;
    case IBV_EVENT_CQ_ERR:
      return &owner(event.element.cq).async_events;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return &owner(event.element.qp).async_events;
    default:  // the library gives no others
      return nullptr;
  }
}

// False: there is none.
bool take(Opened& from, ibv_async_event& out) {
  const std::lock_guard lock(events_mutex());
  while (const auto event = from.events->poll()) {
    EventCount* const count = name(*event, out);
    if (count == nullptr) continue;
    ++count->given;
    return true;
  }
  return false;
}

}  // namespace
}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" {

// A thread may be cancelled while it sleeps here.
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  Opened& opened = Opened::of(context);
  for (;;) {
    const std::uint32_t seen = opened.sleepers.wakes();
    bool got = false;
    const int error = guarded([&] {
      if (!opened.process.alive()) return EINVAL;
      got = take(opened, *event);
      return 0;
    });
    if (error != 0) return minus_one(error);
    if (got) return 0;
    if (!blocks(context->async_fd)) return minus_one(EAGAIN);
    if (!opened.sleepers.wait(seen)) return -1;
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  (void)guarded([&] {
    if (EventCount* const count = count_of(*event)) acknowledge(*count, 1);
    return 0;
  });
}
}
