// Passive side of the hand-over: starts MPA on a TCP connection that the application has used before (RFC 5044 s7.1.3,
// s7.1.5), as the Responder. connect_over() is the active side.
#pragma once

#include <functional>
#include <memory>

#include "iwarp/cm/connect_request.h"

namespace iwarp::cm {

// How to wait for the peer's MPA Request.
struct AcceptOverOptions {
  mpa::Policy policy{};    // what is answered; startup_timeout limits the wait
  SocketOptions socket{};  // of TCP
};

// Hears of the Request, or why there is none: then it is null.
using AcceptOverHandler = std::function<void(Error, std::unique_ptr<ConnectRequest>)>;

// The application's own protocol has come to its end with a last message from here, and what the peer sends next is an
// MPA Request. `handler` is called once, in an engine thread. The ConnectRequest is as a Listener's: to be accepted, or
// rejected, with or without TCP.
//
// `tcp` belongs to the library from the call on. Its early() octets, read by the application behind its own last
// message, are the beginning of the Request. Every error closes it: kInvalidArgument (no connected TCP socket,
// options), kMalformedStartupFrame (no MPA Request), kStartupTimeout, kConnectionLost, kUnsupportedRevision,
// kMarkersRefused, kCrcRefused, kResource, kAborted (`cancel`). An engine that is destroyed calls no handler;
// async_accept_over() hears kAborted then.
void accept_over(Engine& engine, TcpConnection tcp, const AcceptOverOptions& options, AcceptOverHandler handler,
                 const std::shared_ptr<Canceller>& cancel = {});

// void(error_code, std::unique_ptr<ConnectRequest>). Understands terminal and partial cancellation.
template <class Token>
auto async_accept_over(Engine& engine, TcpConnection tcp, AcceptOverOptions options, Token&& token) {
  return initiate<Error, std::unique_ptr<ConnectRequest>>(
      engine.operations(), nullptr, kEnding, std::forward<Token>(token),
      [&engine, tcp = std::move(tcp), options = std::move(options)](auto completion) mutable {
        accept_over(engine, std::move(tcp), options, std::move(completion.handler), completion.cancel);
      });
}

}  // namespace iwarp::cm
