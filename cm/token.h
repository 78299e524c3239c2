// Completion tokens: how cm's operations meet Asio callbacks, futures and coroutines.
//
// Signature: an operation with an error and a result T completes with void(boost::system::error_code, T), the only form
// that Asio's use_awaitable, use_future and redirect_error take for an error (they throw, or redirect it). The code's
// category is "iwarp" and its message the text of the Error: compare it with an Errc or a Condition. A callback that
// takes (Error, T) gets the Error itself, and so does any other token within as_error(): as_error(use_future) gives a
// future of a tuple of both.
//
// A handler runs on its associated executor (the engine's io_context by default), whose context has work to do until
// then; never inside the initiating call, and never with a lock of the library held. (In a forked child, where nothing
// of the parent's runs, an operation fails inside the initiating call.) When the engine is destroyed, each handler that
// has not been called is called with kAborted, and results that waited for it, such as a ConnectRequest, go before the
// engine.
//
// Operations take the token's cancellation slot (boost::asio::bind_cancellation_slot, awaitable operators): cancelled,
// they complete with Errc::kAborted (why: "cancelled by the local application"), unless they have completed already;
// each says what its cancellation does.
#pragma once

#include <atomic>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "iwarp/base/error_code.h"
#include "iwarp/cm/operations.h"

namespace iwarp {

// As for std::error_code.
[[nodiscard]] inline bool operator==(const boost::system::error_code& code, Errc errc) noexcept {
  return static_cast<std::error_code>(code) == errc;
}

}  // namespace iwarp

namespace iwarp::cm {

// What an operation is started with. `handler` may be called once, from any thread. `cancel` is null when nobody can
// cancel it.
template <class... Args>
struct Completion {
  std::function<void(Args...)> handler;              // to be called once with the results
  std::shared_ptr<Canceller> cancel;                 // null: nobody can cancel it
  std::shared_ptr<Operations::Operation> operation;  // keeps the handler alive
};

// The code of an Error, none for kOk.
[[nodiscard]] inline boost::system::error_code to_error_code(const Error& error) {
  return error ? boost::system::error_code(make_error_code(error)) : boost::system::error_code();
}

// What as_error() makes.
template <class Token>
struct AsError {
  Token token;  // the one within
};
// Not to be wrapped in another token: as_error() comes last.
template <class Token>
[[nodiscard]] AsError<std::decay_t<Token>> as_error(Token&& token) {
  return {std::forward<Token>(token)};
}

namespace detail {

// Forms in which the results of an operation are told. The primary template is not defined.
template <class... Args>
struct Results;
template <class... Rest>
struct Results<Error, Rest...> {
  using AsioSignature = void(boost::system::error_code, Rest...);
  static std::tuple<boost::system::error_code, Rest...> for_asio(const Error& error, Rest... rest) {
    return {to_error_code(error), std::move(rest)...};
  }
  static std::tuple<Error, Rest...> failed(const Error& error) { return {error, Rest{}...}; }
};

// As they are.
template <class... Args>
struct Plain {
  using Signature = void(Args...);
  static std::tuple<Args...> pack(Args... args) { return {std::move(args)...}; }
};
template <class... Args>
struct ForAsio {
  using Signature = typename Results<Args...>::AsioSignature;
  static auto pack(Args... args) { return Results<Args...>::for_asio(std::move(args)...); }
};

template <class T>
struct IsAsError : std::false_type {};
template <class T>
struct IsAsError<AsError<T>> : std::true_type {};

// What bind_executor() and the like were given.
template <class T, class = void>
struct Target {
  using type = T;
};
template <class T>
struct Target<T, std::void_t<typename T::target_type>> : Target<typename T::target_type> {};

// Whether a token is a callback of these arguments.
template <class Token, class... Args>
constexpr bool takes() {
  using T = typename Target<std::decay_t<Token>>::type;
  if constexpr (std::is_invocable_v<T, Args...>) {
    return std::is_void_v<std::invoke_result_t<T, Args...>>;
  } else {
    return false;
  }
}

inline Error engine_gone() {
  return make_error(Errc::kAborted, "engine destroyed");
}

// A handler, the work that its executor has until it is called, and who may cancel. Called once, it lets go of all. Its
// results wait in here for the executor, where an engine that goes takes them back: some need it, such as a
// ConnectRequest.
template <class Form, class Handler, class Executor, class... Args>
class Waiting final : public Operations::Operation {
 public:
  Waiting(Handler handler, const Executor& executor, std::shared_ptr<Canceller> cancel,
          std::shared_ptr<Operations> operations)
      : handler_(std::move(handler)),
        work_(std::in_place, executor),
        cancel_(std::move(cancel)),
        operations_(std::move(operations)) {}
  // Nobody else knows of it any more. In a forked child the lock of the others may be held for ever.
  ~Waiting() override {
    results_.reset();
    if (operations_->alive()) operations_->remove(*this);
  }

