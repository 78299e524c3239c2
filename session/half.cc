#include "iwarp/session/half.h"

#include <cassert>
#include <new>
#include <variant>

#include "iwarp/rdmap/terminate_message.h"

namespace iwarp::session {

using endpoint::Input;
using endpoint::Phase;

namespace {

constexpr std::size_t kKeepingBytes = 32, kPlacedBytes = 96;  // and for what is remembered of its places

std::size_t cost_of(std::size_t segment_bytes, std::size_t placed) {
  return segment_bytes + kKeepingBytes + (placed > 0 ? kPlacedBytes : 0);
}

// Its T bit (RFC 5041 s4.1). Precondition: it has a header.
bool is_tagged(ConstBytes segment) {
  return (segment[0] & std::byte{0x80}) != std::byte{0};
}

}  // namespace

// Without memory a step is left half done, and nothing can follow it.
template <class F>
void Half::attempt(F&& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    endpoint_.end(Input::kAbort, make_error(Errc::kResource, "no memory to go on with the DDP Stream Session"));
  }
  follow();
}

// After each call that may have moved the phase.
void Half::follow() {
  // A Terminate has no session to leave in.
  if (peer_has_ended_ && endpoint_.phase() == Phase::kTerminating)
    endpoint_.end(Input::kPeerEnd, make_error(Errc::kPeerClosed));
  const Phase phase = endpoint_.phase();
  if (!endpoint_.receiving()) {
    held_.clear();
    held_bytes_ = 0;
    early_.clear();
    targets_.clear();
  }
  if (phase == followed_) return;
  followed_ = phase;
  // What has not begun to leave is forgotten: a message leaves as a whole. A Terminate is next. req: RFC5043-11.3-4
  const bool in_order = phase == Phase::kEndWait && endpoint_.ending() == endpoint::Ending::kOrderly;
  if (phase > Phase::kDraining && !in_order) message_.clear();
}

void Half::start(TimePoint now) {
  endpoint_.at(now);
  started_ = true;
  // Over SCTP either side may send first. req: RFC6581-7-13
  endpoint_.start(endpoint::Opening::kAtOnce);
  follow();
}

void Half::on_event(const sctp::Session::Event& event, sctp::Role role, TimePoint now) {
  endpoint_.at(now);
  attempt([&] {
    if (const auto* e = std::get_if<sctp::Session::Established>(&event)) {
      established(*e, role);
    } else if (const auto* d = std::get_if<sctp::Session::Delivered>(&event)) {
      delivered(*d);
    } else if (const auto* rejected = std::get_if<sctp::Session::Rejected>(&event)) {
      private_data_.assign(rejected->private_data.begin(), rejected->private_data.end());
      told_ = true;  // nothing is left to be terminated
      endpoint_.end(Input::kStartupFailed, make_error(Errc::kPeerRejected));
    } else if (const auto* over = std::get_if<sctp::Session::Ended>(&event)) {
      ended(over->error);
    }
  });
}

void Half::established(const sctp::Session::Established& e, sctp::Role role) {
  private_data_.assign(e.private_data.begin(), e.private_data.end());
  endpoint::Terms terms{.ird = e.settled.depths.ird, .ord = e.settled.depths.ord};
  // req: RFC6581-7-25
  (role == sctp::Role::kActive ? terms.rtr : terms.rtr_to_come) = e.settled.rtr;
  endpoint_.establish(terms);
}

void Half::ended(const Error& error) {
  if (endpoint_.phase() <= Phase::kStartup) {
    // An RDMAP Terminate goes before the Session Terminate. req: RFC5043-6.2-6
    unsuited_ = error.tell_peer.has_value();
    if (unsuited_) return endpoint_.violation(error, rdmap::make_terminate(error, {}, 0, false));
    return endpoint_.end(Input::kStartupFailed, error);
  }
  if (error.code != Errc::kPeerClosed)
    return endpoint_.end(Input::kLost, error.code == Errc::kAborted ? make_error(Errc::kConnectionLost) : error);
  peer_has_ended_ = true;  // and so has this end's direction: it answers with its own Terminate. req: RFC5043-6-1
  message_.clear();
  if (endpoint_.holding() && endpoint_.receiving()) return endpoint_.end_is_behind();
  endpoint_.end(Input::kPeerEnd, error);
}

std::size_t Half::on_early(const sctp::Session::Early& early) {
  std::size_t placed = 0;
  try {
    if (endpoint_.early_targets(early.segment, targets_)) {
      std::size_t bytes = 0;
      for (const ddp::Pin& target : targets_) bytes += target.bytes().size();
      if (early_.place(early.position, targets_, early.segment.last(bytes))) placed = bytes;
    }
  } catch (const std::bad_alloc&) {  // it is kept then
  }
  targets_.clear();
  if (placed > 0) endpoint_.placed_early(placed);
  return placed;
}

void Half::delivered(const sctp::Session::Delivered& d) {
  if (!endpoint_.receiving()) return;
  if (endpoint_.holding()) return keep(d);
  endpoint_.heard_segment();
  receive(d.segment, d.placed);
  if (endpoint_.holding()) keep(d);
}

