#include "iwarp/trace/half_stream.h"

#include <algorithm>
#include <utility>

#include "iwarp/mpa/crc32c.h"
#include "iwarp/mpa/fpdu_decoder.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/mpa/markers.h"
#include "iwarp/trace/fpdu_search.h"

namespace iwarp::trace {

void HalfStream::drop_taken() {
  head_ += std::exchange(taken_, 0);
  while (!holes_.empty() && holes_.front().end <= head_) holes_.pop_front();
  if (head_ < buffer_.size() - head_) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(head_));
  for (Hole& h : holes_) h = {h.begin - std::min(h.begin, head_), h.end - head_};
  head_ = 0;
}

std::size_t HalfStream::captured(std::size_t n) const {
  std::size_t missing = 0;
  for (const Hole& h : holes_) {
    const std::size_t begin = std::max(h.begin, head_), end = std::min(h.end, head_ + n);
    if (begin < end) missing += end - begin;
  }
  return n - missing;
}

std::size_t HalfStream::unbroken(std::size_t n) const {
  return holes_.empty() ? n : std::min(n, holes_.front().begin - std::min(holes_.front().begin, head_));
}

HalfStream::Item HalfStream::take(std::size_t n, Item item) {
  taken_ = n;
  return item;
}

HalfStream::Item HalfStream::take_rest(const char* why) {
  const std::size_t n = rest().size();
  return take(n, Undecoded{captured(n), why});
}

