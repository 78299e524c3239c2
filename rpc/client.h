// Client: calls the procedures of a server over RPC-over-RDMA, from any thread. It connects when there is something to
// call, and again when the connection is lost: what was outstanding is sent once more with the same xid (RFC 8166
// s4.5.5), so that a server with a memory of what it has answered executes it once. Every Call has a deadline. Until
// its first Reply a connection carries one Call: so it begins with a NULL Call of the program, of its own.
//
//   Client client(engine, over_iwarp(engine, {.host = "192.0.2.1", .port = 20049}));
//   const Reply reply = co_await client.async_call({0x20000042, 1, 1}, arguments, {}, boost::asio::use_awaitable);
//   if (reply.success()) use(reply.results());
//
// Operations take Asio completion tokens and cancellation slots as those of cm do (cm/token.h). Handlers run on their
// executors, without a lock of the library; one that makes the next Call may do so for ever without deepening the
// stack. A Reply of any kind, an error of RPC too, is no error of the operation. Its own errors:
//   kTimeout          the deadline has passed
//   kAborted          cancelled, or the Client was closed, or the engine is gone
//   kQueueFull        too many Calls wait (ClientOptions::max_calls)
//   kConnectionLost   and others of connections: not connected, and the policy is not to try on
//   kRecordTooLong    the Reply is longer than the Call has room for, or the server refuses its chunks; or the Call is
//                     longer than the connection has memory for
//   kUnsupportedRevision  the server speaks no version of RPC-over-RDMA that is good enough
//   kMalformedRpc     what the server sent is no Reply to that Call
//   kResource         no memory
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "iwarp/cm/engine.h"
#include "iwarp/cm/token.h"
#include "iwarp/rpc/channel.h"
#include "iwarp/rpc/incoming.h"
#include "iwarp/rpc/message.h"
#include "iwarp/rpc/registered_memory.h"
#include "iwarp/rpc/reply.h"
#include "iwarp/rpcrdma/requester.h"

namespace iwarp::rpc {

// What a Client does.
struct ClientOptions {
  // Credits, sizes, versions, chunks, and `declared`: the binding for bulk data. At most 240 credits, the backward ones
  // included. Without `extensions`: options of version 2 get RDMA_ERR_INVAL_OPTION.
  rpcrdma::RequesterOptions requester{};
  // A server that leaves the question for version 2 unanswered for so long loses the connection. Such a one, one whose
  // connection ends meanwhile twice on end, and one that has refused version 2, is not asked again for ten minutes.
  std::chrono::milliseconds version_timeout = rpcrdma::kVersionAnswerTime;
  // Registered memory of a connection for Calls, and as much for Replies, octets. At least a Call and a Reply of the
  // longest kind; less than credits times these slows parallel bulk Calls.
  std::size_t memory_bytes = 64u << 20;
  // Of Calls that name none. Default 60 s; milliseconds::max(): they wait for ever.
  std::chrono::milliseconds timeout{60000};
  // Whether Calls that were sent survive the loss of their connection: they are sent again on the next one. Off: they
  // end with kConnectionLost, and so does what waits while the server cannot be reached.
  bool retransmit = true;
  // Whether Calls wait while the server has never been reached yet. Off (default): they end as the attempt does.
  bool patient = false;
  // Between two attempts to connect: the first pause, and the longest, to which it doubles.
  std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds longest_pause{5000};  // not less than the first
  // Calls that may be outstanding or wait. Beyond it new ones end with kQueueFull.
  std::size_t max_calls = 16384;
};

// Of one Call.
struct CallOptions {
  std::optional<std::chrono::milliseconds> timeout{};  // nothing: that of the Client
  Credential credential{};                             // who calls
  Credential verifier{};                               // proof of that
  // Octets of the longest results that may come. Where that is little, no memory is set aside for them. More than this
  // ends the Call with kRecordTooLong.
  std::size_t max_results = SIZE_MAX;
  // It completes, with an empty Reply, as soon as it has left: TCP has it, and close() does not take it back. One so
  // long that the server fetches it by RDMA Read completes when the server has answered. What the server answers is
  // dropped; the Call is sent again if the connection is lost before.
  bool one_way = false;
  // The xid of the Call; nothing: the Client chooses. kInvalidArgument: one of that xid is outstanding. Who gave a Call
  // up, for its deadline say, may send it again with its xid: while the connection is still the same the server has it
  // already, and this Call gets its Reply. The second time, or with other octets or max_results, the connection is made
  // anew, and so are the other Calls' (ClientOptions::retransmit).
  std::optional<std::uint32_t> xid{};
};

class Callers;
class ClientCore;
class WholeMessage;

// Thread-safe.
class Client {
 public:
  // Counts since construction, and what is spoken.
  struct Stats {
    std::uint64_t calls = 0;        // begun
    std::uint64_t replies = 0;      // that came to an outstanding Call
    std::uint64_t sent_again = 0;   // Calls, on another connection than before
    std::uint64_t timeouts = 0;     // Calls that ended with kTimeout
    std::uint64_t connections = 0;  // made
    std::uint32_t version = 0;      // of RPC-over-RDMA on the last connection; 0: no Reply yet
  };
  // Hears how a Call went.
  using Done = std::function<void(Error, Reply)>;

