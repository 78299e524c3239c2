#include "dropin/rdmacm/cm_id.h"

#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <utility>

#include "dropin/rdmacm/address.h"
#include "dropin/rdmacm/entries.h"
#include "dropin/rdmacm/entry.h"
#include "dropin/verbs/per_process.h"

namespace iwarp::dropin::rdmacm {
namespace {

PerProcess<std::condition_variable> condition;
std::condition_variable& acknowledged() {
  return condition.get();
}

struct UsualPd {
  std::mutex mutex;
  ibv_pd* pd = nullptr;
};
PerProcess<UsualPd> usual;

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) (void)::close(descriptor_);
    descriptor_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) (void)::close(descriptor_);
}

ibv_pd* usual_pd() {
  UsualPd& own = usual.get();
  const std::lock_guard lock(own.mutex);
  if (own.pd == nullptr && context() != nullptr) own.pd = ::ibv_alloc_pd(context());
  return own.pd;
}

Id::Id(void* context, rdma_port_space space) {
  shown_.owner = this;
  shown_.c.context = context;
  shown_.c.ps = space;
  shown_.c.qp_type = IBV_QPT_RC;
}

Id::~Id() = default;

void Id::set_channel(std::shared_ptr<Channel> to, bool is_synchronous) {
  channel = std::move(to);
  synchronous = is_synchronous;
  shown_.c.channel = channel->shown();
}

int Id::set_device() {
  ibv_context* const device = context();
  if (device == nullptr) return -1;
  ibv_pd* const pd = usual_pd();
  if (pd == nullptr) return -1;
  shown_.c.verbs = device;
  if (shown_.c.pd == nullptr) shown_.c.pd = pd;
  shown_.c.port_num = 1;
  return 0;
}

void Id::set_local(const boost::asio::ip::tcp::endpoint& local) {
  store(shown_.c.route.addr.src_storage, local);
}
void Id::set_peer(const boost::asio::ip::tcp::endpoint& peer) {
  store(shown_.c.route.addr.dst_storage, peer);
}
boost::asio::ip::tcp::endpoint Id::local() const {
  return endpoint_of(&shown_.c.route.addr.src_addr).value_or(boost::asio::ip::tcp::endpoint());
}
boost::asio::ip::tcp::endpoint Id::peer() const {
  return endpoint_of(&shown_.c.route.addr.dst_addr).value_or(boost::asio::ip::tcp::endpoint());
}

void Id::tell(rdma_cm_event_type type, int status) {
  tell(std::make_unique<Event>(type, shared_from_this(), status));
}

void Id::tell(std::unique_ptr<Event> event) {
  std::unique_ptr<Event> unused;  // goes without the lock
  const std::lock_guard lock(cm_mutex());
  unused = push(std::move(event));
}

std::unique_ptr<Event> Id::push(std::unique_ptr<Event> event) {
  return !gone && channel != nullptr ? channel->push(std::move(event)) : std::move(event);
}

void Id::push(RequestOrder::Events& events) {
  for (auto& event : events) event = push(std::move(event));
}

RequestOrder::Events Id::pass_over(Id* came_to) const {
  RequestOrder::Events requests;
  if (came_to == nullptr) return requests;
  requests = came_to->order.passed_over(peer().address());
  came_to->push(requests);
  return requests;
}

int Id::complete() {
  if (!synchronous) return 0;
  forget_event();
  rdma_cm_event* event = nullptr;
  // Of a call that has begun, which is not given up half done: it is not cancelled (guarded()).
  if (channel->get(&event) != 0) return -1;
  shown_.c.event = event;
  if (event->status == 0) return 0;
  return fail(event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED
              : event->status < 0                    ? -event->status
                                                     : event->status);
}

void Id::forget_event() {
  if (rdma_cm_event* const event = std::exchange(shown_.c.event, nullptr); event != nullptr) acknowledge(event);
}

void Id::tell_acknowledged() {
  acknowledged().notify_all();
}

int Id::release() {
  if (!process.alive()) return 0;
  forget_event();
  // These go without the lock, in this order: the port is free then, and the peer has been told.
  std::deque<std::unique_ptr<Event>> dropped, kept_back, passed;
  const auto came_to = requested_from.lock();
  std::shared_ptr<Channel> last_channel;
  std::shared_ptr<Id> self;
  std::shared_ptr<cm::Connection> last_connection;
  std::shared_ptr<cm::Canceller> last_canceller;
  std::shared_ptr<cm::ConnectRequest> last_request;
  std::unique_ptr<cm::Listener> last_listener;
  {
    std::unique_lock lock(cm_mutex());
    gone = true;
    dropped = channel->take_events_of(*this);
    kept_back = order.take_all();
    if (state == State::kRequested) passed = pass_over(came_to.get());
    acknowledged().wait(lock, [&] { return unacknowledged == 0; });
    last_listener = std::move(listener);
    last_request = std::move(request);
    last_canceller = std::move(canceller);
    last_connection = std::move(connection);
    last_channel = std::move(channel);
    bound = {};
    self = std::move(kept_);
  }
  last_listener.reset();
  if (last_canceller) last_canceller->cancel();
  if (last_connection) last_connection->disconnect();
  return 0;
}

int Id::migrate(std::shared_ptr<Channel> to) {
  if (!process.alive() || (to != nullptr && !to->alive())) return fail(EINVAL);
  const bool alone = to == nullptr;
  if (alone) {
    to = Channel::make();
    if (to == nullptr) return -1;
  }
  if (synchronous) forget_event();
  std::shared_ptr<Channel> before;  // these two go without the lock
  std::deque<std::unique_ptr<Event>> unused;
  std::unique_lock lock(cm_mutex());
  acknowledged().wait(lock, [&] { return unacknowledged == 0; });
  before = channel;
  for (auto& event : before->take_events_of(*this)) unused.push_back(to->push(std::move(event)));
  set_channel(std::move(to), alone);
  lock.unlock();
  return 0;
}

}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

IWARP_ENTRY int iwarp_rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                                     rdma_port_space space) {
  if (id == nullptr) return fail(EINVAL);
  if (space != RDMA_PS_TCP && space != RDMA_PS_IB) return fail(EOPNOTSUPP);  // no datagrams
  return guarded([&] {
    if (iwarp::dropin::context() == nullptr) return -1;
    const auto to = channel != nullptr ? Channel::of(channel).shared_from_this() : Channel::make();
    if (to == nullptr) return -1;
    if (!to->alive()) return fail(EINVAL);
    const auto made = std::make_shared<Id>(context, space);
    made->set_channel(to, channel == nullptr);
    made->keep();
    *id = made->shown();
    return 0;
  });
}

IWARP_ENTRY int iwarp_rdma_destroy_id(rdma_cm_id* id) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] { return Id::of(id).release(); });
}

IWARP_ENTRY int iwarp_rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] { return Id::of(id).migrate(channel ? Channel::of(channel).shared_from_this() : nullptr); });
}