  void complete(Args... args) {
    if (over_.exchange(true)) return;
    if (cancel_ != nullptr) cancel_->drop();
    const auto work = std::move(*work_);  // until the handler is with its executor
    work_.reset();
    {
      const std::lock_guard lock(mu_);
      results_.emplace(std::move(args)...);
    }
    auto self = std::static_pointer_cast<Waiting>(shared_from_this());
    boost::asio::dispatch(work.get_executor(), [self = std::move(self)]() mutable {
      auto results = self->take();
      auto own = std::move(self->handler_);
      self.reset();
      std::apply(std::move(own), std::apply(Form::pack, std::move(results)));
    });
  }
  void abandon() override {
    if (!over_.load()) {
      before_abandon();
      std::apply([this](Args... args) { complete(std::move(args)...); }, Results<Args...>::failed(engine_gone()));
      return;
    }
    std::optional<std::tuple<Args...>> taken;  // goes without the lock
    const std::lock_guard lock(mu_);
    if (!results_) return;  // the handler has them, or take() will see that the engine has gone
    taken.swap(results_);
    results_.emplace(Results<Args...>::failed(engine_gone()));
  }

 private:
  // For the handler, which is about to run.
  std::tuple<Args...> take() {
    std::optional<std::tuple<Args...>> taken;
    {
      // An engine that goes waits here, in abandon(): what the results hold still finds it.
      const std::lock_guard lock(mu_);
      taken.swap(results_);
      if (operations_->alive() && operations_->closed()) taken = Results<Args...>::failed(engine_gone());
    }
    if (operations_->alive()) operations_->remove(*this);
    return std::move(*taken);
  }

  Handler handler_;
  std::optional<boost::asio::executor_work_guard<Executor>> work_;
  std::shared_ptr<Canceller> cancel_;
  std::shared_ptr<Operations> operations_;
  std::atomic<bool> over_{false};
  std::mutex mu_;
  std::optional<std::tuple<Args...>> results_;  // guarded by mu_; from complete() until the handler runs
};

template <class Form, class... Args, class Handler, class Executor, class Start>
void start_waiting(Handler handler, const Executor& executor, const std::shared_ptr<Operations>& operations,
                   Cancellers* cancellers, boost::asio::cancellation_type which, Start start) {
  Completion<Args...> made;
  auto slot = boost::asio::get_associated_cancellation_slot(handler);
  if (operations->alive() && cancellers != nullptr) {
    made.cancel = cancellers->make();
  } else if (slot.is_connected()) {
    made.cancel = std::make_shared<Canceller>();
  }
  if (slot.is_connected()) {
    slot.assign([cancel = made.cancel, which](boost::asio::cancellation_type asked) {
      if ((asked & which) != boost::asio::cancellation_type::none) cancel->cancel();
    });
  }
  auto waiting = std::make_shared<Waiting<Form, Handler, Executor, Args...>>(std::move(handler), executor, made.cancel,
                                                                             operations);
  if (operations->alive() && !operations->add(*waiting)) {
    boost::asio::post(executor, [waiting] { waiting->abandon(); });
    return;
  }
  made.handler = [waiting](Args... args) { waiting->complete(std::move(args)...); };
  made.operation = waiting;
  start(std::move(made));
}

template <class Form, class... Args, class Token, class Start>
auto initiate_as(std::shared_ptr<Operations> operations, Cancellers* cancellers, boost::asio::cancellation_type which,
                 Token&& token, Start start) {
  return boost::asio::async_initiate<Token, typename Form::Signature>(
      [operations = std::move(operations), cancellers, which, start = std::move(start)](auto handler) mutable {
        if (operations->alive() && !operations->closed()) {
          const auto executor = boost::asio::get_associated_executor(handler, operations->io().get_executor());
          start_waiting<Form, Args...>(std::move(handler), executor, operations, cancellers, which, std::move(start));
        } else {  // the context would never call it: the parent's, or gone
          const auto executor = boost::asio::get_associated_executor(handler, boost::asio::system_executor());
          start_waiting<Form, Args...>(std::move(handler), executor, operations, cancellers, which, std::move(start));
        }
      },
      token);
}

}  // namespace detail

// Starts `start(Completion<Args...>)`, whose handler completes `token`. `cancellers`: of the object whose cancel()
// cancels it, or null. `which`: the kinds of cancellation that the operation understands.
template <class... Args, class Token, class Start>
auto initiate(std::shared_ptr<Operations> operations, Cancellers* cancellers, boost::asio::cancellation_type which,
              Token&& token, Start start) {
  if constexpr (detail::IsAsError<std::decay_t<Token>>::value) {
    using Inner = decltype(token.token);
    return detail::initiate_as<detail::Plain<Args...>, Args...>(std::move(operations), cancellers, which,
                                                                static_cast<Inner>(std::forward<Token>(token).token),
                                                                std::move(start));
  } else if constexpr (detail::takes<Token, Args...>()) {
    return detail::initiate_as<detail::Plain<Args...>, Args...>(std::move(operations), cancellers, which,
                                                                std::forward<Token>(token), std::move(start));
  } else {
    return detail::initiate_as<detail::ForAsio<Args...>, Args...>(std::move(operations), cancellers, which,
                                                                  std::forward<Token>(token), std::move(start));
  }
}

// The text of the error of an operation that was cancelled.
inline constexpr const char* kCancelledWhy = "cancelled by the local application";

// Kinds of cancellation. An operation of the first leaves no trace when it is cancelled; one of the second ends what it
// was about.
inline constexpr auto kHarmless = boost::asio::cancellation_type::all;
inline constexpr auto kEnding =
    boost::asio::cancellation_type::terminal | boost::asio::cancellation_type::partial;  // as kHarmless, of the second

}  // namespace iwarp::cm
