#include "iwarp/endpoint/endpoint.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace iwarp::endpoint {
namespace {

constexpr std::size_t kLongestInline = std::size_t{1} << 24;

bool too_long(const rdmap::RecvWr& wr) {
  return wr.sges.total() > std::numeric_limits<std::uint32_t>::max();
}

// An end that is the peer's, or for want of one.
bool is_loss(Phase from, Input how, const Error& reason) {
  switch (how) {
    case Input::kStartupFailed:
    case Input::kPeerEnd:
    case Input::kLost:
    case Input::kTimeout:
      return from <= Phase::kFull;
    case Input::kAbort:  // no lower layer was found
      return from == Phase::kIdle && reason.code != Errc::kAborted;
    default:
      return false;
  }
}

Error not_posted(bool full) {
  return full ? make_error(Errc::kQueueFull) : make_error(Errc::kResource, "no memory for another request");
}

// Of what is not a plain Send, Write or Read.
Result<void> check_special(const rdmap::SendWr& wr, const Options& options) {
  // req: RFC7306-1.1-1 RFC7306-1.1-2
  if (is_rfc7306(wr.op) && !options.rfc7306)
    return make_error(Errc::kInvalidArgument,
                      "Immediate Data and Atomics need a peer that knows RFC 7306: if it does, set the option rfc7306 "
                      "(of StreamOptions) at both ends");
  if (wr.op == rdmap::SendOp::kSendImmediate && !(options.rfc7306 && options.send_immediate))
    return make_error(Errc::kInvalidArgument,
                      "a Send with Immediate needs a peer that has agreed on it: the options rfc7306 and "
                      "send_immediate (of StreamOptions)");
  if (wr.op == rdmap::SendOp::kSendImmediate && wr.immediate > std::numeric_limits<std::uint32_t>::max())
    return make_error(Errc::kInvalidArgument, "the Immediate of a Send has 32 bits");
  if (wr.op == rdmap::SendOp::kImmediate && !wr.sges.view().empty())
    return make_error(Errc::kInvalidArgument, "Immediate Data is SendWr::immediate: it takes no memory");
  if (is_atomic(wr.op) && (wr.sges.view().size() != 1 || wr.sges.total() != sizeof(std::uint64_t)))
    return make_error(Errc::kInvalidArgument, "an Atomic has one sink of 8 octets");
  if (wr.inline_data && !may_be_inline(wr.op))
    return make_error(Errc::kInvalidArgument, "only Sends and RDMA Writes can be inline");
  if (wr.inline_data && wr.sges.total() > options.max_inline)
    return make_error(Errc::kInvalidArgument, "inline data is longer than the option max_inline (of StreamOptions)");
  if (wr.op == rdmap::SendOp::kReadInvalidate && wr.sges.view().size() != 1)
    return make_error(Errc::kInvalidArgument, "an RDMA Read with Local Invalidate has one sink buffer");
  if (wr.op == rdmap::SendOp::kLocalInvalidate && !wr.sges.view().empty())
    return make_error(Errc::kInvalidArgument, "Local Invalidate is SendWr::local_stag: it takes no memory");
  return {};
}

rdmap::Extensions extensions_of(const Options& options) {
  if (!options.rfc7306) return rdmap::Extensions::kNone;
  return options.send_immediate ? rdmap::Extensions::kSendWithImmediate : rdmap::Extensions::kRfc7306;
}

}  // namespace

Result<void> validate(const Options& options) {
  const auto invalid = [](const char* why) { return make_error(Errc::kInvalidArgument, why); };
  if (options.sq_depth > kDeepestQueue) return invalid("Options::sq_depth must be 0 to 16777216");
  if (options.rq_depth > kDeepestQueue) return invalid("Options::rq_depth must be 0 to 16777216");
  if (options.max_inline > kLongestInline) return invalid("Options::max_inline must be 0 to 16777216 octets");
  constexpr std::chrono::milliseconds kNone{0};
  if (options.close_timeout < kNone) return invalid("Options::close_timeout must be 0 ms or more");
  if (options.drain_timeout < kNone) return invalid("Options::drain_timeout must be 0 ms or more");
  if (options.receive_wait < kNone) return invalid("Options::receive_wait must be 0 ms or more");
  return {};
}

