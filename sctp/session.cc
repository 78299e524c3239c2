#include "iwarp/sctp/session.h"

#include <algorithm>
#include <cassert>

namespace iwarp::sctp {

using enhanced::Depths;
using enhanced::EnhancedData;

Result<void> validate(const SessionOptions& options) {
  const auto invalid = [](const char* why) { return make_error(Errc::kInvalidArgument, why); };
  const enhanced::Offer& o = options.offer;
  if (std::max({o.depths.ird, o.depths.ord, o.max_ird}) > enhanced::kMaxIrdOrd)
    return invalid("IRD and ORD go up to 16382");
  if (options.enhanced && !o.forms.any()) return invalid("at least one RTR form is needed");
  if (options.answer_timeout <= std::chrono::milliseconds::zero()) return invalid("answer timeout must be positive");
  if (options.ahead == 0 || options.ahead > SsnSource::kMaxUnderWay) return invalid("window of 1 to 32767 messages");
  return {};
}

Session::Session(const SessionOptions& options, HoldBudget& budget, ConstBytes private_data, TimePoint now)
    : options_(options),
      role_(Role::kActive),
      state_(SessionState::kInitiating),
      enhanced_(options.enhanced),
      deadline_(add_saturating(now, options.answer_timeout)),
      window_(budget, options.ahead) {
  // req: RFC5043-6.2-1, RFC6581-10-13
  if (enhanced_) {
    put(Function::kEnhancedInitiate, enhanced::make_request(options.offer), private_data);
  } else {
    put(Function::kInitiate, std::nullopt, private_data);
  }
  assert(is_consistent());
}

Session::Session(const SessionOptions& options, HoldBudget& budget)
    : options_(options),
      role_(Role::kPassive),
      state_(SessionState::kWaiting),
      enhanced_(false),
      window_(budget, options.ahead) {}

bool Session::step(SessionInput on) {
  const auto to = next(role_, state_, on);
  if (!to) return false;
  state_ = to->to;
  // An Accept or a Reject is put by its caller, who knows what is in it.
  if (to->sends == Sends::kTerminate) put(Function::kTerminate, std::nullopt, {});
  if (state_ != SessionState::kInitiating && state_ != SessionState::kInitiated) deadline_.reset();
  return true;
}

// A control message with its DDP-SSN: the next one, since nothing may leave before it. There is never another that
// waits: all but the first wait for the first to arrive.
void Session::put(Function function, const std::optional<EnhancedData>& data, ConstBytes private_data) {
  assert(control_.empty());  // req: RFC5043-6.6-1
  SessionControl m;
  m.ssn = source_.next();
  m.function = function;
  m.data = data;
  m.private_data = private_data;
  control_.resize(m.size());
  m.write_to(control_);
}

void Session::end(const Error& error, bool try_plain) {
  if (ended_) return;
  ended_ = true;
  events_.emplace_back(Ended{error, try_plain});
}

// What fits no legal sequence. req: RFC5043-6.1-2, RFC5043-6.1-3
void Session::violation(const Error& error) {
  window_.clear();
  if (step(SessionInput::kViolation)) end(error);
}

// Of a peer that is not accepted, nothing but the Terminate that withdraws its Initiate: so it makes nobody keep more.
bool Session::may_be_early(const Message& message) const {
  if (state_ != SessionState::kWaiting && state_ != SessionState::kDeciding) return true;
  return message.ppid == static_cast<std::uint32_t>(Ppid::kSessionControl) && window_.kept() == 1 &&
         message.bytes.size() <= kMaxSessionControlBytes;
}

std::optional<Session::Early> Session::early(const Message& m) const {
  if (ended_ || peer_is_over_ || m.ordered || accept_waits() ||
      m.ppid != static_cast<std::uint32_t>(Ppid::kDdpSegment) || !next(role_, state_, SessionInput::kSegment))
    return std::nullopt;
  const auto position = window_.early(m);  // with the sender's order. req: RFC5041-3-6, RFC5041-3-7
  if (!position) return std::nullopt;
  return Early{behind_ssn(m.bytes), *position};
}

void Session::receive(const Message& message) {
  // Over, or the peer is: nothing belongs to this session any more. req: RFC5043-6-1
  if (is_over(state_) || state_ == SessionState::kFailing || peer_is_over_) return;
  const auto due = window_.take(message);
  if (!due) {
    violation(due.error());
  } else if (*due) {
    handle(message);
  } else if (!may_be_early(message)) {
    violation(make_error(Errc::kSessionSequence, "message that is ahead of an Initiate, or of the answer to it"));
  }
  assert(is_consistent());
}

std::optional<Session::Event> Session::poll_event() {
  while (events_.empty()) {
    const auto message = window_.next();  // req: RFC5043-6.1-4
    if (!message) return std::nullopt;
    handle(*message);
  }
  Event event = events_.front();
  events_.pop_front();
  return event;
}

// The next message of the peer in the order of the DDP-SSN.
void Session::handle(const Message& m) {
  const bool initiating = state_ == SessionState::kInitiating || state_ == SessionState::kWithdrawing;
  if (initiating && !control_.empty())
    return violation(make_error(Errc::kSessionSequence, "message in answer to an Initiate that has not left"));
  if (m.ordered)  // req: RFC5043-8-3
    return violation(make_error(Errc::kSessionSequence, "ordered Data Chunk on a DDP stream"));
  if (m.ppid == static_cast<std::uint32_t>(Ppid::kDdpSegment)) {
    if (accept_waits())
      return violation(make_error(Errc::kSessionSequence, "DDP Segment in answer to an Accept that has not left"));
    if (!step(SessionInput::kSegment))
      return violation(make_error(Errc::kSessionSequence, "DDP Segment where no session is established"));
    if (!ended_) events_.emplace_back(Delivered{behind_ssn(m.bytes), m.placed});  // req: RFC5043-5.2.2-2
    if (role_ == Role::kPassive && !arrived_) {  // only the Accept can have called for it, whatever SCTP has told
      arrived_ = true;
      step(SessionInput::kArrived);
    }
    return;
  }
  if (m.ppid != static_cast<std::uint32_t>(Ppid::kSessionControl))  // req: RFC5043-5.1-1, RFC5043-5.2-1
    return violation(make_error(Errc::kSessionSequence, "Data Chunk of another protocol on a DDP stream"));
  const auto control = SessionControl::parse(m.bytes, options_.max_private_data_bytes);
  if (!control) return violation(control.error());  // req: RFC5043-5.2.3-2, RFC5043-5.2.3-5
  on_control(*control);
}

void Session::on_control(const SessionControl& m) {
  constexpr const char* kOutOfPlace = "session control message out of the legal sequence";
  switch (plain(m.function)) {
    case Function::kInitiate:
      if (role_ == Role::kPassive && state_ == SessionState::kWaiting) return on_initiate(m);
      break;
    case Function::kAccept:
      // Like is answered with like. req: RFC6581-7-22
      if (role_ == Role::kActive && is_enhanced(m.function) == enhanced_) return on_accept(m);
      break;
    case Function::kReject: {
      const bool had_ended = ended_;
      if (role_ != Role::kActive || is_enhanced(m.function) != enhanced_ || !step(SessionInput::kWasRejected)) break;
      peer_is_over_ = true;
      window_.clear();
      ended_ = true;
      // req: RFC5043-5.2.3-7, RFC5043-5.2.3-8, RFC6581-7-9
      if (!had_ended) events_.emplace_back(Rejected{m.data, m.private_data});
      return;
    }
    case Function::kTerminate: {
      const bool answer = state_ == SessionState::kInitiating || state_ == SessionState::kInitiated;
      if (!step(SessionInput::kTerminated)) break;
      peer_is_over_ = true;
      window_.clear();
      if (answer)  // req: RFC5043-5.2.3-9, RFC6581-7-23
        return end(make_error(Errc::kPeerRejected, "peer has answered the Initiate with a Terminate"), enhanced_);
      return end(make_error(Errc::kPeerClosed, "peer has terminated the DDP Stream Session"));
    }
    case Function::kEnhancedInitiate:
    case Function::kEnhancedAccept:
    case Function::kEnhancedReject:
      break;
  }
  violation(make_error(Errc::kSessionSequence, kOutOfPlace));
}

void Session::on_initiate(const SessionControl& m) {
  if (is_enhanced(m.function) && !options_.enhanced)  // req: RFC6581-7-23
    return violation(make_error(Errc::kSessionControl, "enhanced Initiate, which this end does not know"));
  step(SessionInput::kInitiate);
  enhanced_ = is_enhanced(m.function);
  asked_ = m.data;
  if (asked_ && asked_->peer_to_peer && !options_.offer.forms.common(enhanced::forms_of(*asked_)).any()) {
    // The application need not hear of what cannot be. The Reject names every form. req: RFC6581-7-11, RFC6581-7-24
    EnhancedData all = enhanced::make_reply(options_.offer.forms, options_.offer.depths, *asked_);
    enhanced::set_forms(all, options_.offer.forms);
    step(SessionInput::kReject);
    put(Function::kEnhancedReject, all, {});
    window_.clear();
    return end(make_error(Errc::kNoMatchingRtr, "no RTR form of the Initiate is known here"));
  }
  // req: RFC5043-5.2.3-7, RFC5043-6.3-2, RFC5043-6.4-1, RFC6581-7-9
  events_.emplace_back(Requested{m.private_data, m.data});
}

void Session::on_accept(const SessionControl& m) {
  const bool wanted = state_ == SessionState::kInitiating || state_ == SessionState::kInitiated;
  Established e;
  e.enhanced = enhanced_;
  e.peer = m.data;
  e.private_data = m.private_data;
  e.settled.depths = options_.offer.depths;
  if (wanted && enhanced_) {
    if (const auto suits = enhanced::settle_reply(options_.offer, *m.data, e.settled); !suits) {
      step(SessionInput::kNotSuited);  // req: RFC6581-8-6
      return end(suits.error());
    }
  }
  if (!step(SessionInput::kAccepted))
    return violation(make_error(Errc::kSessionSequence, "Accept out of the legal sequence"));
  arrived_ = true;                      // req: RFC5043-6.6-3
  if (wanted) events_.emplace_back(e);  // req: RFC6581-7-25
}

Result<void> Session::check_answer(ConstBytes private_data) const {
  if (state_ != SessionState::kDeciding)
    return make_error(Errc::kInvalidArgument, "no DDP Stream Session Initiate waits for a decision");
  const std::size_t most = max_ulp_bytes(enhanced_ ? Function::kEnhancedAccept : Function::kAccept);
  if (private_data.size() > most)  // req: RFC5043-5.2.3-5, RFC6581-7-7
    return make_error(Errc::kInvalidArgument, "more private data than a session control message holds");
  return {};
}

Result<void> Session::accept(const Depths& depths, ConstBytes private_data, const std::optional<Depths>& told) {
  if (const auto may = check_answer(private_data); !may) return may.error();
  const Depths by_application = told.value_or(Depths{});
  if (std::max({depths.ird, depths.ord, by_application.ird, by_application.ord}) > enhanced::kMaxIrdOrd)
    return make_error(Errc::kInvalidArgument, "IRD and ORD go up to 16382");
  Established e;
  e.enhanced = enhanced_;
  e.peer = asked_;
  e.settled.depths = depths;
  enhanced::Offer offer = options_.offer;
  offer.depths = depths;
  if (asked_) e.settled = enhanced::settle_request(offer, *asked_);
  if (told) {
    const auto startup = asked_ ? std::optional(Depths{asked_->ird, asked_->ord}) : std::nullopt;
    e.settled.depths = enhanced::fit(e.settled.depths, enhanced::left_open(*told, startup), offer.max_ird);
  }
  step(SessionInput::kAccept);
  // req: RFC6581-7-22
  if (asked_) {
    put(Function::kEnhancedAccept, enhanced::make_reply(offer.forms, e.settled.depths, *asked_), private_data);
  } else {
    put(Function::kAccept, std::nullopt, private_data);
  }
  events_.emplace_back(e);
  assert(is_consistent());
  return {};
}

Result<void> Session::reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord) {
  if (const auto may = check_answer(private_data); !may) return may.error();
  if (required_ord.value_or(0) > enhanced::kMaxIrdOrd)
    return make_error(Errc::kInvalidArgument, "IRD and ORD go up to 16382");
  step(SessionInput::kReject);
  if (asked_) {  // req: RFC6581-7-3
    enhanced::Settled would = enhanced::settle_request(options_.offer, *asked_);
    if (required_ord) would.depths.ord = *required_ord;
    put(Function::kEnhancedReject, enhanced::make_reply(options_.offer.forms, would.depths, *asked_), private_data);
  } else {
    put(Function::kReject, std::nullopt, private_data);
  }
  ended_ = true;  // by the application, which need not be told
  window_.clear();
  assert(is_consistent());
  return {};
}

