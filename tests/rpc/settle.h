// What was begun on an engine has come to pass.
#pragma once

#include <boost/asio/post.hpp>
#include <future>

#include "iwarp/cm/engine.h"

namespace iwarp::rpc::test {

// Waits for what runs on the engine, and for what that has posted.
inline void settle(cm::Engine& engine) {
  for (int i = 0; i < 2; ++i) {
    std::promise<void> there;
    boost::asio::post(engine.get_executor(), [&] { there.set_value(); });
    there.get_future().wait();
  }
}

}  // namespace iwarp::rpc::test