Result<void> check_receive(const rdmap::RecvWr& wr) {
  if (too_long(wr)) return make_error(Errc::kInvalidArgument, "receive of 4 GiB or more: no message is that long");
  return {};
}

Endpoint::Endpoint(ddp::StagTable& stags, ddp::StreamKey who, const Options& options, rdmap::ReceiveSource* shared)
    : options_(options),
      sends_(options.sq_depth, options.max_inline),
      recvs_(shared == nullptr ? rdmap::ReceiveQueue(options.rq_depth) : rdmap::ReceiveQueue(*shared)),
      rx_(stags, who, recvs_, sends_, reads_, extensions_of(options)),
      tx_(stags, who, sends_, reads_) {}

void Endpoint::set_extensions(rdmap::Extensions known) {
  options_.rfc7306 = known != rdmap::Extensions::kNone;
  options_.send_immediate = known == rdmap::Extensions::kSendWithImmediate;
  rx_.set_known(known);
}

Result<void> Endpoint::may_post(const rdmap::SendWr& wr) const {
  // req: RFC5040-1.1-1 RFC5041-5.2-3
  if (wr.sges.total() > std::numeric_limits<std::uint32_t>::max())
    return make_error(Errc::kInvalidArgument, "message of 4 GiB or more");
  if (wr.inline_data || wr.op > rdmap::SendOp::kRead) [[unlikely]] {
    if (auto ok = check_special(wr, options_); !ok) return ok;
  }
  if (awaits_response(wr.op) && phase_ <= Phase::kFull && heard_ != Heard::kNothing && ord_ == 0)
    return make_error(Errc::kInvalidArgument, "the peer admits no RDMA Read or Atomic (ORD is 0)");
  return {};
}

Result<void> Endpoint::post_send(const rdmap::SendWr& wr) {
  if (auto may = may_post(wr); !may) return may;
  if (alone_) [[unlikely]] {
    if (!sends_.post(wr)) return not_posted(sends_.full());
    if (given_up_) give_up_peer();
    return {};
  }
  if (phase_ > Phase::kFull) [[unlikely]]                                         // nothing of it is sent any more
    return sends_.post_flushed(wr) ? Result<void>{} : not_posted(sends_.full());  // req: RFC5041-6.2.1-3
  if (!sends_.post(wr)) return not_posted(sends_.full());
  return {};
}

Result<void> Endpoint::post_recv(const rdmap::RecvWr& wr) {
  if (recvs_.shares()) [[unlikely]]
    return make_error(Errc::kInvalidArgument, "its receives are those of a shared receive queue: post them there");
  if (too_long(wr)) [[unlikely]]
    return check_receive(wr);
  if (!recvs_.post(wr)) return not_posted(recvs_.full());
  // Not while it closes in order: the peer may still be sending what it has.
  if (done_receiving()) [[unlikely]]
    recvs_.flush();
  return {};
}

Result<void> Endpoint::post_drain(std::uint64_t wr_id) {
  return sends_.post_drain(wr_id) ? Result<void>{} : not_posted(sends_.full());
}

void Endpoint::step(Input on) {
  if (const auto to = next(phase_, on)) enter(*to);
}

void Endpoint::enter(Phase phase) {
  phase_ = phase;
  if (phase == Phase::kClosed || (phase == Phase::kEndWait && ending_ != Ending::kOrderly)) {
    if (!alone_) flush();
    tx_.abandon();
  }
  if (!receiving()) held_until_.reset();
  if (held_until_ && phase == Phase::kEndWait) held_until_ = std::min(*held_until_, add_saturating(now_, kLastWait));
  switch (phase) {
    case Phase::kDraining:
    case Phase::kTerminating:
    case Phase::kEndWait:
      arm_close_timer();
      break;
    case Phase::kClosed:
      deadline_.reset();
      break;
    case Phase::kIdle:
    case Phase::kStartup:
    case Phase::kFull:
    case Phase::kLingering:
      break;
  }
}

void Endpoint::arm_close_timer() {
  deadline_ = add_saturating(now_, options_.close_timeout);
  if (phase_ == Phase::kDraining) deadline_ = std::min(*deadline_, drain_end_);
}

void Endpoint::flush() {
  sends_.flush();  // req: RFC5041-6.2.2-4 RFC5040-5.4-9 RFC5040-6.2.1-2 RFC5041-3-4
  recvs_.flush();
  reads_.clear();
}

