// An RDMA device of rdma-core by its name, e.g. siw0 or mlx5_0: a real RNIC, RoCE, or software. It hears the device's
// asynchronous events, in the thread of the io_context that it was opened with, and tells those whom they concern. A
// process opens each name once, since the events go to one reader only. Thread-safe but for open().
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "iwarp/base/error.h"
#include "iwarp/device/verbs_table.h"

namespace iwarp::device {

class Device : public std::enable_shared_from_this<Device> {
 public:
  struct Opened {
    std::shared_ptr<Device> device{};
    std::string error{};  // in its place: what there is, or what is missing
  };
  // `verbs` must outlive the device, and `home` until close().
  [[nodiscard]] static Opened open(const VerbsTable& verbs, boost::asio::io_context& home, const std::string& name);
  ~Device();
  // Stops to hear of events, in the thread of `home`: it need not outlive this. Connections that are left hear of their
  // own channels only.
  void close();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const VerbsTable& verbs() const { return verbs_; }
  // That of librdmacm: ids of connections over this device have it.
  [[nodiscard]] ibv_context* context() const { return context_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const ibv_device_attr& attributes() const { return attributes_; }
  // It is an RNIC: the sink of an RDMA Read must be writable for the peer (RFC 5040 s1.1 names it by an STag).
  [[nodiscard]] bool iwarp() const { return context_->device->transport_type == IBV_TRANSPORT_IWARP; }
  // It has Send with Invalidate.
  [[nodiscard]] bool sends_with_invalidate() const {
    return (attributes_.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0;
  }
  // It was removed, or has failed: nothing begins on it any more.
  [[nodiscard]] bool gone() const { return gone_; }

  // Hears, in the thread of `home`, that the queue pair or its completion queue has failed, or the device; until the
  // object that this returns is destroyed, and perhaps once more just then. Either may be null: of the device only.
  using Hears = std::function<void(const Error&)>;
  [[nodiscard]] std::shared_ptr<const void> watch(const ibv_qp* qp, const ibv_cq* cq, Hears hears);
  // The device is gone, as an event of a connection has said: tells all, once. Any thread.
  void lost(const Error& why);

 private:
  struct Watcher {
    const ibv_qp* qp;
    const ibv_cq* cq;
    Hears hears;
  };
  Device(const VerbsTable& verbs, boost::asio::io_context& home, ibv_context** list, ibv_context* context,
         std::string name);

  void wait_for_events();
  void take_events();
  void handle(const ibv_async_event& event, const std::vector<Hears>& of_queues);
  [[nodiscard]] std::vector<Hears> concerned(const ibv_async_event& event) const;

  const VerbsTable& verbs_;
  boost::asio::io_context* home_;  // guarded by mu_; null: closed
  ibv_context** list_;             // holds the device open
  ibv_context* context_;
  std::string name_;
  ibv_device_attr attributes_{};
  std::atomic<bool> gone_{false};
  mutable std::mutex mu_;
  std::map<std::uint64_t, Watcher> watchers_;  // guarded by it
  std::uint64_t next_ = 0;                     // likewise
  std::unique_ptr<boost::asio::posix::stream_descriptor> events_;
};

}  // namespace iwarp::device
