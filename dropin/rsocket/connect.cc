// Names of a socket, and connecting it.
#include <cerrno>
#include <chrono>

#include "dropin/rdmacm/bind.h"
#include "dropin/rdmacm/entry.h"
#include "dropin/rsocket/socket.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/settings.h"
#include "dropin/verbs/translate.h"
#include "iwarp/cm/connector.h"

namespace iwarp::dropin::rsockets {
namespace {

using boost::asio::ip::tcp;
using rdmacm::fail;

// For TCP, and for the peer's application to accept.
constexpr std::chrono::seconds kConnectTimeout{60}, kReplyTimeout{30};

// An errno value of connect(2).
int connect_errno(const Error& error) {
  switch (error.code) {
    case Errc::kPeerRejected:
    case Errc::kConnectionRefused:
      return ECONNREFUSED;
    case Errc::kTimeout:
    case Errc::kStartupTimeout:
      return ETIMEDOUT;
    case Errc::kSystem:
      return EHOSTUNREACH;
    case Errc::kAborted:
      return ECONNABORTED;
    default:
      return to_errno(error.code);
  }
}

// The address of nowhere is this host's, as for sockets.
Socket::Endpoint reachable(const Socket::Endpoint& peer) {
  if (!peer.address().is_unspecified()) return peer;
  if (peer.address().is_v6()) return {boost::asio::ip::address_v6::loopback(), peer.port()};
  return {boost::asio::ip::address_v4::loopback(), peer.port()};
}

}  // namespace

int Socket::bind(const Endpoint& local) {
  const Turn turn(*this);
  if (state_ != State::kIdle) return fail(EINVAL);
  if (local.protocol().family() != family_) return fail(EAFNOSUPPORT);
  bound_ = rdmacm::bind_socket(local, options_.v6_only, local_);
  if (!bound_) return -1;
  state_ = State::kBound;
  return 0;
}

int Socket::connect(const Endpoint& peer) {
  Turn turn(*this);
  switch (state_) {
    case State::kIdle:
    case State::kBound:
      break;
    case State::kConnecting:
      return fail(EALREADY);
    case State::kConnected:
      // The first call behind an attempt that did not wait is told how it ended.
      return std::exchange(told_connected_, true) ? fail(EISCONN) : 0;
    case State::kFailed: {
      const int failure = take_failure();
      return fail(failure != 0 ? failure : ECONNABORTED);
    }
    case State::kListening:
    case State::kClosed:
      return fail(EINVAL);
  }
  if (peer.protocol().family() != family_) return fail(EAFNOSUPPORT);
  if (peer.port() == 0) return fail(ECONNREFUSED);
  make_stream();
  peer_ = reachable(peer);
  cm::ConnectOptions options;
  options.host = peer_.address().to_string();
  options.port = peer_.port();
  options.policy = startup_policy(settings());
  options.mpa = stream_options(settings());
  options.policy.startup_timeout = kReplyTimeout;
  options.connect_timeout = kConnectTimeout;
  const auto own = stream_->connection_data().to_bytes();
  options.private_data.assign(own.begin(), own.end());
  if (state_ == State::kBound) options.local = local_;
  bound_ = {};  // the connection takes the port over
  state_ = State::kConnecting;
  canceller_ = std::make_shared<cm::Canceller>();
  cm::connect(
      engine(), stream_->queue_pair(), std::move(options),
      [weak = weak_from_this()](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
        if (const auto self = weak.lock()) {
          self->on_connected(error, connection);
        } else if (connection != nullptr && !error) {
          connection->disconnect();
        }
      },
      canceller_);
  if (!waits(0)) return fail(EINPROGRESS);
  const int error = await_connection(turn, 0);
  if (error != 0) return fail(error);
  told_connected_ = true;
  return 0;
}

void Socket::on_connected(const Error& error, const std::shared_ptr<cm::Connection>& connection) {
  Turn turn(*this);
  if (state_ != State::kConnecting) {  // closed
    if (connection != nullptr && !error) connection->disconnect();
    return;
  }
  turn.changed();
  canceller_.reset();
  if (error) {
    state_ = State::kFailed;
    failure_ = connect_errno(error);
    return;
  }
  const auto peer = ConnectionData::parse(connection->private_data());
  if (!peer) {  // a program, but no rsocket
    state_ = State::kFailed;
    failure_ = EPROTONOSUPPORT;
    connection->disconnect();
    return;
  }
  state_ = State::kConnected;
  connection_ = connection;
  local_ = connection->local();
  stream_->set_peer(*peer);
  stream_->open();
  watch_end();
}

void Socket::watch_end() {
  connection_->async_wait_disconnected([weak = weak_from_this()](const stream::Disconnected& how) {
    if (const auto self = weak.lock()) self->on_over(how);
  });
}

void Socket::on_over(const stream::Disconnected& how) {
  Turn turn(*this);
  turn.changed();
  if (stream_ == nullptr) return;
  const bool in_order = how.reason.code == Errc::kOk || how.reason.code == Errc::kPeerClosed;
  stream_->end(in_order ? 0 : ECONNRESET);
}

}  // namespace iwarp::dropin::rsockets
