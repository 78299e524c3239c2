// The live sessions of a front: bounded, drained together. One thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "iwarp/gateway/session.h"

namespace iwarp::gateway {

class SessionSet {
 public:
  explicit SessionSet(boost::asio::io_context& io) : timer_(io) {}

  // Those that are still coming() included.
  [[nodiscard]] std::size_t size() const { return sessions_.size() + coming_; }
  [[nodiscard]] bool draining() const { return draining_; }
  void add(const std::shared_ptr<Session>& s) { sessions_.emplace(s.get(), s); }
  void remove(Session* s) {
    sessions_.erase(s);
    finish_if_empty();
    tell_if_empty();
  }
  // Something is under way that may become a session; and this has come to an end, after add() if it has one.
  void coming() { ++coming_; }
  void has_come() {
    --coming_;
    tell_if_empty();
  }
  // `empty` is posted, once, when there is neither a session nor one coming.
  void when_empty(std::function<void()> empty) {
    empty_ = std::move(empty);
    tell_if_empty();
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

  void tell_if_empty() {
    if (size() == 0 && empty_) boost::asio::post(timer_.get_executor(), std::exchange(empty_, {}));
  }

  boost::asio::steady_timer timer_;
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions_;
  bool draining_ = false;
  std::function<void()> done_;
  std::size_t coming_ = 0;
  std::function<void()> empty_;
};

}  // namespace iwarp::gateway
