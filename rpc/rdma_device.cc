#include "iwarp/rpc/rdma_device.h"

#include <boost/asio/post.hpp>
#include <map>
#include <mutex>
#include <utility>

#include "iwarp/cm/run_in_engine.h"

namespace iwarp::rpc {
namespace {

// Those of this process that are open, by name.
struct OpenDevices {
  std::mutex mu;
  std::map<std::string, std::weak_ptr<HomeDevice>> all;
};

OpenDevices& open_devices() {
  static OpenDevices open;
  return open;
}

}  // namespace

OpenedDevice HomeDevice::open(cm::Engine& engine, const std::string& name, const device::VerbsTable& verbs) {
  auto& [mu, all] = open_devices();
  const std::lock_guard lock(mu);
  if (const auto there = all[name].lock()) {
    if (&there->engine_ == &engine) return {there, {}};
    return {nullptr, "RDMA device '" + name + "' is open in this process for another engine: its events go there"};
  }
  auto opened = device::StandingDevice::open(verbs, engine.io(), name);
  if (!opened.device) return {nullptr, std::move(opened.error)};
  engine.start();
  std::shared_ptr<HomeDevice> made(new HomeDevice(engine, name, std::move(opened.device)));
  all[name] = made;
  return {std::move(made), {}};
}

// The last that holds it may be a handler that goes with a borrowed io_context, behind the engine.
HomeDevice::~HomeDevice() {
  boost::asio::post(io_, [standing = std::move(standing_)] { standing->close(); });
}

void HomeDevice::post(std::function<void()> what) const {
  if (engine_.leads_here()) return what();
  boost::asio::post(io_, std::move(what));
}

void HomeDevice::run(const std::function<void()>& what) const {
  cm::run_in(engine_, what);
}

OpenedDevice open_device(cm::Engine& engine, const std::string& name) {
  const device::LoadedTable& loaded = device::load_verbs();
  if (loaded.table == nullptr) return {nullptr, loaded.error};
  return HomeDevice::open(engine, name, *loaded.table);
}

}  // namespace iwarp::rpc
