// Connections over either lower layer protocol, MPA on TCP (RFC 5044) or SCTP in UDP (RFC 5043, RFC 6951), with one
// face for both: listen, accept or reject with private data, connect, disconnect, with the engine, the queue pairs and
// the options of cm/:
//
//   cm::Engine engine;
//   auto layer = llp::LowerLayer::make(engine, llp::Kind::kSctp).value();
//   auto listener = layer->listen({.endpoint = {address, 7174}}).value();
//   layer->connect(qp, {.host = "10.0.0.2", .port = 7174}, [](const Error& error, auto connection) { ... });
//
// Programs for TCP alone need none of it, and have more in cm/: TCP connections of their own, taps, links.
//
// Handlers are called once, in an engine thread, and each operation has a form for Asio (iwarp/cm/token.h).
// Thread-safe; over SCTP a borrowed io_context is run by one thread, which then makes and destroys layers and listeners
// as well. In a forked child nothing is done, and operations fail (kInvalidArgument).
//
// Over SCTP
//   - mpa::Policy counts in what it says of IRD, ORD, RTR and private data. With revision 1 nothing is negotiated
//     (RFC 6581 s7); allow_revision_1_fallback says whether that is tried when the peer has ended an enhanced session.
//     peer_to_peer, on by default, costs an RTR, though either side may send first;
//   - CRC, Markers, and what options say of sockets, of engines and of shortages, count for nothing;
//   - private data have up to 508 octets in place of 251, and 512 where nothing is negotiated;
//   - make(), listen() and the destructors of layers and listeners wait for the engine's thread: hold no lock that a
//     handler takes.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "iwarp/cm/connect_request.h"
#include "iwarp/cm/connection.h"
#include "iwarp/cm/connector.h"
#include "iwarp/cm/description.h"
#include "iwarp/cm/listener.h"

namespace iwarp::llp {

// Lower layer protocols.
enum class Kind : std::uint8_t {
  kTcp,  // MPA on TCP
  kSctp  // SCTP in UDP
};

// "tcp", "sctp"
[[nodiscard]] const char* name(Kind kind);
// By that name; nullopt: there is none such.
[[nodiscard]] std::optional<Kind> kind_named(std::string_view name);
// Whether this build has it: SCTP is there where libusrsctp was, and IWARP_SCTP was not off.
[[nodiscard]] bool has(Kind kind);

// An address and a port, of TCP or of UDP.
using Address = boost::asio::ip::tcp::endpoint;

// What SCTP has beside what the options of cm say; nobody asks for it over TCP.
struct SctpOptions {
  // Octets of an SCTP packet, at most, 576 to 65507; IP and UDP come on top. Default: what an Ethernet frame leaves in
  // IPv6. SCTP does not look for the path MTU: IP cuts what is longer, which costs speed. 65507 suits loopback.
  std::uint16_t packet_bytes = 1452;
  // SCTP port to listen at, and to connect to. Default 0: the number of the UDP port.
  std::uint16_t port = 0;
  // Whether connections to the same address and ports share an association. Default off: each has one of its own.
  bool share_association = false;
};

class Connection;
// Hears how an attempt at a connection ended. The connection is null when none was made.
using EstablishedHandler = std::function<void(Error, std::shared_ptr<Connection>)>;

// A connection over either, as cm::Connection. The application may drop its reference at any time without closing
// anything.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;

  // What carries it.
  [[nodiscard]] virtual Kind kind() const = 0;
  // The queue pair that it serves.
  [[nodiscard]] virtual const std::shared_ptr<verbs::QueuePair>& qp() const = 0;
  // Whether this end has connected; false: it has accepted.
  [[nodiscard]] virtual bool initiator() const = 0;
  // Of this end, and of the peer; over SCTP empty before there is an association.
  [[nodiscard]] virtual Address local() const = 0;
  [[nodiscard]] virtual Address remote() const = 0;  // likewise
  // Meaningful once established. Over SCTP what is MPA's alone is as by default.
  [[nodiscard]] virtual mpa::Negotiated negotiated() const = 0;
  // Of the peer, without the enhanced data of RFC 6581; empty before it is established.
  [[nodiscard]] virtual std::vector<std::byte> private_data() const = 0;
  // Octets and messages so far.
  [[nodiscard]] virtual cm::Counters counters() const = 0;
  // "local=... peer=... role=... ..."
  [[nodiscard]] virtual std::string to_string() const = 0;
  // How it ended; nullopt while it lives. Of a connect that was rejected: the peer's private data, IRD and ORD.
  [[nodiscard]] virtual std::optional<stream::Disconnected> disconnected() const = 0;