void Endpoint::give_up_peer() {
  given_up_ = alone_;
  if (alone_ && sends_.fail_oldest(Errc::kConnectionLost)) end_alone();
}

void Endpoint::end_alone() {
  alone_ = false;
  flush();
}

void Endpoint::start(Opening opening) {
  opening_ = opening;
  step(Input::kStart);
}

void Endpoint::establish(const Terms& terms) {
  admit_reads(terms.ird);  // may throw: before anything else has changed
  heard_ = Heard::kParameters;
  ord_ = terms.ord;
  // req: RFC5041-6.1-1
  step(Input::kNegotiated);
  tx_.queue_rtr(terms.rtr);  // req: RFC6581-9.3-3
  if (terms.rtr == rdmap::Rtr::kRead) rx_.expect_rtr_response();
  if (terms.rtr_to_come == rdmap::Rtr::kSend) rx_.expect_rtr_send();
  opener_ = terms.first_segment_by ? Heard::kSegment : Heard::kParameters;
  deadline_ = terms.first_segment_by;
  refuse_vain_reads();
}

void Endpoint::settle(std::uint32_t ird, std::uint32_t ord) {
  admit_reads(ird);
  ord_ = ord;
  refuse_vain_reads();
}

// siw rounds its ORD up to a power of two and may have that many Reads outstanding.
// req: RFC5040-8.1.2-8 RFC5042-6.4.3.3-1 RFC5042-6.4.3.3-2 RFC5042-A-3
// req: RFC6581-3-1 RFC6581-9.1-1
void Endpoint::admit_reads(std::uint32_t ird) {
  reads_.raise(ird == 0 ? 0 : std::bit_ceil(std::size_t{ird}));
}

// A Read can never be sent, and what is posted behind it must not overtake it.
void Endpoint::refuse_vain_reads() {
  if (ord_ == 0 && sends_.refuse_queued_reads(Errc::kInvalidArgument)) {
    const Error error = make_error(Errc::kStartupLocal, "an RDMA Read or Atomic was posted but the peer admits none");
    violation(error, rdmap::make_terminate(error, {}, 0, false));  // req: RFC6581-9.3-4
  }
}

void Endpoint::retry_startup() {
  step(Input::kStartupRetry);
}

void Endpoint::disconnect() {
  if (phase_ <= Phase::kFull) reason_ = make_error(Errc::kAborted, kClosedHere);
  drain_end_ = add_saturating(now_, options_.drain_timeout);
  // req: RFC5040-6.2-2
  step(Input::kDisconnect);
  if (alone_) end_alone();
}

bool Endpoint::drained() const {
  return phase_ == Phase::kDraining && sends_.idle() && reads_.empty() && !tx_.mid_message();
}

void Endpoint::finish() {
  ending_ = Ending::kOrderly;
  step(Input::kDrained);
}

void Endpoint::end(Input how, const Error& reason) {
  if (alone_) end_alone();
  if (!next(phase_, how)) return;
  alone_ = options_.outlive_peer && is_loss(phase_, how, reason);
  if (phase_ <= Phase::kDraining) reason_ = reason;  // the first cause stands
  // Nobody waits for the end of who has left: the lower layer may go on by itself with what the peer has not taken.
  const bool in_vain = how == Input::kTimeout && !(left_ && phase_ == Phase::kEndWait);
  if (how == Input::kAbort || how == Input::kAbortUnheard || in_vain) ending_ = Ending::kAbrupt;
  step(how);
}

void Endpoint::abort_unheard(const Error& reason, TimePoint until) {
  if (!next(phase_, Input::kAbortUnheard)) return;
  if (phase_ <= Phase::kDraining) {  // later there is nothing but the Terminate, and that still leaves
    tx_.abandon();
    flush();
  }
  end(Input::kAbortUnheard, reason);
  deadline_ = until;
}

void Endpoint::leave(const Error& reason) {
  if (phase_ <= Phase::kStartup) return end(Input::kAbort, reason);
  end(Input::kLeave, reason);
  if (phase_ != Phase::kEndWait) return;
  left_ = true;
  if (ending_ == Ending::kOrderly) serve_no_more();
}

void Endpoint::serve_no_more() {
  ending_ = Ending::kError;
  held_until_.reset();
  flush();
}

