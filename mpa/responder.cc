#include <algorithm>
#include <cassert>

#include "iwarp/mpa/negotiation.h"

namespace iwarp::mpa {
namespace {

Result<void> check_private_data(ConstBytes private_data) {
  if (private_data.size() <= kMaxSendPrivateDataBytes) return {};  // req: RFC5044-7.1.1-34
  return make_error(Errc::kInvalidArgument, "more than 251 octets of private data");
}

}  // namespace

Responder::Responder(const Policy& policy, TimePoint now)
    : policy_(policy),
      deadline_(add_saturating(now, policy.startup_timeout)),
      rx_(parse_request, policy.max_private_data_bytes) {
  if (const auto valid = validate(policy); !valid) fail(ResponderInput::kBadArgument, valid.error());
  assert(is_consistent());
}

ConstBytes Responder::tx_bytes() const {
  return ConstBytes(tx_).subspan(tx_sent_);
}

void Responder::tx_commit(std::size_t n) {
  assert(n <= tx_.size() - tx_sent_);
  tx_sent_ += n;
  if (tx_sent_ < tx_.size()) return;
  if (state_ == ResponderState::kReplying) {
    step(ResponderInput::kReplySent);
    events_.emplace_back(Established{negotiated_, request_.private_data, Rtr::kNone});
  } else if (state_ == ResponderState::kRejecting) {
    step(ResponderInput::kReplySent);
    events_.emplace_back(Rejected{});
  }
  assert(is_consistent());
}

std::size_t Responder::rx(ConstBytes bytes, TimePoint now) {
  if (state_ == ResponderState::kDeciding && !bytes.empty()) {  // req: RFC5044-7.1.1-31, RFC5044-7.1.2-11
    fail(ResponderInput::kEarlyBytes,
         make_error(Errc::kMalformedStartupFrame, "octets behind the unanswered MPA Request"));
    return 0;
  }
  if (state_ != ResponderState::kWaitRequest) return 0;
  const auto step = rx_.feed(bytes);
  if (const auto* error = std::get_if<Error>(&step.result)) {
    fail(ResponderInput::kRequestMalformed, *error);  // req: RFC5044-8-4, RFC5044-8-10
  } else if (const auto* parsed = std::get_if<StartupFrame::Parsed>(&step.result)) {
    request_ = parsed->frame;
    on_request();
    // Judged after the frame itself, so that the outcome does not depend on how TCP cut the stream.
    if (state_ == ResponderState::kDeciding && step.consumed < bytes.size()) {
      events_.clear();
      fail(ResponderInput::kEarlyBytes,
           make_error(Errc::kMalformedStartupFrame, "octets behind the unanswered MPA Request"));
    }
  }
  on_deadline(now);  // after reading: what is complete is not late, however long it lay there
  assert(is_consistent());
  return step.consumed;
}

void Responder::on_request() {
  if (request_.revision == 0) return refuse(make_error(Errc::kUnsupportedRevision), 1);  // req: RFC5044-C.2.1-1
  // req: RFC6581-10-3
  if (request_.revision >
      policy_.revision) {  // req: RFC5044-7.1.1-25, RFC5044-7.1.1-26, RFC5044-7.1.1-27, RFC6581-10-10
    return fail(ResponderInput::kRequestRefused, make_error(Errc::kUnsupportedRevision));
  }
  if (request_.markers && policy_.markers == Policy::Markers::kRefuse)
    return refuse(make_error(Errc::kMarkersRefused), request_.revision);
  if (request_.crc && policy_.crc == Policy::Crc::kOff) return refuse(make_error(Errc::kCrcRefused), request_.revision);
  // Revision 1 and S=0 are as good as any. req: RFC6581-6-9, RFC6581-10-6
  step(ResponderInput::kRequest);  // R of a Request is not looked at: req: RFC5044-7.1.1-20, RFC6581-6-8
  const EnhancedData e = request_.enhanced ? request_.enhanced_data : EnhancedData{};
  // req: RFC5044-7.1.2-2
  events_.emplace_back(
      RequestReceived{request_.private_data, e.ird, e.ord, request_});  // req: RFC5044-7.1.1-33, RFC6581-9.1-8
}

// Refusal by policy: a Reply with R=1 says so, then the connection is over.
void Responder::refuse(const Error& error, std::uint8_t revision) {
  StartupFrame reply = answer(true, policy_.ird, policy_.ord);
  reply.revision = revision;
  fail(ResponderInput::kRequestRefused, error);
  queue_reply(reply);
}

StartupFrame Responder::answer(bool reject, std::uint16_t ird, std::uint16_t ord) const {
  StartupFrame f;
  f.is_reply = true;
  f.markers = policy_.markers == Policy::Markers::kAsk;  // for ourselves. req: RFC5044-7.1.1-8
  f.reject = reject;                                     // req: RFC5044-7.1.1-21
  f.revision = request_.revision;                        // req: RFC6581-10-9
  // C=1 also when only the peer wants it: siw looks at nothing but the Reply. req: RFC5044-4.4-5
  // req: RFC5044-4.4-4
  f.crc = policy_.crc == Policy::Crc::kOn || (policy_.crc == Policy::Crc::kPreferOff && request_.crc);
  f.enhanced = request_.enhanced;  // req: RFC6581-10-4, RFC6581-10-8
  if (f.enhanced) f.enhanced_data = enhanced::make_reply(offer_of(policy_).forms, {ird, ord}, request_.enhanced_data);
  return f;
}

Result<void> Responder::accept(std::uint16_t ird, std::uint16_t ord, ConstBytes private_data,
                               const std::optional<enhanced::Depths>& told) {
  if (state_ != ResponderState::kDeciding)
    return make_error(Errc::kInvalidArgument, "no MPA Request waits for a decision");
  const enhanced::Depths by_application = told.value_or(enhanced::Depths{});
  if (std::max({ird, ord, by_application.ird, by_application.ord}) > kMaxIrdOrd)
    return make_error(Errc::kInvalidArgument, "IRD and ORD go up to 16382");
  if (const auto fits = check_private_data(private_data); !fits) return fits.error();

  const EnhancedData asked = request_.enhanced ? request_.enhanced_data : EnhancedData{};
  Negotiated n;
  if (request_.enhanced) {
    enhanced::Offer offer = offer_of(policy_);
    offer.depths = {ird, ord};
    const enhanced::Settled settled = enhanced::settle_request(offer, asked);
    n.peer_to_peer = settled.peer_to_peer;
    n.rtr = settled.rtr;
    ird = settled.depths.ird;
    ord = settled.depths.ord;
  }
  if (told) {
    const auto startup = request_.enhanced ? std::optional(enhanced::Depths{asked.ird, asked.ord}) : std::nullopt;
    const enhanced::Depths fitted = enhanced::fit({ird, ord}, enhanced::left_open(*told, startup), policy_.max_ird);
    ird = fitted.ird;
    ord = fitted.ord;
  }
  StartupFrame reply = answer(false, ird, ord);  // req: RFC5044-7.1.2-8
  reply.private_data = private_data;
  n.revision = request_.revision;
  n.enhanced = request_.enhanced;
  n.crc = request_.crc || reply.crc;   // req: RFC5044-7.1.1-16, RFC5044-7.1.1-17, RFC5044-4.4-3, RFC5044-7.1.1-15
  n.markers_sent = request_.markers;   // req: RFC5044-7.1.1-9, RFC5044-7.1.1-12, RFC5044-7.1.1-11
  n.markers_received = reply.markers;  // req: RFC5044-C.3-1, RFC5044-7.1.1-13
  n.ird = ird;                         // req: RFC6581-9.1-9
  n.ord = ord;                         // req: RFC6581-9.1-5
  n.peer_ird = asked.ird;
  n.peer_ord = asked.ord;
  negotiated_ = n;
  step(ResponderInput::kAccept);  // req: RFC5044-7.1-8
  queue_reply(reply);
  assert(is_consistent());
  return {};
}

Result<void> Responder::reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord) {
  if (state_ != ResponderState::kDeciding)
    return make_error(Errc::kInvalidArgument, "no MPA Request waits for a decision");
  if (required_ord.value_or(0) > kMaxIrdOrd) return make_error(Errc::kInvalidArgument, "IRD and ORD go up to 16382");
  if (const auto fits = check_private_data(private_data); !fits) return fits.error();
  const std::uint16_t affordable = std::min(policy_.ord, request_.enhanced_data.ird);
  StartupFrame reply = answer(true, policy_.ird, required_ord.value_or(affordable));  // req: RFC6581-9.1-13
  reply.private_data = private_data;
  step(ResponderInput::kReject);  // req: RFC5044-7.1.2-22, RFC5044-7.1.2-5
  queue_reply(reply);
  assert(is_consistent());
  return {};
}

