// Copies payload to its place in whatever order it comes, so that memory ends up as if it had come in order: an octet
// that a later segment of the peer has been placed on is not overwritten by an earlier one, though RFC 5040 s5.5 would
// allow that. What was placed early is remembered until it is delivered. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/ddp/stag_table.h"

namespace iwarp::session {

class EarlyPlacement {
 public:
  // Longest list of targets that is placed early: what is remembered of a message is bounded.
  static constexpr std::size_t kMaxTargets = 2;

  // What is remembered at a time, at most: what lies above a segment is looked for among it, by the thread that serves
  // others too.
  static constexpr std::size_t kMaxRemembered = 512;

  // Places a segment that came before others: `position` is its place in the order. Then `targets` is empty. False:
  // there are too many of them, or no room or memory to remember it, and it has to be placed when it is due.
  // Precondition: as many octets of targets as of `payload`; none was placed at that position, nor has any behind it
  // been delivered.
  [[nodiscard]] bool place(std::uint64_t position, std::vector<ddp::Pin>& targets, ConstBytes payload);
  // Places one that is due: all that is remembered is behind it in the order. Throws std::bad_alloc.
  void place_due(const std::vector<ddp::Pin>& targets, ConstBytes payload);
  // The first of those that were placed early is delivered. False: its memory was revoked since, whatever is registered
  // there now. Precondition: !empty().
  [[nodiscard]] bool delivered();
  // Forgets all.
  void clear() { placed_.clear(); }
  // Whether nothing is remembered.
  [[nodiscard]] bool empty() const { return placed_.empty(); }

 private:
  struct Placed {
    std::uint64_t position;
    ddp::Pin memory;  // suspended: it holds nobody up
  };
  using Range = std::pair<std::uintptr_t, std::uintptr_t>;  // first octet, and the one behind the last
  using Iterator = std::deque<Placed>::iterator;

  // What lies on `memory` of those from `first` on, in order of memory. Throws std::bad_alloc.
  void find_above(Iterator first, MutBytes memory);
  // Copies around what was found.
  void copy_around(MutBytes memory, ConstBytes payload) const;

  std::deque<Placed> placed_;  // in the order of their positions
  std::vector<Range> above_;   // found by the last find_above()
};

}  // namespace iwarp::session
