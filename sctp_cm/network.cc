#include "iwarp/sctp_cm/network.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "iwarp/cm/run_in_engine.h"
#include "iwarp/cm/system_cause.h"
#include "iwarp/sctp_cm/listener_impl.h"

namespace iwarp::sctp_cm {

void Network::run(const std::function<void()>& what) {
  cm::run_in(engine_, what);
}

void Network::post(std::function<void()> what, std::function<void()> otherwise) {
  boost::asio::post(io_, [self = shared_from_this(), what = std::move(what), otherwise = std::move(otherwise)] {
    if (!self->closed()) return what();
    if (otherwise) otherwise();
  });
}

void Network::tell(std::function<void()> handler) {
  to_tell_.push_back(std::move(handler));
  boost::asio::post(io_, [self = shared_from_this()] {
    if (self->to_tell_.empty()) return;
    const auto next = std::move(self->to_tell_.front());
    self->to_tell_.pop_front();
    next();
  });
}

Result<void> Network::open(const StackOptions& options) {
  auto stack = Stack::make(io_, options);
  if (!stack) return stack.error();
  stack_ = *std::move(stack);
  return {};
}

void Network::close() {
  if (closed()) return;
  resolver_.reset();
  for (const auto& weak : std::exchange(listeners_, {})) {
    if (const auto listener = weak.lock()) listener->close(make_error(Errc::kAborted, "SCTP service closed"));
  }
  for (const auto& host : hosts_) host->drop();
  for (const auto& connection : std::exchange(connections_, {})) connection->detach();
  hosts_.clear();  // their ABORTs leave with the stack
  open_ = 0;
  stack_.reset();
  while (!to_tell_.empty()) {
    const auto next = std::move(to_tell_.front());
    to_tell_.pop_front();
    next();
  }
}

void Network::add(const std::shared_ptr<Listener::Impl>& listener) {
  std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
  listeners_.push_back(listener);
}

void Network::add(std::shared_ptr<Host> host) {
  hosts_.insert(std::move(host));
  open_ = hosts_.size();
}

void Network::remove(const std::shared_ptr<Host>& host) {
  boost::asio::post(io_, [self = shared_from_this(), host] {
    if (self->hosts_.erase(host) == 0) return;
    self->open_ = self->hosts_.size();
    self->engine_.look_again();
  });
}

bool Network::wait_closed(TimePoint until) {
  return engine_.wait_until([this] { return open_.load() == 0; }, until);
}

void Network::connect(const std::shared_ptr<Attempt>& attempt) {
  if (attempt->connection->over()) return;
  const ConnectOptions& o = attempt->options;
  boost::system::error_code not_numeric;
  const auto address = boost::asio::ip::make_address(o.host, not_numeric);
  if (!not_numeric) {
    attempt->addresses.emplace_back(address, o.port);
    return go_on(attempt, {});
  }
  if (!resolver_) resolver_.emplace(io_);
  resolver_->async_resolve(
      o.host, std::to_string(o.port),
      [self = shared_from_this(), attempt](boost::system::error_code ec, const udp::resolver::results_type& found) {
        if (self->closed()) return;
        if (ec) return attempt->connection->fail(cm::resolve_error(ec));
        for (const auto& entry : found) attempt->addresses.push_back(entry.endpoint());
        self->go_on(attempt, make_error(Errc::kSystem, "host has no address"));
      });
}

void Network::go_on(const std::shared_ptr<Attempt>& attempt, const Error& last) {
  if (attempt->connection->over()) return;
  if (attempt->next == attempt->addresses.size()) return attempt->connection->fail(last);
  const udp::endpoint to = attempt->addresses[attempt->next++];
  const ConnectOptions& o = attempt->options;
  if (!o.share_association) return connect_alone(attempt, to);
  const Key key{to, sctp_port_of(o.sctp_port, o.port), o.local};
  if (const auto at = shared_.find(key); at != shared_.end()) {
    if (const auto host = at->second.lock(); host != nullptr && host->takes()) {
      attempt->joined = true;
      return host->join(attempt);
    }
  }
  auto host = make_host(*attempt, to);
  if (!host) return go_on(attempt, host.error());
  shared_[key] = *host;
  (*host)->join(attempt);
}

void Network::connect_alone(const std::shared_ptr<Attempt>& attempt, const udp::endpoint& to) {
  attempt->options.share_association = false;
  attempt->joined = false;
  auto host = make_host(*attempt, to);
  if (!host) return go_on(attempt, host.error());
  (*host)->join(attempt);
}

Result<std::shared_ptr<Host>> Network::make_host(const Attempt& attempt, const udp::endpoint& to) {
  const ConnectOptions& o = attempt.options;
  sctp::AssociationOptions options;
  options.streams = o.transport.streams;
  auto host = std::make_shared<Host>(*this, options, std::weak_ptr<Listener::Impl>{}, Host::Side::kConnected,
                                     std::chrono::milliseconds{0});
  TransportOptions transport = o.transport;
  if (attempt.next < attempt.addresses.size())  // some networks tell nothing
    transport.connect_timeout = std::min(transport.connect_timeout, ConnectOptions::kOfSeveralAddresses);
  auto association = stack_->connect(to, sctp_port_of(o.sctp_port, o.port), transport, host->sessions(), o.local);
  if (!association) return association.error();
  host->attach(*std::move(association));
  std::erase_if(shared_, [](const auto& entry) { return entry.second.expired(); });
  add(host);
  return host;
}

}  // namespace iwarp::sctp_cm
