// Wakes its owner at a moment that may change with every input. One thread: that of the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>

#include "iwarp/base/time.h"

namespace iwarp::gateway {

// The first of several moments that may come, or nothing.
[[nodiscard]] inline std::optional<TimePoint> earliest(std::initializer_list<std::optional<TimePoint>> moments) {
  std::optional<TimePoint> out;
  for (const auto& m : moments) {
    if (m && (!out || *m < *out)) out = m;
  }
  return out;
}

class DeadlineTimer {
 public:
  explicit DeadlineTimer(boost::asio::io_context& io) : timer_(io) {}

  // Calls `due` on the event loop once `when` has come; nothing: never. Replaces what was set before; an unchanged
  // moment costs nothing. `due` may come a moment too often and must look at the clock, and it must not assume that its
  // owner lives.
  void set(std::optional<TimePoint> when, std::function<void()> due) {
    if (when == when_) return;
    when_ = when;
    if (!when) {
      timer_.cancel();
      return;
    }
    timer_.expires_at(*when);
    timer_.async_wait([due = std::move(due)](boost::system::error_code ec) {
      if (!ec) due();
    });
  }

 private:
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> when_;
};

}  // namespace iwarp::gateway
