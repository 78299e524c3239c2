// Listening, and the requests that come.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <span>
#include <string_view>

#include "dropin/rdmacm/address.h"
#include "dropin/rdmacm/bind.h"
#include "dropin/rdmacm/cm_id.h"
#include "dropin/rdmacm/entries.h"
#include "dropin/rdmacm/entry.h"
#include "dropin/rdmacm/presented.h"
#include "dropin/verbs/quietly.h"

namespace iwarp::dropin::rdmacm {
namespace {

using boost::asio::ip::tcp;

// Requests that may wait for the application. Fewer is of no use: TCP keeps the others waiting all the same.
constexpr int kLeastPending = 64, kMostBacklog = 4096;

// A depth of a Request: 0 where it says nothing, and 0x3FFF where it leaves it open.
std::uint16_t depth_asked(const cm::ConnectRequest& request, std::uint16_t told) {
  return request.enhanced() ? std::min(told, kMostDepth) : mpa::Policy().ird;
}

// Ends that present themselves differently would misunderstand each other. In words, for traces.
constexpr std::string_view kOtherKind = "one end presents itself as RoCE, the other does not";

void tell_overdue(Id& listener) {
  RequestOrder::Events requests;  // what is left in it goes without the lock
  const std::lock_guard lock(cm_mutex());
  requests = listener.order.overdue(std::chrono::steady_clock::now());
  for (auto& request : requests) request = listener.push(std::move(request));
}

void tell_in_order(const std::shared_ptr<Id>& listener, const boost::asio::ip::address& peer,
                   std::unique_ptr<Event> request) {
  const auto timer = std::make_shared<boost::asio::steady_timer>(engine().io(), RequestOrder::kLimit);
  std::unique_ptr<Event> unused;  // goes without the lock
  const std::lock_guard lock(cm_mutex());
  if (listener->gone || !listener->order.must_wait(peer)) {
    unused = listener->push(std::move(request));
    return;
  }
  timer->async_wait([weak = std::weak_ptr<Id>(listener), timer](const boost::system::error_code&) {
    if (const auto self = weak.lock()) quietly([&] { tell_overdue(*self); });
  });
  listener->order.keep(peer, std::move(request), std::chrono::steady_clock::now());
}

void offer(const std::shared_ptr<Id>& listener, std::unique_ptr<cm::ConnectRequest> request) {
  const PrivateData data = parse_private_data(request->private_data());
  const Agreement offered = data.trailer.value_or(Agreement{});
  if (offered.roce != presents_roce()) {
    (void)request->reject(std::as_bytes(std::span{kOtherKind}));
    return;
  }
  const auto id = std::make_shared<Id>(listener->shown()->context, listener->shown()->ps);
  if (id->set_device() != 0) return;  // the peer is rejected
  id->set_local(unmapped(request->local()));
  id->set_peer(unmapped(request->remote()));
  id->asked = {.ird = depth_asked(*request, request->peer_ord()), .ord = depth_asked(*request, request->peer_ird())};
  id->state = Id::State::kRequested;
  auto event = std::make_unique<Event>(RDMA_CM_EVENT_CONNECT_REQUEST, id, 0, listener);
  id->offered = offered;
  event->set_private_data(as_presented(data.own, kRequestRoom));
  event->shown.c.param.conn.responder_resources = static_cast<std::uint8_t>(id->asked.ird);
  event->shown.c.param.conn.initiator_depth = static_cast<std::uint8_t>(id->asked.ord);
  id->request = std::move(request);
  id->requested_from = listener;
  tell_in_order(listener, id->peer().address(), std::move(event));
}

// Precondition: the lock is held, and it listens.
void wait_for_request(Id& id) {
  id.listener->accept([weak = id.weak_from_this()](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
    const auto self = weak.lock();
    if (self == nullptr || error) return;
    if (request != nullptr) quietly([&] { offer(self, std::move(request)); });  // else it is rejected
    quietly([&] {
      const std::lock_guard lock(cm_mutex());
      if (!self->gone && self->listener) wait_for_request(*self);
    });
  });
}

int listen(Id& id, int backlog) {
  if (!id.process.alive()) return fail(EINVAL);
  if (id.state == Id::State::kIdle && bind_id(id, tcp::endpoint(tcp::v4(), 0)) != 0) return -1;
  if (id.state != Id::State::kBound) return fail(EINVAL);
  cm::ListenOptions options;
  options.policy = startup_policy(settings());
  if (options.policy.ird != 0) options.policy.max_ird = std::max(options.policy.max_ird, kMostDepth);
  const int most = backlog > 0 ? std::min(backlog, kMostBacklog) : kMostBacklog;
  options.backlog = most;
  options.max_pending = static_cast<std::size_t>(std::max(most, kLeastPending));
  // The application sees errno, which the library tells in words only.
  if (::listen(id.bound.get(), most) != 0) return -1;
  tcp::acceptor acceptor(engine().io());
  boost::system::error_code failed;
  acceptor.assign(id.local().protocol(), id.bound.get(), failed);
  if (failed) return fail(failed.value());
  (void)id.bound.release();
  auto listener = cm::Listener::listen(engine(), std::move(acceptor), options);
  if (!listener) {
    id.state = Id::State::kOver;  // the port went with the attempt
    return fail(listener.error().code == Errc::kInvalidArgument ? EINVAL : EADDRINUSE);
  }
  const std::lock_guard lock(cm_mutex());
  id.listener = std::move(listener).value();
  id.state = Id::State::kListening;
  wait_for_request(id);
  return 0;
}

}  // namespace
}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

IWARP_ENTRY int iwarp_rdma_listen(rdma_cm_id* id, int backlog) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] { return listen(Id::of(id), backlog); });
}

namespace iwarp::dropin::rdmacm {
namespace {

// What rdma_get_request() makes of the event that has come.
int take_request(rdma_cm_id* listener, rdma_cm_event* event, rdma_cm_id** id) {
  Id& own = Id::of(listener);
  if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST || event->status != 0) {
    listener->event = event;
    return fail(EINVAL);
  }
  if (own.endpoint_attributes) {
    ibv_qp_init_attr attributes = *own.endpoint_attributes;
    if (iwarp_rdma_create_qp(event->id, own.endpoint_pd, &attributes) != 0) {
      const int error = errno;
      rdma_cm_id* const refused = event->id;
      listener->event = event;
      (void)Id::of(refused).release();
      return fail(error);
    }
  }
  *id = event->id;
  (*id)->event = event;
  return 0;
}

}  // namespace
}  // namespace iwarp::dropin::rdmacm

// A thread may be cancelled while it sleeps here.
IWARP_ENTRY int iwarp_rdma_get_request(rdma_cm_id* listener, rdma_cm_id** id) {
  if (listener == nullptr || id == nullptr || !Id::of(listener).synchronous) return fail(EINVAL);
  guarded([&] { Id::of(listener).forget_event(); });
  rdma_cm_event* event = nullptr;
  if (Id::of(listener).channel->get(&event) != 0) return -1;
  return guarded([&] { return take_request(listener, event, id); });
}
