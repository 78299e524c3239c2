// What a listener does when the system gives it no more connections, mostly because the process has no descriptor left:
// it waits a little, since asking again at once would only spin, and says so, but not each time. Those who connect
// meanwhile wait in the queue of the listening socket. Not thread-safe: one strand.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <optional>

#include "iwarp/base/error.h"

namespace iwarp::cm {

class AcceptPause {
 public:
  using Tell = std::function<void(Error)>;
  // After a failure, to the next attempt.
  static constexpr std::chrono::milliseconds kPause{100};
  // `tell` is called at most this often, however long the shortage lasts.
  static constexpr std::chrono::seconds kSilence{30};

  // `executor`: an executor or an io_context. `tell` may be empty; what it throws passes to the caller.
  template <class Executor>
  AcceptPause(Executor& executor, Tell tell) : timer_(executor), tell_(std::move(tell)) {}

  // `failed`: why accept(2) did. `again` is called after kPause, unless cancelled.
  template <class Again>
  void begin(const boost::system::error_code& failed, Again again) {
    timer_.expires_after(kPause);
    timer_.async_wait([again = std::move(again)](boost::system::error_code cancelled) {
      if (!cancelled) again();
    });
    report(failed);  // last: it may throw
  }
  void cancel() { timer_.cancel(); }
  // A shortage met elsewhere.
  void tell(const Error& shortage);

 private:
  void report(const boost::system::error_code& failed);

  boost::asio::steady_timer timer_;
  Tell tell_;
  std::optional<std::chrono::steady_clock::time_point> told_;
};

}  // namespace iwarp::cm
