// Transmit side of the connection core: batches of FPDUs, headers and trailers in blocks of the gather list, payload
// where it lies.
#include <cassert>
#include <cstring>

#include "iwarp/mpa/markers.h"
#include "iwarp/stream/connection.h"

namespace iwarp::stream {
namespace {

// One batch, octets and pieces. Long, because TCP's own cost falls with the length of a call (acknowledgements that
// come meanwhile are taken in bulk; bench/ceiling compares plain calls of 256 KiB, 512 KiB and 1 MiB). But no longer
// than what a second-level cache of 2 MiB holds between the CRC, or the copy, and the call: with CRC a MiB is no better
// than half of it there, nor worse. Pieces stay below IOV_MAX. It bounds as well what a peer that asks for Read
// Responses and takes none makes us keep as copies.
constexpr std::size_t kBatchBytes = 1024 * 1024;
constexpr std::size_t kBatchPieces = 256;

}  // namespace

// What MPA startup has to send.
ConstBytes Connection::startup_octets() const {
  if (const auto* initiator = std::get_if<mpa::Initiator>(&startup_)) return initiator->tx_bytes();
  if (const auto* responder = std::get_if<mpa::Responder>(&startup_)) return responder->tx_bytes();
  return {};
}

bool Connection::tx_pending() const {
  return !startup_octets().empty() || !gather_.empty() || endpoint_.ready();  // req: RFC6581-3-3
}

std::span<const ConstBytes> Connection::tx_buffers(TimePoint now) {
  endpoint_.at(now);
  if (const ConstBytes startup = startup_octets(); !startup.empty()) {
    startup_span_ = {startup};  // req: RFC6581-4.3-1
    return startup_span_;
  }
  batch_ = {};
  attempt([&] { next_batch(); });
  return batch_;
}

void Connection::next_batch() {
  if (!tx_pending()) return;
  if (!gather_.resume()) {
    if (gather_.broken()) {
      endpoint_.end(Input::kAbort, make_error(Errc::kLocalProtection, "memory was revoked under a partly sent FPDU"));
      follow();
      return;
    }
    broken(make_error(gather_.lost_read_source() ? Errc::kReadInvalidStag : Errc::kLocalProtection));
    follow();
    (void)gather_.resume();
  }
  encode_batch();
  batch_ = gather_.spans();
  if (!batch_.empty()) return;
  check_drained();  // the last request was a Local Invalidate
  if (!endpoint_.ready()) return;
  encode_batch();  // a wake before the end
  batch_ = gather_.spans();
}

void Connection::encode_batch() {
  // req: RFC5041-3-2 RFC5041-3-3 RFC5044-5.1-1
  const std::size_t most = mulpdu();
  endpoint::Endpoint::Segment segment;
  while (gather_.bytes() < kBatchBytes && gather_.staged_bytes() < kBatchBytes && gather_.pieces() < kBatchPieces &&
         endpoint_.ready()) {
    segment_pins_.clear();
    if (endpoint_.next_segment(most, segment, segment_pins_)) {  // req: RFC5044-3-3 RFC5044-4.5-4
      // req: RFC5040-6.1-2
      encode(segment);
    } else if (!follow()) {
      break;
    }
  }
}

void Connection::encode(const endpoint::Endpoint::Segment& segment) {
  if (negotiated_.markers_sent) return encode_marked(segment);
  const std::size_t ulpdu_bytes = segment.header_bytes + segment.payload_bytes;
  assert(segment.copied_bytes == 0 || segment.copied_bytes == segment.payload_bytes);
  // What is cheaper to copy than to gather of requests is so of Read Responses too.
  const bool copy = segment.payload_bytes <= rdmap::Transmitter::kCopied || (negotiated_.crc && segment.may_change);
  mpa::Crc32c crc;
  // req: RFC5041-3-8
  mpa::Crc32c* const crc_or_null = negotiated_.crc ? &crc : nullptr;

  const std::size_t head_bytes = mpa::kLengthBytes + segment.header_bytes;
  const std::size_t trailer_bytes = mpa::fpdu_bytes(ulpdu_bytes) - mpa::kLengthBytes - ulpdu_bytes;
  const MutBytes own = gather_.allocate(copy ? head_bytes + segment.payload_bytes + trailer_bytes : head_bytes);
  mpa::write_length(own.first<mpa::kLengthBytes>(), ulpdu_bytes);  // req: RFC5044-4.1-3 RFC5044-7.1-6 RFC5044-7.1.2-24
  // req: RFC5040-3.1-1 RFC5041-1.3-1
  std::memcpy(own.data() + mpa::kLengthBytes, segment.octets.data(), segment.head_and_copy().size());

  if (copy) {
    MutBytes at = own.subspan(head_bytes + segment.copied_bytes);
    for (const ddp::Pin& pin : segment_pins_) {
      std::memcpy(at.data(), pin.bytes().data(), pin.bytes().size());
      at = at.subspan(pin.bytes().size());
    }
    if (crc_or_null != nullptr) crc.update(own.first(head_bytes + segment.payload_bytes));
    const mpa::FpduTrailer trailer = mpa::make_trailer(crc_or_null, ulpdu_bytes);
    std::memcpy(at.data(), trailer.bytes.data(), trailer.size);
    gather_.append(own);
  } else {
    if (crc_or_null != nullptr) crc.update(own);
    gather_.append(own);
    for (ddp::Pin& pin : segment_pins_) {
      if (crc_or_null != nullptr) crc.update(pin.bytes());
      gather_.append(std::move(pin));
    }
    const mpa::FpduTrailer trailer = mpa::make_trailer(crc_or_null, ulpdu_bytes);
    const MutBytes tail = gather_.allocate(trailer.size);
    std::memcpy(tail.data(), trailer.bytes.data(), trailer.size);
    gather_.append(tail);
  }
  segment_pins_.clear();
  gather_.end_fpdu(segment.done, segment.read_response && !copy);
}

// With Markers all octets are copied: gathered, they would be pieces of 508 octets or less, dearer than a copy.
void Connection::encode_marked(const endpoint::Endpoint::Segment& segment) {
  const std::size_t ulpdu_bytes = segment.header_bytes + segment.payload_bytes;
  const std::size_t fpdu_bytes = mpa::fpdu_bytes(ulpdu_bytes);
  const std::uint64_t position = gather_.position();
  const MutBytes own = gather_.allocate(fpdu_bytes + mpa::marker_bytes(position, fpdu_bytes));
  mpa::MarkedFpduWriter fpdu(own, position);  // req: RFC5044-4.3-2, RFC5044-7.1.2-23, RFC5044-7.1.1-12
  std::array<std::byte, mpa::kLengthBytes> length{};
  mpa::write_length(length, ulpdu_bytes);
  fpdu.append(length);
  fpdu.append(segment.head_and_copy());
  for (const ddp::Pin& pin : segment_pins_) fpdu.append(pin.bytes());
  fpdu.finish(negotiated_.crc);
  segment_pins_.clear();
  gather_.append(own);
  gather_.end_fpdu(segment.done, false);
}

void Connection::tx_commit(std::size_t n, TimePoint now) {
  endpoint_.at(now);
  if (!startup_octets().empty()) {
    attempt([&] {
      if (auto* initiator = std::get_if<mpa::Initiator>(&startup_)) initiator->tx_commit(n);
      if (auto* responder = std::get_if<mpa::Responder>(&startup_)) responder->tx_commit(n);
      drain_startup();
    });
    return;
  }
  if (gather_.empty()) return;
  if (n == 0) {
    gather_.suspend();
    return;
  }
  attempt([&] { batch_taken(n, now); });
  assert(is_consistent());
}

void Connection::batch_taken(std::size_t n, TimePoint now) {
  done_.clear();
  gather_.commit(n, done_);
  if (options_.early_wake) wake_.begin(now);  // a Responder has heard its peer before it sends
  for (const auto& done : done_) endpoint_.sent(done);
  endpoint_.progress();
  follow();
  check_drained();
}

}  // namespace iwarp::stream