void HalfStream::feed(ConstBytes bytes) {
  drop_taken();
  if (state_ == State::kNotMpa) return;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<std::size_t> HalfStream::front_bytes() const {
  const std::size_t lead = markers_ ? mpa::leading_marker_bytes(position_) : 0;
  if (rest().size() < lead) return std::nullopt;
  const auto layout = mpa::FpduDecoder::peek(rest().subspan(lead));
  if (!layout) return std::nullopt;
  return layout->fpdu_bytes + (markers_ ? mpa::marker_bytes(position_, layout->fpdu_bytes) : 0);
}

ConstBytes HalfStream::unmarked(ConstBytes fpdu) {
  if (!markers_) return fpdu;
  unmarked_.assign(fpdu.begin(), fpdu.end());
  return mpa::cut_markers(unmarked_, position_);
}

// The FPDU at the front, of which rest() ends after n octets.
HalfStream::Fpdu HalfStream::cut_fpdu(std::size_t n) {
  const ConstBytes known = unmarked(rest().first(unbroken(n)));
  const auto layout = mpa::FpduDecoder::peek(known);  // there: front_bytes() knew
  const ConstBytes ulpdu = known.subspan(mpa::kLengthBytes);
  return {
      ulpdu.first(std::min(ulpdu.size(), layout->ulpdu_bytes)), layout->ulpdu_bytes, captured(n), Crc::kUnknown, 0, 0};
}

void HalfStream::lose(std::uint64_t bytes) {
  drop_taken();
  if (bytes == 0 || state_ == State::kStopped || state_ == State::kNotMpa) return;
  const std::size_t have = rest().size();
  const auto size = front_bytes();
  if (state_ == State::kFpdus && size) {
    if (*size - have >= bytes) {  // have < size: next() has taken every complete FPDU
      holes_.push_back({buffer_.size(), buffer_.size() + static_cast<std::size_t>(bytes)});
      buffer_.resize(holes_.back().end);
      return;
    }
    pending_ = cut_fpdu(have);
  } else if (have > 0) {
    pending_ = Undecoded{captured(have), "the capture lost what comes next"};
  }
  search();
}

// Where the next FPDU starts is to be proved.
void HalfStream::search() {
  state_ = State::kSearching;
  if (markers_) stop("behind a gap or a wrong CRC in a stream with MPA Markers");
}

void HalfStream::close() {
  drop_taken();
  closed_ = true;
}

void HalfStream::shrink() {
  drop_taken();
  buffer_.shrink_to_fit();
}

void HalfStream::stop(const char* why) {
  state_ = State::kStopped;
  why_stopped_ = why;
}

std::optional<HalfStream::Item> HalfStream::next() {
  drop_taken();
  if (pending_) {
    const Item item = *std::exchange(pending_, std::nullopt);
    return take(rest().size(), item);
  }
  if (rest().empty()) return std::nullopt;
  switch (state_) {
    case State::kStartup:
    case State::kUnknown:
      return next_startup();
    case State::kFpdus:
      return next_fpdu();
    case State::kSearching:
      return next_found();
    case State::kStopped:
      return take_rest(why_stopped_);
    case State::kNotMpa:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<HalfStream::Item> HalfStream::next_startup() {
  constexpr std::size_t kTellsReply = 9;  // "MPA ID Req Frame", "MPA ID Rep Frame"
  const bool reply = rest().size() > kTellsReply && rest()[kTellsReply] == std::byte{'p'};
  const mpa::StartupParse parsed = reply ? mpa::parse_reply(rest()) : mpa::parse_request(rest());
  if (const auto* p = std::get_if<mpa::StartupFrame::Parsed>(&parsed)) {
    state_ = State::kFpdus;
    return take(p->bytes, Startup{p->frame});
  }
  if (std::holds_alternative<mpa::NeedMore>(parsed)) {
    if (!closed_) return std::nullopt;
    return take_rest("the stream ends within a startup frame");
  }
  // A frame with the right Key is ours, whatever else is wrong with it. It is told by what lacks once only the Key
  // came.
  const auto key = rest().first(std::min(rest().size(), mpa::kKeyBytes));
  const bool ours = std::holds_alternative<mpa::NeedMore>(reply ? mpa::parse_reply(key) : mpa::parse_request(key));
  if (ours) {
    stop("behind a malformed startup frame");
    return take_rest(std::get<Error>(parsed).why);
  }
  if (state_ == State::kStartup) {
    state_ = State::kNotMpa;
    return take(rest().size(), NotMpa{captured(rest().size())});
  }
  state_ = State::kSearching;
  return next_found();
}

std::optional<HalfStream::Item> HalfStream::next_fpdu() {
  const auto whole = front_bytes();
  if (!whole || rest().size() < *whole) {
    if (!closed_) return std::nullopt;
    return take_rest("the stream ends within an FPDU");
  }
  const std::size_t size = *whole;
  if (unbroken(size) < size) {
    const Fpdu cut = cut_fpdu(size);
    position_ += size;
    return take(size, cut);
  }
  const ConstBytes bytes = rest().first(size);
  const ConstBytes octets = unmarked(bytes);
  const std::size_t ulpdu_bytes = mpa::FpduDecoder::peek(octets)->ulpdu_bytes;
  position_ += size;
  Fpdu fpdu{octets.subspan(mpa::kLengthBytes, ulpdu_bytes), ulpdu_bytes, size, Crc::kOff, 0, 0};
  if (crc_.value_or(true)) {
    fpdu.computed = mpa::crc32c(bytes.first(size - mpa::kCrcBytes));
    fpdu.received = mpa::load_crc(bytes.last<mpa::kCrcBytes>());
    const bool good = fpdu.computed == fpdu.received;
    if (!crc_) crc_ = good;
    if (*crc_) fpdu.crc = good ? Crc::kGood : Crc::kBad;
  }
  if (fpdu.crc == Crc::kBad) search();  // its length may be what is wrong
  return take(size, fpdu);
}

std::optional<HalfStream::Item> HalfStream::next_found() {
  const FpduSearch s = find_fpdu(rest(), crc_, closed_);
  if (s.skip > 0) return take(s.skip, Undecoded{s.skip, "no FPDU found here"});
  if (s.found) {
    state_ = State::kFpdus;
    crc_ = s.crc;
    return Aligned{*s.crc};
  }
  if (!closed_) return std::nullopt;
  return take_rest("no FPDU found here");
}

}  // namespace iwarp::trace
