// RDMA_DONE of the draft of 2005 (draft-ietf-nfsv4-rpcrdma-01 section 3.8): a Reply with Read chunks stays exposed
// until the client says that it has read it. DoneBook: what a server keeps of such Replies, and for how long.
// DoneCredits: how a client counts its RDMA_DONEs among the messages in flight. Time is given; no I/O. Not thread-safe.
//
// Server: ask admits() before a Reply goes by Read chunk (no: the RPC fails, if the Reply fits nowhere else), add()
// when it is sent; post the Receive that an RDMA_DONE takes again at once; give each RDMA_DONE to on_done(), call
// on_deadline() at deadline() and drop() when a connection has ended. What they give back is fenced (Endpoint::
// invalidate() of each handle) and freed by its owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "iwarp/base/time.h"

namespace iwarp::rpcrdma {

struct DoneOptions {
  // How long an RDMA_DONE may take. A client reads with the speed of its network, and 10 s are much for what fits in a
  // Reply; less ends Replies that slow clients still read.
  Duration patience = std::chrono::seconds(10);
  // What then follows: the memory is freed, and a client that reads it all the same ends its connection (kFree); or the
  // connection is ended (kClose).
  enum class Late : std::uint8_t { kFree, kClose };
  Late late = Late::kFree;
  // Most Replies that wait, and their octets; of one connection, and of all of the book. More are not admitted.
  std::size_t max_replies = 16, max_bytes = std::size_t{8} << 20;
  std::size_t max_replies_of_all = 256, max_bytes_of_all = std::size_t{64} << 20;

  friend bool operator==(const DoneOptions&, const DoneOptions&) = default;
};

// `Memory`: whatever owns the exposed octets and knows their handles; movable. The book neither looks at it nor frees
// it before its owner can: it must not be destroyed with entries in it that are still exposed; see drop().
template <class Memory>
class DoneBook {
 public:
  using Connection = std::uint64_t;  // chosen by the owner, never used again

  explicit DoneBook(const DoneOptions& options = {}) : options_(options) {}

