// One io_context for everything in a loopback test: gateway, server and client all live in the test's own thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <list>

namespace iwarp::gateway::test {

class Loop {
 public:
  boost::asio::io_context io{1};

  // `poller` is called between handlers, until remove().
  using Poller = std::list<std::function<void()>>::iterator;
  Poller add(std::function<void()> poller) { return pollers_.insert(pollers_.end(), std::move(poller)); }
  void remove(Poller poller) { pollers_.erase(poller); }

  // Runs until `done()`; false when that has not come true within `limit`.
  template <class Done>
  [[nodiscard]] bool until(Done done, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (;;) {
      for (const auto& poller : pollers_) poller();
      if (done()) return true;
      if (std::chrono::steady_clock::now() >= deadline) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(5));
    }
  }
  void run_for(std::chrono::milliseconds time) {
    (void)until([] { return false; }, time);
  }

 private:
  std::list<std::function<void()>> pollers_;
};

}  // namespace iwarp::gateway::test
