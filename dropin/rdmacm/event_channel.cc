#include "dropin/rdmacm/event_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "dropin/rdmacm/cm_id.h"
#include "dropin/rdmacm/entry.h"
#include "dropin/verbs/events.h"
#include "dropin/verbs/per_process.h"

namespace iwarp::dropin::rdmacm {
namespace {

PerProcess<std::mutex> mutex;

// The last channels that were closed stay for threads that come late.
PerProcess<std::deque<std::shared_ptr<Channel>>> past;
constexpr std::size_t kKept = 64;

}  // namespace

std::mutex& cm_mutex() {
  return mutex.get();
}

Event::Event(rdma_cm_event_type type, std::shared_ptr<Id> subject, int status, std::shared_ptr<Id> of_listener)
    : id(std::move(subject)), listener(std::move(of_listener)) {
  shown.owner = this;
  shown.c.id = id->shown();
  shown.c.listen_id = listener ? listener->shown() : nullptr;
  shown.c.event = type;
  shown.c.status = status;
}

void Event::set_private_data(ConstBytes octets) {
  const auto kept = octets.first(std::min<std::size_t>(octets.size(), UINT8_MAX));
  private_data.assign(kept.begin(), kept.end());
  shown.c.param.conn.private_data = private_data.empty() ? nullptr : private_data.data();
  shown.c.param.conn.private_data_len = static_cast<std::uint8_t>(private_data.size());
}

std::shared_ptr<Channel> Channel::make() {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  try {
    return std::make_shared<Channel>(descriptor);
  } catch (...) {
    (void)::close(descriptor);
    errno = ENOMEM;
    return nullptr;
  }
}

Channel::Channel(int descriptor) {
  shown_.c.fd = descriptor;
  shown_.owner = this;
}

Channel::~Channel() {
  if (!closed_) (void)::close(shown_.c.fd);
}

void Channel::close() {
  if (!process_.alive()) return;
  std::shared_ptr<Channel> oldest;  // these two go without the lock
  std::deque<std::unique_ptr<Event>> dropped;
  const std::lock_guard lock(cm_mutex());
  if (closed_) return;
  closed_ = true;
  (void)::close(std::exchange(shown_.c.fd, -1));
  dropped.swap(events_);
  past.get().push_back(std::move(kept_));
  if (past.get().size() <= kKept) return;
  oldest = std::move(past.get().front());
  past.get().pop_front();
}

int Channel::take(rdma_cm_event** event) {
  if (!process_.alive()) return fail(EINVAL);
  const std::lock_guard lock(cm_mutex());
  if (events_.empty()) return !closed_ && !blocks(shown_.c.fd) ? fail(EAGAIN) : 0;
  if (const int error = give(*events_.front()); error != 0) return fail(error);
  *event = &events_.front().release()->shown.c;
  events_.pop_front();
  show();
  return 0;
}

// Nothing of C++ is under way while it sleeps: the thread may be cancelled.
int Channel::get(rdma_cm_event** event) {
  for (;;) {
    const std::uint32_t seen = sleepers_.wakes();
    *event = nullptr;
    const int result = guarded([&] { return take(event); });
    if (result != 0 || *event != nullptr) return result;
    if (!sleepers_.wait(seen)) return -1;
  }
}

int Channel::give(Event& event) {
  if (event.listener) {
    auto channel = event.listener->channel;
    if (event.listener->synchronous) {
      channel = make();
      if (channel == nullptr) return errno;
    }
    event.id->set_channel(channel, event.listener->synchronous);
    event.id->keep();
  }
  ++event.counts_on().unacknowledged;
  return 0;
}

std::unique_ptr<Event> Channel::push(std::unique_ptr<Event> event) {
  if (closed_ || !process_.alive()) return event;
  events_.push_back(std::move(event));
  show();
  sleepers_.wake();
  return nullptr;
}

std::deque<std::unique_ptr<Event>> Channel::take_events_of(const Id& id) {
  std::deque<std::unique_ptr<Event>> taken, left;
  for (auto& event : events_) {
    auto& to = event->id.get() == &id || event->listener.get() == &id ? taken : left;
    to.push_back(std::move(event));
  }
  events_ = std::move(left);
  show();
  return taken;
}

// Whoever reads the counter holds the lock and knows that it is not 0, so the read never sleeps.
void Channel::show() {
  if (closed_ || events_.empty() == !readable_) return;
  readable_ = !readable_;
  std::uint64_t count = 1;
  if (readable_) {
    (void)!::write(shown_.c.fd, &count, sizeof count);
  } else {
    (void)!::read(shown_.c.fd, &count, sizeof count);
  }
}

void acknowledge(rdma_cm_event* event) {
  Event& given = Shown<rdma_cm_event, Event>::of(event);
  if (!given.process.alive()) return;
  const std::unique_ptr<Event> owned(&given);  // goes without the lock
  const std::lock_guard lock(cm_mutex());
  if (--owned->counts_on().unacknowledged == 0) Id::tell_acknowledged();
}

}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

