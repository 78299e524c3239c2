// Sessions that have more to do than one turn allows wait here for the next one. They get it one at a time, and between
// two of them the event loop serves whoever else has something to do: a session that moves little waits for one turn of
// bulk data, not for one of each session that has them. Where the others are many, so that serving them takes long,
// more turns follow one another: half as much processor time as the others took, and 1 ms at most.
//
// Not thread-safe: everything happens on the thread of the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace iwarp::gateway {

// Who takes turns. Waits in one queue at most.
class TurnTaker {
 public:
  virtual ~TurnTaker() = default;
  virtual void take_turn() = 0;

 private:
  friend class TurnQueue;
  bool waits_ = false;
};

class TurnQueue : public std::enable_shared_from_this<TurnQueue> {
 public:
  // Tells the processor time that this thread has used.
  using Clock = std::function<std::chrono::nanoseconds()>;
  static std::chrono::nanoseconds processor_time();

  explicit TurnQueue(boost::asio::io_context& io, Clock clock = processor_time) : io_(io), clock_(std::move(clock)) {}

  // Calls take_turn() once, from the event loop, when it is its turn; never when it was destroyed before. Whoever waits
  // already keeps its place.
  void add(const std::shared_ptr<TurnTaker>& taker);

  // What a turn may move, each way: less while others wait.
  [[nodiscard]] std::size_t octets() const { return waiting_.empty() ? kTurnBytes : kTurnBytes / 4; }

  static constexpr std::size_t kTurnBytes = std::size_t{256} << 10;

 private:
  static constexpr std::chrono::milliseconds kLongestShare{1};

  void post();
  void give_turns();
  void give_turn();

  boost::asio::io_context& io_;
  std::deque<std::weak_ptr<TurnTaker>> waiting_;
  bool posted_ = false;
  Clock clock_;
  std::chrono::nanoseconds last_turn_ended_{};
};

}  // namespace iwarp::gateway
