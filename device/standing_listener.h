// A Listener that outlasts its device: when that is gone, it looks for one of the same name, and listens at the same
// address and port again. One thread: that of the io_context that the device was opened with.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "iwarp/device/listener.h"
#include "iwarp/device/standing_device.h"

namespace iwarp::device {

class StandingListener {
 public:
  using tcp = boost::asio::ip::tcp;

  struct Handlers {
    std::function<void(std::unique_ptr<Request>)> request;  // the listener may be destroyed in it
    std::function<void(const Error&)> lost;                 // nobody comes until back() is called
    std::function<void()> back;
  };
  // As Listener::listen(). `look_every`: how often it looks for a device that is gone; less finds it sooner, and asks
  // the system for all devices as often.
  [[nodiscard]] static Result<std::unique_ptr<StandingListener>> listen(
      boost::asio::io_context& io, std::shared_ptr<StandingDevice> device, const tcp::endpoint& at, Handlers handlers,
      std::chrono::milliseconds look_every = std::chrono::seconds(5));
  StandingListener(const StandingListener&) = delete;
  StandingListener& operator=(const StandingListener&) = delete;

  // The port stays the same once it is known.
  [[nodiscard]] const tcp::endpoint& local() const { return local_; }
  [[nodiscard]] bool listening() const { return listener_ != nullptr; }

 private:
  StandingListener(boost::asio::io_context& io, std::shared_ptr<StandingDevice> device, Handlers handlers,
                   std::chrono::milliseconds look_every);
  [[nodiscard]] Result<void> open(const tcp::endpoint& at);
  void lose(const Error& why);
  void look_later();
  void look();

  boost::asio::io_context& io_;
  std::shared_ptr<StandingDevice> device_;
  Handlers handlers_;
  const std::chrono::milliseconds look_every_;
  std::unique_ptr<Listener> listener_;  // null: lost
  tcp::endpoint local_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace iwarp::device
