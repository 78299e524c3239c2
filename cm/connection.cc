#include "iwarp/cm/connection.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>

namespace iwarp::cm {
namespace {

stream::Disconnected ended(const Error& reason) {
  stream::Disconnected d;
  d.reason = reason;
  return d;
}

}  // namespace

using Clock = std::chrono::steady_clock;

std::tuple<stream::Disconnected> detail::Results<stream::Disconnected>::failed(const Error& error) {
  return {ended(error)};
}

Connection::Connection(Engine& engine, tcp::socket socket, std::shared_ptr<verbs::QueuePair> qp,
                       const stream::MpaOptions& mpa)
    : engine_(&engine),
      engine_io_(engine.io()),
      operations_(engine.operations()),
      socket_(std::in_place, std::move(socket)),
      timer_(std::in_place, engine.io()),
      qp_(std::move(qp)),
      mpa_(mpa),
      read_bytes_(kMostReadBytes) {
  boost::system::error_code ec;
  local_ = socket_->local_endpoint(ec);
  remote_ = socket_->remote_endpoint(ec);
}

Connection::~Connection() {
  if (!alive()) {
    if (!released_ && engine_ != nullptr) (void)::close(socket_->native_handle());  // the child's own descriptor
    return;
  }
  {
    const auto lock = qp_->lock();
    if (qp_->driver() == this) qp_->set_driver(nullptr);
    qp_->part_queues(this);
  }
  if (engine_ != nullptr) engine_->remove(this);
}

mpa::Negotiated Connection::negotiated() const {
  if (!alive()) return {};
  const auto lock = qp_->lock();
  return core_ ? core_->negotiated() : mpa::Negotiated{};
}

std::vector<std::byte> Connection::private_data() const {
  if (!alive()) return {};
  const auto lock = qp_->lock();
  return private_data_;
}

Counters Connection::counters() const {
  if (!alive()) return {};
  const auto lock = qp_->lock();
  return {qp_->endpoint().tx_counters(), qp_->endpoint().rx_counters()};
}

std::optional<stream::Disconnected> Connection::disconnected() const {
  if (!alive()) return ended(verbs::used_after_fork());
  const auto lock = qp_->lock();
  return disconnected_;
}

std::string Connection::to_string() const {
  return "local=" + cm::to_string(local_) + " peer=" + cm::to_string(remote_) +
         " role=" + (initiator_ ? "initiator " : "responder ") + negotiated().to_string();
}

Result<void> Connection::begin(EstablishedHandler handler, const verbs::Driver* holder) {
  const bool held = qp_->driver() == holder;
  const stream::Phase phase = qp_->endpoint().phase();
  if (held && holder != nullptr && phase == stream::Phase::kClosed) return make_error(Errc::kAborted);
  if (!held || phase != stream::Phase::kIdle)
    return make_error(Errc::kInvalidArgument, "queue pair was used before");  // req: RFC5041-2.3-1
  if (auto ok = qp_->usable(); !ok) return ok;
  established_ = std::move(handler);
  core_.emplace(qp_->endpoint(), mpa_);
  qp_->join_queues(*engine_, weak_from_this(), this);
  qp_->set_driver(this, &*core_);
  core_->set_emss(effective_mss(*socket_));
  return {};
}

Result<void> Connection::start(mpa::Initiator initiator, EstablishedHandler handler, FallBackHandler fall_back,
                               const verbs::Driver* holder, stream::ReplyJudge judge, stream::RetryJudge again) {
  {
    const auto lock = qp_->lock();
    if (auto ok = begin(std::move(handler), holder); !ok) return ok;
    initiator_ = true;
    tap_ = engine_->make_tap({local_, remote_, true});
    fall_back_ = std::move(fall_back);
    core_->start(std::move(initiator), Clock::now(), std::move(judge), std::move(again));
    engine_->add(shared_from_this());  // with the lock: it may end at once
  }
  drive(kApplication, Clock::now());
  return {};
}

Result<void> Connection::start(mpa::Responder responder, EstablishedHandler handler) {
  {
    const auto lock = qp_->lock();
    if (auto ok = begin(std::move(handler), nullptr); !ok) return ok;
    core_->start(std::move(responder), Clock::now());
    engine_->add(shared_from_this());  // with the lock: it may end at once
  }
  drive(kApplication, Clock::now());
  return {};
}

std::optional<verbs::Driver::Agreed> Connection::agreed() const {
  const mpa::Negotiated& n = core_->negotiated();
  return Agreed{n.ird, n.ord, core_->mulpdu(), n.crc, n.markers_sent, n.markers_received};
}

void Connection::disconnect() {
  if (!alive()) return;  // a forked child: who held the lock when it forked never gives it back
  {
    const auto lock = qp_->lock();
    core_->disconnect(advance(Clock::now()));
    qp_->drain_completions();  // of a peer that had gone unnoticed: nobody drives it any more
  }
  drive(kApplication, Clock::now());
}

Result<void> Connection::settle_depths(std::uint16_t peer_ird, std::uint16_t peer_ord) {
  if (!alive()) return verbs::used_after_fork();
  Result<void> settled;
  {
    const auto lock = qp_->lock();
    settled = core_->settle_depths(peer_ird, peer_ord, advance(Clock::now()));
  }
  drive(kApplication, Clock::now());
  return settled;
}

void Connection::abort(const Error& reason) {
  if (!alive()) return;
  {
    const auto lock = qp_->lock();
    core_->abort_sparing(reason, advance(Clock::now()));
    qp_->drain_completions();  // at once, whoever moves the octets
  }
  drive(kApplication, Clock::now());
}

void Connection::cancel_start() {
  if (!alive()) return;
  {
    const auto lock = qp_->lock();
    if (!established_) return;  // told already
    core_->abort_sparing(make_error(Errc::kAborted, kCancelledWhy), advance(Clock::now()));
    qp_->drain_completions();
  }
  drive(kApplication, Clock::now());
}

void Connection::on_disconnected(Completion<Error, stream::Disconnected> completion) {
  if (!alive()) return completion.handler(verbs::used_after_fork(), ended(verbs::used_after_fork()));
  {
    const auto lock = qp_->lock();
    if (!disconnected_) {
      disconnect_waiters_.push_back(completion);
    } else if (engine_ != nullptr) {
      boost::asio::post(engine_io_,
                        [done = std::move(completion.handler), how = *disconnected_] { done(Error{}, how); });
      return;
    }
  }
  if (completion.cancel == nullptr) return;
  completion.cancel->set([weak = weak_from_this(), which = completion.cancel.get()] {
    if (const auto self = weak.lock()) self->cancel_wait(which);
  });
}

void Connection::cancel_wait(const Canceller* which) {
  if (!alive()) return;
  const auto lock = qp_->lock();
  const auto found = std::find_if(disconnect_waiters_.begin(), disconnect_waiters_.end(),
                                  [&](const auto& waiter) { return waiter.cancel.get() == which; });
  if (found == disconnect_waiters_.end() || engine_ == nullptr) return;
  boost::asio::post(engine_io_, [done = std::move(found->handler)] {
    const Error cancelled = make_error(Errc::kAborted, kCancelledWhy);
    done(cancelled, ended(cancelled));
  });
  disconnect_waiters_.erase(found);
}

void Connection::apply_link_action() {
  for (;;) {
    switch (core_->link_action()) {
      case stream::LinkAction::kNone:
        return;
      case stream::LinkAction::kShutdownWrite: {
        boost::system::error_code ec;
        socket_->shutdown(tcp::socket::shutdown_send, ec);
        if (tap_ != nullptr) tap_->sent_end(ByteTap::End::kFin, Clock::now());
        break;
      }
      case stream::LinkAction::kClose:
        keep_tcp_ && core_->behind_reject() != nullptr ? keep_socket() : release_socket(false);
        return;
      case stream::LinkAction::kReset:
        release_socket(true);
        return;
    }
  }
}

void Connection::release_socket(bool reset) {
  if (released_) return;
  released_ = true;
  boost::system::error_code ec;
  if (tap_ != nullptr && reset) tap_->sent_end(ByteTap::End::kReset, Clock::now());
  tap_.reset();
  if (reset) socket_->set_option(boost::asio::socket_base::linger(true, 0), ec);
  socket_->close(ec);
  socket_gone();
}

void Connection::keep_socket() {
  if (released_) return;
  std::vector<std::byte> octets = *core_->behind_reject();  // may throw: before anything has changed
  octets.insert(octets.end(), early_.begin(), early_.end());
  released_ = true;
  tap_.reset();
  kept_ = TcpConnection(std::move(*socket_), std::move(octets));  // req: RFC5044-7.1.2-16
  socket_gone();
}

void Connection::socket_gone() {
  timer_->cancel();
  timer_deadline_.reset();
  stopped_.reset();
  if (qp_->driver() == this) qp_->set_driver(nullptr);
  qp_->part_queues(this);
  if (engine_ != nullptr) engine_->ended(this);
}

TcpConnection Connection::take_tcp() {
  if (!alive()) return {};
  const auto lock = qp_->lock();
  return std::move(kept_);
}

void Connection::deliver(Events& events, verbs::QueuePair::Lock& lock, bool post) {
  std::vector<std::function<void()>> calls;
  for (stream::Event& event : events) {
    // What the handler holds goes when it cannot be called any more, and without the lock.
    if (!std::holds_alternative<stream::FallBack>(event) && fall_back_)
      calls.push_back([drop = std::exchange(fall_back_, {})] {});
    if (auto* established = std::get_if<stream::Established>(&event)) {
      private_data_ = std::move(established->private_data);
      if (established_)
        calls.push_back(
            [handler = std::exchange(established_, {}), self = shared_from_this()] { handler(Error{}, self); });
    } else if (auto* another = std::get_if<stream::FallBack>(&event)) {
      release_socket(false);
      calls.push_back([drop = std::exchange(established_, {})] {});  // another connection has it
      if (fall_back_)
        calls.push_back([handler = std::exchange(fall_back_, {}), to = std::move(*another)] { handler(to); });
    } else {
      disconnected_ = std::move(std::get<stream::Disconnected>(event));
      const stream::Disconnected& how = *disconnected_;
      if (!how.was_established) private_data_ = how.private_data;
      if (established_) {
        calls.push_back([handler = std::exchange(established_, {}), self = shared_from_this(), reason = how.reason] {
          handler(reason, self);
        });
      }
      for (auto& waiter : disconnect_waiters_)
        calls.push_back([done = std::move(waiter.handler), how] { done(Error{}, how); });
      disconnect_waiters_.clear();
    }
  }
  lock.unlock();
  const auto later = [&](std::size_t from) {
    for (; from < calls.size(); ++from) boost::asio::post(engine_io_, std::move(calls[from]));
  };
  if (post) return later(0);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    try {
      calls[i]();
    } catch (...) {  // the application's own: for the caller of Engine::poll() and the like
      later(i + 1);
      throw;
    }
  }
}

void Connection::detach_from_engine() {
  Events events;
  verbs::QueuePair::Lock lock = qp_->lock();
  engine_ = nullptr;
  kept_ = {};
  if (!released_) {
    core_->abort(make_error(Errc::kAborted, "engine destroyed"));
    qp_->drain_completions();
    release_socket(true);
    while (auto event = core_->poll_event()) events.push_back(std::move(*event));
  }
  socket_.reset();
  timer_.reset();
  deliver(events, lock, false);
}

}  // namespace iwarp::cm
