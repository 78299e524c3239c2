// Connecting, accepting, rejecting, and the end.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstring>

#include "dropin/rdmacm/address.h"
#include "dropin/rdmacm/cm_id.h"
#include "dropin/rdmacm/entries.h"
#include "dropin/rdmacm/entry.h"
#include "dropin/rdmacm/presented.h"
#include "dropin/rdmacm/queues.h"
#include "dropin/verbs/lost_peer.h"
#include "dropin/verbs/quietly.h"
#include "iwarp/cm/connector.h"

namespace iwarp::dropin::rdmacm {
namespace {

using boost::asio::ip::tcp;
using State = Id::State;

// For TCP and for the peer's application to decide: siw has 10 s, but that is for who answers in the kernel.
constexpr std::chrono::seconds kConnectTimeout{20}, kReplyTimeout{30};
// perftest's clients come back to a port that their servers are about to open again. They rely on it that a device
// takes some ms to resolve an address.
constexpr std::chrono::milliseconds kRefusalPatience{250};
// Of the end of a connection: how long it is kept from a program that does not poll, and when that is looked at first;
// then after twice as long each time.
constexpr std::chrono::milliseconds kLongestUnpolled{100}, kFirstLook{1};

std::vector<std::byte> octets_of(const void* data, std::size_t size) {
  if (data == nullptr || size == 0) return {};
  const auto* const begin = static_cast<const std::byte*>(data);
  return {begin, begin + size};
}

// The program's part of what the peer has answered: only who offers something looks for a trailer.
ConstBytes own_part(ConstBytes answer) {
  return wanted(settings()).empty() ? answer : parse_private_data(answer).own;
}

// What a depth of rdma_conn_param means.
std::uint16_t depth_of(std::uint8_t told) {
  return std::min<std::uint16_t>(told, kMostDepth);
}

// An event of the outcome, and an errno value.
struct Outcome {
  rdma_cm_event_type type;
  int status;
};

Outcome outcome_of(const Error& error) {
  switch (error.code) {
    case Errc::kOk:
      return {RDMA_CM_EVENT_ESTABLISHED, 0};
    case Errc::kPeerRejected:
    case Errc::kConnectionRefused:
      return {RDMA_CM_EVENT_REJECTED, -ECONNREFUSED};
    case Errc::kPeerClosed:
    case Errc::kConnectionLost:
    case Errc::kRemoteTerminate:
      return {RDMA_CM_EVENT_REJECTED, -ECONNRESET};
    case Errc::kTimeout:
    case Errc::kStartupTimeout:
      return {RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT};
    case Errc::kSystem:
      return {RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH};
    case Errc::kResource:
      return {RDMA_CM_EVENT_CONNECT_ERROR, -ENOMEM};
    case Errc::kAborted:
      return {RDMA_CM_EVENT_CONNECT_ERROR, -ECONNABORTED};
    default:
      return {RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO};
  }
}

// Tells of the end of a connection when the program has polled what came before it, or at `latest`. With a device some
// time goes by between the two; here they may come at once, and a program that looks at its events between two looks at
// its queue would destroy the queue pair with completions that it has not seen (libfabric's ofi_rxm).
void tell_end(const std::weak_ptr<Id>& id, const std::weak_ptr<verbs::QueuePair>& queue_pair, TimePoint latest,
              std::chrono::milliseconds next_look) {
  const auto self = id.lock();
  if (self == nullptr) return;
  bool ended_here = false;
  {
    const std::lock_guard lock(cm_mutex());
    ended_here = self->disconnects;
  }
  const auto qp = queue_pair.lock();
  const TimePoint now = std::chrono::steady_clock::now();
  if (!ended_here && qp != nullptr && qp->unpolled() && now < latest) {
    const auto timer = std::make_shared<boost::asio::steady_timer>(engine().io());
    timer->expires_at(std::min(now + next_look, latest));
    timer->async_wait([id, queue_pair, latest, next_look, timer](const boost::system::error_code&) {
      quietly([&] { tell_end(id, queue_pair, latest, 2 * next_look); });
    });
    return;
  }
  self->tell(RDMA_CM_EVENT_DISCONNECTED);
  if (presents_roce()) self->tell(RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

void watch_end(Id& id, const std::shared_ptr<cm::Connection>& connection) {
  const std::weak_ptr<verbs::QueuePair> qp = connection->qp();
  connection->async_wait_disconnected([id = id.weak_from_this(), qp](const stream::Disconnected&) {
    if (const auto self = id.lock()) {
      const std::lock_guard lock(cm_mutex());
      self->state = State::kOver;
    }
    quietly([&] { tell_end(id, qp, std::chrono::steady_clock::now() + kLongestUnpolled, kFirstLook); });
  });
}

// How connecting or accepting ended.
void tell_outcome(const std::weak_ptr<Id>& weak, const std::shared_ptr<verbs::QueuePair>& qp, bool active,
                  const Error& error, const std::shared_ptr<cm::Connection>& connection) {
  const auto self = weak.lock();
  std::shared_ptr<cm::ConnectRequest> used_up;  // goes without the lock
  bool wanted_still = false;
  {
    const std::lock_guard lock(cm_mutex());
    wanted_still = self != nullptr && !self->gone;
    if (wanted_still) {
      self->state = error ? State::kOver : State::kConnected;
      if (!error) self->connection = connection;
      self->canceller.reset();
      used_up = std::move(self->request);
    }
  }
  if (!wanted_still) {  // destroyed, too late to be cancelled
    if (connection != nullptr && !error) connection->disconnect();
    return;
  }
  auto outcome = outcome_of(error);
  // A peer that goes while it is being accepted has rejected nothing.
  if (!active && outcome.type != RDMA_CM_EVENT_ESTABLISHED) outcome.type = RDMA_CM_EVENT_CONNECT_ERROR;
  // Who has made its queue pair by itself brings it to RTS when the answer is there, says so by rdma_establish(), and
  // on InfiniBand is told of no more than the answer.
  if (active && !error && presents_roce() && self->with_program_qp) outcome.type = RDMA_CM_EVENT_CONNECT_RESPONSE;
  auto event = std::make_unique<Event>(outcome.type, self, outcome.status);
  if (connection != nullptr && !error) {
    const auto agreed = connection->negotiated();
    event->shown.c.param.conn.responder_resources = static_cast<std::uint8_t>(std::min(agreed.ird, kMostDepth));
    event->shown.c.param.conn.initiator_depth = static_cast<std::uint8_t>(std::min(agreed.ord, kMostDepth));
    if (active) {
      self->set_local(connection->local());
      const auto answer = connection->private_data();
      event->set_private_data(as_presented(own_part(answer), kAnswerRoom));
    }
  } else if (connection != nullptr) {
    if (const auto how = connection->disconnected())
      event->set_private_data(
          as_presented(active ? own_part(how->private_data) : ConstBytes{how->private_data}, kRejectionRoom));
  }
  // To the error state before the program hears of it, as InfiniBand has it.
  if (error && presents_roce()) qp->leave(verbs::QueuePair::Unfinished::kFlushed);
  self->tell(std::move(event));
  if (error || connection == nullptr) return;
  watch_end(*self, connection);
  if (presents_roce()) give_up_after_end(connection);
}

// The same in a thread of the engine: what cannot be told for want of memory ends.
void on_outcome(const std::weak_ptr<Id>& id, const std::shared_ptr<verbs::QueuePair>& qp, bool active,
                const Error& error, const std::shared_ptr<cm::Connection>& connection) noexcept {
  try {
    tell_outcome(id, qp, active, error, connection);
  } catch (...) {
    quietly([&] { qp->abort(); });
  }
}

// The listener of a request that is being accepted: the next one of that peer waits for how this ends.
class Accepting {
 public:
  // Precondition: the lock is held.
  Accepting(const std::shared_ptr<Id>& listener, const boost::asio::ip::address& peer) : peer_(peer) {
    if (listener == nullptr) return;
    listener->order.accepting(peer);
    listener_ = listener;
  }
  ~Accepting() {
    quietly([&] { told(); });
  }
  Accepting(const Accepting&) = delete;
  Accepting& operator=(const Accepting&) = delete;

  // Once: the event of how it ended is in the channel, or there is to be none.
  void told() {
    const auto listener = std::exchange(listener_, {}).lock();
    if (listener == nullptr) return;
    RequestOrder::Events requests;  // what is left in it goes without the lock
    const std::lock_guard lock(cm_mutex());
    requests = listener->order.told(peer_);
    listener->push(requests);
  }

 private:
  std::weak_ptr<Id> listener_;
  boost::asio::ip::address peer_;
};

cm::ConnectOptions options_for(Id& id, const rdma_conn_param* param) {
  cm::ConnectOptions options;
  const auto peer = id.peer();
  options.host = peer.address().to_string();
  options.port = peer.port();
  options.policy = startup_policy(settings());
  options.mpa = stream_options(settings());
  options.policy.ird = param != nullptr ? depth_of(param->responder_resources) : kMostDepth;
  options.policy.ord = param != nullptr ? depth_of(param->initiator_depth) : kMostDepth;
  options.policy.startup_timeout = kReplyTimeout;
  options.connect_timeout = kConnectTimeout;
  options.refusal_patience = kRefusalPatience;
  if (param != nullptr) options.private_data = octets_of(param->private_data, param->private_data_len);
  if (id.bound_by_application) options.local = id.local();
  const Agreement offer = wanted(settings());
  if (offer.empty()) return options;
  options.private_data = with_trailer(options.private_data, offer);
  options.judge_reply = [offer](ConstBytes answer) { return judge_reply(offer, answer); };
  return options;
}

// Whether the private data find room, `trailer` behind them or not. `presented`: the room that InfiniBand has.
bool fit(const rdma_conn_param* param, bool trailer, std::size_t presented) {
  if (param == nullptr) return true;
  return param->private_data_len <= (presents_roce() ? presented : most_private_data(trailer));
}

int connect(Id& id, const rdma_conn_param* param) {
  if (!id.process.alive() || !fit(param, !wanted(settings()).empty(), kRequestRoom)) return fail(EINVAL);
  const auto qp = queue_pair_of(id, param);
  if (qp == nullptr) return -1;
  auto options = options_for(id, param);
  if (options.port == 0) return fail(EINVAL);
  const auto canceller = std::make_shared<cm::Canceller>();
  {
    const std::lock_guard lock(cm_mutex());
    if (id.state != State::kRouteResolved) return fail(EINVAL);
    id.state = State::kConnecting;
    id.canceller = canceller;
    id.with_program_qp = id.shown()->qp == nullptr;
    id.bound = {};  // the connection takes the port over
  }
  cm::connect(
      engine(), qp, std::move(options),
      [weak = id.weak_from_this(), qp](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
        on_outcome(weak, qp, true, error, connection);
      },
      canceller);
  return id.complete();
}

int accept(Id& id, const rdma_conn_param* param) {
  const Agreement agreed = both(wanted(settings()), id.offered);
  if (!id.process.alive() || !fit(param, !agreed.empty(), kAnswerRoom)) return fail(EINVAL);
  const auto qp = queue_pair_of(id, param);
  if (qp == nullptr) return -1;
  cm::ConnectRequest::AcceptOptions options;
  options.mpa = stream_options(settings());
  options.ird = param != nullptr ? depth_of(param->responder_resources) : id.asked.ird;
  options.ord = param != nullptr ? depth_of(param->initiator_depth) : id.asked.ord;
  if (param != nullptr) options.private_data = octets_of(param->private_data, param->private_data_len);
  if (!agreed.empty()) {
    options.private_data = with_trailer(options.private_data, agreed);
    if (!qp->set_extensions(extensions_of(agreed))) return fail(EINVAL);
  }
  const auto canceller = std::make_shared<cm::Canceller>();
  std::shared_ptr<cm::ConnectRequest> request;
  std::shared_ptr<Accepting> accepting;
  const auto listener = id.requested_from.lock();
  {
    const std::lock_guard lock(cm_mutex());
    if (id.state != State::kRequested) return fail(EINVAL);
    accepting = std::make_shared<Accepting>(listener, id.peer().address());
    id.state = State::kAccepting;
    id.canceller = canceller;
    request = id.request;
  }
  request->accept(
      qp, options,
      [weak = id.weak_from_this(), qp, accepting](const Error& error,
                                                  const std::shared_ptr<cm::Connection>& connection) {
        on_outcome(weak, qp, false, error, connection);
        quietly([&] { accepting->told(); });
      },
      canceller);
  return id.complete();
}

int reject(Id& id, const void* data, std::uint8_t size) {
  if (!id.process.alive() || size > (presents_roce() ? kRejectionRoom : most_private_data(false))) return fail(EINVAL);
  std::shared_ptr<cm::ConnectRequest> request;
  RequestOrder::Events requests;  // what is left in it goes without the lock
  const auto listener = id.requested_from.lock();
  {
    const std::lock_guard lock(cm_mutex());
    if (id.state != State::kRequested) return fail(EINVAL);
    id.state = State::kOver;
    request = std::move(id.request);
    requests = id.pass_over(listener.get());
  }
  return request->reject(octets_of(data, size)) ? 0 : fail(EINVAL);
}

int disconnect(Id& id) {
  if (!id.process.alive()) return fail(EINVAL);
  std::shared_ptr<cm::Connection> connection;
  {
    const std::lock_guard lock(cm_mutex());
    connection = id.connection;
    id.disconnects = connection != nullptr;
    if (connection == nullptr)
      return fail(id.state == State::kConnecting || id.state == State::kAccepting ? ENOTCONN : EINVAL);
  }
  if (presents_roce()) {
    connection->qp()->leave(verbs::QueuePair::Unfinished::kFlushed);  // to the error state, as InfiniBand has it
  } else {
    connection->disconnect();
  }
  // Of a synchronous id that has seen the end already: there is no other event.
  const rdma_cm_event* const last = id.shown()->event;
  if (last != nullptr && last->event == RDMA_CM_EVENT_DISCONNECTED) return 0;
  return id.complete();
}

}  // namespace
}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

IWARP_ENTRY int iwarp_rdma_connect(rdma_cm_id* id, rdma_conn_param* wanted) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] { return connect(Id::of(id), wanted); });
}

