#include "iwarp/rdmap/send_queue.h"

namespace iwarp::rdmap {

const SendWr* SendQueue::next(std::size_t ord) const {
  const std::size_t i = index(started_);
  if (i >= entries_.size()) return nullptr;
  const SendWr& wr = entries_.at(i).wr;
  // req: RFC5040-6.1-9 RFC6581-4.1-2 RFC5040-8.1.1-13 RFC5042-6.4.3.3-3
  if (wr.op == SendOp::kRead && outstanding_reads_ >= ord) return nullptr;
  if (wr.fence && outstanding_reads_ > 0) return nullptr;  // req: RFC5040-5.5-19 RFC5040-B-10
  return &wr;
}

SendQueue::Ticket SendQueue::start() {
  Entry& e = entries_.at(index(started_));
  e.state = State::kTransmitting;
  // A Read counts from the moment its Request may be on the wire: its Response can arrive before sent() is called.
  if (e.wr.op == SendOp::kRead) ++outstanding_reads_;
  const Ticket ticket = started_++;
  pass_over_done();
  return ticket;
}

void SendQueue::pass_over_done() {
  while (index(started_) < entries_.size() && entries_.at(index(started_)).state == State::kDone) ++started_;
}

bool SendQueue::refuse_queued_reads(Errc status) {
  bool any = false;
  for (std::size_t i = index(started_); i < entries_.size(); ++i) {
    Entry& e = entries_.at(i);
    if (e.wr.op != SendOp::kRead) continue;
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
  e.state = e.wr.op == SendOp::kRead ? State::kAwaitingResponse : State::kDone;
}

void SendQueue::fail(Ticket ticket, Errc status) {
  Entry& e = entries_.at(index(ticket));
  if (e.wr.op == SendOp::kRead && e.state != State::kDone) --outstanding_reads_;
  e.state = State::kDone;
  e.status = status;
}

std::optional<std::size_t> SendQueue::oldest_read_index() const {
  if (outstanding_reads_ == 0) return std::nullopt;
  for (std::size_t i = 0; i < index(started_); ++i) {
    const Entry& e = entries_.at(i);
    if (e.wr.op == SendOp::kRead && (e.state == State::kTransmitting || e.state == State::kAwaitingResponse)) return i;
  }
  return std::nullopt;
}

std::optional<SendQueue::OutstandingRead> SendQueue::oldest_read() const {
  const auto i = oldest_read_index();
  if (!i) return std::nullopt;
  const Entry& e = entries_.at(*i);
  return OutstandingRead{&e.wr, e.received};
}

void SendQueue::read_received(std::uint32_t bytes) {
  if (const auto i = oldest_read_index()) entries_.at(*i).received += bytes;
}

void SendQueue::read_done() {
  if (const auto i = oldest_read_index()) {
    entries_.at(*i).state = State::kDone;
    --outstanding_reads_;
  }
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
  entries_.drop();
  ++popped_;
}

std::optional<Completion> SendQueue::poll() {
  // req: RFC5040-5.5-22
  while (!entries_.empty() && entries_.front().state == State::kDone) {
    const Entry& e = entries_.front();
    if (e.status == Errc::kOk && !e.wr.signaled) {
      drop_front();
      continue;
    }
    Completion c;
    c.wr_id = e.wr.wr_id;
    c.status = e.status;
    switch (e.wr.op) {
      case SendOp::kSend:
      case SendOp::kSendInvalidate:
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
    }
    if (e.wr.op == SendOp::kRead) c.byte_len = static_cast<std::uint32_t>(e.wr.sges.total());
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
