// SIGINT and SIGTERM for commands whose threads sleep until something happens.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace iwarp::tools {

// Thread-safe. Destroy it before `io`, which somebody must run.
class Interruption {
 public:
  explicit Interruption(boost::asio::io_context& io);

  [[nodiscard]] bool happened() const;

 private:
  struct State {
    std::mutex mu;
    bool happened = false;
    std::list<std::function<void()>> hooks;
  };

 public:
  // Calls `what` once when the signal comes: in a thread that runs `io`, or at once if it has come before. When the
  // destructor returns it is not being called, and will not be. `what` must make and destroy no Hook.
  class Hook {
   public:
    Hook(const Interruption& interruption, std::function<void()> what);
    ~Hook();
    Hook(const Hook&) = delete;
    Hook& operator=(const Hook&) = delete;

   private:
    std::shared_ptr<State> state_;
    std::list<std::function<void()>>::iterator at_;
  };

  // Sleeps until `start` has called, from any thread, the function that it is given, with a T. std::nullopt when the
  // signal came first: a T that comes later is dropped.
  template <class T, class Start>
  [[nodiscard]] std::optional<T> await(const Start& start) const;

 private:
  std::shared_ptr<State> state_ = std::make_shared<State>();
  boost::asio::signal_set signals_;
};

template <class T, class Start>
std::optional<T> Interruption::await(const Start& start) const {
  struct Mailbox {
    std::mutex mu;
    std::condition_variable filled;
    bool over = false;
    std::optional<T> content;
  };
  const auto box = std::make_shared<Mailbox>();
  const auto fill = [box](std::optional<T> content) {
    const std::lock_guard lock(box->mu);
    if (std::exchange(box->over, true)) return;
    box->content = std::move(content);
    box->filled.notify_one();
  };
  const Hook hook(*this, [fill] { fill(std::nullopt); });
  start(fill);
  std::unique_lock lock(box->mu);
  box->filled.wait(lock, [&] { return box->over; });
  return std::move(box->content);
}

}  // namespace iwarp::tools
