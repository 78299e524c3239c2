// Reads a gateway's page of metrics by HTTP, on an event loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "iwarp/gateway/options.h"

namespace iwarp::tools::top {

struct Fetched {
  std::string error;  // empty: `text` is the page
  std::string text;
};

// `done` is called once, from `io`, within `limit`. The error says what to do.
void fetch(boost::asio::io_context& io, const gateway::HostPort& from, std::chrono::milliseconds limit,
           std::function<void(Fetched)> done);

}  // namespace iwarp::tools::top
