#include "iwarp/device/connection.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "iwarp/device/failure.h"

namespace iwarp::device {

using boost::asio::posix::stream_descriptor;

namespace {

// A message that finds no Receive at the peer is tried again for as long as InfiniBand can say: for ever.
constexpr std::uint8_t kRetries = 7;

// Asio gets a descriptor of its own: the library closes its one.
Result<void> assign(stream_descriptor& to, int descriptor) {
  boost::system::error_code ec;
  const int own = ::dup(descriptor);
  if (own < 0) return failure_of(errno, "no descriptor is to be had");
  to.assign(own, ec);
  if (!ec) return {};
  ::close(own);
  return failure_of(ec.value(), "a descriptor of the device cannot be waited for");
}

rdma_conn_param conn_param(const Agreement& agreement) {
  rdma_conn_param out{};
  out.responder_resources = static_cast<std::uint8_t>(agreement.ird);
  out.initiator_depth = static_cast<std::uint8_t>(agreement.ord);
  out.retry_count = out.rnr_retry_count = kRetries;
  return out;
}

}  // namespace

Result<std::shared_ptr<Connection>> Connection::make(boost::asio::io_context& io, std::shared_ptr<Device> device,
                                                     CmId id, std::size_t ord, const ConnectionTimes& times) {
  auto resources = Resources::make(std::move(device), std::move(id), {});
  if (!resources) return resources.error();
  std::shared_ptr<Connection> out(new Connection(io, std::move(*resources), ord, times));
  out->note_addresses();
  return out;
}

Connection::Connection(boost::asio::io_context& io, std::shared_ptr<Resources> resources, std::size_t ord,
                       const ConnectionTimes& times)
    : io_(io),
      resources_(std::move(resources)),
      endpoint_(resources_, ord),
      times_(times),
      events_(io),
      completions_(io),
      timer_(io) {}

Connection::~Connection() {
  if (life_ != Life::kOver) finish(make_error(Errc::kAborted));
}

template <class What>
void Connection::enter(const std::weak_ptr<Connection>& weak, What what) {
  const auto self = weak.lock();
  if (self == nullptr) return;
  std::function<void()> tell;
  {
    const std::lock_guard lock(self->mu_);
    what(*self);
    tell = std::exchange(self->tell_, {});
  }
  if (tell) tell();
}

bool Connection::step(LifeInput on) {
  const auto to = next(life_, on);
  if (to) life_ = *to;
  return to.has_value();
}

// Both descriptors, and the device's own events.
Result<void> Connection::watch() {
  if (auto ok = assign(events_, resources_->id().descriptor()); !ok) return ok;
  if (auto ok = assign(completions_, resources_->channel()->fd); !ok) return ok;
  wait_for_events();
  wait_for_completions();
  return {};
}

void Connection::note_addresses() {
  local_ = to_endpoint(resources_->id().get()->route.addr.src_addr);
  remote_ = to_endpoint(resources_->id().get()->route.addr.dst_addr);
}

void Connection::set_timer(std::chrono::milliseconds after, const Error& reason) {
  timer_.expires_after(after);
  timer_.async_wait([weak = weak_from_this(), reason](boost::system::error_code ec) {
    if (!ec) enter(weak, [&](Connection& self) { self.finish(reason); });
  });
}

// --- Beginning.

void Connection::accept(Agreement agreement, Established established) {
  established_ = std::move(established);
  agreed_ = std::move(agreement);
  if (!step(LifeInput::kAccept)) return tell_not_established();
  if (auto ok = watch(); !ok) return finish_later(ok.error());
  set_timer(times_.establish, make_error(Errc::kStartupTimeout, "the peer does not take the answer to its request"));
  rdma_conn_param param = conn_param(agreed_);
  param.private_data = agreed_.private_data.data();
  param.private_data_len = static_cast<std::uint8_t>(agreed_.private_data.size());
  if (resources_->verbs().accept(resources_->id().get(), &param) != 0)
    return finish_later(failure_of(errno, "the device does not accept the connection"));
  agreed_.private_data.clear();
}

void Connection::connect(const tcp::endpoint& to, const std::optional<tcp::endpoint>& from, Agreement agreement,
                         Established established) {
  established_ = std::move(established);
  agreed_ = std::move(agreement);
  initiator_ = true;
  remote_ = to;
  if (!step(LifeInput::kConnect)) return tell_not_established();
  if (auto ok = watch(); !ok) return finish_later(ok.error());
  set_timer(times_.establish, make_error(Errc::kTimeout, "the server does not answer"));
  SocketAddress there = to_socket_address(to), here{};
  if (from) here = to_socket_address(*from);
  const auto ms = static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(times_.establish.count(), 1, 60000));
  if (resources_->verbs().resolve_addr(resources_->id().get(), from ? &here.any : nullptr, &there.any, ms) != 0)
    finish_later(failure_of(errno, "the address cannot be resolved"));
}

