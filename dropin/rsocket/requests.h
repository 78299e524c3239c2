// The requests that a stream posts, and what their completions are told apart by. Pure functions over values.
#pragma once

#include <cstdint>

#include "iwarp/base/bytes.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin::rsockets {

// Octets of one Write.
inline constexpr std::size_t kMostOctetsOfWrite = 65536;

// What a completion of the send queue is for: upper octets of its wr_id; the lower ones have octets of the ring.
enum Kind : std::uint64_t {
  kSilent = 0,  // the Write of a message; only tells of failures
  kData = 1ULL << 32,
  kDirect = 2ULL << 32,
  kControl = 3ULL << 32,
  kControlWithWrite = 4ULL << 32,
  kMapTold = 5ULL << 32,
};
inline constexpr std::uint64_t kKindMask = ~std::uint64_t{0xFFFFFFFF};

// A Write that is copied when it is posted, and completes only where it fails.
[[nodiscard]] inline verbs::SendWr inline_write(ConstBytes octets, std::uint64_t address, std::uint32_t key) {
  verbs::SendWr wr;
  wr.wr_id = kSilent;
  wr.op = verbs::SendOp::kWrite;
  wr.sges =
      verbs::Sge{.address = const_cast<std::byte*>(octets.data()), .length = static_cast<std::uint32_t>(octets.size())};
  wr.remote_stag = Stag{key};
  wr.remote_to = address;
  wr.signaled = false;
  wr.inline_data = true;
  return wr;
}

// A message by Send. `word` is copied when it is posted.
[[nodiscard]] inline verbs::SendWr message_of(std::uint32_t& word, std::uint64_t id) {
  verbs::SendWr wr;
  wr.wr_id = id;
  wr.op = verbs::SendOp::kSend;
  wr.sges = verbs::Sge{.address = reinterpret_cast<std::byte*>(&word), .length = sizeof word};
  wr.inline_data = true;
  return wr;
}

}  // namespace iwarp::dropin::rsockets
