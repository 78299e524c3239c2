// Receive queue: posted RecvWrs in order; the oldest unfilled one takes the next Send. Completed entries wait here
// until they are polled, so a completion needs no storage of its own. Not thread-safe.
#pragma once

#include <optional>

#include "iwarp/base/chunked_ring.h"
#include "iwarp/rdmap/work_request.h"

namespace iwarp::rdmap {

class ReceiveQueue {
 public:
  explicit ReceiveQueue(std::size_t depth) : entries_(depth) {}

  // False when full(), or when there is no memory for another request.
  [[nodiscard]] bool post(const RecvWr& wr) {
    Entry* const e = entries_.add();
    if (e != nullptr) e->wr = wr;
    return e != nullptr;
  }
  // `depth` requests are posted and not yet polled as completions.
  [[nodiscard]] bool full() const { return entries_.full(); }
  // The request that the next message goes to; null when none is posted. Valid until complete_current() or flush().
  [[nodiscard]] const RecvWr* current() const { return done_ < entries_.size() ? &entries_.at(done_).wr : nullptr; }
  // Completes current(). `wr_id` and `op` are not `c`'s, but those of the request. Precondition: current() != nullptr.
  void complete_current(const Completion& c) {
    // req: RFC5040-5.3-6 RFC5040-5.5-12 RFC5040-B-1 RFC5042-2.3.5-1
    Entry& e = entries_.at(done_++);
    e.completion = c;
    e.completion.wr_id = e.wr.wr_id;
    e.completion.op = WcOp::kRecv;
  }
  // Completes all requests not yet completed with kFlushed.
  void flush() {
    while (current() != nullptr) complete_current({.status = Errc::kFlushed});
  }
  // Oldest completion not yet polled.
  [[nodiscard]] std::optional<Completion> poll() {
    if (done_ == 0) return std::nullopt;
    --done_;
    const std::optional<Completion> oldest = entries_.front().completion;
    entries_.drop();
    return oldest;
  }
  [[nodiscard]] std::size_t posted() const { return entries_.size() - done_; }

 private:
  struct Entry {
    Completion completion;
    RecvWr wr;
  };
  ChunkedRing<Entry> entries_;
  std::size_t done_ = 0;  // how many at the front are completed
};

}  // namespace iwarp::rdmap
