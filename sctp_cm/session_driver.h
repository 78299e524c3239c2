// Drives a session::Half over Sessions: an endpoint::Endpoint whose segments travel over SCTP. The owner of the
// endpoint posts to it, calls posted(), and polls in when_moved(). One thread: that of the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "iwarp/sctp_cm/deadline.h"
#include "iwarp/sctp_cm/session_pump.h"
#include "iwarp/sctp_cm/sessions.h"
#include "iwarp/session/half.h"

namespace iwarp::sctp_cm {

class SessionDriver {
 public:
  // Outlived by `sessions` and `endpoint`. `when_moved`: events or completions may be there to be polled; called from
  // the event loop, and inside posted(), disconnect() and abort(); never inside itself: what it calls of these is done
  // behind it.
  SessionDriver(boost::asio::io_context& io, Sessions& sessions, endpoint::Endpoint& endpoint, sctp::Role role,
                std::function<void()> when_moved, const session::Options& options = {});
  ~SessionDriver() { *alive_ = false; }
  SessionDriver(const SessionDriver&) = delete;
  SessionDriver& operator=(const SessionDriver&) = delete;

  // The session is on that stream, opened or about to be accepted.
  void begin(sctp::StreamId stream);
  // News of it, from SessionsUser; on_early() and on_room() likewise.
  void on_event(const sctp::Session::Event& event);
  [[nodiscard]] std::size_t on_early(const sctp::Session::Early& early) { return pump_.on_early(early); }
  void on_room() { drive(); }
  // Work was posted to the endpoint; `receives`: Receives.
  void posted(bool receives = false);
  // Orderly, behind what was posted; at once.
  void disconnect();
  void abort();
  [[nodiscard]] sctp::StreamId stream() const { return pump_.stream(); }
  [[nodiscard]] const session::Half& half() const { return half_; }

 private:
  void drive();

  Sessions& sessions_;
  Deadline deadline_;
  session::Half half_;
  SessionPump pump_;
  bool driving_ = false, again_ = false;
  std::function<void()> when_moved_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace iwarp::sctp_cm
