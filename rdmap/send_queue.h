// Send queue: work requests in posting order through queued -> transmitting -> (awaiting Read Response) -> done.
// Completions come in posting order whatever finishes first (RFC 5040 s5.5 rule 15); entries wait here until they are
// polled. Not thread-safe.
//
// A Read with several pieces is several Read Requests, since a tagged message has one sink: one after the other, each
// of them counted against the ORD, and one completion when the last Response is complete.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "iwarp/base/chunked_ring.h"
#include "iwarp/rdmap/work_request.h"

namespace iwarp::rdmap {

class SendQueue {
 public:
  // Names one posted request; stays valid until its completion was polled.
  using Ticket = std::uint64_t;

  // `max_inline`: octets of an inline request. Memory for copies is taken for as many as there ever are at a time.
  explicit SendQueue(std::size_t depth, std::size_t max_inline = 0) : entries_(depth), max_inline_(max_inline) {}

  // False when full(), or when there is no memory for another request. Of an inline one the queue keeps the octets, and
  // request() names these. Precondition: an inline one has at most `max_inline` octets.
  [[nodiscard]] bool post(const SendWr& wr) {
    if (wr.inline_data) [[unlikely]]
      return post_inline(wr);
    return enter(wr);
  }
  // Takes a request that is never started: it completes with kFlushed behind all that was posted before. False as
  // post(). Of an inline one nothing is copied.
  [[nodiscard]] bool post_flushed(const SendWr& wr);
  // Takes a mark that sends nothing: it completes (WcOp::kDrain, kOk) when all that was posted before has completed,
  // well or not. False as post().
  [[nodiscard]] bool post_drain(std::uint64_t wr_id);
  // Requests posted and not yet polled.
  [[nodiscard]] std::size_t posted() const { return entries_.size(); }
  // `depth` requests are posted and not yet polled (unsignalled ones free their entry when they are done).
  [[nodiscard]] bool full() const { return entries_.full(); }

  // The next request to transmit, or null: nothing queued, or the oldest queued one has to wait (a Read while `ord`
  // Read Requests are outstanding, a fenced one while any is, a Local Invalidate while an earlier one names its STag).
  // A Read is given once for each of its Read Requests.
  [[nodiscard]] const SendWr* next(std::size_t ord) const;
  // Starts what next() gave. Precondition: next() != nullptr.
  Ticket start();
  // The last octet of what was started was handed to TCP: Send and Write are done (rule 9), a Read awaits its
  // Responses.
  void sent(Ticket ticket);
  // Ends a started request in error.
  void fail(Ticket ticket, Errc status);

  [[nodiscard]] const SendWr& request(Ticket ticket) const { return entries_.at(index(ticket)).wr; }

  // What one Read Request of a Read asks for.
  struct ReadPart {
    const Sge* sink = nullptr;  // null: nothing is read
    std::uint32_t offset = 0;   // octets of the source before it
    [[nodiscard]] std::uint32_t length() const { return sink == nullptr ? 0 : sink->length; }
  };
  // That of the latest Read Request started. Precondition: `ticket` is a Read.
  [[nodiscard]] ReadPart part(Ticket ticket) const;

  // The oldest Read Request without a complete Response, to which the next Read Response octets belong; nullopt when
  // none is outstanding.
  struct OutstandingRead {
    const SendWr* wr;
    const Sge* sink;  // null: its Response is empty
    std::uint32_t received;
    [[nodiscard]] std::uint32_t missing() const { return (sink == nullptr ? 0 : sink->length) - received; }
  };
  [[nodiscard]] std::optional<OutstandingRead> oldest_read() const;
  // Asks `is_it(sink)` of the sink of each Read Request without a complete Response, from the oldest on, until it says
  // yes: whether it did.
  template <class F>
  [[nodiscard]] bool any_outstanding_sink(const F& is_it) const {
    if (outstanding_reads_ == 0) return false;
    for (std::size_t i = 0; i < entries_.size() && i <= index(started_); ++i) {
      const Entry& e = entries_.at(i);
      if (!is_read(e.wr.op) || e.state == State::kDone) continue;
      for (std::size_t n = e.answered; n < e.begun; ++n) {
        const Sge* const sink = nth_sink(e.wr, n);
        if (sink != nullptr && is_it(*sink)) return true;
      }
    }
    return false;
  }
  void read_received(std::uint32_t bytes);
  // Its Response is complete; with the last one the Read is done. Gives that Read; valid until it is polled. Null when
  // none is outstanding.
  const SendWr* read_done();
  // The oldest Atomic without a Response; null when none is outstanding.
  [[nodiscard]] const SendWr* oldest_atomic() const;
  void atomic_done();
  [[nodiscard]] std::size_t outstanding_reads() const { return outstanding_reads_; }

  // Reads that are not started complete with `status`: for a peer that admits none. Whether there were any.
  bool refuse_queued_reads(Errc status);
  // The oldest request that is not done completes with `status`. False: there is none.
  bool fail_oldest(Errc status);
  // Everything not done completes with kFlushed.
  void flush();
  // Oldest request that is done, with all before it polled. Unsignalled successes are passed over, but for those that
  // revoked an STag, which are `silent`: whoever polls has to wait until it is quiescent before it tells the
  // application of anything later.
  [[nodiscard]] std::optional<Completion> poll();
  [[nodiscard]] bool idle() const { return entries_.empty() || all_done(); }

 private:
  enum class State : std::uint8_t { kQueued, kTransmitting, kAwaitingResponse, kDone };
  struct Entry {
    State state = State::kQueued;
    bool drain = false;  // a mark: `wr` has only its id
    Errc status = Errc::kOk;
    std::uint8_t begun = 0, answered = 0;  // Requests that await a Response: how many were started, and answered
    std::uint32_t received = 0;            // octets of the Response that is coming in
    SendWr wr;
  };
  [[nodiscard]] bool enter(const SendWr& wr) {
    Entry* const e = entries_.add();
    if (e == nullptr) return false;
    e->state = State::kQueued;
    e->drain = false;
    e->status = Errc::kOk;
    e->received = 0;
    e->begun = e->answered = 0;
    e->wr = wr;
    return true;
  }
  // Enters what is never started.
  [[nodiscard]] bool enter_done(const SendWr& wr, bool drain, Errc status);
  [[nodiscard]] bool post_inline(const SendWr& wr);
  [[nodiscard]] std::size_t index(Ticket t) const { return static_cast<std::size_t>(t - popped_); }
  // Of the n-th Request of a Read.
  [[nodiscard]] static const Sge* nth_sink(const SendWr& wr, std::size_t n);
  // Of those that await a Response.
  [[nodiscard]] std::optional<std::size_t> oldest_outstanding(bool atomic) const;
  void answered(Entry& e);
  // Whether one of the `count` oldest is not done and names `lkey`.
  [[nodiscard]] bool in_use(Stag lkey, std::size_t count) const;
  [[nodiscard]] bool all_done() const;
  void pass_over_done();
  void drop_front();

  ChunkedRing<Entry> entries_;
  std::size_t max_inline_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;  // of inline requests, `max_inline_` octets each
  std::vector<std::byte*> spare_;                     // those of them that no request has; room for all
  Ticket popped_ = 0;                                 // ticket of the front entry
  Ticket started_ = 0;                                // ticket of the oldest entry not started
  std::size_t outstanding_reads_ = 0;
};

}  // namespace iwarp::rdmap
