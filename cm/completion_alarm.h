// The timer of a completion queue that holds notifications back (verbs::CompletionQueue::moderate()), in the engine's
// context. Thread-safe.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <mutex>

#include "iwarp/verbs/completion_queue.h"
#include "iwarp/verbs/own_process.h"

namespace iwarp::cm {

class CompletionAlarm final : public verbs::Alarm, public std::enable_shared_from_this<CompletionAlarm> {
 public:
  using Queue = verbs::CompletionQueue::Shared;

  // `queue`, which holds it until it is closed, must go before `io`.
  CompletionAlarm(boost::asio::io_context& io, std::weak_ptr<Queue> queue)
      : io_(io), timer_(std::in_place, io), queue_(std::move(queue)) {}

  // verbs::Alarm
  [[nodiscard]] bool set(TimePoint when) noexcept override;

 private:
  void start(TimePoint when);

  boost::asio::io_context& io_;
  std::mutex mu_;  // of the timer: a borrowed context may run in several threads
  verbs::OwnProcess<boost::asio::steady_timer> timer_;
  const std::weak_ptr<Queue> queue_;
};

}  // namespace iwarp::cm