// It was given up before.
void Connection::tell_not_established() {
  boost::asio::post(io_, [established = std::exchange(established_, {})] {
    if (established) established(make_error(Errc::kAborted));
  });
}

void Connection::on_address() {
  if (!step(LifeInput::kAddressResolved)) return;
  if (auto ok = resources_->make_queue_pair(); !ok) return finish(ok.error());
  const auto ms = static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(times_.establish.count(), 1, 60000));
  if (resources_->verbs().resolve_route(resources_->id().get(), ms) != 0)
    finish(failure_of(errno, "there is no way to the address"));
}

void Connection::call_connect() {
  if (!step(LifeInput::kRouteResolved)) return;
  auto call = ConnectCall::begin(resources_, conn_param(agreed_), std::exchange(agreed_.private_data, {}));
  if (!call) return finish(call.error());
  call_ = std::move(*call);
  auto returned = std::make_shared<stream_descriptor>(io_);
  if (auto ok = assign(*returned, call_->descriptor()); !ok) return finish(ok.error());
  returned->async_wait(stream_descriptor::wait_read,
                       [weak = weak_from_this(), returned, call = call_](boost::system::error_code ec) {
                         if (ec || !call->returned()) return;
                         enter(weak, [&](Connection& self) { self.on_connect_called(call->failed()); });
                       });
}

// Its success says nothing yet: an event does, and may have come already.
void Connection::on_connect_called(int failed) {
  if (life_ == Life::kConnecting && failed != 0) return finish(failure_of(failed, "the device does not connect"));
  if (std::exchange(established_in_call_, false)) establish();
}

void Connection::on_established(const CmEvent& event) {
  if (!next(life_, LifeInput::kEstablished)) return;
  if (initiator_) agreed_.private_data.assign(event.octets().begin(), event.octets().end());
  // Until it has returned the call has the id and the queue pair, which nobody else may use or end.
  established_in_call_ = call_ != nullptr && (!call_->returned() || call_->failed() != 0);
  if (!established_in_call_) establish();
}

void Connection::establish() {
  if (!step(LifeInput::kEstablished)) return;
  timer_.cancel();
  was_established_ = true;
  note_addresses();
  device_watch_ = resources_->device().watch(
      resources_->qp(), resources_->cq(), [weak = weak_from_this(), &io = io_](const Error& why) {
        boost::asio::post(io, [weak, why] { enter(weak, [&](Connection& self) { self.finish(why); }); });
      });
  if (resources_->device().gone()) return finish(make_error(Errc::kSystem, "the RDMA device is gone"));
  if (established_) tell_ = [established = std::exchange(established_, {})] { established(Error{}); };
}

// --- Events.

void Connection::wait_for_events() {
  events_.async_wait(stream_descriptor::wait_read, [weak = weak_from_this()](boost::system::error_code ec) {
    if (ec) return;
    enter(weak, [](Connection& self) {
      self.take_events();
      if (self.life_ != Life::kOver) self.wait_for_events();
    });
  });
}

// What is to be told is told before the next event: the descriptor is ready as long as there are any.
void Connection::take_events() {
  while (life_ != Life::kOver && !tell_) {
    const auto event = resources_->id().next_event();
    if (!event) return;
    handle(*event);
  }
}

void Connection::handle(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return on_address();
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return call_connect();
    case RDMA_CM_EVENT_ESTABLISHED:
      return on_established(event);
    case RDMA_CM_EVENT_DISCONNECTED:
      return on_peer_left(event.status);
    case RDMA_CM_EVENT_ADDR_ERROR:
      return finish(failure_of(event.status, "the address cannot be resolved"));
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return finish(failure_of(event.status, "there is no way to the address"));
    case RDMA_CM_EVENT_UNREACHABLE:
      return finish(failure_of(event.status, "the peer does not answer"));
    case RDMA_CM_EVENT_REJECTED:
      return finish(make_error(Errc::kPeerRejected, "the peer rejected the connection, or nobody listens there"));
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return finish(failure_of(event.status, "the connection could not be established"));
    case RDMA_CM_EVENT_DEVICE_REMOVAL: {
      const Error why = make_error(Errc::kSystem, "the RDMA device was removed");
      resources_->device().lost(why);
      return finish(why);
    }
    default:  // nothing that this end has asked for, or that changes anything
      return;
  }
}

