// Connection: a queue pair on a DDP Stream Session over SCTP (RFC 5043, RFC 6581 s7), as cm::Connection is one on MPA
// and TCP. Made by Service::connect() and ConnectRequest::accept(). Thread-safe. The service keeps it until its end;
// the application may drop its reference at any time without closing anything. In a forked child it tells nothing, but
// for a disconnected() that says why, and does nothing.
#pragma once

#include <boost/asio/ip/udp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/cm/connection.h"
#include "iwarp/cm/description.h"
#include "iwarp/cm/engine.h"
#include "iwarp/cm/token.h"
#include "iwarp/sctp_cm/queue_pair_link.h"
#include "iwarp/stream/connection.h"

namespace iwarp::sctp_cm {

class Host;
class Network;

// What both ends have agreed on.
struct Negotiated {
  bool enhanced = false;                     // IRD, ORD and the connection model were negotiated (RFC 6581 s7)
  bool peer_to_peer = false;                 // an RTR opens the connection
  enhanced::Rtr rtr = enhanced::Rtr::kNone;  // active: the form to send. Passive: the form it named
  std::uint16_t ird = 0;                     // used by this side: inbound Reads to admit,
  std::uint16_t ord = 0;                     // outbound Reads to have outstanding at most
  std::uint16_t peer_ird = 0;                // as received, 0x3FFF included; 0 if not enhanced
  std::uint16_t peer_ord = 0;                // likewise
  std::size_t mulpdu = 0;                    // octets of a DDP segment that is sent, at most

  // "llp=sctp enhanced=1 p2p=0 rtr=none ird=32 ord=32"
  [[nodiscard]] std::string to_string() const;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  using udp = boost::asio::ip::udp;  // for its endpoint type
  // Hears how an attempt at a connection ended. The Connection is null when none was made.
  using EstablishedHandler = std::function<void(Error, std::shared_ptr<Connection>)>;
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The queue pair that it serves.
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return link_->qp(); }
  // Whether this end has connected; false: it has accepted.
  [[nodiscard]] bool initiator() const { return role_ == sctp::Role::kActive; }
  // UDP address of this end, and of the peer; empty before there is an association.
  [[nodiscard]] udp::endpoint local() const;
  [[nodiscard]] udp::endpoint remote() const;
  // The SCTP stream of its session, for who shares associations. Meaningful once established.
  [[nodiscard]] sctp::StreamId stream() const;
  // Meaningful once established.
  [[nodiscard]] Negotiated negotiated() const;
  // The peer's private data, without the enhanced data of RFC 6581; empty before it is established. Valid as long as
  // this object.
  [[nodiscard]] std::vector<std::byte> private_data() const;
  // Octets and messages so far.
  [[nodiscard]] cm::Counters counters() const;
  // "local=127.0.0.1:1 peer=127.0.0.1:2 role=initiator llp=sctp enhanced=1 ..."
  [[nodiscard]] std::string to_string() const;

  // Orderly close: posted work goes out, then a Session Terminate. No-op when closed. Other sessions of the association
  // go on; when the last one has ended, the end that has connected shuts the association down.
  void disconnect();
  // At once. Outstanding work completes as kFlushed; the peer hears an end in order, as SCTP can end an association
  // abruptly, but not one session of it.
  void abort(const Error& reason = make_error(Errc::kAborted));
  // Completes with void(error_code, stream::Disconnected) when the connection is over; at once if it is already. There
  // is an error only when the wait was cancelled (kAborted).
  template <class Token>
  auto async_wait_disconnected(Token&& token) {
    return cm::initiate<Error, stream::Disconnected>(
        operations_, &cancellers_, cm::kHarmless, std::forward<Token>(token),
        [self = shared_from_this()](auto completion) { self->on_disconnected(std::move(completion)); });
  }
  // Cancels the waits for its end, and leaves the connection as it is.
  void cancel();
  // How it ended; nullopt while it lives.
  [[nodiscard]] std::optional<stream::Disconnected> disconnected() const;

  // --- For who gives this class another face: async_wait_disconnected() without a token.
  using Waiter = cm::Completion<Error, stream::Disconnected>;
  void on_disconnected(Waiter waiter);

  // --- For the service. In the thread of its engine, unless it says otherwise.
  // Any thread. kInvalidArgument: the queue pair was used before; else as QueuePair::usable(). `handler` is called
  // once.
  [[nodiscard]] static Result<std::shared_ptr<Connection>> make(std::shared_ptr<Network> network,
                                                                std::shared_ptr<verbs::QueuePair> qp, sctp::Role role,
                                                                EstablishedHandler handler);
  // Any thread: aborts with kAborted what is not established yet when `cancel` asks for it.
  void follow(const std::shared_ptr<cm::Canceller>& cancel);
  // Before there is a session: what the peer said in its Initiate.
  void set_private_data(std::vector<std::byte> data) { private_data_ = std::move(data); }
  // It waits for that association.
  void wait_for(Host& host);
  // The session is on that stream of the host's: opened, or about to be accepted.
  void begin(Host& host, sctp::StreamId stream);
  void on_event(const sctp::Session::Event& event);
  [[nodiscard]] std::size_t on_early(const sctp::Session::Early& early) { return link_->on_early(early); }
  void on_room() { link_->on_room(); }
  void fail(const Error& why) { link_->fail(why); }
  void let_go() { link_->let_go(); }
  void detach() { link_->detach(); }
  [[nodiscard]] bool over() const { return link_->over(); }

 private:
  Connection(std::shared_ptr<Network> network, sctp::Role role, EstablishedHandler handler);
  void on_established();
  void on_ended(const endpoint::Ended& how);
  void cancel_wait(const cm::Canceller* which);
  [[nodiscard]] bool alive() const;

  const std::shared_ptr<Network> network_;
  const std::shared_ptr<cm::Operations> operations_;
  const sctp::Role role_;
  std::shared_ptr<QueuePairLink> link_;  // never changes once it is made
  EstablishedHandler established_;
  std::weak_ptr<Host> host_;
  cm::Cancellers cancellers_;

  mutable std::mutex mu_;  // guards what follows
  udp::endpoint local_, remote_;
  sctp::StreamId stream_{};
  Negotiated negotiated_;
  std::vector<std::byte> private_data_;
  std::optional<enhanced::EnhancedData> rejected_with_;
  bool was_established_ = false;
  std::optional<stream::Disconnected> disconnected_;
  std::vector<Waiter> waiters_;
};

}  // namespace iwarp::sctp_cm
