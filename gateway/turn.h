// The next turn of a session that has more to do than one turn allows.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

namespace iwarp::gateway {

// A member of the session. One turn is posted at a time, however many things wake the session: or each of them would
// post its own successor for as long as there is work.
class Turn {
 public:
  template <class Session>
  void post(boost::asio::io_context& io, std::weak_ptr<Session> session, void (Session::*take)()) {
    if (std::exchange(posted_, true)) return;
    boost::asio::post(io, [this, session = std::move(session), take] {
      const auto self = session.lock();  // and with it this
      if (!self) return;
      posted_ = false;
      ((*self).*take)();
    });
  }

 private:
  bool posted_ = false;
};

}  // namespace iwarp::gateway