  // `engine` runs handlers and timers; it must outlive this object, every Reply and every Call of serve().
  // Nothing is connected yet.
  Client(cm::Engine& engine, std::shared_ptr<ClientTransport> transport, ClientOptions options = {});
  // As close().
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Calls `what`. void(error_code, Reply), or (Error, Reply) for callbacks that take it. `arguments` are XDR, a
  // multiple of 4 octets, and are taken over. Cancelled, it ends with kAborted; the server may execute it all the same.
  template <class Token>
  auto async_call(const Procedure& what, Octets arguments, CallOptions options, Token&& token) {
    return async_exchange(encode_call(what, options.credential, options.verifier, arguments), std::move(options),
                          std::forward<Token>(token));
  }
  // The same with arguments that are sent from where they lie (registered_memory.h), and count for nothing in
  // ClientOptions::memory_bytes. They are let go of when the Call is over and no peer reaches them any more.
  template <class Token>
  auto async_call(const Procedure& what, RegisteredOctets arguments, CallOptions options, Token&& token) {
    return cm::initiate<Error, Reply>(
        engine_.operations(), nullptr, cm::kHarmless, std::forward<Token>(token),
        [core = core_, head = encode_call(what, options.credential, options.verifier, {}),
         arguments = std::move(arguments), options = std::move(options)](auto completion) mutable {
          begin(
              core, head, std::move(arguments), options,
              [told = std::move(completion.handler)](const Error& error, Reply reply) {
                told(error, std::move(reply));
              },
              completion.cancel);
        });
  }
  // The same with a whole RPC Call, whose xid is replaced, and whose credential and verifier count.
  template <class Token>
  auto async_exchange(Octets message, CallOptions options, Token&& token) {
    return cm::initiate<Error, Reply>(
        engine_.operations(), nullptr, cm::kHarmless, std::forward<Token>(token),
        [core = core_, message = std::move(message), options = std::move(options)](auto completion) mutable {
          begin(
              core, std::move(message), options,
              [told = std::move(completion.handler)](const Error& error, Reply reply) {
                told(error, std::move(reply));
              },
              completion.cancel);
        });
  }
  // As these, and waits. While it waits the engine's I/O is done in this thread, as by CompletionQueue::wait_for(), or,
  // where several threads wait, in one of them. Not to be called in a handler of the engine.
  [[nodiscard]] Result<Reply> call(const Procedure& what, ConstBytes arguments, const CallOptions& options = {});
  [[nodiscard]] Result<Reply> call(const Procedure& what, RegisteredOctets arguments, const CallOptions& options = {});
  [[nodiscard]] Result<Reply> exchange(Octets message, const CallOptions& options = {});  // a whole RPC Call

  // Serves a version of a program to the server, which may call its clients where they have a connection to it
  // (Call::caller(); RFC 8167), in place of who did so before. `handler` runs on the engine, so it must not block. Its
  // Answer travels in line, or by chunk where both ends have `backward_chunks`: what is longer than that becomes
  // SYSTEM_ERR. Nothing connects for it: only Calls do. As many handlers as there are backward credits are at work at a
  // time, those of lost connections included: what comes beyond gets SYSTEM_ERR. None begins for a connection that has
  // ended; who has begun, or is about to, when close() or the destructor is called, is left alone, and what it gives is
  // dropped: end what handlers wait for, and let a function that is posted to the engine come to pass, before what they
  // use goes.
  void serve(std::uint32_t program, std::uint32_t version, Handler handler);

  // Ends all Calls with kAborted, and the connection. Later Calls end likewise. Harmless when repeated.
  void close();
  // Counts so far.
  [[nodiscard]] Stats stats() const;

 private:
  static void begin(const std::shared_ptr<ClientCore>& core, Octets message, const CallOptions& options, Done done,
                    const std::shared_ptr<cm::Canceller>& cancel);
  static void begin(const std::shared_ptr<ClientCore>& core, ConstBytes head, RegisteredOctets arguments,
                    const CallOptions& options, Done done, const std::shared_ptr<cm::Canceller>& cancel);
  [[nodiscard]] Result<Reply> wait_for(WholeMessage message, const CallOptions& options);

  cm::Engine& engine_;
  std::shared_ptr<ClientCore> core_;
  std::shared_ptr<Callers> callers_;
};

}  // namespace iwarp::rpc