void Session::terminate() {
  const bool established = state_ == SessionState::kOpen || state_ == SessionState::kAccepting;
  if (!step(SessionInput::kTerminate)) return;
  if (!established) end(make_error(Errc::kAborted));
  if (is_over(state_)) window_.clear();
  assert(is_consistent());
}

void Session::refuse() {
  ended_ = true;
  terminate();
}

void Session::arrived(std::size_t messages) {
  const bool any = source_.under_way() > 0 && messages > 0;
  source_.arrived(messages);
  if (!any || arrived_) return;
  arrived_ = true;  // the oldest is the first. req: RFC5043-6.6-3
  step(SessionInput::kArrived);
  assert(is_consistent());
}

void Session::lost(const Error& why) {
  if (!step(SessionInput::kLost)) {
    control_.clear();
    return;
  }
  control_.clear();
  window_.clear();
  end(why);  // and no word to the peer. req: RFC5043-11.3-3, RFC5043-11.3-2
  assert(is_consistent());
}

std::optional<TimePoint> Session::deadline() const {
  return deadline_;
}

void Session::on_deadline(TimePoint now) {
  if (!deadline_ || now < *deadline_) return;
  step(SessionInput::kTimeout);
  end(make_error(Errc::kStartupTimeout, "peer did not answer the DDP Stream Session Initiate in time"));
  assert(is_consistent());
}