void Endpoint::end_is_behind() {
  end_is_behind_ = true;
  if (held_until_ && !options_.outlive_peer)
    held_until_ = std::min(*held_until_, add_saturating(now_, options_.close_timeout));
}

void Endpoint::violation(const Error& error, const rdmap::TerminateMessage& terminate) {
  if (!may_transmit() || phase_ == Phase::kEndWait) {  // req: RFC5044-7.1.2-18
    end(Input::kAbort, error);
    return;
  }
  if (!next(phase_, Input::kError)) return;
  // req: RFC5040-3.2-3 RFC5040-3.2-7 RFC5040-3.2-10 RFC5040-5.1-3 RFC5040-5.3-7 RFC5041-7.1-9
  reason_ = error;
  // req: RFC5040-7.1-1 RFC5041-6.2.2-2 RFC5041-7.2-1 RFC5044-8-14 RFC5041-6.2.2-5 RFC5041-6.2.2-6 RFC5041-7.1-19
  sent_terminate_ = terminate;
  tx_.abandon();
  tx_.queue_terminate(terminate);  // req: RFC5044-8-15
  flush();
  step(Input::kError);
}

void Endpoint::refuse(const Error& error) {
  violation(error, rx_.terminate_for(error));
}

bool Endpoint::not_begun(const Error& error) {
  if (options_.receive_wait.count() == 0 || !rx_.lacks_receive()) {
    refuse(error);
  } else if (!held_until_) {
    const auto wait = phase_ == Phase::kEndWait ? std::min(options_.receive_wait, kLastWait) : options_.receive_wait;
    held_until_ = add_saturating(now_, wait);
  }
  return false;
}

void Endpoint::receive(ConstBytes ulpdu) {
  if (!begin_segment(ulpdu, ulpdu.size()) || !place(ulpdu.subspan(rx_.header_bytes()))) return;
  end_segment();
}

void Endpoint::end_segment() {
  if (!accept(rx_.end())) return;
  if (rx_.peer_terminate()) end(Input::kPeerTerminate, make_error(Errc::kRemoteTerminate));
}

bool Endpoint::next_segment(std::size_t mulpdu, Segment& segment, std::vector<ddp::Pin>& payload) {
  const auto given = tx_.next(mulpdu, ord(), segment, payload);
  if (given) return *given;
  violation(given.error(), tx_.error_terminate());
  return false;
}

void Endpoint::sent(const Done& done) {
  tx_.segment_sent(done);
  if (done.what == Done::What::kTerminate) step(Input::kTerminateSent);
}

void Endpoint::progress() {
  if (phase_ == Phase::kDraining) arm_close_timer();
}

void Endpoint::on_deadline() {
  if (held_until_ && now_ >= *held_until_) {
    if (options_.outlive_peer && end_is_behind_) return end(Input::kPeerEnd, make_error(Errc::kPeerClosed));
    if (phase_ != Phase::kEndWait)
      return refuse(make_error(Errc::kUntaggedNoBuffer, "no Receive was posted in time for a message of the peer"));
    serve_no_more();  // a Terminate cannot be sent any more
  }
  if (!deadline_ || now_ < *deadline_) return;
  deadline_.reset();
  end(Input::kTimeout, phase_ == Phase::kFull
                           ? make_error(Errc::kStartupTimeout, "the peer's first message did not come in time")
                           : make_error(Errc::kTimeout, "peer did not take what was left to send"));
}

std::optional<Event> Endpoint::poll_event() {
  switch (next(told_, heard_, opener_, phase_)) {
    case News::kNone:
      break;
    case News::kEstablished:
      told_ = Told::kEstablished;
      return Established{};
    case News::kEnded: {
      const bool was_established = told_ == Told::kEstablished;
      told_ = Told::kEnded;
      // req: RFC5041-6.2.2-1 RFC5044-8-1 RFC5044-8-5
      // req: RFC5040-3.2-4 RFC5040-3.2-13
      return Ended{reason_, rx_.peer_terminate(), sent_terminate_, was_established};
    }
  }
  return std::nullopt;
}

bool Endpoint::is_consistent() const {
  if (phase_ == Phase::kClosed && deadline_) return false;
  return phase_ != Phase::kTerminating || tx_.terminate_queued();
}

}  // namespace iwarp::endpoint
