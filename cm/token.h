// Completion tokens: how cm's operations meet Asio callbacks, futures and coroutines. A handler runs on its associated
// executor (the engine's io_context by default), whose context has work to do until then; never inside the initiating
// call, and never with a lock of the library held. (In a forked child, where nothing of the parent's runs, an operation
// fails inside the initiating call.)
//
// Operations take the token's cancellation slot (boost::asio::bind_cancellation_slot, awaitable operators): cancelled,
// they complete with Errc::kAborted (why: "cancelled by the local application"), unless they have completed already;
// each says what its cancellation does.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/system_executor.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

namespace iwarp::cm {

// Joins an operation to whoever may cancel it. Thread-safe.
class Canceller {
 public:
  // By the operation, once it is under way: what cancels it. Called at once if that was asked for already, else once at
  // most, without a lock; not after drop().
  void set(std::function<void()> act) {
    {
      const std::lock_guard lock(mu_);
      if (over_) return;
      if (!asked_) {
        act_ = std::move(act);
        return;
      }
    }
    act();
  }
  void cancel() {
    std::function<void()> act;
    {
      const std::lock_guard lock(mu_);
      asked_ = true;
      act = std::exchange(act_, {});
    }
    if (act) act();
  }
  // The operation has completed.
  void drop() {
    std::function<void()> act;
    const std::lock_guard lock(mu_);
    over_ = true;
    act = std::exchange(act_, {});
  }

 private:
  std::mutex mu_;
  std::function<void()> act_;
  bool asked_ = false, over_ = false;
};

// What an operation is started with. `cancel` is null when nobody can cancel it.
template <class... Args>
struct Completion {
  std::function<void(Args...)> handler;
  std::shared_ptr<Canceller> cancel;
};

namespace detail {

// A handler, the work that its executor has until it is called, and who may cancel. Called once, it lets go of all.
template <class Handler, class Executor>
struct Waiting {
  Handler handler;
  boost::asio::executor_work_guard<Executor> work;
  std::shared_ptr<Canceller> cancel;
};

template <class... Args, class Handler, class Executor>
Completion<Args...> make_completion(Handler handler, const Executor& executor, boost::asio::cancellation_type which) {
  Completion<Args...> made;
  if (auto slot = boost::asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
    made.cancel = std::make_shared<Canceller>();
    slot.assign([cancel = made.cancel, which](boost::asio::cancellation_type asked) {
      if ((asked & which) != boost::asio::cancellation_type::none) cancel->cancel();
    });
  }
  auto waiting = std::make_shared<Waiting<Handler, Executor>>(Waiting<Handler, Executor>{
      std::move(handler), boost::asio::executor_work_guard<Executor>(executor), made.cancel});
  made.handler = [waiting = std::move(waiting)](Args... args) mutable {
    if (waiting->cancel != nullptr) waiting->cancel->drop();
    const auto work = std::move(waiting->work);  // until the handler is with its executor
    boost::asio::dispatch(work.get_executor(),
                          [waiting = std::move(waiting), packed = std::make_tuple(std::move(args)...)]() mutable {
                            auto own = std::move(waiting->handler);
                            waiting.reset();
                            std::apply(std::move(own), std::move(packed));
                          });
  };
  return made;
}

}  // namespace detail

// Starts `start(Completion<Args...>)`, whose handler completes `token`; it may be called once, from any thread.
// `alive`: false in a forked child. `which`: the kinds of cancellation that the operation understands.
template <class... Args, class Token, class Start>
auto initiate(boost::asio::io_context& io, bool alive, boost::asio::cancellation_type which, Token&& token,
              Start start) {
  return boost::asio::async_initiate<Token, void(Args...)>(
      [&io, alive, which, start = std::move(start)](auto handler) mutable {
        if (alive) {
          const auto executor = boost::asio::get_associated_executor(handler, io.get_executor());
          start(detail::make_completion<Args...>(std::move(handler), executor, which));
        } else {  // where the context of the parent would never call it
          const auto executor = boost::asio::get_associated_executor(handler, boost::asio::system_executor());
          start(detail::make_completion<Args...>(std::move(handler), executor, which));
        }
      },
      token);
}

// The text of the error of an operation that was cancelled.
inline constexpr const char* kCancelledWhy = "cancelled by the local application";

// Kinds of cancellation. An operation of the first leaves no trace when it is cancelled; one of the second ends what it
// was about.
inline constexpr auto kHarmless = boost::asio::cancellation_type::all;
inline constexpr auto kEnding = boost::asio::cancellation_type::terminal | boost::asio::cancellation_type::partial;

}  // namespace iwarp::cm
