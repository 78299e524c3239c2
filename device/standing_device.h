// A device by its name, whichever has it at the time: siw is taken away and set up anew, the driver of an RNIC is
// loaded again. Then a new Device takes the place of the one that is gone; connections over that one have ended.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "iwarp/device/device.h"

namespace iwarp::device {

class StandingDevice {
 public:
  struct Opened {
    std::shared_ptr<StandingDevice> device{};
    std::string error{};  // in its place: what there is, or what is missing
  };
  // `verbs` must outlive this, and `home` until close(). The device must be there now.
  [[nodiscard]] static Opened open(const VerbsTable& verbs, boost::asio::io_context& home, const std::string& name);
  // In the thread of `home`: see Device::close().
  void close();

  // The one that was opened last; it may be gone. Thread-safe.
  [[nodiscard]] std::shared_ptr<Device> current() const;
  // In the thread of `home`: looks for a new one if the current one is gone, at most once in kLookEvery. Whether the
  // current one is there now.
  [[nodiscard]] bool look();
  static constexpr std::chrono::milliseconds kLookEvery{500};

 private:
  StandingDevice(const VerbsTable& verbs, boost::asio::io_context& home, std::shared_ptr<Device> first);

  const VerbsTable& verbs_;
  boost::asio::io_context& home_;
  mutable std::mutex mu_;
  std::shared_ptr<Device> current_;  // guarded by it
  std::chrono::steady_clock::time_point looked_{};
  bool closed_ = false;
};

}  // namespace iwarp::device