ConstBytes Session::control() const {
  return source_.may_send() ? ConstBytes(control_) : ConstBytes{};
}

void Session::control_taken() {
  assert(!control().empty());
  control_.clear();
  source_.taken();
}

bool Session::may_send_segment() const {
  // Behind the own Accept, or the peer's, and in front of the own Terminate. req: RFC5043-6.2-3, RFC5043-6.6-2
  const bool in_session =
      state_ == SessionState::kOpen || state_ == SessionState::kAccepting || state_ == SessionState::kUnsuitable;
  return in_session && control_.empty() && source_.may_send();  // req: RFC5043-2-3
}

void Session::segment_taken() {
  assert(may_send_segment());
  source_.taken();
}

bool Session::leaves_stream_free() const {
  return done() && peer_is_over_ && source_.under_way() == 0;  // req: RFC5043-6.6-5
}

bool Session::gives_way() const {
  return done() || (state_ == SessionState::kTerminating && control_.empty() && window_.kept() == 0);
}

void Session::superseded() {
  window_.clear();
  end(make_error(Errc::kPeerClosed, "peer has begun another DDP Stream Session on this stream"));
}

bool Session::is_consistent() const {
  if (!is_of(role_, state_)) return false;
  if (deadline_ && state_ != SessionState::kInitiating && state_ != SessionState::kInitiated) return false;
  if (state_ == SessionState::kLost && !control_.empty()) return false;
  if ((is_over(state_) || state_ == SessionState::kFailing) && window_.kept() > 0) return false;
  return true;
}

}  // namespace iwarp::sctp
