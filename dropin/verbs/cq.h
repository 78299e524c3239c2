// Completion queues, extended ones included: each is both.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "dropin/verbs/c_face.h"
#include "dropin/verbs/events.h"
#include "iwarp/cm/completion_queue.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin {

struct Cq {
  // `cqe` as the application asked for.
  Cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel);

  // The owner of a queue that the core names.
  [[nodiscard]] static Cq& of(verbs::CompletionQueue& core) { return static_cast<Core&>(core).owner; }
  [[nodiscard]] ibv_cq* face() { return ibv_cq_ex_to_cq(&c); }
  // Takes completions, oldest first. Looks at the sockets when there is none.
  [[nodiscard]] std::size_t take(std::span<verbs::Completion> out);
  // The same without that look.
  [[nodiscard]] std::size_t take_more(std::span<verbs::Completion> out);
  // The next completion, or the next solicited one, is an event of the channel, once. Precondition: there is one.
  void arm(verbs::CompletionQueue::Notify what);
  // After a poll that left completions behind: if the queue is armed that is an event. Adapters tell of what lies in
  // the queue when it is armed, and applications that poll a few completions for each event rely on it.
  void tell_of_the_rest();

  struct Core final : cm::CompletionQueue {
    Core(cm::Engine& engine, std::size_t capacity, Cq& o) : cm::CompletionQueue(engine, capacity), owner(o) {}
    Cq& owner;
  };

  // Tells the channel.
  struct Bell final : verbs::Notifier {
    explicit Bell(Cq& o) : owner(o) {}
    void notify(verbs::CompletionQueue& cq) noexcept override;
    Cq& owner;
  };

  ibv_cq_ex c{};
  Bell bell{*this};
  std::atomic<bool> armed{false};  // for any completion, and nothing was told since
  std::optional<Core> core;        // goes before the bell
  // Of the channel.
  Cq* next_told = nullptr;
  unsigned told = 0;  // events that wait
  EventCount completion_events, async_events;
  std::atomic<unsigned> users{0};  // queue pairs of it
  const verbs::ForkGuard process;
  // Of the extended queue, between start_poll() and end_poll(): with poll_mutex held, unless one thread has it all.
  std::mutex poll_mutex;
  bool single_threaded = false;
  ibv_wc current{};
};
IWARP_C_FIRST(Cq, c);

[[nodiscard]] inline Cq& owner(ibv_cq* cq) {
  return *reinterpret_cast<Cq*>(cq);
}
[[nodiscard]] inline Cq& owner(ibv_cq_ex* cq) {
  return *reinterpret_cast<Cq*>(cq);
}

// Operations of ibv_context and verbs_context.
int poll_cq(ibv_cq* cq, int most, ibv_wc* out);
int req_notify_cq(ibv_cq* cq, int solicited_only);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
// Fills in the functions of an extended queue.
void set_poll_functions(ibv_cq_ex& cq);
// 0 or an errno value.
[[nodiscard]] int make_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                          std::uint32_t comp_vector, Cq*& out);

}  // namespace iwarp::dropin
