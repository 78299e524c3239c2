// What one connection of `dropin_stress connects` does, and how it ends: the same for the same seed and number.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace iwarp::stress {

enum class Side : unsigned { kClient, kServer };
[[nodiscard]] constexpr Side other(Side side) {
  return side == Side::kClient ? Side::kServer : Side::kClient;
}

// How it begins.
enum class Start : unsigned {
  kConnects,
  kRejected,         // by rdma_reject(), with private data
  kDropped,          // the server destroys the id that it was asked with
  kGivenUp,          // the client destroys its id while it is connecting
  kGivenUpEarly,     // ... before it connects
  kAcceptedAndGone,  // the server destroys its id right after it has accepted
  kCrowd,            // several requests, some of them untaken when the listener is destroyed
  kNobody,           // the listener is destroyed before
};

// The calls by which a side ends what was established.
enum class Way : unsigned {
  kDisconnect,       // and waits for the event
  kDisconnectAndGo,  // and does not
  kQueuePairFirst,
  kIdFirst,
  kError,       // ibv_modify_qp()
  kDeregister,  // its memory, which it frees, while requests are under way
};
inline constexpr unsigned kWays = 6;

enum class Kind : unsigned { kSend, kWrite, kRead };
struct Op {
  Kind kind;
  std::uint32_t length;
  bool inlined;
};

struct Plan {
  std::vector<Op> ops;
  bool ends = false;       // by itself; else when the peer has
  unsigned end_after = 0;  // of its own requests completed; all of them: it also has all of the peer's messages
  Way way = Way::kDisconnect;
  bool own_channel = false;  // of events, destroyed last
  bool migrates_before = false, migrates_after = false;
  bool late_ack = false;          // its last event is acknowledged while its id is being destroyed
  bool late_receives = false;     // a Receive for each message that has come, rather than all before
  bool polled_meanwhile = false;  // its completions, by another thread, while it ends
  bool sleeps = false;            // for completions, rather than polls
  bool two_queues = false;
  bool frees_at_once = false;  // its memory, before its id
  unsigned pause_us = 0;       // before it ends
};

struct Course {
  Course(std::uint64_t seed, unsigned number);

  [[nodiscard]] const Plan& of(Side side) const { return plans.at(static_cast<unsigned>(side)); }
  // In words.
  [[nodiscard]] std::string text() const;

  unsigned number;
  Start start = Start::kConnects;
  unsigned crowd = 0, taken = 0;  // kCrowd: requests, and how many of them the server takes
  unsigned stage = 0;             // kGivenUpEarly
  unsigned pause_us = 0;          // of `start`
  std::array<Plan, 2> plans;
};

inline constexpr unsigned kMostOps = 10;
inline constexpr std::uint32_t kMostOctets = 8192, kMostInlined = 64;
inline constexpr unsigned kStages = 4;

}  // namespace iwarp::stress
