// CompletionQueue: one that belongs to an engine, for Asio: co_await cq.async_poll(span, token). The same for any
// verbs::CompletionQueue: cm::async_poll(engine, cq, span, token).
//
// One async_poll() of a queue waits at a time: another one, arm() and a CompletionChannel take its place, and it
// completes with kAborted. Other threads may poll() and wait_for() meanwhile: it then waits for what they leave.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "iwarp/cm/engine.h"
#include "iwarp/cm/token.h"
#include "iwarp/verbs/completion_queue.h"

namespace iwarp::cm {
namespace detail {

void start_poll(Engine& engine, verbs::CompletionQueue& cq, std::span<verbs::Completion> out,
                Completion<Error, std::size_t> completion);
void start_poll_one(Engine& engine, verbs::CompletionQueue& cq, Completion<Error, verbs::Completion> completion);

}  // namespace detail

// Waits until there is a completion and takes up to out.size(), oldest first: void(error_code, std::size_t), at
// least 1. `out` must live until then. The error is that of the wait; how each request ended is in its Completion.
// kAborted: cancelled, replaced by another wait, or the queue or the engine is gone; no completion is lost but with the
// engine. kInvalidArgument: `out` is empty. Understands all kinds of cancellation.
template <class Token>
auto async_poll(Engine& engine, verbs::CompletionQueue& cq, std::span<verbs::Completion> out, Token&& token,
                Cancellers* cancellers = nullptr) {
  return initiate<Error, std::size_t>(
      engine.operations(), cancellers, kHarmless, std::forward<Token>(token),
      [&engine, &cq, out](auto completion) { detail::start_poll(engine, cq, out, std::move(completion)); });
}

// The same for one: void(error_code, verbs::Completion).
template <class Token>
auto async_poll_one(Engine& engine, verbs::CompletionQueue& cq, Token&& token, Cancellers* cancellers = nullptr) {
  return initiate<Error, verbs::Completion>(
      engine.operations(), cancellers, kHarmless, std::forward<Token>(token),
      [&engine, &cq](auto completion) { detail::start_poll_one(engine, cq, std::move(completion)); });
}

class CompletionQueue : public verbs::CompletionQueue {
 public:
  using executor_type = Engine::executor_type;  // of get_executor(), as Asio looks for it

  // `capacity`: as in verbs::CompletionQueue. `engine` must outlive this object.
  CompletionQueue(Engine& engine, std::size_t capacity) : verbs::CompletionQueue(capacity, &engine), engine_(engine) {}

  // As verbs::CompletionQueue::moderate(), with a period as well: the engine tells the time, as precisely as its
  // handlers run. Throws std::bad_alloc when there is no memory for its timer.
  [[nodiscard]] Result<void> moderate(std::size_t count, std::chrono::microseconds period);

  // As cm::async_poll(), for this queue.
  template <class Token>
  auto async_poll(std::span<verbs::Completion> out, Token&& token) {
    return cm::async_poll(engine_, *this, out, std::forward<Token>(token), &cancellers_);
  }
  // As cm::async_poll_one(), for this queue.
  template <class Token>
  auto async_poll_one(Token&& token) {
    return cm::async_poll_one(engine_, *this, std::forward<Token>(token), &cancellers_);
  }
  // Gives the waits up with kAborted.
  void cancel() {
    if (engine_.context()->alive()) cancellers_.cancel();
  }
  // The engine's: where handlers run that name no executor.
  [[nodiscard]] executor_type get_executor() const { return engine_.get_executor(); }

 private:
  Engine& engine_;
  Cancellers cancellers_;
};

}  // namespace iwarp::cm
