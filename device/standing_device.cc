#include "iwarp/device/standing_device.h"

#include <utility>

namespace iwarp::device {

StandingDevice::Opened StandingDevice::open(const VerbsTable& verbs, boost::asio::io_context& home,
                                            const std::string& name) {
  auto first = Device::open(verbs, home, name);
  if (!first.device) return {nullptr, std::move(first.error)};
  return {std::shared_ptr<StandingDevice>(new StandingDevice(verbs, home, std::move(first.device))), {}};
}

StandingDevice::StandingDevice(const VerbsTable& verbs, boost::asio::io_context& home, std::shared_ptr<Device> first)
    : verbs_(verbs), home_(home), current_(std::move(first)) {}

void StandingDevice::close() {
  closed_ = true;
  current()->close();
}

std::shared_ptr<Device> StandingDevice::current() const {
  const std::lock_guard lock(mu_);
  return current_;
}

bool StandingDevice::look() {
  const std::shared_ptr<Device> before = current();
  if (!before->gone()) return true;
  const auto now = std::chrono::steady_clock::now();
  if (closed_ || now - looked_ < kLookEvery) return false;
  looked_ = now;
  auto opened = Device::open(verbs_, home_, before->name());
  if (!opened.device) return false;
  before->close();
  const std::lock_guard lock(mu_);
  current_ = std::move(opened.device);
  return true;
}

}  // namespace iwarp::device
