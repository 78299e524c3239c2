// Completion channels: a descriptor that counts the events of any number of completion queues.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <mutex>

#include "dropin/verbs/c_face.h"
#include "dropin/verbs/sleep.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::dropin {

struct Cq;

struct Channel {
  // Throws std::system_error when no descriptor is to be had.
  explicit Channel(ibv_context* context);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // An event of that queue. Any thread, with any lock held; takes no memory.
  void tell(Cq& cq) noexcept;
  // The queue of the oldest event, which counts as given; null: there is none.
  [[nodiscard]] Cq* take();
  // The queue is being destroyed, and so are its events.
  void forget(Cq& cq);

  ibv_comp_channel c{};
  std::atomic<unsigned> users{0};                  // completion queues of it
  Sleepers sleepers{Sleepers::For::kCompletions};  // in ibv_get_cq_event()
  const verbs::ForkGuard process;

 private:
  // Precondition: mutex_ held, and the queue is the first.
  void pop_first();

  std::mutex mutex_;     // no other lock is taken with it
  Cq* first_ = nullptr;  // with events, oldest first: linked by Cq::next_told
  Cq* last_ = nullptr;
};
IWARP_C_FIRST(Channel, c);

[[nodiscard]] inline Channel& owner(ibv_comp_channel* channel) {
  return *reinterpret_cast<Channel*>(channel);
}

}  // namespace iwarp::dropin
