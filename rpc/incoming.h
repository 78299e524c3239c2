// Calls that come, and what a handler of a Server or of a Client makes of them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "iwarp/cm/engine.h"
#include "iwarp/cm/token.h"
#include "iwarp/rpc/message.h"
#include "iwarp/rpc/registered_memory.h"
#include "iwarp/rpc/reply.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpc {

class IncomingCall;
class ServerSession;

// Who has sent a Call, to be called in its turn over the same connection (RFC 8167): a Client::serve(), or the callback
// service of another implementation. Copies are the same. It keeps nothing alive, and the engine must outlive
// it; a client that connects again is another. Thread-safe.
class Caller {
 public:
  // Hears how a Call went.
  using Done = std::function<void(Error, Reply)>;

  // Nobody.
  Caller() = default;
  // By the Server.
  Caller(cm::Engine& engine, std::weak_ptr<ServerSession> session) : engine_(&engine), session_(std::move(session)) {}

  // Whether there is a client. That it is connected still, async_call() tells.
  [[nodiscard]] explicit operator bool() const { return engine_ != nullptr; }
  // Calls `what`. void(error_code, Reply), or (Error, Reply), as Client::async_call(). Precondition: there is a client.
  // Call and Reply travel in line unless ResponderOptions::backward_chunks says otherwise; how many at a time, and for
  // how long: backward_credits and backward_timeout there. Errors: kConnectionLost (nothing is sent again), kTimeout,
  // kAborted (cancelled), kQueueFull (too many wait), kInvalidArgument (too long, or backward_credits is 0),
  // kRecordTooLong (the client cannot take it, or its Reply does not fit), kMalformedRpc, kResource (no memory).
  template <class Token>
  auto async_call(const Procedure& what, ConstBytes arguments, const Credential& credential, Token&& token) const {
    return cm::initiate<Error, Reply>(
        engine_->operations(), nullptr, cm::kHarmless, std::forward<Token>(token),
        [engine = engine_, session = session_,
         message = encode_call(what, credential, {}, arguments)](auto completion) mutable {
          begin(
              *engine, session, std::move(message),
              [told = std::move(completion.handler)](const Error& error, Reply reply) {
                told(error, std::move(reply));
              },
              completion.cancel);
        });
  }

 private:
  static void begin(cm::Engine& engine, const std::weak_ptr<ServerSession>& session, Octets message, Done done,
                    const std::shared_ptr<cm::Canceller>& cancel);

  cm::Engine* engine_ = nullptr;
  std::weak_ptr<ServerSession> session_;
};

// A Call, for its handler. Copies are the same Call.
class Call {
 public:
  // By Server or Client.
  explicit Call(std::shared_ptr<IncomingCall> call) : call_(std::move(call)) {}

  // What is called.
  [[nodiscard]] std::uint32_t program() const;
  [[nodiscard]] std::uint32_t version() const;    // of the program
  [[nodiscard]] std::uint32_t procedure() const;  // of that version
  // Their octets, XDR, whatever chunks they came in. Untrusted. Valid as long as this object, or until done_reading().
  [[nodiscard]] ConstBytes arguments() const;
  // Who calls, as it came. As long as arguments().
  [[nodiscard]] rpcrdma::OpaqueAuth credential() const;
  // The client's address, without its port.
  [[nodiscard]] const std::string& peer() const;
  // The arguments are not needed any more: their memory serves other Calls.
  void done_reading();
  // Who calls, to be called back. Nobody in a handler of a Client.
  [[nodiscard]] Caller caller() const;

 private:
  std::shared_ptr<IncomingCall> call_;
};

// What a handler gives: the results, or how the Call was not executed. Implicitly made of either.
struct Answer {
  Answer(Octets octets) : results(std::move(octets)) {}  // XDR, a multiple of 4 octets
  // Likewise, sent from where they lie (registered_memory.h). They are let go of when they have left.
  Answer(RegisteredOctets octets) : registered(std::move(octets)) {}
  Answer(rpcrdma::AcceptStat s) : stat(s) {}  // kSuccess: without results

  // The results, wherever they are; empty unless kSuccess. Valid as long as this object is not moved from.
  [[nodiscard]] ConstBytes octets() const {
    if (stat != rpcrdma::AcceptStat::kSuccess) return {};
    return registered ? registered->bytes() : ConstBytes(results);
  }

  rpcrdma::AcceptStat stat = rpcrdma::AcceptStat::kSuccess;  // how it went
  Octets results{};                                          // if kSuccess
  std::optional<RegisteredOctets> registered{};              // in place of `results`
};

// A Call as it came, for those who make whole RPC messages themselves (Server::serve_messages()).
// Thread-safe. Destroyed without an answer, the client hears SYSTEM_ERR: no credit is lost.
class IncomingCall {
 public:
  virtual ~IncomingCall() = default;
  // The whole RPC Call; empty after done_reading(). Valid until then.
  [[nodiscard]] virtual ConstBytes message() const = 0;
  // Its head. Likewise.
  [[nodiscard]] virtual const rpcrdma::RpcCall& head() const = 0;
  // As those of Call.
  [[nodiscard]] virtual const std::string& peer() const = 0;
  [[nodiscard]] virtual std::uint16_t peer_port() const = 0;  // of that address; 0: there is none
  virtual void done_reading() = 0;                            // likewise
  // Likewise.
  [[nodiscard]] virtual Caller caller() const { return {}; }
  // Answers it with a whole RPC Reply, whose xid is set here. kInvalidArgument: it is answered already, or that is no
  // Reply. A client that has gone meanwhile is no error: it gets the Reply when it asks again.
  [[nodiscard]] virtual Result<void> answer(Octets reply) = 0;
};

// A coroutine. What it throws becomes SYSTEM_ERR.
using Handler = std::function<boost::asio::awaitable<Answer>(Call)>;

}  // namespace iwarp::rpc
