#include "iwarp/sctp_cm/session_pump.h"

#include <variant>

namespace iwarp::sctp_cm {

void SessionPump::begin(Sessions& sessions, sctp::StreamId stream) {
  sessions_ = &sessions;
  stream_ = stream;
  mulpdu_ = sessions.max_segment_bytes();
  number_ = sessions.association().number(stream);
  over_ = false;
}

void SessionPump::on_event(const sctp::Session::Event& event, TimePoint now) {
  const auto* ended = std::get_if<sctp::Session::Ended>(&event);
  if (std::holds_alternative<sctp::Session::Rejected>(event) || (ended != nullptr && !ended->error.tell_peer))
    over_ = true;
  half_.on_event(event, role_, now);
}

std::size_t SessionPump::on_early(const sctp::Session::Early& early) {
  return !begun() || is_over() ? 0 : half_.on_early(early);
}

bool SessionPump::is_over() {
  if (!over_ && sessions_->association().number(stream_) != number_) over_ = true;
  return over_;
}

void SessionPump::send(TimePoint now) {
  if (!begun()) return;
  while (true) {
    const MutBytes message = half_.next(mulpdu_, now);
    if (message.empty()) break;
    if (is_over()) break;
    const auto taken = sessions_->send_segment(stream_, message);
    if (!taken || !*taken) break;  // room, or the end, is told
    half_.taken(now);
  }
  if (half_.must_terminate() && !is_over()) {
    over_ = true;
    sessions_->terminate(stream_);
  }
}

}  // namespace iwarp::sctp_cm
