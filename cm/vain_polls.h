#pragma once

#include <chrono>

namespace iwarp::cm {

// What a thread does that polls and gets nothing: where applications spin on all processors, the one that has what they
// wait for runs only when a time slice is over. Pure: who uses it looks at the clock, yields and dozes. Of one thread.
class VainPolls {
 public:
  using Clock = std::chrono::steady_clock;

  // So many empty polls in a row lie between two pauses.
  static constexpr unsigned kApart = 16;
  // A yield that took so long: others want the processor. For a while the thread then dozes, which is to sleep until
  // something comes: who dozes has it at once when it does, who yields has it when the others have had enough.
  static constexpr std::chrono::microseconds kLongYield{50};
  static constexpr std::chrono::milliseconds kContended{100};
  // A doze that was shorter was none: octets that nobody may take yet, or an end, would wake the next one too.
  static constexpr std::chrono::microseconds kNoSleep{5};

  // A poll was empty. True: pause now, by a doze if may_doze() and there is one, else by a yield.
  [[nodiscard]] bool another() { return ++in_a_row_ % kApart == 0; }
  [[nodiscard]] bool may_doze(Clock::time_point now) const { return now < contended_until_ && !woken_at_once_; }
  void dozed(Clock::time_point begin, Clock::time_point end) { woken_at_once_ = end - begin < kNoSleep; }
  void yielded(Clock::time_point begin, Clock::time_point end) {
    woken_at_once_ = false;
    if (end - begin > kLongYield) contended_until_ = end + kContended;
  }
  // A poll was not empty.
  void got_some() {
    in_a_row_ = 0;
    woken_at_once_ = false;
  }

 private:
  unsigned in_a_row_ = 0;
  bool woken_at_once_ = false;
  Clock::time_point contended_until_;
};

}  // namespace iwarp::cm
