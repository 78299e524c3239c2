// Receives that several receive queues share (a shared receive queue, RFC 5042 s2.3.2), and the low-water mark that
// warns before they are used up (s6.4.3.1). They are taken in the order posted, by whoever comes. Not thread-safe: its
// owner has a lock where streams are driven by several threads.
#pragma once

#include <cstddef>

#include "iwarp/base/chunked_ring.h"
#include "iwarp/rdmap/receive_source.h"

namespace iwarp::rdmap {

class SharedReceives final : public ReceiveSource {
 public:
  // At most `depth` Receives at a time.
  explicit SharedReceives(std::size_t depth) : receives_(depth) {}

  // False when full(), or when there is no memory for another one.
  [[nodiscard]] bool post(const RecvWr& wr) {
    RecvWr* const added = receives_.add();
    if (added != nullptr) *added = wr;
    return added != nullptr;
  }
  [[nodiscard]] bool full() const { return receives_.full(); }
  // Posted and not taken.
  [[nodiscard]] std::size_t posted() const { return receives_.size(); }
  [[nodiscard]] bool take(RecvWr& wr) override {
    if (receives_.empty()) return false;
    wr = receives_.front();  // req: RFC5042-2.3.5-1: in the order posted, whatever stream it is for
    receives_.drop();
    return true;
  }

  // limit_reached() becomes true, once, when fewer than `limit` are posted; 0: never. Replaces an earlier limit.
  void set_limit(std::size_t limit) { limit_ = limit; }
  // What is set and was not reached.
  [[nodiscard]] std::size_t limit() const { return limit_; }
  // Whether fewer than the limit are posted. If so the limit is 0 from here on, until it is set again.
  [[nodiscard]] bool limit_reached() {
    // req: RFC5042-6.4.3.1-1 RFC5040-8.1.2-9 RFC5041-8.3.2-7: the low-water notification
    if (receives_.size() >= limit_) return false;
    limit_ = 0;
    return true;
  }

 private:
  ChunkedRing<RecvWr> receives_;
  std::size_t limit_ = 0;
};

}  // namespace iwarp::rdmap
