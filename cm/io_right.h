// The right to move the octets of one connection, as data and as the token that threads pass. A thread of the engine, a
// thread that waits, one that polls and one that posts all take it alike, and none of them waits for it: who finds it
// taken leaves word, and the holder sees to that before it lets go. The queue pair's lock protects what a turn changes;
// the token says whose turn it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace iwarp::cm {

enum class IoRight : std::uint8_t {
  kFree,
  kHeld,
  kAsked,  // held, and somebody has left word since the holder last looked
};
enum class IoRightInput : std::uint8_t {
  kLook,   // a thread with nothing to tell: it goes away again where the right is not free
  kAsk,    // a thread with something that must be seen to
  kSee,    // the holder looks at what it was told
  kLeave,  // the holder goes
};
inline constexpr std::size_t kIoRights = 3, kIoRightInputs = 4;

// nullopt: it may not. A look finds the right taken; a holder that was asked has to see to it first.
[[nodiscard]] std::optional<IoRight> next(IoRight from, IoRightInput on);
[[nodiscard]] const char* name(IoRight right);
[[nodiscard]] const char* name(IoRightInput input);

// Thread-safe, without a lock; no call waits.
class IoToken {
 public:
  // Of look() and ask(): true when this thread has the token now, and must give it back with leave().
  [[nodiscard]] bool look() { return step(IoRightInput::kLook).has_value(); }
  // What is asked for must be written down before: the holder reads it after see().
  [[nodiscard]] bool ask() { return step(IoRightInput::kAsk) == IoRight::kFree; }
  // By the holder.
  void see() { (void)step(IoRightInput::kSee); }
  // By the holder: false when it was asked and has not seen to it: it has the token still.
  [[nodiscard]] bool leave() { return step(IoRightInput::kLeave).has_value(); }

 private:
  // What it was, if the table has that transition.
  std::optional<IoRight> step(IoRightInput on) {
    IoRight was = right_.load();
    for (;;) {
      const auto to = next(was, on);
      if (!to) return std::nullopt;
      if (right_.compare_exchange_weak(was, *to)) return was;
    }
  }

  std::atomic<IoRight> right_{IoRight::kFree};
};

}  // namespace iwarp::cm
