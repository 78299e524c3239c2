// The live sessions of a front: bounded, drained together. One thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <unordered_map>

#include "iwarp/gateway/session.h"

namespace iwarp::gateway {

class SessionSet {
 public:
  explicit SessionSet(boost::asio::io_context& io) : timer_(io) {}

  [[nodiscard]] std::size_t size() const { return sessions_.size(); }
  [[nodiscard]] bool draining() const { return draining_; }
  void add(const std::shared_ptr<Session>& s) { sessions_.emplace(s.get(), s); }
  void remove(Session* s) {
    sessions_.erase(s);
    finish_if_empty();
  }
  void drain(std::chrono::milliseconds limit, std::function<void()> done) {
    draining_ = true;
    done_ = std::move(done);
    each([](Session& s) { s.drain(); });
    timer_.expires_after(limit);
    timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec) each([](Session& s) { s.stop(); });
    });
    finish_if_empty();
  }
  template <class F>
  void each(F f) const {
    const auto copy = sessions_;  // sessions may end meanwhile
    for (const auto& [key, session] : copy) f(*session);
  }

 private:
  void finish_if_empty() {
    if (!draining_ || !sessions_.empty() || !done_) return;
    timer_.cancel();
    std::exchange(done_, {})();
  }

  boost::asio::steady_timer timer_;
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions_;
  bool draining_ = false;
  std::function<void()> done_;
};

}  // namespace iwarp::gateway
