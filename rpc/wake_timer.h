// The timer of a connection or a Client: it rings at the earliest of the times that were asked for. Guarded by its
// owner's lock. Internal to rpc.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "iwarp/base/time.h"

namespace iwarp::rpc {

class WakeTimer {
 public:
  explicit WakeTimer(boost::asio::io_context& io) : timer_(io) {}

  // Calls `owner`->on_timer() in the event loop at `when`, unless it rings before or the owner has gone by then.
  template <class Owner>
  void at(TimePoint when, std::weak_ptr<Owner> owner) {
    if (when >= rings_ || over_) return;
    rings_ = when;
    timer_.expires_at(when);
    timer_.async_wait([owner = std::move(owner)](boost::system::error_code ec) {
      const auto self = owner.lock();
      if (!ec && self) self->on_timer();
    });
  }
  // In on_timer(): what comes now is asked for anew.
  void rung() { rings_ = TimePoint::max(); }
  // For good.
  void cancel() {
    over_ = true;
    timer_.cancel();
  }

 private:
  boost::asio::steady_timer timer_;
  TimePoint rings_ = TimePoint::max();
  bool over_ = false;
};

}  // namespace iwarp::rpc
