// A queue pair on a session: Sends, Writes and Reads of verbs over SCTP. Any thread posts; the octets move in the
// thread of the io_context, which makes all calls here but those that say otherwise. Handlers are called there, without
// a lock.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "iwarp/sctp_cm/session_pump.h"
#include "iwarp/sctp_cm/sessions.h"
#include "iwarp/session/half.h"
#include "iwarp/verbs/driver.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::sctp_cm {

class QueuePairLink final : public verbs::Driver, public std::enable_shared_from_this<QueuePairLink> {
 public:
  struct Handlers {
    std::function<void()> established;
    std::function<void(const endpoint::Ended&)> ended;  // last
  };

  // Takes `qp` for a session to come: it is in its startup from here on. Any thread. kInvalidArgument: it was used
  // before; else as QueuePair::usable().
  [[nodiscard]] static Result<std::shared_ptr<QueuePairLink>> make(boost::asio::io_context& io,
                                                                   std::shared_ptr<verbs::QueuePair> qp,
                                                                   sctp::Role role, Handlers handlers);
  // Aborts the queue pair, and ends its session, if it is not over; then in the thread of the io_context.
  ~QueuePairLink() override;
  QueuePairLink(const QueuePairLink&) = delete;
  QueuePairLink& operator=(const QueuePairLink&) = delete;

  // The session is on that stream, opened or about to be accepted. Again where another one takes the place of one that
  // has failed and of which nothing was told here. `sessions` stays until let_go(), or until the handler has heard the
  // end.
  void begin(Sessions& sessions, sctp::StreamId stream);
  // News of the session, from SessionsUser; on_early() and on_room() likewise.
  void on_event(const sctp::Session::Event& event);
  [[nodiscard]] std::size_t on_early(const sctp::Session::Early& early);
  void on_room() { drive(); }
  // There is no session, or it is lost.
  void fail(const Error& why);
  // The Sessions go: an end that waits for a Receive goes on without them.
  void let_go();
  // The io_context goes: aborts, and uses it no more.
  void detach();
  // Orderly, behind what was posted. Any thread.
  void disconnect();
  // As QueuePair::abort(). Any thread.
  void abort(const Error& reason);

  // Whether the handler has heard the end.
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }

  // --- verbs::Driver: any thread, with the queue pair's lock held.
  void kick() override;
  [[nodiscard]] std::optional<Agreed> agreed() const override;

 private:
  QueuePairLink(boost::asio::io_context& io, std::shared_ptr<verbs::QueuePair> qp, sctp::Role role, Handlers handlers);
  void drive();
  // Its events, for which the lock is held.
  [[nodiscard]] std::vector<endpoint::Event> move();
  void tell(const endpoint::Event& event);
  void arm();

  std::shared_ptr<verbs::QueuePair> qp_;
  boost::asio::io_context* io_;  // null: used no more. This and what follows to owes_: with the queue pair's lock
  session::Half half_;
  SessionPump pump_;
  std::optional<Agreed> agreed_;
  bool owes_ = false;
  Handlers handlers_;
  std::optional<boost::asio::steady_timer> timer_;
  std::optional<TimePoint> armed_;
  bool driving_ = false, again_ = false, over_ = false;
};

}  // namespace iwarp::sctp_cm
