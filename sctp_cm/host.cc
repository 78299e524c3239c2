#include "iwarp/sctp_cm/host.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "iwarp/sctp_cm/listener_impl.h"
#include "iwarp/sctp_cm/network.h"

namespace iwarp::sctp_cm {
namespace {

TimePoint in(std::chrono::milliseconds time) {
  return add_saturating(std::chrono::steady_clock::now(), time);
}

}  // namespace

Host::Host(Network& network, const sctp::AssociationOptions& options, std::weak_ptr<Listener::Impl> from, Side side,
           std::chrono::milliseconds idle_timeout)
    : network_(network),
      from_(std::move(from)),
      side_(side),
      idle_timeout_(idle_timeout),
      sessions_(network.io(), options, side, *this),
      idle_(network.io(), [this] { closing_ ? sessions_.abort() : close(); }) {}

void Host::attach(std::shared_ptr<Association> association) {
  local_ = association->local();
  remote_ = association->remote();
  association_ = association;
  sessions_.attach(std::move(association));
}

void Host::join(std::shared_ptr<Attempt> attempt) {
  attempt->connection->wait_for(*this);
  if (ready_) return begin(std::move(attempt));
  waiting_.push_back(std::move(attempt));
}

void Host::begin(std::shared_ptr<Attempt> attempt) {
  const std::shared_ptr<Connection> connection = attempt->connection;
  if (connection->over()) return look();
  const auto stream = sessions_.open(attempt->options.session, attempt->options.private_data);
  if (!stream) {
    if (attempt->options.share_association && stream.error().code == Errc::kResource)
      return network_.connect_alone(attempt, remote_);
    connection->fail(stream.error());
    return look();
  }
  on_[raw(*stream)] = {connection, std::move(attempt)};
  connection->begin(*this, *stream);
}

void Host::on_ready() {
  ready_ = true;
  const auto self = shared_from_this();
  if (const auto association = association_.lock()) local_ = association->local();  // as the peer's answer has told
  while (!waiting_.empty()) {  // one that has ended meanwhile takes no association from those behind it
    auto attempt = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    begin(std::move(attempt));
  }
  look();
}

void Host::on_event(sctp::StreamId stream, const sctp::Session::Event& event) {
  const auto self = shared_from_this();
  if (const auto* request = std::get_if<sctp::Session::Requested>(&event)) return requested(stream, *request);
  const auto* ended = std::get_if<sctp::Session::Ended>(&event);
  const auto it = on_.find(raw(stream));
  if (it == on_.end()) {  // a request that is withdrawn
    if (ended != nullptr && undecided_.erase(raw(stream)) > 0) look();
    return;
  }
  const Joined joined = it->second;
  if (ended != nullptr && ended->try_plain && joined.attempt != nullptr && joined.attempt->options.plain_fallback &&
      takes()) {
    on_.erase(it);
    joined.attempt->options.session.enhanced = false;
    return begin(joined.attempt);
  }
  joined.connection->on_event(event);
}

std::size_t Host::on_early(sctp::StreamId stream, const sctp::Session::Early& early) {
  const auto it = on_.find(raw(stream));
  return it == on_.end() ? 0 : it->second.connection->on_early(early);
}

void Host::requested(sctp::StreamId stream, const sctp::Session::Requested& request) {
  const std::uint64_t number = sessions_.association().number(stream);
  on_.erase(raw(stream));  // one that has not heard its end is late for it
  const auto listener = from_.lock();
  if (listener == nullptr || !listener->has_room() || closing_) {
    (void)sessions_.reject(stream, {});
    return look();
  }
  undecided_[raw(stream)] = number;
  look();
  listener->give(std::make_unique<ConnectRequest>(
      network_.shared_from_this(), ConnectRequest::Facts{weak_from_this(),
                                                         stream,
                                                         number,
                                                         local_,
                                                         remote_,
                                                         {request.private_data.begin(), request.private_data.end()},
                                                         request.data}));
}

bool Host::waits(sctp::StreamId stream, std::uint64_t number) const {
  const auto it = undecided_.find(raw(stream));
  return !over_ && it != undecided_.end() && it->second == number;
}

bool Host::take_request(sctp::StreamId stream, std::uint64_t number) {
  if (!waits(stream, number)) return false;
  undecided_.erase(raw(stream));
  return true;
}

void Host::accept(sctp::StreamId stream, std::uint64_t number, const std::shared_ptr<Connection>& connection,
                  const ConnectRequest::AcceptOptions& options) {
  const auto self = shared_from_this();
  if (!take_request(stream, number))
    return connection->fail(over_ ? make_error(Errc::kConnectionLost)
                                  : make_error(Errc::kPeerClosed, "the peer has withdrawn its Initiate"));
  if (connection->over()) {  // aborted since
    sessions_.terminate(stream);
    return look();
  }
  on_[raw(stream)] = {connection, nullptr};
  connection->begin(*this, stream);
  const auto accepted = sessions_.accept(stream, {options.ird, options.ord}, options.private_data, options.told);
  if (accepted) return;
  sessions_.terminate(stream);
  connection->fail(accepted.error());
}

void Host::reject(sctp::StreamId stream, std::uint64_t number, ConstBytes private_data,
                  std::optional<std::uint16_t> required_ord) {
  if (!take_request(stream, number)) return;
  if (const auto done = sessions_.reject(stream, private_data, required_ord); !done) sessions_.terminate(stream);
  look();
}

void Host::on_room() {
  const auto self = shared_from_this();
  for (auto it = on_.begin(); it != on_.end();) {
    const std::uint16_t stream = it->first;
    const auto connection = it->second.connection;
    connection->on_room();
    it = on_.upper_bound(stream);
  }
}

void Host::left(const Connection* connection) {
  std::erase_if(on_, [&](const auto& entry) { return entry.second.connection.get() == connection; });
  std::erase_if(waiting_, [&](const auto& attempt) { return attempt->connection.get() == connection; });
  look();
}

void Host::look() {
  if (over_ || closing_) return;
  if (!on_.empty() || !waiting_.empty()) {
    idle_by_.reset();
    return idle_.follow(std::nullopt);
  }
  if (side_ == Side::kConnected) return close();
  if (!idle_by_) idle_by_ = in(idle_timeout_);  // requests that come to nothing put it off no further
  idle_.follow(undecided_.empty() ? idle_by_ : std::nullopt);
}

void Host::close() {
  closing_ = true;
  idle_.follow(in(kFarewell));
  sessions_.close();
}

void Host::on_end(const Error& why) {
  const auto self = shared_from_this();
  over_ = true;
  idle_.follow(std::nullopt);
  undecided_.clear();
  network_.remove(self);
  for (const auto& [stream, joined] : std::exchange(on_, {})) joined.connection->let_go();
  // Who has joined late has had little of its time.
  for (const auto& attempt : std::exchange(waiting_, {}))
    attempt->joined ? network_.connect_alone(attempt, remote_) : network_.go_on(attempt, why);
}

void Host::drop() {
  const auto self = shared_from_this();
  over_ = true;
  idle_.follow(std::nullopt);
  undecided_.clear();
  waiting_.clear();
  for (const auto& [stream, joined] : std::exchange(on_, {})) joined.connection->let_go();
}

}  // namespace iwarp::sctp_cm
