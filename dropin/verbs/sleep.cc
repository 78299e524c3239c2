#include "dropin/verbs/sleep.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "dropin/verbs/held_signals.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/per_process.h"
#include "dropin/verbs/uncancelled.h"

namespace iwarp::dropin {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

// Of the whole process.
struct Waits {
  std::atomic<unsigned> for_completions{0};
  std::atomic<unsigned> leading{0};
};
PerProcess<Waits> process_waits;

// In lead(), where the thread is not cancelled.
class Among {
 public:
  explicit Among(std::atomic<unsigned>& count) : count_(count) { count_.fetch_add(1); }
  ~Among() { count_.fetch_sub(1); }
  Among(const Among&) = delete;
  Among& operator=(const Among&) = delete;

 private:
  std::atomic<unsigned>& count_;
};

// Counts a thread until it leaves, or ends: a key of the thread tells of that, since the unwinding of a thread that is
// cancelled may find nothing here to be destroyed.
class CountedThread {
 public:
  static void enters(std::atomic<unsigned>& count) {
    count.fetch_add(1);
    ::pthread_setspecific(key(), &count);
  }
  static void leaves(std::atomic<unsigned>& count) {
    ::pthread_setspecific(key(), nullptr);
    count.fetch_sub(1);
  }

 private:
  static pthread_key_t key() {
    static const pthread_key_t made = [] {
      pthread_key_t out{};
      (void)::pthread_key_create(&out, [](void* count) { static_cast<std::atomic<unsigned>*>(count)->fetch_sub(1); });
      return out;
    }();
    return made;
  }
};

// Without memory for that nobody is told: who leads looks again when its time is over.
void tell_leaders() noexcept {
  try {
    engine().look_again();
  } catch (...) {
  }
}

}  // namespace

void Sleepers::wake() noexcept {
  wakes_.fetch_add(1);
  if (sleepers_.load() > 0) ::syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, INT_MAX);
  if (leading_.load() > 0) tell_leaders();
}

bool Sleepers::wait(std::uint32_t seen) {
  ::pthread_testcancel();
  Waits& all = process_waits.get();
  const bool counts = what_ == For::kCompletions;
  if (counts) {
    CountedThread::enters(all.for_completions);
    // Another thread leads now that is not to while this one waits, too.
    if (all.leading.load() > 0) tell_leaders();
  }
  const Led led = lead(seen);
  const bool came = led == Led::kCame || (led == Led::kNothing && sleep(seen));
  const int error = led == Led::kInterrupted ? EINTR : errno;
  if (counts) CountedThread::leaves(all.for_completions);
  errno = error;
  return came;
}

// Two that wait for completions would pass the engine to and fro; the engine's thread serves them all.
bool Sleepers::may_lead() const {
  const unsigned others = process_waits.get().for_completions.load();
  switch (what_) {
    case For::kCompletions:
      return others == 1;
    case For::kConnections:
      return others == 0;
    case For::kRareEvents:
      break;
  }
  return false;
}

[[gnu::noinline]] Sleepers::Led Sleepers::lead(std::uint32_t seen) noexcept {
  if (wakes() != seen) return Led::kCame;
  if (what_ == For::kRareEvents) return Led::kNothing;
  const Uncancelled whole;
  bool came = false, interrupted = false;
  try {
    if (may_lead()) {
      const HeldSignals signals;
      const Among leads(process_waits.get().leading);
      leading_.fetch_add(1);
      const auto over = [&] { return wakes() != seen || !may_lead(); };
      const auto time = what_ == For::kCompletions ? kCompletionsLead : kConnectionsLead;
      try {
        (void)engine().wait_until(over, std::chrono::steady_clock::now() + time);
      } catch (...) {  // of a handler: that is over
      }
      leading_.fetch_sub(1);
      came = wakes() != seen;
      interrupted = !came && signals.end_a_call();
    }
    if (!came && !interrupted) engine().hand_over();
  } catch (...) {  // no engine: nothing moves
  }
  return came ? Led::kCame : interrupted ? Led::kInterrupted : Led::kNothing;
}

// Without a limit in time the system call follows SA_RESTART, as read() does and poll() does not. It is no cancellation
// point by itself: while it lasts, and nothing else is done, the thread may be cancelled at any moment, as the C
// library does it for its own. Not inlined: nothing is to be destroyed in the function that is left so.
[[gnu::noinline]] bool Sleepers::sleep(std::uint32_t seen) {
  sleepers_.fetch_add(1);
  int before = 0;
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  const long done = ::syscall(SYS_futex, &wakes_, FUTEX_WAIT_PRIVATE, seen, nullptr);
  const int error = errno;
  ::pthread_setcanceltype(before, nullptr);
  sleepers_.fetch_sub(1);
  if (done == 0 || error != EINTR) return true;
  errno = EINTR;
  return false;
}

}  // namespace iwarp::dropin