void Connection::on_peer_left(int status) {
  if (life_ == Life::kLeaving) return finish(make_error(Errc::kAborted, kLeft));
  if (!next(life_, LifeInput::kPeerLeft)) return;
  if (!was_established_) return finish(failure_of(status, "the peer left before the connection was established"));
  // The event is the same however a connection over siw ended: what became of the last requests tells more. These are
  // taken now, for poll() to give.
  endpoint_.close();
  if (endpoint_.failure()) return finish(*endpoint_.failure());
  if (status != 0) return finish(failure_of(status, "the connection was lost"));
  if (endpoint_.unfinished_sends() > 0 || endpoint_.sends_flushed())
    return finish(make_error(Errc::kConnectionLost, "the peer left while messages were on their way to it"));
  if (life_ == Life::kSuspect || life_ == Life::kUp || life_ == Life::kFinishing)
    finish(make_error(Errc::kPeerClosed, "the peer closed the connection"));
}

// --- Completions.

void Connection::wait_for_completions() {
  completions_.async_wait(stream_descriptor::wait_read, [weak = weak_from_this()](boost::system::error_code ec) {
    if (ec) return;
    enter(weak, [](Connection& self) {
      if (self.life_ == Life::kOver) return;
      self.take_completion_events();
      if (self.life_ != Life::kOver) self.wait_for_completions();
    });
  });
}

void Connection::take_completion_events() {
  ibv_cq* of = nullptr;
  void* context = nullptr;
  while (resources_->verbs().get_cq_event(resources_->channel(), &of, &context) == 0)
    resources_->verbs().ack_cq_events(of, 1);
  if (errno != EAGAIN && errno != EINTR)  // the descriptor would be ready for ever
    return finish(make_error(Errc::kSystem, "the device's completion events cannot be read: was it removed?"));
  tell_ = std::exchange(wake_, {});
}

void Connection::arm(std::function<void()> wake) {
  if (life_ == Life::kOver) return;
  wake_ = std::move(wake);
  if (resources_->verbs().req_notify_cq(resources_->cq(), 0) != 0)
    finish_later(make_error(Errc::kSystem, "the device's completion queue cannot be waited for"));
}

std::size_t Connection::poll(std::span<rpcrdma::Completion> to) {
  const std::size_t n = endpoint_.poll(to);
  if (life_ != Life::kOver) look_at_queue();
  return n;
}

void Connection::look_at_queue() {
  if (life_ == Life::kLeaving) return;  // what is undone now is so by this end's wish
  if (endpoint_.failure()) return finish_later(*endpoint_.failure());
  if (endpoint_.flushed() && step(LifeInput::kFlushed))
    set_timer(times_.suspect, make_error(Errc::kConnectionLost, "the queue pair came into its error state"));
  if (life_ == Life::kFinishing && endpoint_.unfinished_sends() == 0) leave();
}

// --- End.

void Connection::on_end(std::function<void(const End&)> ended) {
  if (life_ != Life::kOver) {
    ended_ = std::move(ended);
  } else if (was_established_) {
    boost::asio::post(io_, [ended = std::move(ended), end = *end_] { ended(end); });
  }
}

void Connection::disconnect() {
  if (life_ != Life::kUp && life_ != Life::kOver && !was_established_) return abort(make_error(Errc::kAborted, kLeft));
  if (!step(LifeInput::kDisconnect)) return;
  if (auto ok = endpoint_.flush(); !ok) return finish_later(ok.error());
  set_timer(times_.finish, make_error(Errc::kTimeout, "what was posted did not go out"));
  look_at_queue();
}

void Connection::leave() {
  if (!step(LifeInput::kAllSent)) return;
  set_timer(times_.leave, make_error(Errc::kAborted, kLeft));
  if (resources_->verbs().disconnect(resources_->id().get()) != 0) finish_later(make_error(Errc::kAborted, kLeft));
}

// Whoever has seen that something failed need not know why.
void Connection::abort(const Error& reason) {
  const std::optional<Error> cause = endpoint_.failure();
  finish(cause ? *cause : reason);
}

void Connection::leave_at_once() {
  if (life_ == Life::kUp || life_ == Life::kFinishing) (void)resources_->verbs().disconnect(resources_->id().get());
  abort(make_error(Errc::kAborted, kLeft));
}

void Connection::finish_later(const Error& reason) {
  if (std::exchange(finishing_, true)) return;
  boost::asio::post(io_,
                    [weak = weak_from_this(), reason] { enter(weak, [&](Connection& self) { self.finish(reason); }); });
}

void Connection::finish(const Error& reason) {
  if (!step(LifeInput::kEnd)) return;
  end_ = End{reason, was_established_};
  boost::system::error_code ec;
  timer_.cancel();
  events_.close(ec);
  completions_.close(ec);
  device_watch_.reset();
  wake_ = {};
  if (call_ != nullptr && !call_->returned()) {
    endpoint_.abandon();  // the thread frees what it has in hand
  } else {
    endpoint_.close();
    resources_->destroy_id();
  }
  if (!established_ && !ended_) return;
  boost::asio::post(io_,
                    [established = std::exchange(established_, {}), ended = std::exchange(ended_, {}), end = *end_] {
                      if (established) return established(end.reason);
                      if (ended) ended(end);
                    });
}

}  // namespace iwarp::device
