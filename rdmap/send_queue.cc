#include "iwarp/rdmap/send_queue.h"

#include <cassert>
#include <cstring>
#include <new>

namespace iwarp::rdmap {

namespace {

// The part of a Read that its `n`-th Request asks for: pieces without octets take none.
SendQueue::ReadPart nth_part(const SendWr& wr, std::size_t n) {
  SendQueue::ReadPart part;
  for (const Sge& sge : wr.sges.view()) {
    if (sge.length == 0) continue;
    part.sink = &sge;
    if (n-- == 0) return part;
    part.offset += sge.length;
  }
  return {};
}

// How many Requests await a Response. A Read that reads nothing is one, too.
std::size_t requests_of(const SendWr& wr) {
  if (!is_read(wr.op)) return 1;
  std::size_t pieces = 0;
  for (const Sge& sge : wr.sges.view()) pieces += sge.length != 0 ? 1 : 0;
  return pieces == 0 ? 1 : pieces;
}

}  // namespace

bool SendQueue::post_inline(const SendWr& wr) {
  assert(wr.sges.total() <= max_inline_);
  SendWr kept = wr;
  kept.sges = {};
  if (wr.sges.total() == 0) return enter(kept);
  if (spare_.empty() && !full()) {
    try {
      spare_.reserve(copies_.size() + 1);
      copies_.push_back(std::make_unique_for_overwrite<std::byte[]>(max_inline_));
      spare_.push_back(copies_.back().get());
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  if (full()) return false;
  std::byte* const copy = spare_.back();
  std::uint32_t length = 0;
  for (const Sge& sge : wr.sges.view()) {
    if (sge.length != 0) std::memcpy(copy + length, sge.address, sge.length);
    length += sge.length;
  }
  kept.sges = Sge{copy, length, Stag{}};
  if (!enter(kept)) return false;
  spare_.pop_back();
  return true;
}

bool SendQueue::post_flushed(const SendWr& wr) {
  SendWr kept = wr;
  kept.inline_data = false;  // its memory would be taken for a copy of this queue
  return enter_done(kept, false, Errc::kFlushed);
}

bool SendQueue::post_drain(std::uint64_t wr_id) {
  return enter_done({.wr_id = wr_id}, true, Errc::kOk);
}

bool SendQueue::enter_done(const SendWr& wr, bool drain, Errc status) {
  if (!enter(wr)) return false;
  Entry& e = entries_.at(entries_.size() - 1);
  e.state = State::kDone;
  e.drain = drain;
  e.status = status;
  pass_over_done();
  return true;
}

const SendWr* SendQueue::next(std::size_t ord) const {
  const std::size_t i = index(started_);
  if (i >= entries_.size()) return nullptr;
  const Entry& e = entries_.at(i);
  // req: RFC5040-6.1-9 RFC6581-4.1-2 RFC5040-8.1.1-13 RFC5042-6.4.3.3-3
  if (awaits_response(e.wr.op) && outstanding_reads_ >= ord) return nullptr;
  // A fence waits for earlier Reads, not for Requests of its own. req: RFC5040-5.5-19 RFC5040-B-10
  if (e.wr.fence && e.begun == 0 && outstanding_reads_ > 0) return nullptr;
  if (e.wr.op == SendOp::kLocalInvalidate && in_use(e.wr.local_stag, i)) return nullptr;
  return &e.wr;  // nothing else waits for a Response. req: RFC7306-7-2 RFC7306-7-7 RFC7306-7-8 RFC7306-7-9 RFC7306-7-10
}

bool SendQueue::in_use(Stag lkey, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    const Entry& e = entries_.at(i);
    if (e.state == State::kDone) continue;
    for (const Sge& sge : e.wr.sges.view()) {
      if (sge.lkey == lkey) return true;
    }
  }
  return false;
}

SendQueue::Ticket SendQueue::start() {
  Entry& e = entries_.at(index(started_));
  e.state = State::kTransmitting;
  const Ticket ticket = started_;
  // A Read counts from the moment its Request may be on the wire: its Response can arrive before sent() is called.
  if (awaits_response(e.wr.op)) {
    ++outstanding_reads_;
    if (++e.begun < requests_of(e.wr)) return ticket;  // its other Requests come first. req: RFC5040-5.5-20
  }
  ++started_;
  pass_over_done();
  return ticket;
}

const Sge* SendQueue::nth_sink(const SendWr& wr, std::size_t n) {
  return nth_part(wr, n).sink;
}

SendQueue::ReadPart SendQueue::part(Ticket ticket) const {
  const Entry& e = entries_.at(index(ticket));
  return nth_part(e.wr, e.begun - std::size_t{1});
}

void SendQueue::pass_over_done() {
  while (index(started_) < entries_.size() && entries_.at(index(started_)).state == State::kDone) ++started_;
}

bool SendQueue::refuse_queued_reads(Errc status) {
  bool any = false;
  for (std::size_t i = index(started_); i < entries_.size(); ++i) {
    Entry& e = entries_.at(i);
    if (!awaits_response(e.wr.op)) continue;
    e.state = State::kDone;
    e.status = status;
    any = true;
  }
  pass_over_done();
  return any;
}

void SendQueue::sent(Ticket ticket) {
  if (ticket < popped_) return;
  Entry& e = entries_.at(index(ticket));
  if (e.state != State::kTransmitting) return;  // flushed, or answered already
  // req: RFC5040-5.5-21 RFC5040-5.5-10 RFC5041-5.4-1
  e.state = awaits_response(e.wr.op) ? State::kAwaitingResponse : State::kDone;
}

void SendQueue::fail(Ticket ticket, Errc status) {
  Entry& e = entries_.at(index(ticket));
  if (e.state != State::kDone) outstanding_reads_ -= static_cast<std::size_t>(e.begun - e.answered);
  e.state = State::kDone;
  e.status = status;
  pass_over_done();  // it may have had Requests to start
}

std::optional<std::size_t> SendQueue::oldest_outstanding(bool atomic) const {
  if (outstanding_reads_ == 0) return std::nullopt;
  for (std::size_t i = 0; i < entries_.size() && i <= index(started_); ++i) {
    const Entry& e = entries_.at(i);
    if (e.answered < e.begun && is_atomic(e.wr.op) == atomic && e.state != State::kDone) return i;
  }
  return std::nullopt;
}

std::optional<SendQueue::OutstandingRead> SendQueue::oldest_read() const {
  const auto i = oldest_outstanding(false);
  if (!i) return std::nullopt;
  const Entry& e = entries_.at(*i);
  return OutstandingRead{&e.wr, nth_part(e.wr, e.answered).sink, e.received};
}

void SendQueue::read_received(std::uint32_t bytes) {
  if (const auto i = oldest_outstanding(false)) entries_.at(*i).received += bytes;
}

const SendWr* SendQueue::read_done() {
  const auto i = oldest_outstanding(false);
  if (!i) return nullptr;
  Entry& e = entries_.at(*i);
  answered(e);
  return &e.wr;
}

const SendWr* SendQueue::oldest_atomic() const {
  const auto i = oldest_outstanding(true);
  return i ? &entries_.at(*i).wr : nullptr;
}

// req: RFC7306-5.4-1 RFC7306-5.4-8
void SendQueue::atomic_done() {
  if (const auto i = oldest_outstanding(true)) answered(entries_.at(*i));
}

void SendQueue::answered(Entry& e) {
  --outstanding_reads_;
  e.received = 0;
  if (++e.answered == requests_of(e.wr)) e.state = State::kDone;  // req: RFC5040-5.5-26
}

bool SendQueue::fail_oldest(Errc status) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_.at(i).state == State::kDone) continue;
    fail(popped_ + i, status);
    return true;
  }
  return false;
}