  // Orderly close: posted work goes out first. No-op when closed.
  virtual void disconnect() = 0;
  // At once. Outstanding work completes as kFlushed.
  virtual void abort(const Error& reason) = 0;
  void abort() { abort(make_error(Errc::kAborted)); }  // with kAborted
  // As cm::Connection::async_wait_disconnected(): completes with void(error_code, stream::Disconnected) when the
  // connection is over; at once if it is already. There is an error only when the wait was cancelled, or the engine has
  // gone (kAborted). A callback may take stream::Disconnected alone, whose reason says so then.
  template <class Token>
  auto async_wait_disconnected(Token&& token) {
    const auto start = [self = shared_from_this()](auto completion) {
      using Whole = cm::Completion<Error, stream::Disconnected>;
      if constexpr (std::is_same_v<decltype(completion), Whole>) {
        self->on_disconnected(std::move(completion));
      } else {
        self->on_disconnected(
            {[told = std::move(completion.handler)](const Error&, stream::Disconnected how) { told(std::move(how)); },
             completion.cancel, completion.operation});
      }
    };
    if constexpr (cm::detail::takes<Token, stream::Disconnected>()) {
      return cm::initiate<stream::Disconnected>(operations_, &cancellers_, cm::kHarmless, std::forward<Token>(token),
                                                start);
    } else {
      return cm::initiate<Error, stream::Disconnected>(operations_, &cancellers_, cm::kHarmless,
                                                       std::forward<Token>(token), start);
    }
  }
  // Cancels the waits for its end, and leaves the connection as it is.
  void cancel() {
    if (operations_->alive()) cancellers_.cancel();
  }

  // For log lines: cm::describe_end().
  [[nodiscard]] cm::EndFacts facts() const { return {remote(), initiator(), counters()}; }

 protected:
  // `operations`: where its handlers run.
  explicit Connection(std::shared_ptr<cm::Operations> operations) : operations_(std::move(operations)) {}
  // As cm::Connection::on_disconnected().
  virtual void on_disconnected(cm::Completion<Error, stream::Disconnected> completion) = 0;

 private:
  const std::shared_ptr<cm::Operations> operations_;
  cm::Cancellers cancellers_;
};

// A peer that waits for a decision, as cm::ConnectRequest. Destroyed without one: rejected. Thread-safe for one
// decision.
class ConnectRequest {
 public:
  using AcceptOptions = cm::ConnectRequest::AcceptOptions;  // what the answer says
  virtual ~ConnectRequest() = default;

  // Of the peer, and of this end.
  [[nodiscard]] virtual Address remote() const = 0;
  [[nodiscard]] virtual Address local() const = 0;  // likewise
  // Of the peer, without the enhanced data of RFC 6581. Valid as long as this object.
  [[nodiscard]] virtual const std::vector<std::byte>& private_data() const = 0;
  // Whether the peer negotiates IRD and ORD at all (RFC 6581).
  [[nodiscard]] virtual bool enhanced() const = 0;
  // The peer's IRD and ORD as received (0x3FFF included); 0 when it is not enhanced.
  [[nodiscard]] virtual std::uint16_t peer_ird() const = 0;
  [[nodiscard]] virtual std::uint16_t peer_ord() const = 0;  // likewise
  // The engine that will serve the connection: the layer's, or the one that it was moved to.
  [[nodiscard]] virtual cm::Engine& engine() const = 0;
  // As cm::ConnectRequest::move_to(). kInvalidArgument over SCTP, which has one engine, unless it is that.
  [[nodiscard]] virtual Result<void> move_to(cm::Engine& engine) = 0;

  // As cm::ConnectRequest::accept(): joins `qp`, which should have its receives posted, to the connection. The request
  // is used up, but kInvalidArgument leaves it undecided.
  virtual void accept(std::shared_ptr<verbs::QueuePair> qp, const AcceptOptions& options, EstablishedHandler handler,
                      const std::shared_ptr<cm::Canceller>& cancel = {}) = 0;
  // void(error_code, std::shared_ptr<Connection>). Understands terminal and partial cancellation.
  template <class Token>
  auto async_accept(std::shared_ptr<verbs::QueuePair> qp, AcceptOptions options, Token&& token) {
    return cm::initiate<Error, std::shared_ptr<Connection>>(
        engine().operations(), nullptr, cm::kEnding, std::forward<Token>(token),
        [this, qp = std::move(qp), options = std::move(options)](auto completion) mutable {
          accept(std::move(qp), options, std::move(completion.handler), completion.cancel);
        });
  }
  // As cm::ConnectRequest::reject().
  virtual Result<void> reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord) = 0;
  Result<void> reject(ConstBytes private_data = {}) { return reject(private_data, std::nullopt); }  // with no ORD
};

// As cm::Listener. Destroyed, it stops listening.
class Listener {
 public:
  // Hears of a peer, or why there is none: then it is null.
  using AcceptHandler = std::function<void(Error, std::unique_ptr<ConnectRequest>)>;
  virtual ~Listener() = default;

