#include "iwarp/stream/connection.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

namespace iwarp::stream {
namespace {

constexpr std::size_t kDeepestQueue = std::size_t{1} << 24;
constexpr std::size_t kLongestInline = std::size_t{1} << 24;

Error not_posted(bool full) {
  return full ? make_error(Errc::kQueueFull) : make_error(Errc::kResource, "no memory for another request");
}

// Of what is not a plain Send, Write or Read.
Result<void> check_special(const rdmap::SendWr& wr, const Options& options) {
  // req: RFC7306-1.1-1 RFC7306-1.1-2
  if (is_rfc7306(wr.op) && !options.rfc7306)
    return make_error(Errc::kInvalidArgument,
                      "Immediate Data and Atomics need a peer that knows RFC 7306: if it does, set "
                      "stream::Options::rfc7306 at both ends");
  if (wr.op == rdmap::SendOp::kImmediate && !wr.sges.view().empty())
    return make_error(Errc::kInvalidArgument, "Immediate Data is SendWr::immediate: it takes no memory");
  if (is_atomic(wr.op) && (wr.sges.view().size() != 1 || wr.sges.total() != sizeof(std::uint64_t)))
    return make_error(Errc::kInvalidArgument, "an Atomic has one sink of 8 octets");
  if (wr.inline_data && !may_be_inline(wr.op))
    return make_error(Errc::kInvalidArgument, "only Sends and RDMA Writes can be inline");
  if (wr.inline_data && wr.sges.total() > options.max_inline)
    return make_error(Errc::kInvalidArgument, "inline data is longer than stream::Options::max_inline");
  if (wr.op == rdmap::SendOp::kReadInvalidate && wr.sges.view().size() != 1)
    return make_error(Errc::kInvalidArgument, "an RDMA Read with Local Invalidate has one sink buffer");
  if (wr.op == rdmap::SendOp::kLocalInvalidate && !wr.sges.view().empty())
    return make_error(Errc::kInvalidArgument, "Local Invalidate is SendWr::local_stag: it takes no memory");
  return {};
}

}  // namespace

Connection::Connection(ddp::StagTable& stags, ddp::StreamKey who, const Options& options)
    : options_(options),
      sends_(options.sq_depth, options.max_inline),
      recvs_(options.rq_depth),
      rx_(stags, who, recvs_, sends_, reads_, options.rfc7306 ? rdmap::Extensions::kRfc7306 : rdmap::Extensions::kNone),
      tx_(stags, who, sends_, reads_) {}

Result<void> validate(const Options& options) {
  const auto invalid = [](const char* why) { return make_error(Errc::kInvalidArgument, why); };
  if (options.sq_depth > kDeepestQueue) return invalid("stream::Options::sq_depth must be 0 to 16777216");
  if (options.rq_depth > kDeepestQueue) return invalid("stream::Options::rq_depth must be 0 to 16777216");
  if (options.max_inline > kLongestInline) return invalid("stream::Options::max_inline must be 0 to 16777216 octets");
  constexpr std::chrono::milliseconds kNone{0};
  if (options.first_fpdu_timeout < kNone) return invalid("stream::Options::first_fpdu_timeout must be 0 ms or more");
  if (options.close_timeout < kNone) return invalid("stream::Options::close_timeout must be 0 ms or more");
  if (options.drain_timeout < kNone) return invalid("stream::Options::drain_timeout must be 0 ms or more");
  if (options.unheard_wait < kNone) return invalid("stream::Options::unheard_wait must be 0 ms or more");
  return {};
}

Result<void> Connection::post_send(const rdmap::SendWr& wr) {
  if (phase_ > Phase::kFull) return make_error(Errc::kNotConnected);  // req: RFC5041-6.2.1-3
  // req: RFC5040-1.1-1 RFC5041-5.2-3
  if (wr.sges.total() > std::numeric_limits<std::uint32_t>::max())
    return make_error(Errc::kInvalidArgument, "message of 4 GiB or more");
  if (wr.inline_data || wr.op > rdmap::SendOp::kRead) [[unlikely]] {
    if (auto ok = check_special(wr, options_); !ok) return ok;
  }
  if (awaits_response(wr.op) && heard_ != Heard::kNothing && negotiated_.ord == 0)
    return make_error(Errc::kInvalidArgument, "the peer admits no RDMA Read or Atomic (ORD is 0)");
  if (!sends_.post(wr)) return not_posted(sends_.full());
  return {};
}

Result<void> Connection::post_recv(const rdmap::RecvWr& wr) {
  // Also while closing in order: the peer may still be sending what it has.
  if (phase_ > Phase::kFull && !receiving()) return make_error(Errc::kNotConnected);
  if (wr.sges.total() > std::numeric_limits<std::uint32_t>::max())
    return make_error(Errc::kInvalidArgument, "receive of 4 GiB or more: no message is that long");
  if (!recvs_.post(wr)) return not_posted(recvs_.full());
  return {};
}

void Connection::start(mpa::Initiator initiator, TimePoint now) {
  now_ = now;
  is_initiator_ = true;
  startup_ = std::move(initiator);
  step(Input::kStart);
  drain_startup();
  assert(is_consistent());
}

void Connection::start(mpa::Responder responder, TimePoint now) {
  now_ = now;
  startup_ = std::move(responder);
  deadline_ = add_saturating(now, options_.first_fpdu_timeout);  // for the Reply to leave
  step(Input::kStart);
  drain_startup();
  assert(is_consistent());
}

void Connection::step(Input on) {
  if (const auto to = next(phase_, on)) enter(*to);
}

void Connection::enter(Phase phase) {
  phase_ = phase;
  if (phase == Phase::kClosed || (phase == Phase::kFinWait && ending_ != Ending::kOrderly)) {
    flush();
    gather_.clear();
    tx_.abandon();
  }
  const auto linger = std::exchange(linger_end_, std::nullopt);
  if (phase > Phase::kDraining) wake_.end();
  if (phase == Phase::kFinWait && ending_ != Ending::kOrderly && must_be_heard())
    linger_end_ = add_saturating(now_, options_.unheard_wait);  // behind our Terminate
  switch (phase) {
    case Phase::kDraining:
    case Phase::kTerminating:
    case Phase::kFinWait:
      arm_close_timer(now_);
      break;
    case Phase::kLingering:
      deadline_ = linger ? *linger : add_saturating(now_, options_.unheard_wait);  // under way: one moment, not two
      break;
    case Phase::kClosed:
      deadline_.reset();
      fall_back_.reset();  // ended before anybody was told: one piece of news, not two
      break;
    case Phase::kIdle:
    case Phase::kStartup:
    case Phase::kFull:
      break;
  }
}

void Connection::arm_close_timer(TimePoint now) {
  deadline_ = add_saturating(now, options_.close_timeout);
  if (phase_ == Phase::kDraining) deadline_ = std::min(*deadline_, drain_end_);
}

void Connection::flush() {
  sends_.flush();  // req: RFC5041-6.2.2-4 RFC5040-5.4-9 RFC5040-6.2.1-2 RFC5041-3-4
  recvs_.flush();
  reads_.clear();
}

void Connection::end_with(Input on, const Error& reason) {
  if (!next(phase_, on)) return;
  if (phase_ <= Phase::kDraining) reason_ = reason;  // the first cause stands
  if (on == Input::kAbort || on == Input::kAbortUnheard || on == Input::kTimeout) ending_ = Ending::kReset;
  step(on);
}

void Connection::violation(const Error& error, const rdmap::TerminateMessage& message) {
  if (!may_transmit() || phase_ == Phase::kFinWait) {  // req: RFC5044-7.1.2-18
    end_with(Input::kAbort, error);
    return;
  }
  if (!next(phase_, Input::kError)) return;
  // req: RFC5040-3.2-3 RFC5040-3.2-7 RFC5040-3.2-10 RFC5040-5.1-3 RFC5040-5.3-7 RFC5041-7.1-9
  reason_ = error;
  // req: RFC5040-7.1-1 RFC5041-6.2.2-2 RFC5041-7.2-1 RFC5044-8-14 RFC5041-6.2.2-5 RFC5041-6.2.2-6 RFC5041-7.1-19
  sent_terminate_ = message;
  gather_.drop_unbegun();
  tx_.abandon();
  tx_.queue_terminate(message);  // req: RFC5044-8-15
  flush();
  step(Input::kError);
}

void Connection::out_of_memory() {
  batch_ = {};
  rx_spans_.clear();
  rx_pins_.clear();
  segment_pins_.clear();
  direct_.reset();
  carry_.clear();
  if (phase_ == Phase::kStartup) startup_ = std::monostate{};
  end_with(Input::kAbort, make_error(Errc::kResource, "no memory to go on with the connection"));
}

void Connection::disconnect(TimePoint now) {
  now_ = now;
  if (phase_ == Phase::kStartup) startup_ = std::monostate{};  // what it had to send does not matter any more
  if (phase_ <= Phase::kFull) reason_ = make_error(Errc::kAborted, kClosedHere);
  drain_end_ = add_saturating(now, options_.drain_timeout);
  // req: RFC5040-6.2-2
  step(Input::kDisconnect);
  check_drained();
  assert(is_consistent());
}

void Connection::abort(const Error& reason) {
  if (phase_ == Phase::kStartup) startup_ = std::monostate{};
  end_with(Input::kAbort, reason);
  assert(is_consistent());
}

void Connection::abort_sparing(const Error& reason, TimePoint now) {
  now_ = now;
  if (phase_ == Phase::kLingering) return;  // under way
  if (!must_be_heard() || !next(phase_, Input::kAbortUnheard)) return abort(reason);
  if (phase_ == Phase::kFinWait && !linger_end_) return abort(reason);  // its moment is over
  if (phase_ <= Phase::kDraining) {
    // Octets wake the peer: the rest of a begun FPDU, or, between two messages, a wake. Later our Terminate does.
    gather_.empty() && !tx_.mid_message() ? tx_.queue_wake() : tx_.drop_wake();
    attempt([&] { gather_.drop_unbegun(); });
    tx_.abandon();
    flush();
  }
  end_with(Input::kAbortUnheard, reason);
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
  tx_.drop_wake();
  if (phase_ != Phase::kDraining) linger_end_.reset();
  step(Input::kHeard);
}

// An FPDU came that is valid as far as MPA can tell.
void Connection::heard_fpdu() {
  if (heard_ == Heard::kFpdu) return;
  heard_ = Heard::kFpdu;
  linger_end_.reset();
  if (phase_ == Phase::kFull) deadline_.reset();
}

void Connection::check_drained() {
  if (phase_ != Phase::kDraining || !sends_.idle() || !gather_.empty() || !reads_.empty() || tx_.mid_message()) return;
  if (waits_for_peer() && heard_ != Heard::kFpdu) {  // a part of an FPDU may want a Terminate yet
    if (!linger_end_) {
      linger_end_ = add_saturating(now_, options_.unheard_wait);
      if (!peer_is_awake_) tx_.queue_wake();
    }
    if (now_ < *linger_end_) return;
    linger_end_.reset();
  }
  ending_ = Ending::kOrderly;
  step(Input::kDrained);
}

std::size_t Connection::ord() const {
  const std::size_t taken = rx_.rtr_response_due() ? 1 : 0;  // req: RFC6581-3-2 RFC6581-9.1-1
  return negotiated_.ord > taken ? negotiated_.ord - taken : 0;
}

bool Connection::receiving() const {
  // req: RFC5041-6.2.1-8
  // req: RFC5044-7.2-1
  return phase_ == Phase::kFull || phase_ == Phase::kDraining ||
         (phase_ == Phase::kFinWait && ending_ == Ending::kOrderly);
}

void Connection::drain_startup() {
  if (auto* initiator = std::get_if<mpa::Initiator>(&startup_)) {
    deadline_ = initiator->deadline();
    while (auto event = initiator->poll_event()) {
      if (auto* established = std::get_if<mpa::Established>(&*event)) {
        on_negotiated(*established);
      } else if (auto* rejected = std::get_if<mpa::Rejected>(&*event)) {
        rejected_with_ = rejected->enhanced;
        peer_private_data_.assign(rejected->private_data.begin(), rejected->private_data.end());
        end_with(Input::kStartupFailed, make_error(Errc::kPeerRejected));
      } else {
        on_startup_failed(std::get<mpa::Failed>(*event));
      }
    }
  } else if (auto* responder = std::get_if<mpa::Responder>(&startup_)) {
    if (const auto earlier = responder->deadline()) deadline_ = earlier;
    while (auto event = responder->poll_event()) {
      if (auto* established = std::get_if<mpa::Established>(&*event)) {
        on_negotiated(*established);
      } else if (auto* failed = std::get_if<mpa::Failed>(&*event)) {
        on_startup_failed(*failed);
      } else if (std::holds_alternative<mpa::Rejected>(*event)) {
        end_with(Input::kStartupFailed, make_error(Errc::kAborted, "rejected by the local application"));
      }
    }
  }
}

void Connection::on_negotiated(const mpa::Established& e) {
  // req: RFC5040-6.1-5 RFC5040-6.1-7 RFC5040-6.1-3 RFC5040-6.1-4 RFC5040-6.1-6 RFC5040-6.1-8
  negotiated_ = e.negotiated;
  heard_ = Heard::kParameters;
  peer_private_data_.assign(e.private_data.begin(), e.private_data.end());
  decoder_ = mpa::FpduDecoder(negotiated_.crc, negotiated_.markers_received);  // req: RFC5044-7.1-7 RFC5044-7.1.2-10
  // siw rounds its ORD up to a power of two and may have that many Reads outstanding.
  // req: RFC5040-8.1.2-8 RFC5042-6.4.3.3-1 RFC5042-6.4.3.3-2 RFC5042-A-3
  // req: RFC6581-3-1 RFC6581-9.1-1
  reads_ = rdmap::InboundReads(negotiated_.ird == 0 ? 0 : std::bit_ceil(std::size_t{negotiated_.ird}));
  deadline_.reset();
  // req: RFC5041-6.1-1
  step(Input::kNegotiated);
  if (is_initiator_) {  // req: RFC6581-9.3-3
    tx_.queue_rtr(e.rtr_to_send == mpa::Rtr::kWrite  ? rdmap::Rtr::kWrite
                  : e.rtr_to_send == mpa::Rtr::kRead ? rdmap::Rtr::kRead
                                                     : rdmap::Rtr::kNone);
    if (e.rtr_to_send == mpa::Rtr::kRead) rx_.expect_rtr_response();
  } else if (negotiated_.peer_to_peer) {
    deadline_ = add_saturating(now_, options_.first_fpdu_timeout);  // req: RFC5044-7.1.2-32
  }
  // A Read can never be sent, and what is posted behind it must not overtake it.
  if (negotiated_.ord == 0 && sends_.refuse_queued_reads(Errc::kInvalidArgument)) {
    const Error error = make_error(Errc::kStartupLocal, "an RDMA Read or Atomic was posted but the peer admits none");
    violation(error, rdmap::make_terminate(error, {}, 0, false));  // req: RFC6581-9.3-4
  }
}

void Connection::on_startup_failed(const mpa::Failed& failed) {
  if (failed.error.tell_peer && failed.negotiated) {
    negotiated_ = *failed.negotiated;
    violation(failed.error, rdmap::make_terminate(failed.error, {}, 0, false));  // req: RFC6581-8-1
    return;
  }
  if (failed.fallback != mpa::Fallback::kNone) {
    fall_back_ = {failed.error, failed.fallback};
    deadline_.reset();
    step(Input::kStartupRetry);
    return;
  }
  end_with(Input::kStartupFailed, failed.error);  // req: RFC5044-8-11
}

std::optional<TimePoint> Connection::deadline() const {
  std::optional<TimePoint> first = deadline_;
  // Behind what TCP has not taken there is no FIN yet, though the peer's moment be over: the close timer counts.
  const auto linger = gather_.empty() ? linger_end_ : std::nullopt;
  for (const auto& other : {wake_.deadline(), linger}) {
    if (other && (!first || *other < *first)) first = other;
  }
  return first;
}

void Connection::on_deadline(TimePoint now) {
  now_ = now;
  if (wake_.expire(now)) tx_.queue_wake();
  check_drained();
  if (phase_ == Phase::kFinWait && linger_end_ && now >= *linger_end_) linger_end_.reset();
  if (!deadline_ || now < *deadline_) return;
  if (phase_ == Phase::kStartup) {
    attempt([&] {
      if (auto* initiator = std::get_if<mpa::Initiator>(&startup_)) initiator->on_deadline(now);
      if (auto* responder = std::get_if<mpa::Responder>(&startup_)) responder->on_deadline(now);
      drain_startup();
    });
    if (phase_ == Phase::kStartup) {
      startup_ = std::monostate{};
      end_with(Input::kTimeout, make_error(Errc::kStartupTimeout, "peer did not take the MPA Reply"));
    }
  } else {
    deadline_.reset();
    end_with(Input::kTimeout, phase_ == Phase::kFull
                                  ? make_error(Errc::kStartupTimeout, "no FPDU arrived after the MPA Reply")
                                  : make_error(Errc::kTimeout, "peer did not take what was left to send"));
  }
  assert(is_consistent());
}

std::optional<Event> Connection::poll_event() {
  if (fall_back_) return *std::exchange(fall_back_, std::nullopt);
  const Heard opener = !is_initiator_ && negotiated_.peer_to_peer ? Heard::kFpdu : Heard::kParameters;
  switch (next(told_, heard_, opener, phase_)) {
    case News::kNone:
      break;
    case News::kEstablished:
      told_ = Told::kEstablished;
      return Established{negotiated_, std::move(peer_private_data_)};
    case News::kDisconnected:
      return disconnected();
  }
  return std::nullopt;
}

Disconnected Connection::disconnected() {
  Disconnected d;
  // req: RFC5041-6.2.2-1 RFC5044-8-1 RFC5044-8-5
  d.reason = reason_;
  // req: RFC5040-3.2-4 RFC5040-3.2-13
  d.received = rx_.peer_terminate();
  d.sent = sent_terminate_;
  d.was_established = told_ == Told::kEstablished;
  d.rejected_with = rejected_with_;
  if (!d.was_established) d.private_data = std::move(peer_private_data_);
  told_ = Told::kDisconnected;
  return d;
}

LinkAction Connection::link_action() {
  const LinkAction action = next(link_, phase_, ending_, !gather_.empty() || tx_pending() || linger_end_);
  if (action != LinkAction::kNone) link_ = action == LinkAction::kShutdownWrite ? Link::kHalfClosed : Link::kReleased;
  return action;
}

bool Connection::is_consistent() const {
  if (direct_ && (!may_place_early() || !carry_.empty())) return false;
  if (phase_ == Phase::kClosed && (!gather_.empty() || deadline())) return false;
  return phase_ != Phase::kTerminating || tx_.terminate_queued();
}

}  // namespace iwarp::stream
