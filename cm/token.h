// Completion tokens: how cm's operations meet Asio callbacks, futures and coroutines. A handler runs on its associated
// executor (the engine's io_context by default), never inside the initiating call, and never with a lock of the library
// held.
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

namespace iwarp::cm {

// Starts `start(std::function<void(Args...)>)` with a function that completes `token`. The function may be called once,
// from any thread.
template <class... Args, class Token, class Start>
auto initiate(boost::asio::io_context& io, Token&& token, Start start) {
  return boost::asio::async_initiate<Token, void(Args...)>(
      [&io, start = std::move(start)](auto handler) mutable {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        auto executor = boost::asio::get_associated_executor(*shared, io.get_executor());
        start(std::function<void(Args...)>([shared, executor](Args... args) {
          boost::asio::dispatch(executor, [shared, packed = std::make_tuple(std::move(args)...)]() mutable {
            std::apply(*shared, std::move(packed));
          });
        }));
      },
      token);
}

}  // namespace iwarp::cm
