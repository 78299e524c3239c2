// What stands behind an RdmaDevice: the device by its name, the engine whose thread it is at home in, and the ways into
// that thread. Internal to rpc_device.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "iwarp/device/standing_device.h"
#include "iwarp/rpc/device_transport.h"

namespace iwarp::rpc {

class HomeDevice final : public RdmaDevice {
 public:
  // With these calls in place of those that are loaded. `verbs` must outlive it.
  [[nodiscard]] static OpenedDevice open(cm::Engine& engine, const std::string& name, const device::VerbsTable& verbs);
  ~HomeDevice() override;
  HomeDevice(const HomeDevice&) = delete;
  HomeDevice& operator=(const HomeDevice&) = delete;

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] cm::Engine& engine() const { return engine_; }
  [[nodiscard]] boost::asio::io_context& io() const { return io_; }
  [[nodiscard]] const std::shared_ptr<device::StandingDevice>& standing() const { return standing_; }

  // Has it done in the thread of the engine: now if this is that one, else later.
  void post(std::function<void()> what) const;
  // Likewise, and waits for it.
  void run(const std::function<void()>& what) const;

 private:
  HomeDevice(cm::Engine& engine, std::string name, std::shared_ptr<device::StandingDevice> standing)
      : engine_(engine), io_(engine.io()), name_(std::move(name)), standing_(std::move(standing)) {}

  cm::Engine& engine_;
  boost::asio::io_context& io_;
  const std::string name_;
  std::shared_ptr<device::StandingDevice> standing_;
};

}  // namespace iwarp::rpc