  // Where it listens, with the port that the system picked.
  [[nodiscard]] virtual Address local() const = 0;
  // `handler` gets the next peer. One at a time may wait; another gets kInvalidArgument. `cancel` gives the waiting up
  // with kAborted; a peer that comes later is kept for the next accept().
  virtual void accept(AcceptHandler handler, const std::shared_ptr<cm::Canceller>& cancel = {}) = 0;
  // void(error_code, std::unique_ptr<ConnectRequest>). Understands all kinds of cancellation.
  template <class Token>
  auto async_accept(Token&& token) {
    return cm::initiate<Error, std::unique_ptr<ConnectRequest>>(
        operations_, &cancellers_, cm::kHarmless, std::forward<Token>(token),
        [this](auto completion) { accept(std::move(completion.handler), completion.cancel); });
  }
  // Gives a waiting async_accept() up with kAborted; it may be called again.
  void cancel() {
    if (operations_->alive()) cancellers_.cancel();
  }
  // For peers that come from now on. kInvalidArgument: mpa::validate() refuses it, and nothing changes.
  [[nodiscard]] virtual Result<void> set_policy(const mpa::Policy& policy) = 0;
  // SctpOptions::packet_bytes, likewise; kInvalidArgument: out of its range. Over TCP it does nothing.
  [[nodiscard]] virtual Result<void> set_packet_bytes(std::uint16_t octets) = 0;

 protected:
  // Likewise.
  explicit Listener(std::shared_ptr<cm::Operations> operations) : operations_(std::move(operations)) {}

 private:
  const std::shared_ptr<cm::Operations> operations_;
  cm::Cancellers cancellers_;
};

// Makes connections of one engine, which outlives it.
class LowerLayer {
 public:
  // `sctp`: for listen() and connect() that say no other. kResource: over SCTP a process has one at a time, and this
  // process has it; kInvalidArgument: this build has no SCTP (has()), or something is out of its range.
  [[nodiscard]] static Result<std::unique_ptr<LowerLayer>> make(cm::Engine& engine, Kind kind,
                                                                const SctpOptions& sctp = {});
  // Over TCP nothing happens to its connections, nor to attempts at them. Over SCTP they end (kAborted); its listeners
  // may go later.
  virtual ~LowerLayer() = default;

  // What it was made with.
  [[nodiscard]] virtual Kind kind() const = 0;
  [[nodiscard]] cm::Engine& engine() const { return engine_; }  // likewise
  // As cm::Listener::listen(). Over SCTP the port is of UDP, and who comes beyond max_pending is rejected.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const cm::ListenOptions& options) {
    return listen(options, sctp_);
  }
  [[nodiscard]] virtual Result<std::unique_ptr<Listener>> listen(const cm::ListenOptions& options,
                                                                 const SctpOptions& sctp) = 0;  // with those of its own
  // As cm::connect(). Over SCTP connect_timeout is for the association. It begins when the host is resolved, and counts
  // as 10 minutes at most; where the host has several addresses, each but the last has 1.5 s at most. policy.
  // startup_timeout is for the answer to the Initiate. The port of `local` counts for nothing. What only MPA and TCP
  // can do gives kInvalidArgument: refusal_patience, keep_tcp_if_rejected, judge_reply, try_again.
  void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options, EstablishedHandler handler,
               const std::shared_ptr<cm::Canceller>& cancel = {}) {
    connect(std::move(qp), options, sctp_, std::move(handler), cancel);
  }
  virtual void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options, const SctpOptions& sctp,
                       EstablishedHandler handler, const std::shared_ptr<cm::Canceller>& cancel) = 0;  // of its own
  // Likewise, where nobody cancels it.
  void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options, const SctpOptions& sctp,
               EstablishedHandler handler) {
    connect(std::move(qp), options, sctp, std::move(handler), {});
  }
  // void(error_code, std::shared_ptr<Connection>). Understands terminal and partial cancellation.
  template <class Token>
  auto async_connect(std::shared_ptr<verbs::QueuePair> qp, cm::ConnectOptions options, Token&& token) {
    return async_connect(std::move(qp), std::move(options), sctp_, std::forward<Token>(token));
  }
  // With SctpOptions of its own.
  template <class Token>
  auto async_connect(std::shared_ptr<verbs::QueuePair> qp, cm::ConnectOptions options, const SctpOptions& sctp,
                     Token&& token) {
    return cm::initiate<Error, std::shared_ptr<Connection>>(
        engine_.operations(), nullptr, cm::kEnding, std::forward<Token>(token),
        [this, qp = std::move(qp), options = std::move(options), sctp](auto completion) mutable {
          connect(std::move(qp), options, sctp, std::move(completion.handler), completion.cancel);
        });
  }
  // Sleeps until no association is left, `time` at most; whether none is. A connect() that has none yet is not waited
  // for. For who exits behind its last connection:
  // over SCTP what tells the peer of its end may be under way, and nobody else sends it again. Over TCP the kernel
  // does, so it returns at once. Not to be called in a handler, nor where nobody else runs a borrowed io_context.
  virtual bool wait_closed(std::chrono::milliseconds time) = 0;

 protected:
  LowerLayer(cm::Engine& engine, const SctpOptions& sctp) : engine_(engine), sctp_(sctp) {}  // by make()

 private:
  cm::Engine& engine_;
  const SctpOptions sctp_;
};

}  // namespace iwarp::llp