IWARP_ENTRY int iwarp_rdma_accept(rdma_cm_id* id, rdma_conn_param* wanted) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] { return accept(Id::of(id), wanted); });
}

IWARP_ENTRY int iwarp_rdma_reject(rdma_cm_id* id, const void* data, std::uint8_t size) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] { return reject(Id::of(id), data, size); });
}

// The reason that it adds is InfiniBand's.
IWARP_ENTRY int iwarp_rdma_reject_ece(rdma_cm_id* id, const void* data, std::uint8_t size) {
  return iwarp_rdma_reject(id, data, size);
}

IWARP_ENTRY int iwarp_rdma_disconnect(rdma_cm_id* id) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] { return disconnect(Id::of(id)); });
}

// Nothing to do: an iWARP connection is established when its initiator hears of the answer.
IWARP_ENTRY int iwarp_rdma_establish(rdma_cm_id* id) {
  return id == nullptr ? fail(EINVAL) : 0;
}

IWARP_ENTRY int iwarp_rdma_notify(rdma_cm_id* id, ibv_event_type /*event*/) {
  return id == nullptr ? fail(EINVAL) : 0;
}

// As iWARP devices have it: the connection itself brings a queue pair to RTR and RTS.
IWARP_ENTRY int iwarp_rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
  if (id == nullptr || attributes == nullptr || mask == nullptr) return fail(EINVAL);
  switch (attributes->qp_state) {
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
      *mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
      attributes->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
      if (iwarp::dropin::wanted(iwarp::dropin::settings()).rfc7306)
        attributes->qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
      return 0;
    case IBV_QPS_RTS:
      *mask = 0;
      return 0;
    default:
      return fail(EINVAL);
  }
}
