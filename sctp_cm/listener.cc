#include "iwarp/sctp_cm/listener.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "iwarp/sctp_cm/listener_impl.h"
#include "iwarp/sctp_cm/network.h"

namespace iwarp::sctp_cm {

Result<void> validate(const ListenOptions& options) {
  if (auto ok = sctp::validate(options.session); !ok) return ok;
  if (auto ok = validate(options.transport); !ok) return ok;
  if (options.max_pending == 0)
    return make_error(Errc::kInvalidArgument, "ListenOptions::max_pending must be 1 or more");
  if (options.idle_timeout <= std::chrono::milliseconds::zero())
    return make_error(Errc::kInvalidArgument, "ListenOptions::idle_timeout must be 1 ms or more");
  return {};
}

Result<void> Listener::Impl::open() {
  auto listener =
      network_->stack().listen(options_.endpoint, options_.sctp_port, options_.transport,
                               [this](std::shared_ptr<Association> association) { take(std::move(association)); });
  if (!listener) return listener.error();
  association_listener_ = *std::move(listener);
  local_ = association_listener_->local();
  sctp_port_ = association_listener_->sctp_port();
  return {};
}

void Listener::Impl::take(std::shared_ptr<Association> association) {
  sctp::AssociationOptions options;
  options.session = options_.session;
  options.streams = options_.transport.streams;
  const auto host =
      std::make_shared<Host>(*network_, options, weak_from_this(), Host::Side::kAccepted, options_.idle_timeout);
  association->set_user(&host->sessions());
  host->attach(std::move(association));
  network_->add(host);
}

void Listener::Impl::close(const Error& why) {
  association_listener_.reset();
  ready_.clear();
  if (waiting_) std::exchange(waiting_, {})(why, nullptr);
}

bool Listener::Impl::has_room() {
  if (ready_.size() >= options_.max_pending)  // what a peer has withdrawn keeps nobody out
    std::erase_if(ready_, [](const auto& request) { return !request->waits(); });
  return association_listener_ != nullptr && ready_.size() < options_.max_pending;
}

void Listener::Impl::give(std::unique_ptr<ConnectRequest> request) {
  if (waiting_) {
    return network_->tell([handler = std::exchange(waiting_, {}),
                           shared = std::make_shared<std::unique_ptr<ConnectRequest>>(std::move(request))] {
      handler(Error{}, std::move(*shared));
    });
  }
  ready_.push_back(std::move(request));
}

void Listener::Impl::accept(AcceptHandler handler, const cm::Canceller* key) {
  if (association_listener_ == nullptr) return handler(make_error(Errc::kAborted, "listener closed"), nullptr);
  if (waiting_) return handler(make_error(Errc::kInvalidArgument, "another accept is waiting"), nullptr);
  while (!ready_.empty()) {
    auto request = std::move(ready_.front());
    ready_.pop_front();
    if (request->waits()) return handler(Error{}, std::move(request));
  }
  waiting_ = std::move(handler);
  waiting_key_ = key;
}

void Listener::Impl::cancel(const cm::Canceller* key) {
  if (waiting_ && waiting_key_ == key)
    std::exchange(waiting_, {})(make_error(Errc::kAborted, cm::kCancelledWhy), nullptr);
}

Listener::Listener(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Listener::~Listener() {
  const auto& network = impl_->network();
  if (!network->alive() || network->operations()->closed()) return;
  network->run([this] { impl_->close(make_error(Errc::kAborted, "listener closed")); });
}

const boost::asio::ip::udp::endpoint& Listener::local() const {
  return impl_->local();
}

std::uint16_t Listener::sctp_port() const {
  return impl_->sctp_port();
}

std::shared_ptr<cm::Operations> Listener::operations() const {
  return impl_->network()->operations();
}

void Listener::accept(AcceptHandler handler, const std::shared_ptr<cm::Canceller>& cancel) {
  const auto& network = impl_->network();
  if (!network->alive()) return handler(verbs::used_after_fork(), nullptr);
  const auto shared = std::make_shared<AcceptHandler>(std::move(handler));
  network->post([impl = impl_, shared, key = cancel.get()] { impl->accept(std::move(*shared), key); },
                [shared] { (*shared)(make_error(Errc::kAborted, "SCTP service closed"), nullptr); });
  if (cancel == nullptr) return;
  cancel->set([weak = std::weak_ptr<Impl>(impl_), which = std::weak_ptr<cm::Canceller>(cancel)] {
    const auto impl = weak.lock();
    const auto lasting = which.lock();  // so that the address names no later wait
    if (impl != nullptr && lasting != nullptr) impl->network()->post([impl, lasting] { impl->cancel(lasting.get()); });
  });
}

Result<void> Listener::set_session(const sctp::SessionOptions& session) {
  const auto& network = impl_->network();
  if (!network->alive()) return verbs::used_after_fork();
  if (auto ok = sctp::validate(session); !ok) return ok;
  network->post([impl = impl_, session] { impl->set_session(session); });
  return {};
}

void Listener::Impl::set_packet_bytes(std::uint16_t octets) {
  options_.transport.packet_bytes = octets;
  if (association_listener_ != nullptr) association_listener_->set_packet_bytes(octets);
}

Result<void> Listener::set_packet_bytes(std::uint16_t octets) {
  const auto& network = impl_->network();
  if (!network->alive()) return verbs::used_after_fork();
  if (auto ok = validate(TransportOptions{.packet_bytes = octets}); !ok) return ok;
  network->post([impl = impl_, octets] { impl->set_packet_bytes(octets); });
  return {};
}

void Listener::cancel() {
  if (impl_->network()->alive()) cancellers_.cancel();
}

}  // namespace iwarp::sctp_cm