void SendQueue::flush() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& e = entries_.at(i);
    if (e.state == State::kDone) continue;
    e.state = State::kDone;
    e.status = Errc::kFlushed;
  }
  outstanding_reads_ = 0;
  started_ = popped_ + entries_.size();
}

void SendQueue::drop_front() {
  const SendWr& wr = entries_.front().wr;
  if (wr.inline_data && !wr.sges.view().empty()) spare_.push_back(wr.sges.view()[0].address);
  entries_.drop();
  ++popped_;
}

std::optional<Completion> SendQueue::poll() {
  // req: RFC5040-5.5-22
  while (!entries_.empty() && entries_.front().state == State::kDone) {
    const Entry& e = entries_.front();
    const bool silent = e.status == Errc::kOk && !e.wr.signaled;
    if (silent && !invalidates_here(e.wr.op)) {
      drop_front();
      continue;
    }
    Completion c;
    c.silent = silent;
    c.wr_id = e.wr.wr_id;
    c.status = e.status;
    switch (e.wr.op) {
      case SendOp::kSend:
      case SendOp::kSendInvalidate:
      case SendOp::kSendImmediate:
      case SendOp::kImmediate:
        c.op = WcOp::kSend;
        break;
      case SendOp::kWrite:
      case SendOp::kWriteImmediate:
        c.op = WcOp::kWrite;
        break;
      case SendOp::kRead:
        c.op = WcOp::kRead;
        break;
      case SendOp::kReadInvalidate:
        c.op = WcOp::kRead;
        c.invalidated_stag = e.wr.sges.view()[0].lkey;
        break;
      case SendOp::kLocalInvalidate:
        c.op = WcOp::kLocalInvalidate;
        c.invalidated_stag = e.wr.local_stag;
        break;
      case SendOp::kFetchAdd:
        c.op = WcOp::kFetchAdd;
        break;
      case SendOp::kCmpSwap:
        c.op = WcOp::kCmpSwap;
        break;
    }
    if (e.drain) c.op = WcOp::kDrain;
    c.invalidated = invalidates_here(e.wr.op) && e.status == Errc::kOk;
    if (awaits_response(e.wr.op)) c.byte_len = static_cast<std::uint32_t>(e.wr.sges.total());
    drop_front();
    return c;
  }
  return std::nullopt;
}

bool SendQueue::all_done() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_.at(i).state != State::kDone) return false;
  }
  return true;
}

}  // namespace iwarp::rdmap
