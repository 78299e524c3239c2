#include "iwarp/stream/connection.h"

#include <cassert>

namespace iwarp::stream {
using endpoint::Ending;

Connection::Connection(endpoint::Endpoint& endpoint, const MpaOptions& options)
    : endpoint_(endpoint), options_(options), followed_(endpoint.phase()) {}

Result<void> validate(const MpaOptions& options) {
  const auto invalid = [](const char* why) { return make_error(Errc::kInvalidArgument, why); };
  constexpr std::chrono::milliseconds kNone{0};
  if (options.first_fpdu_timeout < kNone) return invalid("Options::first_fpdu_timeout must be 0 ms or more");
  if (options.unheard_wait < kNone) return invalid("Options::unheard_wait must be 0 ms or more");
  return {};
}

Result<void> validate(const Options& options) {
  if (auto ok = validate(static_cast<const MpaOptions&>(options)); !ok) return ok;
  return endpoint::validate(options);
}

void Connection::start(mpa::Initiator initiator, TimePoint now, ReplyJudge judge, RetryJudge again) {
  endpoint_.at(now);
  is_initiator_ = true;
  judge_ = std::move(judge);
  again_ = std::move(again);
  startup_ = std::move(initiator);
  endpoint_.start(endpoint::Opening::kAtOnce);
  follow();
  drain_startup();
  assert(is_consistent());
}

void Connection::start(mpa::Responder responder, TimePoint now) {
  endpoint_.at(now);
  startup_ = std::move(responder);
  endpoint_.start(endpoint::Opening::kWhenHeard);  // req: RFC5044-7.1.2-18
  follow();
  startup_deadline_ = add_saturating(now, options_.first_fpdu_timeout);  // for the Reply to leave
  drain_startup();
  assert(is_consistent());
}

// After each call that may have moved the phase: what that means for MPA and TCP. False: it has not moved.
bool Connection::follow() {
  const Phase phase = endpoint_.phase();
  if (phase == followed_) return false;
  followed_ = phase;
  const bool in_order = endpoint_.ending() == Ending::kOrderly;
  if (phase == Phase::kClosed || (phase == Phase::kEndWait && !in_order)) gather_.clear();
  linger_end_.reset();
  if (phase > Phase::kDraining) wake_.end();
  if (!endpoint_.receiving()) held_ = {};
  if (phase == Phase::kEndWait && !in_order && must_be_heard())
    linger_end_ = add_saturating(endpoint_.now(), options_.unheard_wait);  // behind our Terminate
  if (phase != Phase::kStartup) startup_deadline_.reset();
  if (phase == Phase::kClosed) fall_back_.reset();  // ended before anybody was told: one piece of news, not two
  if (phase == Phase::kTerminating) attempt([&] { gather_.drop_unbegun(); });
  return true;
}

// A violation that no segment is to blame for: of MPA, in the startup, or of memory that was to be sent.
void Connection::broken(const Error& error) {
  endpoint_.violation(error, rdmap::make_terminate(error, {}, 0, false));
}

void Connection::out_of_memory() {
  batch_ = {};
  rx_spans_.clear();
  rx_pins_.clear();
  segment_pins_.clear();
  direct_.reset();
  carry_.clear();
  behind_reject_.reset();  // octets behind a reject may be missing: TCP is of no use to the application without them
  if (phase() == Phase::kStartup) startup_ = std::monostate{};
  endpoint_.end(Input::kAbort, make_error(Errc::kResource, "no memory to go on with the connection"));
  follow();
}

void Connection::disconnect(TimePoint now) {
  endpoint_.at(now);
  if (phase() == Phase::kStartup) startup_ = std::monostate{};  // what it had to send does not matter any more
  endpoint_.disconnect();
  follow();
  check_drained();
  assert(is_consistent());
}

void Connection::abort(const Error& reason) {
  if (phase() == Phase::kStartup) startup_ = std::monostate{};
  endpoint_.end(Input::kAbort, reason);
  follow();
  assert(is_consistent());
}

void Connection::abort_sparing(const Error& reason, TimePoint now) {
  endpoint_.at(now);
  if (phase() == Phase::kLingering) return;  // under way
  if (!must_be_heard() || !next(phase(), Input::kAbortUnheard)) return abort(reason);
  if (phase() == Phase::kEndWait && !linger_end_) return abort(reason);  // its moment is over
  if (phase() <= Phase::kDraining) {
    // Octets wake the peer: the rest of a begun FPDU, or, between two messages, a wake. Later our Terminate does.
    gather_.empty() && !endpoint_.mid_message() ? endpoint_.queue_wake() : endpoint_.drop_wake();
    attempt([&] { gather_.drop_unbegun(); });
  }
  // Under way: one moment, not two.
  endpoint_.abort_unheard(reason, linger_end_ ? *linger_end_ : add_saturating(now, options_.unheard_wait));
  follow();
  assert(is_consistent());
}

void Connection::leave(const Error& reason, TimePoint now) {
  endpoint_.at(now);
  if (phase() == Phase::kStartup) startup_ = std::monostate{};
  endpoint_.leave(reason);
  drop_received();
  follow();
  assert(is_consistent());
}

bool Connection::must_be_heard() const {
  return waits_for_peer() && !peer_is_awake_;
}

bool Connection::waits_for_peer() const {
  return options_.early_wake && is_initiator_ && negotiated_.peer_to_peer;
}

// Octets of full operation came. Who sends them has taken over its socket, whatever they turn out to be.
void Connection::heard() {
  peer_is_awake_ = true;
  wake_.end();
  endpoint_.drop_wake();
  if (phase() != Phase::kDraining) linger_end_.reset();
  endpoint_.heard();
}

void Connection::check_drained() {
  if (!endpoint_.drained() || !gather_.empty()) return;
  if (waits_for_peer() && !endpoint_.has_heard_segment()) {  // a part of an FPDU may want a Terminate yet
    if (!linger_end_) {
      linger_end_ = add_saturating(endpoint_.now(), options_.unheard_wait);
      if (!peer_is_awake_) endpoint_.queue_wake();
    }
    if (endpoint_.now() < *linger_end_) return;
  }
  endpoint_.finish();
  follow();
}

void Connection::drain_startup() {
  if (auto* initiator = std::get_if<mpa::Initiator>(&startup_)) {
    startup_deadline_ = initiator->deadline();
    while (auto event = initiator->poll_event()) {
      if (auto* established = std::get_if<mpa::Established>(&*event)) {
        on_negotiated(*established);
      } else if (auto* rejected = std::get_if<mpa::Rejected>(&*event)) {
        if (tries_again(make_error(Errc::kPeerRejected), rejected->private_data)) continue;
        rejected_with_ = rejected->enhanced;
        behind_reject_.emplace();  // req: RFC5044-7.1.2-16
        peer_private_data_.assign(rejected->private_data.begin(), rejected->private_data.end());
        endpoint_.end(Input::kStartupFailed, make_error(Errc::kPeerRejected));
      } else {
        on_startup_failed(std::get<mpa::Failed>(*event));
      }
    }
  } else if (auto* responder = std::get_if<mpa::Responder>(&startup_)) {
    if (const auto earlier = responder->deadline()) startup_deadline_ = earlier;
    while (auto event = responder->poll_event()) {
      if (auto* established = std::get_if<mpa::Established>(&*event)) {
        on_negotiated(*established);
      } else if (auto* failed = std::get_if<mpa::Failed>(&*event)) {
        on_startup_failed(*failed);
      } else if (std::holds_alternative<mpa::Rejected>(*event)) {
        endpoint_.end(Input::kStartupFailed, make_error(Errc::kAborted, "rejected by the local application"));
      }
    }
  }
  follow();
}

void Connection::on_negotiated(const mpa::Established& e) {
  // req: RFC5040-6.1-5 RFC5040-6.1-7 RFC5040-6.1-3 RFC5040-6.1-4 RFC5040-6.1-6 RFC5040-6.1-8
  negotiated_ = e.negotiated;
  peer_private_data_.assign(e.private_data.begin(), e.private_data.end());
  if (judge_) {
    const auto known = judge_(e.private_data);
    if (!known) {
      behind_reject_.emplace();  // req: RFC5044-7.1.2-15
      return endpoint_.end(Input::kStartupFailed, known.error());
    }
    endpoint_.set_extensions(*known);
  }
  decoder_ = mpa::FpduDecoder(negotiated_.crc, negotiated_.markers_received);  // req: RFC5044-7.1-7 RFC5044-7.1.2-10
  endpoint::Terms terms{.ird = negotiated_.ird, .ord = negotiated_.ord};
  if (is_initiator_) {
    terms.rtr = e.rtr_to_send;
  } else if (negotiated_.peer_to_peer) {
    terms.rtr_to_come = negotiated_.rtr;
    // req: RFC5044-7.1.2-32
    terms.first_segment_by = add_saturating(endpoint_.now(), options_.first_fpdu_timeout);
  }
  endpoint_.establish(terms);
}

void Connection::on_startup_failed(const mpa::Failed& failed) {
  if (failed.error.tell_peer && failed.negotiated) {
    negotiated_ = *failed.negotiated;
    broken(failed.error);  // req: RFC6581-8-1
    return;
  }
  if (failed.fallback != mpa::Fallback::kNone) {
    fall_back_ = {failed.error, failed.fallback};
    endpoint_.retry_startup();
    return;
  }
  if (tries_again(failed.error, {})) return;
  endpoint_.end(Input::kStartupFailed, failed.error);  // req: RFC5044-8-11
}

bool Connection::tries_again(const Error& failed, ConstBytes private_data) {
  if (!again_ || !is_initiator_) return false;
  auto next = again_(failed, private_data);
  if (!next) return false;
  fall_back_ = FallBack{failed, mpa::Fallback::kNone, std::move(*next)};
  endpoint_.retry_startup();
  return true;
}

Result<void> Connection::settle_depths(std::uint16_t peer_ird, std::uint16_t peer_ord, TimePoint now) {
  endpoint_.at(now);
  if (phase() != Phase::kFull) return make_error(Errc::kNotConnected);
  if (std::max(peer_ird, peer_ord) > mpa::kMaxIrdOrd)
    return make_error(Errc::kInvalidArgument, "IRD and ORD go up to 16382");
  const auto startup =
      negotiated_.enhanced ? std::optional(enhanced::Depths{negotiated_.peer_ird, negotiated_.peer_ord}) : std::nullopt;
  const enhanced::Depths open = enhanced::left_open({peer_ird, peer_ord}, startup);
  if (std::min(open.ird, open.ord) == mpa::kNoIrdOrdNegotiation)
    return make_error(Errc::kInvalidArgument, "IRD and ORD were settled by MPA startup");
  // req: RFC6581-9.1-22
  const enhanced::Depths fitted = enhanced::fit({negotiated_.ird, negotiated_.ord}, open, mpa::kMaxIrdOrd);
  negotiated_.ird = fitted.ird;
  negotiated_.ord = fitted.ord;
  attempt([&] { endpoint_.settle(fitted.ird, fitted.ord); });
  follow();
  assert(is_consistent());
  if (phase() != Phase::kFull) return endpoint_.reason();
  return {};
}

std::optional<TimePoint> Connection::deadline() const {
  std::optional<TimePoint> first = startup_deadline_;
  // Behind what TCP has not taken there is no FIN yet, though the peer's moment be over: the close timer counts.
  const auto linger = gather_.empty() ? linger_end_ : std::nullopt;
  for (const auto& other : {endpoint_.deadline(), wake_.deadline(), linger}) {
    if (other && (!first || *other < *first)) first = other;
  }
  return first;
}

void Connection::on_deadline(TimePoint now) {
  endpoint_.at(now);
  if (wake_.expire(now)) endpoint_.queue_wake();
  check_drained();
  if (phase() == Phase::kEndWait && linger_end_ && now >= *linger_end_) linger_end_.reset();
  if (phase() == Phase::kStartup) {
    if (startup_deadline_ && now >= *startup_deadline_) startup_expired(now);
  } else {
    endpoint_.on_deadline();
    drop_received();
  }
  follow();
  assert(is_consistent());
}

void Connection::startup_expired(TimePoint now) {
  attempt([&] {
    if (auto* initiator = std::get_if<mpa::Initiator>(&startup_)) initiator->on_deadline(now);
    if (auto* responder = std::get_if<mpa::Responder>(&startup_)) responder->on_deadline(now);
    drain_startup();
  });
  if (phase() != Phase::kStartup) return;
  startup_ = std::monostate{};
  endpoint_.end(Input::kTimeout, make_error(Errc::kStartupTimeout, "peer did not take the MPA Reply"));
}

std::optional<Event> Connection::poll_event() {
  if (fall_back_) return *std::exchange(fall_back_, std::nullopt);
  const auto event = endpoint_.poll_event();
  if (!event) return std::nullopt;
  if (const auto* ended = std::get_if<endpoint::Ended>(&*event)) return disconnected(*ended);
  return Established{negotiated_, std::move(peer_private_data_)};
}

Disconnected Connection::disconnected(const endpoint::Ended& how) {
  Disconnected d;
  d.reason = how.reason;
  d.received = how.received;
  d.sent = how.sent;
  d.was_established = how.was_established;
  d.rejected_with = rejected_with_;
  if (!d.was_established) d.private_data = std::move(peer_private_data_);
  return d;
}

LinkAction Connection::link_action() {
  const LinkAction action = next(link_, phase(), endpoint_.ending(), !gather_.empty() || tx_pending() || linger_end_);
  if (action != LinkAction::kNone) link_ = action == LinkAction::kShutdownWrite ? Link::kHalfClosed : Link::kReleased;
  return action;
}

bool Connection::is_consistent() const {
  if (direct_ && (!may_place_early() || !carry_.empty())) return false;
  if (phase() != followed_ || (phase() == Phase::kClosed && (!gather_.empty() || deadline()))) return false;
  return endpoint_.is_consistent();
}

}  // namespace iwarp::stream
