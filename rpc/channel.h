// What carries RPCs: a connection with RDMA, who makes one, and who takes those of others. Client and Server work over
// any of them: iWARP (iwarp_transport.h), memory of this process (memory_network.h), or what a program brings along.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "iwarp/base/bytes.h"
#include "iwarp/base/error.h"
#include "iwarp/base/result.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/endpoint.h"

namespace iwarp::rpc {

// One connection. Its owner calls it with a lock held, one call at a time; the endpoint likewise. It may be destroyed
// in any thread, after close().
class Channel {
 public:
  virtual ~Channel() = default;

  // Where work is posted. As long as this object.
  [[nodiscard]] virtual rpcrdma::Endpoint& endpoint() = 0;
  // Makes memory usable there. As long as this object.
  [[nodiscard]] virtual rpcrdma::Registrar& registrar() = 0;
  // What the peer has announced (RFC 8797); empty: nothing.
  [[nodiscard]] virtual ConstBytes peer_data() const = 0;
  // Who the peer is, for people and for the memory of answered Calls: its address without the port.
  [[nodiscard]] virtual const std::string& peer() const = 0;
  // That port; 0: there is none.
  [[nodiscard]] virtual std::uint16_t peer_port() const { return 0; }

  // Hands over what was posted. An error obliges the caller to close().
  [[nodiscard]] virtual Result<void> flush() = 0;
  // Takes what has completed, oldest first; returns how many. When the connection ends, everything posted completes.
  virtual std::size_t poll(std::span<rpcrdma::Completion> into) = 0;
  // What arm() is about. To be called once, before it: `wake` is called in any thread, without a lock, and never inside
  // a call of this object. It may come once more after close().
  virtual void set_wake(std::function<void()> wake) = 0;
  // The next completion calls `wake`, once. Poll once more afterwards.
  virtual void arm() = 0;
  // Until the next arm() nothing calls `wake`: its owner is at work and polls by itself. One that is on its way may
  // still come.
  virtual void disarm() = 0;
  // Ends the connection; what was sent completely reaches the peer if it can. When this returns everything posted has
  // completed, for poll() to take, and nobody reads or writes the memory any more. Harmless when repeated.
  virtual void close() = 0;
};

// Makes connections to one server. Thread-safe.
class ClientTransport {
 public:
  // Hears once how it went: with an error, or with a channel.
  using Connected = std::function<void(const Error&, std::unique_ptr<Channel>)>;
  virtual ~ClientTransport() = default;
  // Makes one; one at a time. `announce`: our private data. `connected` is called in any thread, without a lock, never
  // inside this call.
  virtual void connect(ConstBytes announce, Connected connected) = 0;
  // Gives up what is under way: kAborted, soon.
  virtual void cancel() = 0;
  // Whether a peer can end an exposure of memory here by Send with Invalidate. Where it cannot, it is told not to try.
  [[nodiscard]] virtual bool remote_invalidation() const { return true; }
};

// A connection that somebody wants. Its channel takes Receives at once.
struct Incoming {
  std::unique_ptr<Channel> channel;  // not established yet
  // Takes it, with our private data. Called once at most; `established` hears how it went, in any thread, without a
  // lock, never inside the call. What is dropped without it is refused.
  std::function<void(ConstBytes announce, std::function<void(const Error&)> established)> accept;
};

// Takes the connections of clients. Thread-safe.
class ServerTransport {
 public:
  // Hears of each, in any thread, without a lock.
  using Come = std::function<void(Incoming)>;
  virtual ~ServerTransport() = default;
  // Begins. Once.
  [[nodiscard]] virtual Result<void> listen(Come come) = 0;
  // Ends; a `come` that is under way may outlast it. Harmless when repeated.
  virtual void stop() = 0;
};

}  // namespace iwarp::rpc
