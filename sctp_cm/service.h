// Connections over SCTP, for C++: listen, accept or reject with private data, connect, disconnect, as cm/ has them for
// MPA and TCP, with the same engine, queue pairs and handlers:
//
//   cm::Engine engine;
//   auto sctp = sctp_cm::Service::make(engine).value();
//   sctp->connect(qp, {.host = "10.0.0.2", .port = 7174}, [](const Error& error, auto connection) { ... });
//
// SCTP runs in UDP (RFC 6951), and a peer is named by address, UDP port and SCTP port. A connection is one DDP Stream
// Session; several may share one association (ConnectOptions::share_association), and each ends by itself. IRD, ORD and
// RTR are settled as RFC 6581 s7 has it.
//
// Its I/O is done by the threads that do the engine's: the background thread, or who waits for one of its completion
// queues, or polls. One at a time: a borrowed io_context is run by a single thread, which then also makes and destroys
// services and listeners. Queue pairs may be of any Context, and their completion queues of any engine: who waits for
// those of another one is told, but does not do the I/O. usrsctp keeps its state in global variables, so a process has
// one Service at a time.
//
// Thread-safe. In a forked child every call refuses.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/sctp_cm/connection.h"
#include "iwarp/sctp_cm/listener.h"
#include "iwarp/sctp_cm/options.h"
#include "iwarp/verbs/own_process.h"

namespace iwarp::sctp_cm {

// Where to connect to, and how.
struct ConnectOptions {
  std::string host;             // name or address, IPv4 or IPv6
  std::uint16_t port = 0;       // of UDP, 1 to 65535
  std::uint16_t sctp_port = 0;  // Default 0: the number of the UDP port
  // Address of this host to connect from. Default: any.
  std::optional<boost::asio::ip::address> local{};
  // What is asked for in the Initiate. Its answer_timeout begins when the association is up.
  sctp::SessionOptions session{};
  std::vector<std::byte> private_data{};  // at most 508 octets, 512 with session.enhanced off
  // Of a new association. Its connect_timeout counts for the last address of the host, or the only one; those before
  // have kOfSeveralAddresses at most: a firewall may keep to itself that nobody listens there.
  TransportOptions transport{};
  static constexpr std::chrono::milliseconds kOfSeveralAddresses{1500};
  // Default off: an association of its own, shut down behind the connection. On: one with other connections to the same
  // address and ports that were made so, where it has a stream left, whatever their `transport` was. It is shut down
  // behind the last of them; its loss ends them all.
  bool share_association = false;
  // Whether a peer that answers an enhanced Initiate with a Terminate, as one does that knows RFC 5043 only, is sent a
  // plain one, with the same private data. Default on. IRD and ORD are up to the applications then.
  bool plain_fallback = true;
};

// kInvalidArgument, which names the option and its range. Service::connect() asks it first.
[[nodiscard]] Result<void> validate(const ConnectOptions& options);

class Service {
 public:
  // `engine` must outlive it. Starts its background thread in automatic mode. Errors: kResource (this process has a
  // Service, or another sctp_cm::Stack, already), kInvalidArgument (options; a forked child).
  [[nodiscard]] static Result<std::unique_ptr<Service>> make(cm::Engine& engine, const StackOptions& options = {});
  // Ends all connections (kAborted) and associations, by ABORTs; handlers that wait are called with kAborted before it
  // returns, but for those of calls that the engine's thread has not got to: they are called there. Listeners may go
  // later. In any thread, a handler of the engine included. This, ~Listener(), listen() and associations() wait for the
  // engine's thread: hold no lock that a handler takes.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Errors: kSystem (address or SCTP port in use, with what to do about it), kInvalidArgument, kResource.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const ListenOptions& options);

  // Connects `qp`. `handler` is called once in an engine thread, with the Connection when one was made (also on
  // failure: its disconnected() then holds the peer's private data, IRD and ORD of a rejection). Errors, among others:
  // kConnectionRefused and kTimeout (no association), kPeerRejected, kStartupTimeout (no answer to the Initiate),
  // kAdaptation (the peer does not speak DDP), kInsufficientIrd, kNoMatchingRtr. QueuePair::abort() and `cancel` end
  // the attempt at any time before: the handler hears of kAborted, and the queue pair is used up.
  void connect(std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options, Connection::EstablishedHandler handler,
               const std::shared_ptr<cm::Canceller>& cancel = {});
  // void(error_code, std::shared_ptr<Connection>). Understands terminal and partial cancellation.
  template <class Token>
  auto async_connect(std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options, Token&& token) {
    return cm::initiate<Error, std::shared_ptr<Connection>>(
        operations(), nullptr, cm::kEnding, std::forward<Token>(token),
        [this, qp = std::move(qp), options = std::move(options)](auto completion) mutable {
          connect(std::move(qp), std::move(options), std::move(completion.handler), completion.cancel);
        });
  }

  // Sleeps until no association is left, `time` at most; whether there is none. For who exits behind its last
  // connection: what tells the peer of its end may be under way, and where packets are lost nobody else sends it again.
  // Not to be called in a handler, and of no use where nobody runs a borrowed io_context.
  [[nodiscard]] bool wait_closed(std::chrono::milliseconds time) const;

  // Associations at this moment, those that are being set up or shut down included. A connection within one process
  // has two. With a borrowed io_context only in the thread that runs it.
  [[nodiscard]] std::size_t associations() const;

 private:
  explicit Service(std::shared_ptr<Network> network);
  [[nodiscard]] const std::shared_ptr<cm::Operations>& operations() const;

  verbs::OwnProcess<std::shared_ptr<Network>> network_;
};

}  // namespace iwarp::sctp_cm
