#include "iwarp/sctp_cm/connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <sstream>
#include <utility>
#include <variant>

#include "iwarp/sctp_cm/host.h"
#include "iwarp/sctp_cm/network.h"
#include "iwarp/verbs/own_process.h"

namespace iwarp::sctp_cm {
namespace {

stream::Disconnected ended(const Error& reason) {
  stream::Disconnected how;
  how.reason = reason;
  return how;
}

}  // namespace

std::string Negotiated::to_string() const {
  std::ostringstream out;
  out << "llp=sctp enhanced=" << enhanced << " p2p=" << peer_to_peer << " rtr=" << enhanced::name(rtr) << " ird=" << ird
      << " ord=" << ord;
  return out.str();
}

Result<std::shared_ptr<Connection>> Connection::make(std::shared_ptr<Network> network,
                                                     std::shared_ptr<verbs::QueuePair> qp, sctp::Role role,
                                                     EstablishedHandler handler) {
  boost::asio::io_context& io = network->io();
  std::shared_ptr<Connection> made(new Connection(std::move(network), role, std::move(handler)));
  QueuePairLink::Handlers handlers;
  handlers.established = [weak = made->weak_from_this()] {
    if (const auto self = weak.lock()) self->on_established();
  };
  handlers.ended = [weak = made->weak_from_this()](const endpoint::Ended& how) {
    if (const auto self = weak.lock()) self->on_ended(how);
  };
  auto link = QueuePairLink::make(io, std::move(qp), role, std::move(handlers));
  if (!link) return link.error();
  made->link_ = *std::move(link);
  return made;
}

Connection::Connection(std::shared_ptr<Network> network, sctp::Role role, EstablishedHandler handler)
    : network_(std::move(network)),
      operations_(network_->operations()),
      role_(role),
      established_(std::move(handler)) {}

Connection::~Connection() = default;

bool Connection::alive() const {
  return network_->alive();
}

void Connection::follow(const std::shared_ptr<cm::Canceller>& cancel) {
  if (cancel == nullptr) return;
  cancel->set([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      const std::lock_guard lock(self->mu_);
      if (self->was_established_) return;
    }
    self->qp()->abort();
  });
}

void Connection::wait_for(Host& host) {
  host_ = host.weak_from_this();
}

void Connection::begin(Host& host, sctp::StreamId stream) {
  wait_for(host);
  {
    const std::lock_guard lock(mu_);
    local_ = host.local();
    remote_ = host.remote();
    stream_ = stream;
  }
  link_->begin(host.sessions(), stream);
}

void Connection::on_event(const sctp::Session::Event& event) {
  if (const auto* e = std::get_if<sctp::Session::Established>(&event)) {
    const std::lock_guard lock(mu_);
    negotiated_ = {.enhanced = e->enhanced,
                   .peer_to_peer = e->settled.peer_to_peer,
                   .rtr = e->settled.rtr,
                   .ird = e->settled.depths.ird,
                   .ord = e->settled.depths.ord,
                   .peer_ird = e->peer ? e->peer->ird : std::uint16_t{0},
                   .peer_ord = e->peer ? e->peer->ord : std::uint16_t{0}};
    if (initiator()) private_data_.assign(e->private_data.begin(), e->private_data.end());
  } else if (const auto* rejected = std::get_if<sctp::Session::Rejected>(&event)) {
    const std::lock_guard lock(mu_);
    rejected_with_ = rejected->data;
    private_data_.assign(rejected->private_data.begin(), rejected->private_data.end());
  }
  link_->on_event(event);
}

void Connection::on_established() {
  const std::size_t mulpdu = qp()->query() ? qp()->query()->mulpdu : 0;
  {
    const std::lock_guard lock(mu_);
    was_established_ = true;
    negotiated_.mulpdu = mulpdu;
  }
  if (auto handler = std::exchange(established_, {}))
    network_->tell([handler = std::move(handler), self = shared_from_this()] { handler({}, self); });
}

