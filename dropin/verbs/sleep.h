// How threads of the application wait for an event: as in the read(2) of a device. Signals end the wait whose handlers
// say so (no SA_RESTART), and pthread_cancel() ends the thread there.
//
// A thread that waits first moves the octets itself, for kCompletionsLead or kConnectionsLead, so that what comes
// meanwhile need not wake the engine's thread before this one. Signals that come in that time are held back, and the
// thread is not cancelled: both act at its end, milliseconds later. Then it sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace iwarp::dropin {

class Sleepers {
 public:
  // What they wait for, and so who of them leads the engine.
  enum class For : std::uint8_t {
    kCompletions,  // who is the only one of the process to wait for completions
    kConnections,  // who comes while nobody waits for completions
    kRareEvents,   // nobody
  };
  static constexpr std::chrono::milliseconds kCompletionsLead{10};
  // Longer than a step of a connection's setup takes in a network of one place.
  static constexpr std::chrono::milliseconds kConnectionsLead{2};

  explicit Sleepers(For what) : what_(what) {}

  // How often they were woken: to be asked before looking for what is waited for.
  [[nodiscard]] std::uint32_t wakes() const { return wakes_.load(); }
  // Something has come. Any thread, with any lock held; never blocks.
  void wake() noexcept;
  // Waits until wake() is called, unless it was since wakes() gave `seen`; at times it returns without. False, with
  // errno EINTR: a signal. A cancellation point, unless the thread is Uncancelled: no caller on the way from C may be
  // noexcept, hold a lock, or have something to destroy then.
  [[nodiscard]] bool wait(std::uint32_t seen);

 private:
  enum class Led : std::uint8_t { kCame, kInterrupted, kNothing };

  [[nodiscard]] bool may_lead() const;
  [[nodiscard]] Led lead(std::uint32_t seen) noexcept;
  [[nodiscard]] bool sleep(std::uint32_t seen);

  const For what_;
  std::atomic<std::uint32_t> wakes_{0};
  // A thread that was cancelled counts for ever: that costs calls in vain.
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> leading_{0};  // in lead()
};

}  // namespace iwarp::dropin
