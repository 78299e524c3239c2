#include "iwarp/sctp_cm/sessions.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

namespace iwarp::sctp_cm {
namespace {

TimePoint steady_now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

Sessions::Sessions(boost::asio::io_context& io, const sctp::AssociationOptions& options, sctp::Association::Side side,
                   SessionsUser& user)
    : io_(io),
      deadline_(io,
                [this] {
                  association_.on_deadline(steady_now());
                  after();
                }),
      association_(options, side),
      user_(&user) {}

Sessions::~Sessions() {
  *alive_ = false;
  if (transport_ && !over_) transport_->leave();
}

Result<sctp::StreamId> Sessions::open(const sctp::SessionOptions& options, ConstBytes private_data) {
  if (closing_ || over_) return make_error(Errc::kNotConnected, "the SCTP association is being closed");
  const auto stream = association_.open(options, private_data, steady_now());
  later();
  return stream;
}

Result<void> Sessions::accept(sctp::StreamId stream, const enhanced::Depths& depths, ConstBytes private_data,
                              const std::optional<enhanced::Depths>& told) {
  const auto done = association_.accept(stream, depths, private_data, told);
  later();
  return done;
}

Result<void> Sessions::reject(sctp::StreamId stream, ConstBytes private_data,
                              std::optional<std::uint16_t> required_ord) {
  const auto done = association_.reject(stream, private_data, required_ord);
  later();
  return done;
}

void Sessions::terminate(sctp::StreamId stream) {
  association_.terminate(stream);
  later();
}

bool Sessions::may_send(sctp::StreamId stream) const {
  const sctp::Session* session = association_.find(stream);
  return !over_ && up_ && session != nullptr && session->may_send_segment();
}

Result<bool> Sessions::send_segment(sctp::StreamId stream, MutBytes message) {
  const sctp::Session* session = association_.find(stream);
  if (over_ || !up_ || session == nullptr || session->done())
    return make_error(Errc::kNotConnected, "no such DDP Stream Session");
  if (message.size() <= sctp::kSsnBytes || message.size() - sctp::kSsnBytes > max_segment_)
    return make_error(Errc::kInvalidArgument, "DDP Segment longer than the path takes whole");  // req: RFC5043-9-7
  send_control();                                                                               // it stands before
  if (!session->may_send_segment()) {
    wants_room_ = true;
    return false;
  }
  sctp::write_ssn(session->next_ssn(), message);
  // req: RFC5043-4-1, RFC5043-10-1
  const auto taken = transport_->send(stream, sctp::Ppid::kDdpSegment, true, message);
  if (!taken) return taken.error();
  if (*taken) association_.segment_taken(stream);
  return *taken;
}

void Sessions::send_control() {
  if (!up_ || over_ || !transport_) return;
  while (const auto control = association_.control()) {
    // req: RFC5043-10-1
    const auto taken = transport_->send(control->stream, sctp::Ppid::kSessionControl, true, control->message);
    if (!taken || !*taken) return;  // room, or the end, is told
    association_.control_taken(control->stream);
  }
}

bool Sessions::drain() {
  const std::shared_ptr<bool> alive = alive_;
  send_control();
  while (const auto event = association_.poll_event()) {
    user_->on_event(event->stream, event->what);
    if (!*alive) return false;
    send_control();
  }
  return true;
}

// For calls of the user: what they cause is told by the loop.
void Sessions::later() {
  send_control();
  if (owes_) return;
  owes_ = true;
  boost::asio::post(io_, [this, alive = alive_] {
    if (!*alive) return;
    owes_ = false;
    after();
  });
}

// The end of each input.
void Sessions::after() {
  if (!drain()) return;
  if (closing_ && !shut_ && !over_ && association_.idle()) {
    shut_ = true;
    transport_->shutdown();
  }
  deadline_.follow(over_ ? std::nullopt : association_.deadline());
}

void Sessions::close() {
  if (closing_ || over_) return;
  closing_ = true;
  if (!up_) return abort();
  for (std::uint16_t id = 0; id < association_.streams(); ++id) association_.terminate(sctp::StreamId{id});
  later();
}

void Sessions::abort() {
  if (!over_ && transport_) transport_->abort("closed by the application");
}

void Sessions::broken(const Error& why) {
  if (broken_) return;
  broken_ = why;
  transport_->abort(why.why);
}

void Sessions::on_up(const TransportUp& up) {
  const auto ddp = association_.up(up.indication, up.inbound, up.outbound);
  if (!ddp) return broken(ddp.error());  // req: RFC5043-7.1-2, RFC5043-11.1-3
  up_ = true;
  max_segment_ = sctp::max_segment_bytes(up.fragmentation_point);  // req: RFC5043-9-1, RFC5043-9-4
  const std::shared_ptr<bool> alive = alive_;
  user_->on_ready();
  if (*alive) after();
}

void Sessions::on_message(sctp::StreamId stream, const sctp::Message& message) {
  if (!up_ || over_ || broken_) return;
  sctp::Message rest = message;
  if (const auto early = association_.early(stream, message)) {
    rest.placed = user_->on_early(stream, *early);
    rest.bytes = rest.bytes.first(rest.bytes.size() - rest.placed);
  }
  if (const auto taken = association_.receive(stream, rest); !taken) return broken(taken.error());
  after();
}

void Sessions::on_room() {
  const std::shared_ptr<bool> alive = alive_;
  send_control();
  user_->on_room();
  if (*alive) after();
}

void Sessions::on_all_arrived() {
  association_.all_arrived();
  const std::shared_ptr<bool> alive = alive_;
  after();
  if (*alive && std::exchange(wants_room_, false)) user_->on_room();
}

void Sessions::on_end(const Error& why) {
  const Error reason = broken_ ? *broken_ : why;
  over_ = true;
  deadline_.follow(std::nullopt);
  association_.lost(reason.code == Errc::kAborted ? reason : make_error(Errc::kConnectionLost, reason.why));
  if (drain()) user_->on_end(reason);
}

}  // namespace iwarp::sctp_cm
