#include "iwarp/rdmap/receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "iwarp/rdmap/copy_forwards.h"
#include "iwarp/rdmap/pieces.h"

namespace iwarp::rdmap {
using ddp::Access;
using ddp::TaggedHeader;
using ddp::UntaggedHeader;
namespace {

constexpr std::uint64_t kAnyRoom = ~std::uint64_t{0};  // of a buffer that is not known yet

}  // namespace

Result<void> Receiver::begin(ConstBytes ulpdu_head, std::size_t ulpdu_bytes) {
  head_kept_ = std::min(ulpdu_head.size(), kHeadKept);
  if (head_kept_ > 0) std::memcpy(head_.data(), ulpdu_head.data(), head_kept_);
  ulpdu_bytes_ = ulpdu_bytes;
  placed_ = 0;
  payload_bytes_ = 0;
  lacks_receive_ = false;

  if (auto ok = ddp::parse_segment_header(ulpdu_head, header_); !ok) return ok;
  header_bytes_ = ddp::header_size(header_);
  // req: RFC5040-4.2-2 RFC5041-4.4-2
  payload_bytes_ = ulpdu_bytes - header_bytes_;
  // req: RFC5040-7.2-1 RFC5040-7.2-6 RFC5041-6.2.2-3
  const auto opcode = check_control(header_, known_);  // req: RFC7306-8.2-1 RFC7306-8.2-2
  if (!opcode) return opcode.error();
  opcode_ = *opcode;
  const bool may_be_rtr = std::exchange(rtr_send_due_, false);  // whatever it is, nothing later can be
  is_rtr_ = false;
  if (const auto* untagged = std::get_if<UntaggedHeader>(&header_)) {
    is_rtr_ = may_be_rtr && opcode_ == Opcode::kSend && untagged->last && payload_bytes_ == 0;
    return begin_untagged(*untagged);
  }
  const auto& tagged = std::get<TaggedHeader>(header_);
  return opcode_ == Opcode::kWrite ? begin_write(tagged) : begin_read_response(tagged);
}

Result<void> Receiver::begin_write(const TaggedHeader& h) const {
  if (payload_bytes_ == 0) return {};  // req: RFC5041-5.2-16 RFC5040-5.1-10
  // req: RFC5040-5.1-4 RFC5040-5.1-5
  const auto p = stags_.pin(h.stag, who_, Access::kRemoteWrite, h.to, payload_bytes_);
  if (!p.ok) return ddp::tagged_error(p.fault);  // req: RFC5041-7.1-16
  return {};
}

Result<void> Receiver::begin_read_response(const TaggedHeader& h) const {
  if (rtr_response_due_) {
    if (payload_bytes_ != 0 || !h.last)
      return make_error(Errc::kTaggedBounds, "data in the Response to a zero-length RDMA Read");
    return {};
  }
  const auto read = sends_.oldest_read();
  if (!read) return make_error(Errc::kUnexpectedReadResponse);  // req: RFC5040-5.2.2-5
  if (payload_bytes_ > read->missing())
    return make_error(Errc::kTaggedBounds, "Read Response is longer than requested");
  if (payload_bytes_ != 0) {  // so there is a sink
    const Sge& sink = *read->sink;
    const auto to = stags_.to_of(sink.lkey, who_.pd, sink.at(0));
    // req: RFC5041-4.2-9
    if (!to || h.stag != sink.lkey)
      return make_error(Errc::kTaggedInvalidStag, "Read Response names another STag than its Request");
    if (h.to != *to + read->received)
      return make_error(Errc::kTaggedBounds, "Read Response is not contiguous");  // req: RFC5040-5.2.2-8
  }
  if (h.last && payload_bytes_ != read->missing())
    return make_error(Errc::kTaggedBounds, "Read Response is shorter than requested");
  return {};
}

Result<void> Receiver::begin_untagged(const UntaggedHeader& h) {
  // req: RFC5041-5.1.2-1 RFC5041-5.2-7
  const ddp::UntaggedReceiver* queue = &send_rx_;
  std::optional<std::uint64_t> room;
  if (opcode_ == Opcode::kReadRequest) {
    queue = &read_request_rx_;
    if (!reads_.full()) room = ReadRequest::kSize;  // req: RFC5040-5.2.2-3 RFC5040-6.1-10
  } else if (opcode_ == Opcode::kAtomicRequest) {
    queue = &read_request_rx_;
    if (!reads_.full()) room = AtomicRequest::kSize;  // req: RFC7306-5.2.1-15 RFC7306-5.2.2-7
  } else if (opcode_ == Opcode::kAtomicResponse) {
    queue = &atomic_response_rx_;                                         // req: RFC7306-4.1-9 RFC7306-5-8
    if (sends_.oldest_atomic() != nullptr) room = AtomicResponse::kSize;  // req: RFC7306-5.2.2-8
  } else if (opcode_ == Opcode::kTerminate) {
    queue = &terminate_rx_;
    room = kTerminateRoom;  // req: RFC5040-5.4-5
  } else if (is_rtr_) {
    room = 0;  // no receive of the application. req: RFC6581-9.2-7
  } else {
    const RecvWr* wr = recvs_.current();
    if (wr == nullptr && recvs_.shares()) {
      // Only a message that begins as it must takes what others could use.
      if (const auto begins = queue->check(h, 0, kAnyRoom); !begins) return begins.error();
      wr = recvs_.take();
    }
    // req: RFC5040-5.3-2 RFC5041-1.2-3 RFC7306-6.3-2
    if (wr != nullptr) room = is_immediate(opcode_) ? kImmediateBytes : wr->sges.total();
  }
  const auto offset = queue->check(h, payload_bytes_, room);
  if (!offset) {
    lacks_receive_ = queue == &send_rx_ && offset.error().code == Errc::kUntaggedNoBuffer;
    return offset.error();
  }
  if (queue == &send_rx_) {
    // Octets of a Send and of Immediate Data go to different places: a message of both would have holes.
    if (*offset != 0 && is_immediate(opcode_) != immediate_begun_)
      return make_error(Errc::kRdmapOpcode, "RDMAP opcode changes within a message");
    immediate_begun_ = is_immediate(opcode_);
  }
  return {};
}

Result<void> Receiver::targets(std::vector<ddp::Pin>& out) const {
  if (payload_remaining() == 0) return {};
  // req: RFC5041-4.1-3
  if (const auto* untagged = std::get_if<UntaggedHeader>(&header_)) {
    const std::size_t first = out.size();
    auto ok = each_piece(*untagged, [&](Stag lkey, std::uint64_t iova, std::size_t n) {
      auto p = stags_.pin_local(lkey, who_.pd, Access::kLocalWrite, iova, n);
      if (p.ok) out.push_back(std::move(p.pin));
      return p.ok;
    });
    if (!ok) out.resize(first);
    return ok;
  }
  ddp::Pin pin;
  if (auto ok = tagged_target(std::get<TaggedHeader>(header_), pin); !ok) return ok;
  out.push_back(std::move(pin));
  return {};
}

Result<void> Receiver::tagged_target(const TaggedHeader& h, ddp::Pin& out) const {
  ddp::StagTable::PinResult p;
  // req: RFC5041-4.1-2
  if (opcode_ == Opcode::kWrite) {
    p = stags_.pin(h.stag, who_, Access::kRemoteWrite, h.to + placed_, payload_remaining());
  } else {
    const auto read = sends_.oldest_read();
    if (!read) return make_error(Errc::kUnexpectedReadResponse);
    const Sge& sink = *read->sink;
    p = stags_.pin_local(sink.lkey, who_.pd, Access::kLocalWrite, sink.at(read->received + placed_),
                         payload_remaining());
  }
  if (!p.ok) return ddp::tagged_error(p.fault);
  out = std::move(p.pin);
  return {};
}

template <class Use>
Result<void> Receiver::each_piece(const UntaggedHeader& h, const Use& use) const {
  const RecvWr* wr = recvs_.current();
  if (wr == nullptr) return make_error(Errc::kUntaggedNoBuffer);
  // req: RFC5041-7.2-2
  if (!rdmap::each_piece(wr->sges, h.mo + placed_, payload_remaining(), use))
    return make_error(Errc::kDdpCatastrophic, "buffer of a posted receive is not registered for local write");
  return {};
}

// req: RFC5041-5.2-5 RFC5041-5.4-4 RFC5041-5.4-5
Result<void> Receiver::place(ConstBytes payload) {
  if (payload.empty()) return {};
  if (const auto* tagged = std::get_if<TaggedHeader>(&header_)) {
    ddp::Pin pin;
    if (auto ok = tagged_target(*tagged, pin); !ok) return ok;
    copy_forwards(pin.bytes(), payload);
    placed_ += payload.size();
    return {};
  }
  const auto& h = std::get<UntaggedHeader>(header_);
  if (direct()) return place_send(h, payload);
  std::memcpy(own_buffer() + h.mo + placed_, payload.data(), payload.size());  // begin_untagged() proved that it fits
  placed_ += payload.size();
  return {};
}

std::byte* Receiver::own_buffer() {
  if (is_immediate(opcode_)) return immediate_.data();
  return opcode_ == Opcode::kAtomicResponse ? atomic_response_.data() : internal_.data();
}

Result<void> Receiver::place_send(const UntaggedHeader& h, ConstBytes payload) {
  std::size_t copied = 0;
  auto ok = each_piece(h, [&](Stag lkey, std::uint64_t iova, std::size_t n) {
    n = std::min(n, payload.size() - copied);
    if (n == 0) return true;
    const auto room = stags_.local(held_, lkey, who_.pd, Access::kLocalWrite, iova, n);
    if (!room) return false;
    std::memcpy(room->data(), payload.data() + copied, n);
    copied += n;
    return true;
  });
  placed_ += copied;
  return ok;
}

Result<void> Receiver::end() {
  if (const auto* h = std::get_if<TaggedHeader>(&header_)) {
    if (opcode_ == Opcode::kReadResponse) {
      end_read_response(*h);
    } else {
      end_write(*h);
    }
    return {};
  }
  const auto& h = std::get<UntaggedHeader>(header_);
  switch (opcode_) {
    case Opcode::kReadRequest:
      // req: RFC5040-3.2-9 RFC5040-5.2.1-3 RFC5040-5.2.1-4
      return end_read_request(h);
    // req: RFC5040-5.4-4 RFC5040-5.4-6
    case Opcode::kTerminate:
      if (const auto length = terminate_rx_.commit(h, payload_bytes_)) {
        // req: RFC5040-5.4-7 RFC5040-4.2-4
        peer_terminate_ = TerminateMessage::parse(ConstBytes{internal_}.first(*length));
        if (!peer_terminate_) peer_terminate_.emplace();  // req: RFC5040-5.4-8
      }
      return {};
    case Opcode::kImmediate:
    case Opcode::kImmediateSolicited:
      return end_immediate(h);
    case Opcode::kAtomicRequest:
      return end_atomic_request(h);
    case Opcode::kAtomicResponse:
      return end_atomic_response(h);
    default:
      return end_send(h);
  }
}

void Receiver::end_write(const TaggedHeader& h) {
  counters_.write_bytes += payload_bytes_;
  // req: RFC5040-3.2-6 RFC5042-2.2.6-1
  if (h.last) ++counters_.writes;  // placed, never delivered. req: RFC5040-5.1-2
  if (std::exchange(write_is_whole_, h.last)) written_ = 0;
  written_ += payload_bytes_;
}

Result<void> Receiver::end_send(const UntaggedHeader& h) {
  counters_.send_bytes += payload_bytes_;
  const auto length = send_rx_.commit(h, payload_bytes_);
  if (is_rtr_) return {};  // nor one of its completions. req: RFC6581-9.2-7
  // Delivered with its last segment, all being placed. req: RFC5041-4.1-8 RFC5041-5.4-2 RFC5041-5.4-3
  // req: RFC5040-5.5-11 RFC5040-5.5-23
  if (!length) return {};
  ++counters_.sends;
  written_ = 0;
  Completion c;
  // Of any length, 0 too. req: RFC5040-5.3-4 RFC5040-3.2-2 RFC5040-3.1-7 RFC5040-5.3-11 RFC5040-5.3-12
  c.byte_len = *length;
  // req: RFC5040-2.4-2
  c.solicited = solicited(opcode_);
  if (is_send_with_immediate(opcode_)) {
    c.has_immediate = c.sent_immediate = true;
    c.immediate = h.rsvd_ulp_tail;
  }
  // req: RFC5040-4.1-15 RFC5040-4.1-13
  if (invalidates(opcode_)) {
    // req: RFC5040-3.1-9 RFC5041-4.3-4 RFC5041-4.3-6 RFC5041-5.4-8
    const Stag stag{h.rsvd_ulp_tail};
    if (auto ok = stags_.invalidate_remote(stag, who_); !ok) {
      c.status = ok.error().code;
      recvs_.complete_current(c);
      return ok;
    }
    c.invalidated = true;
    c.invalidated_stag = stag;
  }
  // One message, one request, however short. req: RFC5041-5.2-6 RFC5040-5.3-3 RFC5041-1.2-1; in order: RFC5040-5.5-25
  recvs_.complete_current(c);
  return {};
}

Result<void> Receiver::end_read_request(const UntaggedHeader& h) {
  const auto length = read_request_rx_.commit(h, payload_bytes_);  // req: RFC5040-5.2.1-2
  if (!length) return {};
  const auto request = ReadRequest::parse(ConstBytes{internal_}.first(*length));
  // req: RFC5040-4.8-24 RFC5040-5.2.1-5
  if (!request) return make_error(Errc::kMalformedReadRequest);
  ++counters_.read_requests;
  InboundRead read;
  read.request = *request;
  // Read when its turn comes, so after all that came before it was placed. req: RFC5040-5.5-16 RFC5040-5.5-17
  // req: RFC5040-5.5-24 RFC5040-B-3 RFC5040-B-6 RFC7306-7-3
  push_inbound(h, read);
  return {};
}

void Receiver::push_inbound(const UntaggedHeader& h, InboundRead& read) {
  UntaggedHeader whole = h;
  whole.mo = 0;
  whole.write_to(std::span{read.ulpdu}.first<UntaggedHeader::kSize>());
  std::memcpy(read.ulpdu.data() + UntaggedHeader::kSize, internal_.data(), ReadRequest::kSize);
  reads_.push(read);
}

void Receiver::end_read_response(const TaggedHeader& h) {
  if (rtr_response_due_) {
    rtr_response_due_ = false;
    return;
  }
  counters_.read_response_bytes += payload_bytes_;
  sends_.read_received(static_cast<std::uint32_t>(payload_bytes_));
  // All of it is placed: that completes the oldest Read, nothing else does, and its sink stays valid
  // unless this end wished otherwise.
  // req: RFC5040-5.2.2-4 RFC5040-5.2-1 RFC5040-5.5-14 RFC5040-5.5-15 RFC5040-5.5-26 RFC5040-5.5-29 RFC5040-1.2-4
  if (!h.last) return;
  const SendWr* const read = sends_.read_done();
  if (read != nullptr && read->op == SendOp::kReadInvalidate)
    (void)stags_.invalidate_local(read->sges.view()[0].lkey, who_.pd);
}

TerminateMessage Receiver::terminate_for(const Error& error) const {
  // req: RFC5040-3.1-11 RFC5040-7.1-4 RFC5041-7.1-17
  return make_terminate(error, ConstBytes{head_}.first(head_kept_), ulpdu_bytes_, opcode_ == Opcode::kReadRequest);
}

}  // namespace iwarp::rdmap
