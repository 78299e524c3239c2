// What the RDMA connections of a gateway are made of, behind one face: our own stack over TCP or SCTP, or a device of
// rdma-core. Fronts and sessions know no more of it than this.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/cm/description.h"
#include "iwarp/cm/engine.h"
#include "iwarp/gateway/access.h"
#include "iwarp/gateway/options.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/endpoint.h"

namespace iwarp::gateway {

// An established connection. One thread: that of the engine of its queues. Handlers are called from there, never inside
// a call.
class RdmaLink {
 public:
  virtual ~RdmaLink() = default;

  // Whether this end has connected.
  [[nodiscard]] virtual bool initiator() const = 0;
  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint remote() const = 0;
  // Of the peer.
  [[nodiscard]] virtual std::vector<std::byte> private_data() const = 0;
  // Octets and messages so far; of a device those of this end's own requests, and messages received.
  [[nodiscard]] virtual cm::Counters counters() const = 0;
  // "local=... peer=... role=... ..."
  [[nodiscard]] virtual std::string to_string() const = 0;
  // Orderly: posted work goes out first. No-op when closed.
  virtual void disconnect() = 0;
  // At once.
  virtual void abort(const Error& reason) = 0;
  void abort() { abort(make_error(Errc::kAborted)); }
  // `ended` is called once: when it is over, at once if it is already.
  virtual void wait_disconnected(std::function<void(const stream::Disconnected&)> ended) = 0;

  // For log lines.
  [[nodiscard]] cm::EndFacts facts() const { return {remote(), initiator(), counters()}; }
};

// No error: established. `failure`: the end in words, where a log line can say more than the error.
using LinkHandler =
    std::function<void(const Error& error, const std::shared_ptr<RdmaLink>& link, const std::string& failure)>;

// Where to connect to.
struct RdmaTarget {
  HostPort server;
  std::optional<boost::asio::ip::address> source{};
  std::vector<std::byte> private_data{};
};

// The queues of one connection, before, while and after it is established. One thread.
class RdmaQueues {
 public:
  virtual ~RdmaQueues() = default;

  [[nodiscard]] virtual rpcrdma::Endpoint& endpoint() = 0;
  [[nodiscard]] virtual rpcrdma::Registrar& registrar() = 0;
  // Hands collected posts on. An error obliges the caller to close the connection.
  [[nodiscard]] virtual Result<void> flush() = 0;
  // What has completed; how many.
  [[nodiscard]] virtual std::size_t poll(std::span<rpcrdma::Completion> to) = 0;
  // Calls `wake` once, on the event loop, when something completes. Poll again after arming.
  virtual void arm(std::function<void()> wake) = 0;
  virtual void disarm() = 0;
  // From here on nobody reaches memory through them.
  virtual void close() = 0;
  // Whether the peer may invalidate what is exposed (RFC 8797 s4).
  [[nodiscard]] virtual bool remote_invalidation() const = 0;
  // Whether registered memory is pinned: its pages must stay as they are, or the device goes on with those of before.
  [[nodiscard]] virtual bool pins_memory() const = 0;
  // Of queues that were made to connect. `handler` is called once.
  virtual void connect(const RdmaTarget& to, const Options& options, LinkHandler handler) = 0;
};

// A client that waits for a decision; destroyed without one: rejected. One thread at a time.
class RdmaRequest {
 public:
  virtual ~RdmaRequest() = default;

  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint remote() const = 0;
  // Valid as long as this object.
  [[nodiscard]] virtual ConstBytes private_data() const = 0;
  // The engine that will serve it, and another one.
  [[nodiscard]] virtual cm::Engine& engine() const = 0;
  [[nodiscard]] virtual Result<void> move_to(cm::Engine& engine) = 0;
  // For accept(), in the thread of engine(). Of a device once.
  [[nodiscard]] virtual Result<std::unique_ptr<RdmaQueues>> make_queues(const Options& options) = 0;
  // `queues`: that make_queues() gave, with Receives posted. `handler` is called once.
  virtual void accept(RdmaQueues& queues, const Options& options, std::vector<std::byte> private_data,
                      LinkHandler handler) = 0;
  virtual void reject() = 0;
};

// Takes requests until it is destroyed. One thread.
class RdmaListener {
 public:
  virtual ~RdmaListener() = default;
  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint local() const = 0;
  // For those who come from now on: the policy, and over SCTP the size of packets.
  virtual void change(const Options& options) = 0;
};

class RdmaProvider {
 public:
  struct Handlers {
    std::function<void(std::shared_ptr<RdmaRequest>)> request;
    std::function<void(const Error&)> lost;  // nobody comes any more, until back() is called: its device is gone
    std::function<void()> back;
  };

  virtual ~RdmaProvider() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<RdmaListener>> listen(cm::Engine& engine,
                                                                     const boost::asio::ip::tcp::endpoint& at,
                                                                     const Options& options, Handlers handlers) = 0;
  // To connect with, in the thread of `engine`.
  [[nodiscard]] virtual Result<std::unique_ptr<RdmaQueues>> make_queues(cm::Engine& engine, const Options& options) = 0;
  // Whether only the thread of the process serves its connections.
  [[nodiscard]] virtual bool home_only() const { return false; }
};

// Our own stack, over TCP.
[[nodiscard]] std::shared_ptr<RdmaProvider> own_stack();
// Our own stack over SCTP, one at a time in a process; or what is missing: this program was built without. `home`: as
// below.
[[nodiscard]] Parsed<std::shared_ptr<RdmaProvider>> open_sctp(cm::Engine& home);
// A device of rdma-core by its name; or what is missing: its libraries, the device, or this program was built without.
// `home`: the engine of the process, whose thread calls this, and destroys what it gives.
[[nodiscard]] Parsed<std::shared_ptr<RdmaProvider>> open_device(cm::Engine& home, const std::string& name);

}  // namespace iwarp::gateway
