// Calls what came of RPCs: without a lock, and never inside one another. What one such call leads to is called behind
// it, by the event loop, so that no number of ready Replies deepens the stack. Internal to rpc.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <vector>

namespace iwarp::rpc {

// Runs them in order, in this thread; all of them later on `io` where this thread is in another deliver(). Passes on
// what one throws; those behind it run on `io`.
void deliver(boost::asio::io_context& io, std::vector<std::function<void()>> acts);

}  // namespace iwarp::rpc
