// Receive queue: posted RecvWrs in order; the oldest unfilled one takes the next Send. Completed entries wait here
// until they are polled, so a completion needs no storage of its own. Not thread-safe.
//
// Receives may also come from a source that other queues share (SharedReceives): then nothing is posted here, and each
// message takes a Receive from there when it begins.
#pragma once

#include <new>
#include <optional>
#include <utility>

#include "iwarp/base/chunked_ring.h"
#include "iwarp/rdmap/receive_source.h"
#include "iwarp/rdmap/work_request.h"

namespace iwarp::rdmap {

class ReceiveQueue {
 public:
  explicit ReceiveQueue(std::size_t depth) : entries_(depth) {}
  // One that takes from `source`, which must outlive it. It holds what it has taken until that is polled: memory for
  // as many as there ever are at a time.
  explicit ReceiveQueue(ReceiveSource& source) : entries_(ChunkedRing<Entry>::kChunk), source_(&source) {}

  // False when full(), or when there is no memory for another request. Precondition: !shares().
  [[nodiscard]] bool post(const RecvWr& wr) {
    Entry* const e = entries_.add();
    if (e != nullptr) e->wr = wr;
    return e != nullptr;
  }
  // `depth` requests are posted and not yet polled as completions.
  [[nodiscard]] bool full() const { return entries_.full(); }
  // Whether it takes from a source.
  [[nodiscard]] bool shares() const { return source_ != nullptr; }
  // Makes the oldest Receive of the source current(). Null: there is none. Throws std::bad_alloc, before anything is
  // taken. Precondition: shares(), and current() is null.
  [[nodiscard]] const RecvWr* take() {
    if (entries_.full()) grow();
    Entry* const e = entries_.add();
    if (e == nullptr) throw std::bad_alloc();
    if (source_->take(e->wr)) return &e->wr;
    entries_.undo_add();
    return nullptr;
  }
  // The request that the next message goes to; null when none is posted, or taken. Valid until complete_current() or
  // flush().
  [[nodiscard]] const RecvWr* current() const { return done_ < entries_.size() ? &entries_.at(done_).wr : nullptr; }
  // The one that the `n`-th message behind that goes to, as far as it is known; null: it is not. Valid likewise.
  [[nodiscard]] const RecvWr* behind_current(std::size_t n) const {
    return n < posted() ? &entries_.at(done_ + n).wr : nullptr;
  }
  // Completes current(). `wr_id` and `op` are not `c`'s, but those of the request. Precondition: current() != nullptr.
  void complete_current(const Completion& c) {
    // req: RFC5040-5.3-6 RFC5040-5.5-12 RFC5040-B-1 RFC5042-2.3.5-1
    Entry& e = entries_.at(done_++);
    e.completion = c;
    e.completion.wr_id = e.wr.wr_id;
    e.completion.op = WcOp::kRecv;
  }
  // Completes all requests not yet completed with kFlushed; those of the source that were not taken are not of here.
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

  void grow() {
    ChunkedRing<Entry> larger(2 * entries_.capacity());
    if (!larger.reserve(entries_.size() + 1)) throw std::bad_alloc();
    for (; !entries_.empty(); entries_.drop()) *larger.add() = entries_.front();
    entries_ = std::move(larger);
  }

  ChunkedRing<Entry> entries_;
  std::size_t done_ = 0;  // how many at the front are completed
  ReceiveSource* source_ = nullptr;
};

}  // namespace iwarp::rdmap
