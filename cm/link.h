// Link: owns a queue pair and the connection that it makes. While somebody else shares the queue pair (the engine does
// as long as the socket is open), it alone decides when that ends: with the Link. Move-only; a moved-from Link is
// empty. Not thread-safe per object, what it owns is.
#pragma once

#include <memory>
#include <utility>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::cm {

class Link {
 public:
  // Owns nothing.
  Link() = default;
  // Takes over a queue pair, connected or not. Nobody else may own it.
  explicit Link(std::shared_ptr<verbs::QueuePair> qp) : qp_(std::move(qp)) {}
  // With a queue pair of its own. kInvalidArgument: QueuePair::usable().
  [[nodiscard]] static Result<Link> make(const verbs::ProtectionDomain& pd, const verbs::QueuePair::Options& options);
  // Takes over what the other one owned, which is empty afterwards.
  Link(Link&& other) noexcept = default;
  // Ends what it owned before.
  Link& operator=(Link&& other) noexcept;
  // As reset().
  ~Link() { reset(); }

  // Ends the connection, or the attempt at one, with a reset: for an orderly end call disconnect() and wait for it
  // (Connection::async_wait_disconnected()) before. When this returns all that was posted has completed, nothing more
  // is written into the application's memory nor read from it, and nothing more is added to the completion queues, but
  // for what somebody who shares the queue pair posts later: all of them may go, in any order. A handler that waits for
  // the connection is still called, by the engine. No-op when empty.
  void reset();

  // As QueuePair::leave(), and it is empty then: in place of reset() where the peer must get what has completed, and
  // nobody waits for the end.
  void leave();

  // Precondition of these: not empty.
  [[nodiscard]] verbs::QueuePair* operator->() const { return qp_.get(); }
  // The queue pair, which somebody else may share; it is aborted with the Link all the same. Null when empty.
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  // cm::async_connect() and ConnectRequest::async_accept() of this queue pair.
  template <class Token>
  auto async_connect(Engine& engine, ConnectOptions options, Token&& token) {
    return cm::async_connect(engine, qp_, std::move(options), std::forward<Token>(token));
  }
  // As ConnectRequest::async_accept(), with this queue pair.
  template <class Token>
  auto async_accept(ConnectRequest& request, ConnectRequest::AcceptOptions options, Token&& token) {
    return request.async_accept(qp_, std::move(options), std::forward<Token>(token));
  }
  // Whether it owns a queue pair.
  explicit operator bool() const { return qp_ != nullptr; }

 private:
  std::shared_ptr<verbs::QueuePair> qp_;
};

}  // namespace iwarp::cm