void Responder::queue_reply(const StartupFrame& reply) {
  tx_.resize(reply.size());
  reply.write_to(tx_);  // req: RFC5044-7.1-5
  tx_sent_ = 0;
}

void Responder::rx_end(bool reset) {
  if (!next(state_, ResponderInput::kConnectionEnd)) return;
  if (state_ == ResponderState::kWaitRequest && !reset && !rx_.empty()) {  // req: RFC5044-7.1.1-31
    fail(ResponderInput::kConnectionEnd,
         make_error(Errc::kMalformedStartupFrame, "connection ended inside the MPA Request"));
  } else {
    fail(ResponderInput::kConnectionEnd, {Errc::kConnectionLost, std::nullopt, "connection ended during MPA startup"});
  }
  assert(is_consistent());
}

std::optional<TimePoint> Responder::deadline() const {
  return state_ == ResponderState::kWaitRequest ? std::optional(deadline_) : std::nullopt;
}

void Responder::on_deadline(TimePoint now) {
  if (state_ != ResponderState::kWaitRequest || now < deadline_) return;
  fail(ResponderInput::kTimeout, make_error(Errc::kStartupTimeout));  // req: RFC5044-7.1.2-26
}

std::optional<Responder::Event> Responder::poll_event() {
  if (events_.empty()) return std::nullopt;
  Event first = std::move(events_.front());
  events_.erase(events_.begin());
  return first;
}

void Responder::step(ResponderInput on) {
  const auto to = next(state_, on);
  assert(to);
  state_ = *to;
}

void Responder::fail(ResponderInput on, const Error& error) {
  step(on);
  tx_.clear();
  tx_sent_ = 0;
  events_.emplace_back(Failed{error});
}

bool Responder::is_consistent() const {
  if (tx_sent_ > tx_.size() || events_.size() > 2) return false;
  switch (state_) {
    case ResponderState::kWaitRequest:
      return events_.empty() && tx_.empty();
    case ResponderState::kDeciding:
      return tx_.empty();
    case ResponderState::kReplying:
    case ResponderState::kRejecting:
      return tx_sent_ < tx_.size();
    case ResponderState::kFull:
    case ResponderState::kRejected:
      return tx_sent_ == tx_.size();
    case ResponderState::kFailed:
      return true;
  }
  return false;
}

}  // namespace iwarp::mpa
