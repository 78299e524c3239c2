// Receive side of the connection core. With CRC on, FPDUs are received into scratch, checked, then placed: nothing
// unchecked reaches the application's memory (RFC 5044 s6). With CRC off, the rest of a large FPDU is received straight
// into its final buffer. Markers, too, are taken out in scratch: octets between them have no place of their own before.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "iwarp/stream/connection.h"

namespace iwarp::stream {
namespace {

// A missing rest shorter than this is cheaper to copy than to receive apart.
constexpr std::size_t kDirectMinimum = 4096;
// While large FPDUs arrive directly, only so much of what follows is read ahead (and then copied): the next header and
// a little payload.
constexpr std::size_t kLookahead = 1024;
constexpr std::size_t kLargestHeader = mpa::kLengthBytes + ddp::UntaggedHeader::kSize;

// At the end of a read, though it end with an exception.
struct LetGo {
  explicit LetGo(endpoint::Endpoint& e) : endpoint(e) {}
  ~LetGo() { endpoint.let_go(); }
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;
  endpoint::Endpoint& endpoint;
};

}  // namespace

std::span<const MutBytes> Connection::rx_buffers(MutBytes scratch) {
  rx_spans_.clear();
  rx_pins_.clear();
  scratch_ = scratch;
  rx_mode_ = RxMode::kNone;
  attempt([&] { choose_rx_buffers(); });
  return rx_spans_;
}

void Connection::choose_rx_buffers() {
  switch (phase()) {
    case Phase::kIdle:
    case Phase::kClosed:
      // req: RFC5041-6.2-3
      return;
    case Phase::kStartup:
      // Until the Reply has left nothing can be expected, and what came anyway would have no decoder yet.
      if (const auto* responder = std::get_if<mpa::Responder>(&startup_);
          responder != nullptr && !responder->tx_bytes().empty())
        return;
      rx_spans_.push_back(scratch_);
      rx_mode_ = RxMode::kStartup;
      return;
    case Phase::kFull:
    case Phase::kDraining:
    case Phase::kTerminating:
    case Phase::kEndWait:
    case Phase::kLingering:
      break;
  }
  if (direct_ && endpoint_.receiving()) {
    if (!endpoint_.targets(rx_pins_)) {
      direct_.reset();
      follow();
      if (phase() == Phase::kClosed) return;
    } else {
      for (const ddp::Pin& pin : rx_pins_) rx_spans_.push_back(pin.bytes());
      rx_spans_.push_back(MutBytes{trailer_}.first(direct_->trailer_left));
      rx_spans_.push_back(scratch_.first(std::min(scratch_.size(), kLookahead)));
      rx_mode_ = RxMode::kDirect;
      return;
    }
  }
  if (!endpoint_.receiving()) {
    // req: RFC5041-7.1-18 RFC5040-7-3 RFC5044-8-13 RFC5040-5.4-11 RFC5041-3-11
    rx_spans_.push_back(scratch_);
    rx_mode_ = RxMode::kDiscard;
    return;
  }
  if (endpoint_.holding()) return;
  if (!carry_.complete()) rx_spans_.push_back(carry_.missing());
  const bool read_ahead_little = may_place_early() && last_fpdu_bytes_ >= 2 * kDirectMinimum;
  rx_spans_.push_back(read_ahead_little ? scratch_.first(std::min(scratch_.size(), kLookahead)) : scratch_);
  rx_mode_ = RxMode::kCarry;
}

void Connection::rx_commit(std::size_t n, TimePoint now) {
  endpoint_.at(now);
  attempt([&] { received(n, now); });
  assert(is_consistent());
}

void Connection::received(std::size_t n, TimePoint now) {
  const LetGo let_go{endpoint_};
  const RxMode mode = std::exchange(rx_mode_, RxMode::kNone);
  if (n > 0 && mode != RxMode::kStartup && !peer_is_awake_) heard();
  switch (mode) {
    case RxMode::kNone:
    case RxMode::kDiscard:
      follow();
      return;
    case RxMode::kStartup:
      rx_startup(scratch_.first(n), now);
      break;
    case RxMode::kDirect:
      rx_direct(n);
      break;
    case RxMode::kCarry:
      rx_carry(n);
      break;
  }
  rx_pins_.clear();
  octets_taken();
}

void Connection::octets_taken() {
  if (carry_.empty() && !direct_) carry_.release();  // an idle connection owns no staging memory
  follow();
  check_drained();
}

void Connection::drop_received() {
  if (endpoint_.receiving()) return;
  direct_.reset();
  held_ = {};
}

void Connection::fin_is_behind(TimePoint now) {
  endpoint_.at(now);
  endpoint_.end_is_behind();
}

void Connection::resume(TimePoint now) {
  endpoint_.at(now);
  if (!endpoint_.holding()) return;
  attempt([&] { go_on(); });
  assert(is_consistent());
}

void Connection::go_on() {
  const LetGo let_go{endpoint_};
  endpoint_.receive(held_.ulpdu);
  if (endpoint_.holding()) return;
  held_.next = held_.behind.size() - process(MutBytes{held_.behind}.subspan(held_.next));
  if (!endpoint_.holding()) held_ = {};
  octets_taken();
}

void Connection::rx_startup(MutBytes bytes, TimePoint now) {
  std::size_t used = 0;
  if (auto* initiator = std::get_if<mpa::Initiator>(&startup_)) used = initiator->rx(bytes, now);
  if (auto* responder = std::get_if<mpa::Responder>(&startup_)) used = responder->rx(bytes, now);
  drain_startup();
  if (behind_reject_) behind_reject_->assign(bytes.begin() + static_cast<std::ptrdiff_t>(used), bytes.end());
  if (!endpoint_.receiving()) return;
  if (used < bytes.size()) heard();
  process_and_keep(bytes.subspan(used));  // req: RFC5044-7.1-6 RFC5044-7.1.5-1
}

void Connection::rx_direct(std::size_t& n) {
  const std::size_t payload = std::min(n, endpoint_.payload_remaining());
  endpoint_.placed(payload);
  rx_pins_.clear();
  const std::size_t trailer = std::min(n - payload, direct_->trailer_left);
  direct_->trailer_left -= trailer;
  if (endpoint_.payload_remaining() != 0 || direct_->trailer_left != 0) return;
  decoder_.skip(direct_->layout);
  direct_.reset();
  endpoint_.end_segment();
  process_and_keep(scratch_.first(n - payload - trailer));
}

void Connection::rx_carry(std::size_t& n) {
  const std::size_t into_carry = std::min(n, carry_.missing_bytes());
  carry_.arrived(into_carry);
  if (!carry_.complete()) return;
  if (!carry_.empty()) process_carry();
  MutBytes rest = scratch_.first(n - into_carry);
  // The carried FPDU may have turned out longer than what was asked for: what follows it continues it.
  while (!rest.empty() && endpoint_.receiving() && (!carry_.empty() || direct_)) {
    if (direct_) {
      const std::size_t payload = std::min(rest.size(), endpoint_.payload_remaining());
      if (!endpoint_.place(rest.first(payload))) {
        direct_.reset();
        return;
      }
      rest = rest.subspan(payload);
      const std::size_t trailer = std::min(rest.size(), direct_->trailer_left);
      direct_->trailer_left -= trailer;
      rest = rest.subspan(trailer);
      if (endpoint_.payload_remaining() != 0 || direct_->trailer_left != 0) return;
      decoder_.skip(direct_->layout);
      direct_.reset();
      endpoint_.end_segment();
      break;
    }
    const std::size_t more = std::min(rest.size(), carry_.missing_bytes());
    std::memcpy(carry_.missing().data(), rest.data(), more);
    carry_.arrived(more);
    rest = rest.subspan(more);
    if (carry_.complete()) process_carry();
  }
  process_and_keep(rest);
}

void Connection::process_carry() {
  auto result = decoder_.decode(carry_.arrived());
  if (auto* frame = std::get_if<mpa::FpduFrame>(&result)) {
    process_fpdu(*frame);
    carry_.clear();
  } else if (auto* more = std::get_if<mpa::NeedMore>(&result)) {
    stash(carry_.arrived(), more->at_least);
  } else {
    broken(std::get<Error>(result));
    carry_.clear();
  }
}

void Connection::process_and_keep(MutBytes bytes) {
  const MutBytes left = bytes.last(process(bytes));
  held_.behind.insert(held_.behind.end(), left.begin(), left.end());
}

std::size_t Connection::process(MutBytes bytes) {
  while (!bytes.empty() && endpoint_.receiving()) {  // req: RFC5044-5.1-5
    if (endpoint_.holding()) [[unlikely]]
      return bytes.size();
    auto result = decoder_.decode(bytes);
    if (auto* frame = std::get_if<mpa::FpduFrame>(&result)) {
      // req: RFC5041-3-5
      process_fpdu(*frame);  // req: RFC5044-2-2
      // req: RFC5041-3-15
      bytes = bytes.subspan(frame->fpdu_bytes);
    } else if (auto* more = std::get_if<mpa::NeedMore>(&result)) {
      stash(bytes, more->at_least);
      return 0;
    } else {
      broken(std::get<Error>(result));  // req: RFC5044-8-2 RFC5041-7-1 RFC5044-8-16
      return 0;
    }
  }
  return 0;
}

void Connection::process_fpdu(const mpa::FpduFrame& frame) {
  last_fpdu_bytes_ = frame.fpdu_bytes;
  heard_fpdu();  // should DDP think otherwise, the peer may be told
  // req: RFC5041-3-9
  // req: RFC5040-5.1-8 RFC5040-5.5-13 RFC5040-B-4
  endpoint_.receive(frame.ulpdu);
  if (endpoint_.holding()) [[unlikely]]
    held_.ulpdu.assign(frame.ulpdu.begin(), frame.ulpdu.end());
}

// Keeps the start of an FPDU whose rest has not arrived, of which `need` octets are wanted next. `partial` may lie in
// carry_ itself.
void Connection::stash(ConstBytes partial, std::size_t need) {
  if (may_place_early()) {
    if (begin_direct(partial)) {
      carry_.clear();
      return;
    }
    // Enough for the headers first: then the payload may go straight to its place.
    if (partial.size() < kLargestHeader) need = std::min(need, kLargestHeader);
  }
  carry_.keep(partial, std::max(need, partial.size()));  // req: RFC5044-A.5.2-1
}

// Starts to place an incomplete FPDU directly. False when that is not possible or not worth it. With CRC off the header
// needs no check.
bool Connection::begin_direct(ConstBytes partial) {
  if (!options_.direct_placement) return false;
  if (!endpoint_.may_transmit()) return false;  // the first FPDU opens the way for ours, so it has to be whole
  const auto layout = mpa::FpduDecoder::peek(partial);
  if (!layout || layout->fpdu_bytes - partial.size() < kDirectMinimum) return false;
  const ConstBytes ulpdu = partial.subspan(mpa::kLengthBytes);
  if (ulpdu.empty() || ulpdu.size() < rdmap::Receiver::head_bytes(ulpdu)) return false;
  if (!endpoint_.begin_segment(ulpdu, layout->ulpdu_bytes)) {
    if (!endpoint_.holding()) return true;
    endpoint_.put_off();  // it waits for a Receive when it is whole
    return false;
  }
  if (!endpoint_.direct()) return false;
  if (!endpoint_.place(ulpdu.subspan(endpoint_.header_bytes()))) return true;
  heard_fpdu();
  last_fpdu_bytes_ = layout->fpdu_bytes;
  direct_ = Direct{*layout, layout->trailer_bytes};
  return true;
}

void Connection::rx_end(TcpEnd how, TimePoint now) {
  endpoint_.at(now);
  if (phase() == Phase::kStartup && how == TcpEnd::kSilence) {
    startup_ = std::monostate{};  // who is not there will not answer another Request either
  } else if (phase() == Phase::kStartup) {
    attempt([&] {
      if (auto* initiator = std::get_if<mpa::Initiator>(&startup_)) initiator->rx_end(how == TcpEnd::kReset);
      if (auto* responder = std::get_if<mpa::Responder>(&startup_)) responder->rx_end(how == TcpEnd::kReset);
      drain_startup();
    });
  }
  // req: RFC5041-3-12 RFC5041-3-13
  const bool inside_fpdu = direct_ || decoder_.has_begun(carry_.arrived().size());
  if (how != TcpEnd::kFin) {
    const char* why = how == TcpEnd::kReset ? "TCP connection reset by the peer"
                                            : "TCP gave the peer up: it took nothing, or did not answer";
    // req: RFC5040-6.2-3
    endpoint_.end(Input::kLost, make_error(Errc::kConnectionLost, why));
  } else {
    endpoint_.end(Input::kPeerEnd, inside_fpdu ? make_error(Errc::kConnectionLost, "peer closed TCP inside an FPDU")
                                               : make_error(Errc::kPeerClosed));  // req: RFC5044-7.2-2
  }
  follow();
  assert(is_consistent());
}

}  // namespace iwarp::stream
