#include "iwarp/device/standing_listener.h"

#include <utility>

namespace iwarp::device {

Result<std::unique_ptr<StandingListener>> StandingListener::listen(boost::asio::io_context& io,
                                                                   std::shared_ptr<StandingDevice> device,
                                                                   const tcp::endpoint& at, Handlers handlers,
                                                                   std::chrono::milliseconds look_every) {
  std::unique_ptr<StandingListener> out(new StandingListener(io, std::move(device), std::move(handlers), look_every));
  (void)out->device_->look();
  if (auto ok = out->open(at); !ok) return ok.error();
  return out;
}

StandingListener::StandingListener(boost::asio::io_context& io, std::shared_ptr<StandingDevice> device,
                                   Handlers handlers, std::chrono::milliseconds look_every)
    : io_(io), device_(std::move(device)), handlers_(std::move(handlers)), look_every_(look_every), timer_(io) {}

Result<void> StandingListener::open(const tcp::endpoint& at) {
  auto listener =
      Listener::listen(io_, device_->current(), at, {handlers_.request, [this](const Error& why) { lose(why); }});
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  local_ = listener_->local();
  return {};
}

void StandingListener::lose(const Error& why) {
  look_later();
  listener_.reset();
  const auto told = handlers_.lost;  // this may go in it
  if (told) told(why);
}

void StandingListener::look_later() {
  timer_.expires_after(look_every_);
  timer_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](boost::system::error_code ec) {
    if (!ec && !alive.expired()) look();
  });
}

// A device may be back before its address is, or while somebody else has the port.
void StandingListener::look() {
  if (!device_->look() || !open(local_)) return look_later();
  const auto told = handlers_.back;
  if (told) told();
}

}  // namespace iwarp::device