  // Whether a Reply of `bytes` may wait.
  [[nodiscard]] bool admits(Connection connection, std::size_t bytes) const {
    const Sum of_one = sum_of(connection);
    return of_one.replies < options_.max_replies && fits(of_one.bytes, bytes, options_.max_bytes) &&
           all_.replies < options_.max_replies_of_all && fits(all_.bytes, bytes, options_.max_bytes_of_all);
  }
  // A Reply with Read chunks was sent. Precondition: admits(). Several with one xid may wait, as when a Call was sent
  // again: the first RDMA_DONE ends the oldest. req: D2005-3.4-7
  void add(Connection connection, std::uint32_t xid, std::size_t bytes, Memory memory, TimePoint now) {
    const TimePoint deadline = add_saturating(now, options_.patience);
    const auto behind = std::upper_bound(entries_.begin(), entries_.end(), deadline,
                                         [](TimePoint t, const Entry& e) { return t < e.deadline; });
    entries_.insert(behind, {connection, xid, bytes, deadline, std::move(memory)});
    Sum& of_one = sums_[connection];
    ++of_one.replies;
    of_one.bytes += bytes;
    ++all_.replies;
    all_.bytes += bytes;
  }
  // An RDMA_DONE came on this connection. What may be freed now; nullopt: no Reply with this xid waits there (it came
  // twice, or too late, or on the wrong connection, or there was none). It gets no answer either way.
  // req: D2005-3.6-4 D2005-2-4
  [[nodiscard]] std::optional<Memory> on_done(Connection connection, std::uint32_t xid) {
    const auto it = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& e) { return e.connection == connection && e.xid == xid; });
    if (it == entries_.end()) {
      ++unknown_;
      return std::nullopt;
    }
    return take(it);
  }

  // When on_deadline() is due; nullopt: nothing waits.
  [[nodiscard]] std::optional<TimePoint> deadline() const {
    if (entries_.empty()) return std::nullopt;
    return entries_.front().deadline;
  }
  struct Expired {
    Connection connection = 0;
    std::uint32_t xid = 0;
    Memory memory;
  };
  // What has waited too long, oldest first: free it, and with Late::kClose end its connection first.
  // req: D2005-3.8-6 D2005-3.8-7
  [[nodiscard]] std::vector<Expired> on_deadline(TimePoint now) {
    std::vector<Expired> out;
    while (!entries_.empty() && entries_.front().deadline <= now) {
      const Connection connection = entries_.front().connection;
      const std::uint32_t xid = entries_.front().xid;
      out.push_back({connection, xid, take(entries_.begin())});
      ++late_;
    }
    return out;
  }
  // The connection has ended: nobody can read any more, and nothing more will come.
  [[nodiscard]] std::vector<Memory> drop(Connection connection) {
    std::vector<Memory> out;
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->connection != connection) {
        ++it;
        continue;
      }
      const auto at = it - entries_.begin();
      out.push_back(take(it));
      it = entries_.begin() + at;
    }
    return out;
  }

  [[nodiscard]] const DoneOptions& options() const { return options_; }
  // Replies that wait, and their octets.
  [[nodiscard]] std::size_t replies() const { return all_.replies; }
  [[nodiscard]] std::size_t bytes() const { return all_.bytes; }
  // Those of a connection: as many Receives more than its grant it needs, so that an RDMA_DONE never takes that of a
  // Call. req: D2005-3.8-8 D2005-3.8-9
  [[nodiscard]] std::size_t replies(Connection connection) const { return sum_of(connection).replies; }
  // RDMA_DONEs that belonged to no Reply, and Replies whose RDMA_DONE did not come in time, so far.
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }
  [[nodiscard]] std::uint64_t late() const { return late_; }

 private:
  struct Entry {
    Connection connection = 0;
    std::uint32_t xid = 0;
    std::size_t bytes = 0;
    TimePoint deadline{};
    Memory memory;
  };
  struct Sum {
    std::size_t replies = 0, bytes = 0;
  };
  using Entries = std::deque<Entry>;  // the next deadline in front: the oldest, as times go

  [[nodiscard]] static bool fits(std::size_t used, std::size_t bytes, std::size_t limit) {
    return used <= limit && bytes <= limit - used;
  }
  [[nodiscard]] Sum sum_of(Connection connection) const {
    const auto it = sums_.find(connection);
    return it == sums_.end() ? Sum{} : it->second;
  }
  Memory take(typename Entries::iterator it) {
    Memory out = std::move(it->memory);
    const auto sum = sums_.find(it->connection);
    --all_.replies;
    all_.bytes -= it->bytes;
    sum->second.bytes -= it->bytes;
    if (--sum->second.replies == 0) sums_.erase(sum);
    entries_.erase(it);
    return out;
  }

  DoneOptions options_;
  Entries entries_;
  std::map<Connection, Sum> sums_;
  Sum all_{};
  std::uint64_t unknown_ = 0, late_ = 0;
};

// The client's end of one connection. An RDMA_DONE takes a Receive of the server until the server has posted it again,
// and no answer tells when. So it counts as in flight until a Call that was sent after it is answered, as the server
// takes messages in order. But with no Call in flight one may always go: a server that keeps "its earliest opportunity"
// has posted again, and a client with a grant of 1 would never send another Call.
class DoneCredits {
 public:
  // An RDMA_DONE has been given to the connection.
  void on_done_sent() { ++sent_; }
  // Of a Call that is sent now: to be kept with it, and given to on_reply() when it was answered, by whatever message
  // of the server.
  [[nodiscard]] std::uint64_t mark() const { return sent_; }
  void on_reply(std::uint64_t mark) { arrived_ = std::max(arrived_, mark); }
  // RDMA_DONEs among the messages in flight.
  [[nodiscard]] std::uint64_t in_flight() const { return sent_ - arrived_; }
  // Whether another Call may go, where `available` Calls may by the grant and `calls` are in flight. req: D2005-3.8-8
  [[nodiscard]] bool admits_call(std::uint32_t available, std::uint32_t calls) const {
    return available > 0 && (calls == 0 || in_flight() < available);
  }

 private:
  std::uint64_t sent_ = 0, arrived_ = 0;
};

}  // namespace iwarp::rpcrdma