void Half::keep(const sctp::Session::Delivered& d) {
  const std::size_t cost = cost_of(d.segment.size(), d.placed);
  if (held_bytes_ + cost > options_.max_held_bytes) {
    const Error error = make_error(Errc::kUntaggedNoBuffer, "the peer has sent too much behind a Send without Receive");
    return endpoint_.violation(error, rdmap::make_terminate(error, d.segment, d.segment.size() + d.placed, false));
  }
  held_.push_back({{d.segment.begin(), d.segment.end()}, d.placed});
  held_bytes_ += cost;
}

void Half::receive(ConstBytes segment, std::size_t placed) {
  if (segment.empty() || segment.size() < rdmap::Receiver::head_bytes(segment)) {
    // What DDP calls an error of MPA has no code over SCTP: RFC 5043 defines none. req: RFC5040-4.8-37
    Error error = make_error(Errc::kFpduLength, "DDP Segment shorter than its header");
    error.tell_peer.reset();
    return endpoint_.violation(error, rdmap::make_terminate(error, segment, segment.size(), false));
  }
  if (placed == 0 && early_.empty()) {
    endpoint_.receive(segment);
  } else {
    receive_among_early(segment, placed);
  }
  endpoint_.let_go();
}

// As Endpoint::receive(). Whatever is placed already is judged anew all the same.
void Half::receive_among_early(ConstBytes segment, std::size_t placed) {
  if (!endpoint_.begin_segment(segment, segment.size() + placed)) return;
  const ConstBytes payload = segment.subspan(endpoint_.header_bytes());
  if (endpoint_.direct()) {
    targets_.clear();
    if (!endpoint_.targets(targets_)) return;
    if (placed > 0) {
      if (!early_.delivered()) {
        const Error gone =
            is_tagged(segment) ? ddp::tagged_error(ddp::StagFault::kInvalid) : make_error(Errc::kDdpCatastrophic);
        return endpoint_.violation(gone, rdmap::make_terminate(gone, segment, segment.size() + placed, false));
      }
    } else {
      early_.place_due(targets_, payload);
    }
    targets_.clear();
    endpoint_.placed(endpoint_.payload_remaining());
  } else if (!endpoint_.place(payload)) {
    return;
  }
  endpoint_.end_segment();
}

void Half::resume(TimePoint now) {
  endpoint_.at(now);
  attempt([&] {
    while (!held_.empty() && endpoint_.receiving()) {
      receive(held_.front().segment, held_.front().placed);
      if (endpoint_.holding() || !endpoint_.receiving()) return;
      held_bytes_ -= cost_of(held_.front().segment.size(), held_.front().placed);
      held_.pop_front();
    }
    if (peer_has_ended_ && endpoint_.receiving()) endpoint_.end(Input::kPeerEnd, make_error(Errc::kPeerClosed));
  });
}

MutBytes Half::next(std::size_t max_segment_bytes, TimePoint now) {
  endpoint_.at(now);
  attempt([&] {
    while (message_.empty() && !peer_has_ended_ && endpoint_.ready()) {
      endpoint::Endpoint::Segment segment;
      std::vector<ddp::Pin> payload;
      if (!endpoint_.next_segment(max_segment_bytes, segment, payload)) {
        follow();
        continue;  // a violation leaves a Terminate to send
      }
      // One piece of memory, which is what SCTP takes; nothing stays pinned. req: RFC5043-2-4
      const ConstBytes head = segment.head_and_copy();
      message_.reserve(sctp::kSsnBytes + segment.header_bytes + segment.payload_bytes);
      message_.resize(sctp::kSsnBytes);
      message_.insert(message_.end(), head.begin(), head.end());
      for (const ddp::Pin& pin : payload) message_.insert(message_.end(), pin.bytes().begin(), pin.bytes().end());
      done_ = segment.done;
    }
    if (message_.empty() && endpoint_.drained()) endpoint_.finish();
  });
  return message_;
}

void Half::taken(TimePoint now) {
  assert(!message_.empty());
  endpoint_.at(now);
  message_.clear();
  attempt([&] {
    endpoint_.sent(done_);
    endpoint_.progress();
    if (endpoint_.drained() && !endpoint_.ready()) endpoint_.finish();
  });
}

bool Half::must_terminate() {
  if (told_ || !started_ || !message_.empty()) return false;
  const Phase phase = endpoint_.phase();
  if (phase != Phase::kEndWait && phase != Phase::kClosed) return false;
  told_ = true;
  if (unsuited_) {  // its session has told its end, and will tell no other
    endpoint_.end(Input::kPeerEnd, make_error(Errc::kPeerClosed));
    follow();
  }
  return true;
}

void Half::disconnect(TimePoint now) {
  endpoint_.at(now);
  attempt([&] {
    endpoint_.disconnect();
    if (endpoint_.drained() && message_.empty()) endpoint_.finish();
  });
}

void Half::leave(const Error& reason, TimePoint now) {
  endpoint_.at(now);
  attempt([&] {
    endpoint_.leave(reason);
    if (peer_has_ended_) endpoint_.end(Input::kPeerEnd, make_error(Errc::kPeerClosed));
  });
}

void Half::abort(const Error& reason) {
  endpoint_.end(Input::kAbort, reason);
  follow();
}

void Half::abort_sparing(const Error& reason, TimePoint now) {
  endpoint_.at(now);
  abort(reason);
}

void Half::on_deadline(TimePoint now) {
  endpoint_.at(now);
  attempt([&] { endpoint_.on_deadline(); });
}

}  // namespace iwarp::session
