#include <cassert>
#include <utility>

#include "iwarp/mpa/negotiation.h"

namespace iwarp::mpa {
namespace {

StartupFrame make_request(const Policy& policy, ConstBytes private_data) {
  StartupFrame f;                          // req: RFC5044-7.1.1-19
  f.crc = policy.crc == Policy::Crc::kOn;  // req: RFC5044-4.4-2, RFC5044-4.4-4, RFC5044-4.4-5
  f.markers = policy.markers == Policy::Markers::kAsk;
  f.revision = policy.revision;       // req: RFC5044-7.1.1-24
  f.enhanced = policy.revision >= 2;  // req: RFC6581-10-1, RFC6581-10-5
  f.private_data = private_data;
  if (!f.enhanced) return f;  // req: RFC6581-9.3-1
  f.enhanced_data = enhanced::make_request(offer_of(policy));
  return f;
}

}  // namespace

Initiator::Initiator(const Policy& policy, ConstBytes private_data, TimePoint now)
    : policy_(policy),
      deadline_(add_saturating(now, policy.startup_timeout)),
      rx_(parse_reply, policy.max_private_data_bytes) {
  Result<void> usable = validate(policy);
  if (usable.ok() && private_data.size() > kMaxSendPrivateDataBytes) {
    // req: RFC5044-7.1.1-34
    usable = make_error(Errc::kInvalidArgument, "more than 251 octets of private data");
  }
  if (!usable) {
    fail(InitiatorInput::kBadArgument, usable.error());
    return;
  }
  request_ = make_request(policy, private_data);
  tx_.resize(request_.size());
  request_.write_to(tx_);  // req: RFC5044-7.1.2-1, RFC5044-7.1-5
  request_.private_data = {};
  assert(is_consistent());
}

ConstBytes Initiator::tx_bytes() const {
  return ConstBytes(tx_).subspan(tx_sent_);
}

void Initiator::tx_commit(std::size_t n) {
  assert(n <= tx_.size() - tx_sent_);
  tx_sent_ += n;
}

std::size_t Initiator::rx(ConstBytes bytes, TimePoint now) {
  if (state_ != InitiatorState::kWaitReply) return 0;
  const auto step = rx_.feed(bytes);
  if (const auto* error = std::get_if<Error>(&step.result)) {
    fail(InitiatorInput::kReplyMalformed, *error);  // req: RFC5044-8-4, RFC5044-8-10
  } else if (const auto* parsed = std::get_if<StartupFrame::Parsed>(&step.result)) {
    on_reply(parsed->frame);
  }
  on_deadline(now);  // after reading: what is complete is not late, however long it lay there
  assert(is_consistent());
  return step.consumed;
}

void Initiator::on_reply(const StartupFrame& reply) {
  if (reply.revision == 0 || reply.revision > request_.revision) {
    // req: RFC5044-7.1.1-25, RFC5044-7.1.1-26, RFC5044-7.1.1-27, RFC5044-C.2.2-1
    return fail(InitiatorInput::kReplyUnusable, make_error(Errc::kUnsupportedRevision));
  }
  if (reply.reject) {  // before all else: even a reject that answers unlike with like is one. req: RFC5044-7.1.2-16
    step(InitiatorInput::kReplyRejected);
    const auto enhanced = reply.enhanced ? std::optional(reply.enhanced_data) : std::nullopt;
    event_ = Rejected{enhanced, reply.private_data};  // req: RFC5044-7.1.2-6, RFC6581-9.1-20
    return;
  }
  Negotiated n;
  if (const auto agreed = agree(reply, n); !agreed) {
    fail(InitiatorInput::kReplyUnusable, agreed.error());
    if (agreed.error().tell_peer) std::get<Failed>(*event_).negotiated = n;
    return;
  }
  step(InitiatorInput::kReplyAccepted);
  event_ = Established{n, reply.private_data, n.rtr};  // req: RFC6581-9.1-9, RFC6581-9.2-17, RFC5044-7.1.2-9
}

Result<void> Initiator::agree(const StartupFrame& reply, Negotiated& out) const {
  out.revision = reply.revision;  // req: RFC5044-3-14, RFC5044-7.1.1-28
  out.enhanced = reply.enhanced;
  // Settled before the first FPDU. req: RFC5044-4.4-8, RFC5044-4.4-11, RFC5044-4.4-3, RFC5044-7.1.1-15
  out.crc = request_.crc || reply.crc;  // req: RFC5044-7.1.1-16, RFC5044-7.1.1-17, RFC5044-4.4-6
  out.ird = policy_.ird;
  out.ord = policy_.ord;
  out.markers_sent = reply.markers;         // req: RFC5044-7.1.1-10, RFC5044-7.1.1-12, RFC5044-7.1.1-11
  out.markers_received = request_.markers;  // req: RFC5044-C.3-1, RFC5044-7.1.1-13
  if (reply.markers && policy_.markers == Policy::Markers::kRefuse) return make_error(Errc::kMarkersRefused);
  if (reply.crc && policy_.crc == Policy::Crc::kOff) return make_error(Errc::kCrcRefused);
  if (reply.enhanced != request_.enhanced) {  // req: RFC6581-10-2
    return make_error(Errc::kConnectionModel, "unenhanced Reply to an enhanced Request");
  }
  if (!reply.enhanced) return {};

  out.peer_ird = reply.enhanced_data.ird;  // req: RFC6581-9.1-8
  out.peer_ord = reply.enhanced_data.ord;
  enhanced::Settled settled;
  const auto ok = enhanced::settle_reply(offer_of(policy_), reply.enhanced_data, settled);
  out.peer_to_peer = settled.peer_to_peer;
  out.rtr = settled.rtr;
  out.ird = settled.depths.ird;
  out.ord = settled.depths.ord;
  return ok;
}

void Initiator::rx_end(bool reset) {
  if (state_ != InitiatorState::kWaitReply) return;  // req: RFC5044-7.1.4.2-2
  const bool before_reply = rx_.empty();             // req: RFC5044-8-1
  if (!before_reply && !reset) {                     // req: RFC5044-7.1.1-31
    fail(InitiatorInput::kConnectionEnd,
         make_error(Errc::kMalformedStartupFrame, "connection ended inside the MPA Reply"));
  } else {
    fail(InitiatorInput::kConnectionEnd,  // req: RFC6581-10-11
         {Errc::kConnectionLost, std::nullopt, "connection ended before the MPA Reply"});
  }
  // A peer without RFC 6581 closes, and RNICs reset, without a word. req: RFC6581-10-12
  if (before_reply) std::get<Failed>(*event_).fallback = next_fallback(policy_);
  assert(is_consistent());
}

std::optional<TimePoint> Initiator::deadline() const {
  return state_ == InitiatorState::kWaitReply ? std::optional(deadline_) : std::nullopt;
}

void Initiator::on_deadline(TimePoint now) {
  if (state_ != InitiatorState::kWaitReply || now < deadline_) return;
  fail(InitiatorInput::kTimeout, make_error(Errc::kStartupTimeout));  // req: RFC5044-7.1.2-31
}

std::optional<Initiator::Event> Initiator::poll_event() {
  return std::exchange(event_, std::nullopt);
}

void Initiator::step(InitiatorInput on) {
  const auto to = next(state_, on);
  assert(to);
  state_ = *to;
}

void Initiator::fail(InitiatorInput on, const Error& error) {
  step(on);
  tx_.clear();
  tx_sent_ = 0;
  event_ = Failed{error};
}

bool Initiator::is_consistent() const {
  if (tx_sent_ > tx_.size()) return false;
  switch (state_) {
    case InitiatorState::kWaitReply:
      return !event_ && !tx_.empty();
    case InitiatorState::kFull:
      return !event_ || std::holds_alternative<Established>(*event_);
    case InitiatorState::kRejected:
      return !event_ || std::holds_alternative<Rejected>(*event_);
    case InitiatorState::kFailed:
      return tx_.empty() && (!event_ || std::holds_alternative<Failed>(*event_));
  }
  return false;
}

}  // namespace iwarp::mpa
