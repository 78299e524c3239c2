// A timer that follows a deadline, which its owner tells after each input.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "iwarp/base/time.h"

namespace iwarp::sctp_cm {

// One thread: that of the io_context.
class Deadline {
 public:
  // `due` is called in the event loop, and may destroy this object; after the end of it, it is not called.
  Deadline(boost::asio::io_context& io, std::function<void()> due)
      : timer_(io), due_(std::make_shared<std::function<void()>>(std::move(due))) {}

  // Nothing: none.
  void follow(std::optional<TimePoint> deadline) {
    if (deadline == armed_) return;
    armed_ = deadline;
    timer_.cancel();
    if (!deadline) return;
    timer_.expires_at(*deadline);
    timer_.async_wait([this, weak = std::weak_ptr(due_)](const boost::system::error_code& error) {
      const auto due = weak.lock();
      // One that was cancelled may have been due already, and waits in the loop behind what has cancelled it.
      if (due == nullptr || error || !armed_ || std::chrono::steady_clock::now() < *armed_) return;
      armed_.reset();
      (*due)();
    });
  }

 private:
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> armed_;
  std::shared_ptr<std::function<void()>> due_;  // held by this object alone, but for the call
};

}  // namespace iwarp::sctp_cm