void Connection::on_ended(const endpoint::Ended& how) {
  const auto self = shared_from_this();
  stream::Disconnected told;
  told.reason = how.reason;
  told.received = how.received;
  told.sent = how.sent;
  told.was_established = how.was_established;
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mu_);
    if (!how.was_established) {
      told.rejected_with = rejected_with_;
      told.private_data = private_data_;
    }
    disconnected_ = told;
    waiters.swap(waiters_);
  }
  if (const auto host = host_.lock()) host->left(this);
  if (auto handler = std::exchange(established_, {}))
    network_->tell([handler = std::move(handler), reason = how.reason, self] { handler(reason, self); });
  for (Waiter& waiter : waiters)
    network_->tell([handler = std::move(waiter.handler), told] { handler(Error{}, told); });
  network_->remove(self);
}

void Connection::disconnect() {
  if (alive()) link_->disconnect();
}

void Connection::abort(const Error& reason) {
  if (alive()) link_->abort(reason);
}

void Connection::on_disconnected(Waiter waiter) {
  if (!alive()) return waiter.handler(verbs::used_after_fork(), ended(verbs::used_after_fork()));
  {
    const std::lock_guard lock(mu_);
    if (disconnected_) {
      if (operations_->closed()) return;
      boost::asio::post(operations_->io(),
                        [done = std::move(waiter.handler), how = *disconnected_] { done(Error{}, how); });
      return;
    }
    waiters_.push_back(waiter);
  }
  if (waiter.cancel == nullptr) return;
  waiter.cancel->set([weak = weak_from_this(), which = waiter.cancel.get()] {
    if (const auto self = weak.lock()) self->cancel_wait(which);
  });
}

void Connection::cancel_wait(const cm::Canceller* which) {
  if (!alive() || operations_->closed()) return;
  const std::lock_guard lock(mu_);
  const auto found = std::ranges::find_if(waiters_, [&](const Waiter& w) { return w.cancel.get() == which; });
  if (found == waiters_.end()) return;
  boost::asio::post(operations_->io(), [done = std::move(found->handler)] {
    const Error cancelled = make_error(Errc::kAborted, cm::kCancelledWhy);
    done(cancelled, ended(cancelled));
  });
  waiters_.erase(found);
}

void Connection::cancel() {
  if (alive()) cancellers_.cancel();
}

Connection::udp::endpoint Connection::local() const {
  if (!alive()) return {};
  const std::lock_guard lock(mu_);
  return local_;
}

Connection::udp::endpoint Connection::remote() const {
  if (!alive()) return {};
  const std::lock_guard lock(mu_);
  return remote_;
}

sctp::StreamId Connection::stream() const {
  if (!alive()) return {};
  const std::lock_guard lock(mu_);
  return stream_;
}

Negotiated Connection::negotiated() const {
  if (!alive()) return {};
  const std::lock_guard lock(mu_);
  return negotiated_;
}

std::vector<std::byte> Connection::private_data() const {
  if (!alive()) return {};
  const std::lock_guard lock(mu_);
  return private_data_;
}

std::optional<stream::Disconnected> Connection::disconnected() const {
  if (!alive()) {
    stream::Disconnected how;
    how.reason = verbs::used_after_fork();
    return how;
  }
  const std::lock_guard lock(mu_);
  return disconnected_;
}

cm::Counters Connection::counters() const {
  if (!alive()) return {};
  const auto lock = qp()->lock();
  return {qp()->endpoint().tx_counters(), qp()->endpoint().rx_counters()};
}

std::string Connection::to_string() const {
  std::ostringstream out;
  out << "local=" << local() << " peer=" << remote() << " role=" << (initiator() ? "initiator" : "responder") << ' '
      << negotiated().to_string();
  return out.str();
}

}  // namespace iwarp::sctp_cm