IWARP_ENTRY rdma_event_channel* iwarp_rdma_create_event_channel() {
  return guarded([]() -> rdma_event_channel* {
    if (iwarp::dropin::context() == nullptr) return nullptr;
    const auto channel = Channel::make();
    if (channel == nullptr) return nullptr;
    channel->keep();
    return channel->shown();
  });
}

IWARP_ENTRY void iwarp_rdma_destroy_event_channel(rdma_event_channel* channel) {
  if (channel != nullptr) guarded([&] { Channel::of(channel).close(); });
}

IWARP_ENTRY int iwarp_rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  return channel == nullptr || event == nullptr ? fail(EINVAL) : Channel::of(channel).get(event);
}

IWARP_ENTRY int iwarp_rdma_ack_cm_event(rdma_cm_event* event) {
  if (event == nullptr) return fail(EINVAL);
  return guarded([&] {
    acknowledge(event);
    return 0;
  });
}

IWARP_ENTRY const char* iwarp_rdma_event_str(rdma_cm_event_type event) {
  switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return "RDMA_CM_EVENT_ADDR_RESOLVED";
    case RDMA_CM_EVENT_ADDR_ERROR:
      return "RDMA_CM_EVENT_ADDR_ERROR";
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return "RDMA_CM_EVENT_ROUTE_RESOLVED";
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return "RDMA_CM_EVENT_ROUTE_ERROR";
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      return "RDMA_CM_EVENT_CONNECT_REQUEST";
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return "RDMA_CM_EVENT_CONNECT_RESPONSE";
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return "RDMA_CM_EVENT_CONNECT_ERROR";
    case RDMA_CM_EVENT_UNREACHABLE:
      return "RDMA_CM_EVENT_UNREACHABLE";
    case RDMA_CM_EVENT_REJECTED:
      return "RDMA_CM_EVENT_REJECTED";
    case RDMA_CM_EVENT_ESTABLISHED:
      return "RDMA_CM_EVENT_ESTABLISHED";
    case RDMA_CM_EVENT_DISCONNECTED:
      return "RDMA_CM_EVENT_DISCONNECTED";
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return "RDMA_CM_EVENT_DEVICE_REMOVAL";
    case RDMA_CM_EVENT_MULTICAST_JOIN:
      return "RDMA_CM_EVENT_MULTICAST_JOIN";
    case RDMA_CM_EVENT_MULTICAST_ERROR:
      return "RDMA_CM_EVENT_MULTICAST_ERROR";
    case RDMA_CM_EVENT_ADDR_CHANGE:
      return "RDMA_CM_EVENT_ADDR_CHANGE";
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return "RDMA_CM_EVENT_TIMEWAIT_EXIT";
  }
  return "UNKNOWN EVENT";
}
