#include "iwarp/device/device.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>
#include <vector>

#include "iwarp/device/failure.h"

namespace iwarp::device {

using boost::asio::posix::stream_descriptor;

namespace {

std::string names_of(const VerbsTable& verbs, ibv_context** list, int count) {
  std::string names;
  for (int i = 0; i < count; ++i) names += (i == 0 ? "" : ", ") + std::string(verbs.get_device_name(list[i]->device));
  return names.empty() ? "there is none: is its driver loaded, and rdma-core's modules rdma_ucm and ib_uverbs?"
                       : "there are: " + names;
}

// Of events that end a queue pair.
const char* text_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
      return "the device reports a fatal error of the queue pair";
    case IBV_EVENT_QP_REQ_ERR:
      return "the device reports an invalid request of the peer";
    case IBV_EVENT_QP_ACCESS_ERR:
      return "the device reports an access of the peer to memory that it may not reach";
    case IBV_EVENT_CQ_ERR:
      return "the device reports an overrun of the completion queue";
    default:
      return nullptr;
  }
}

}  // namespace

Device::Opened Device::open(const VerbsTable& verbs, boost::asio::io_context& home, const std::string& name) {
  int count = 0;
  ibv_context** const list = verbs.get_devices(&count);
  if (list == nullptr) {
    const bool none = errno == ENODEV || errno == ENOENT || errno == ENOSYS;
    return {nullptr, "no RDMA device '" + name + "'; " +
                         (none ? names_of(verbs, nullptr, 0) : std::string(failure_of(errno, "unknown").why))};
  }
  for (int i = 0; i < count; ++i) {
    if (name != verbs.get_device_name(list[i]->device)) continue;
    std::shared_ptr<Device> device(new Device(verbs, home, list, list[i], name));
    if (verbs.query_device(device->context_, &device->attributes_) != 0)
      return {nullptr, "RDMA device '" + name + "' does not answer"};
    boost::system::error_code ec;
    const int events = ::dup(device->context_->async_fd);
    if (events >= 0) device->events_->assign(events, ec);
    if (events >= 0 && ec) ::close(events);
    if (events < 0 || ec || !set_nonblocking(events)) {
      device->close();
      return {nullptr, "the events of RDMA device '" + name + "' cannot be read"};
    }
    device->wait_for_events();
    return {std::move(device), {}};
  }
  std::string error = "no RDMA device '" + name + "'; " + names_of(verbs, list, count);
  verbs.free_devices(list);
  return {nullptr, std::move(error)};
}

Device::Device(const VerbsTable& verbs, boost::asio::io_context& home, ibv_context** list, ibv_context* context,
               std::string name)
    : verbs_(verbs),
      home_(&home),
      list_(list),
      context_(context),
      name_(std::move(name)),
      events_(std::make_unique<stream_descriptor>(home)) {}

Device::~Device() {
  verbs_.free_devices(list_);
}

void Device::close() {
  {
    const std::lock_guard lock(mu_);
    home_ = nullptr;
  }
  events_.reset();
}

std::shared_ptr<const void> Device::watch(const ibv_qp* qp, const ibv_cq* cq, Hears hears) {
  const std::lock_guard lock(mu_);
  const std::uint64_t key = next_++;
  watchers_.emplace(key, Watcher{qp, cq, std::move(hears)});
  return {this, [self = shared_from_this(), key](const void*) {
            Watcher was{};  // goes without the lock
            const std::lock_guard last(self->mu_);
            if (const auto found = self->watchers_.find(key); found != self->watchers_.end()) {
              std::swap(was, found->second);
              self->watchers_.erase(found);
            }
          }};
}

void Device::wait_for_events() {
  events_->async_wait(stream_descriptor::wait_read, [weak = weak_from_this()](boost::system::error_code ec) {
    const auto self = weak.lock();
    if (self == nullptr || ec || self->events_ == nullptr) return;
    self->take_events();
    if (!self->gone_ && self->events_ != nullptr) self->wait_for_events();
  });
}

void Device::take_events() {
  ibv_async_event event{};
  while (verbs_.get_async_event(context_, &event) == 0) {
    // Who it is about is settled before it is acknowledged: until then its queue pair cannot go, nor another come in
    // its place.
    const auto of_queues = concerned(event);
    verbs_.ack_async_event(&event);
    handle(event, of_queues);
  }
  // A device that was removed has no more to tell, and its descriptor is ready for ever.
  if (errno != EAGAIN && errno != EINTR) lost(make_error(Errc::kSystem, "the RDMA device was removed"));
}

std::vector<Device::Hears> Device::concerned(const ibv_async_event& event) const {
  std::vector<Hears> out;
  if (text_of(event.event_type) == nullptr) return out;
  const bool of_cq = event.event_type == IBV_EVENT_CQ_ERR;
  const std::lock_guard lock(mu_);
  for (const auto& [key, watcher] : watchers_) {
    const bool mine = of_cq ? watcher.cq != nullptr && watcher.cq == event.element.cq
                            : watcher.qp != nullptr && watcher.qp == event.element.qp;
    if (mine) out.push_back(watcher.hears);
  }
  return out;
}

void Device::handle(const ibv_async_event& event, const std::vector<Hears>& of_queues) {
  if (event.event_type == IBV_EVENT_DEVICE_FATAL)
    return lost(make_error(Errc::kSystem, "the RDMA device has failed: reset it, and start again"));
  if (const char* const text = text_of(event.event_type); text != nullptr) {
    for (const Hears& hears : of_queues) hears(make_error(Errc::kRdmapCatastrophic, text));
  }
}

void Device::lost(const Error& why) {
  if (gone_.exchange(true)) return;
  const std::lock_guard lock(mu_);
  if (home_ == nullptr) return;
  boost::asio::post(*home_, [self = shared_from_this(), why] {
    std::vector<Hears> all;
    {
      const std::lock_guard each(self->mu_);
      for (const auto& [key, watcher] : self->watchers_) all.push_back(watcher.hears);
    }
    for (const Hears& hears : all) hears(why);
  });
}

}  // namespace iwarp::device
