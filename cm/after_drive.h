// What follows a drive of a connection in the same handler of the engine. A verbs::Notifier is told with a queue
// pair's lock held and can do nothing but post, which costs another look at all sockets before the handler runs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/container/small_vector.hpp>
#include <functional>

namespace iwarp::cm {

// Of one drive in this thread, from its making to run().
class AfterDrive {
 public:
  using Act = std::function<void()>;

  explicit AfterDrive(boost::asio::io_context& io);
  // Posts what has not run: the drive has thrown.
  ~AfterDrive();
  AfterDrive(const AfterDrive&) = delete;
  AfterDrive& operator=(const AfterDrive&) = delete;

  // Once, without a lock; whether there was something to run. Passes on what an act throws; those behind it are posted.
  bool run();

  // For a Notifier, in notify(): runs `act` once, without a lock, behind the drive that this thread is in and the
  // handlers of the application that it calls. Posts it to `io` outside of a drive, such as in a post_send().
  static void add(boost::asio::io_context& io, Act act);

 private:
  boost::asio::io_context& io_;
  AfterDrive* const outer_;  // a handler of the application drives another connection
  boost::container::small_vector<Act, 2> acts_;
  std::size_t done_ = 0;
};

}  // namespace iwarp::cm
