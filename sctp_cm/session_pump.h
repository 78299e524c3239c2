// Joins a session::Half to one session of Sessions: news go in, segments and the end come out. What all who drive a
// half over SCTP share. It acts on its own session alone: whoever is late finds another one on the stream. One thread:
// that of the io_context; who shares the half with others has its lock in each call.
#pragma once

#include <cstdint>

#include "iwarp/sctp_cm/sessions.h"
#include "iwarp/session/half.h"

namespace iwarp::sctp_cm {

class SessionPump {
 public:
  // `half` outlives it.
  SessionPump(session::Half& half, sctp::Role role) : half_(half), role_(role) {}

  // The session is on that stream: opened, or about to be accepted. May be called again where the half goes on with
  // another one. `sessions` stays until let_go(), or until nobody calls send() any more.
  void begin(Sessions& sessions, sctp::StreamId stream);
  // The Sessions go: none of this touches them any more.
  void let_go() { over_ = true; }
  // News of the session, from SessionsUser.
  void on_event(const sctp::Session::Event& event, TimePoint now);
  // As SessionsUser::on_early().
  [[nodiscard]] std::size_t on_early(const sctp::Session::Early& early);
  // What can leave now does, the session's end included.
  void send(TimePoint now);

  // Whether there is a session, over or not.
  [[nodiscard]] bool begun() const { return sessions_ != nullptr; }
  [[nodiscard]] sctp::StreamId stream() const { return stream_; }
  // Precondition: begun(), and not let_go().
  [[nodiscard]] const Sessions& sessions() const { return *sessions_; }

 private:
  [[nodiscard]] bool is_over();

  session::Half& half_;
  sctp::Role role_;
  Sessions* sessions_ = nullptr;
  sctp::StreamId stream_{};
  std::size_t mulpdu_ = 0;
  std::uint64_t number_ = 0;  // of the session: another one may have the stream by now. req: RFC5043-6-1
  bool over_ = false;         // its session
};

}  // namespace iwarp::sctp_cm
