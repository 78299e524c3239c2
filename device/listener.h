// Passive side: a listening id, and the requests that come to it. One thread: that of the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "iwarp/device/cm_id.h"
#include "iwarp/device/device.h"

namespace iwarp::device {

// A peer that waits for a decision; destroyed without one: rejected. Its id has an event channel of its own, so that
// any thread may go on with it, one at a time.
class Request {
 public:
  using tcp = boost::asio::ip::tcp;

  Request(std::shared_ptr<Device> device, CmId id, const CmEvent& event);
  ~Request() { reject(); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  [[nodiscard]] const tcp::endpoint& remote() const { return remote_; }
  [[nodiscard]] const tcp::endpoint& local() const { return local_; }
  [[nodiscard]] const std::vector<std::byte>& private_data() const { return private_data_; }
  // RDMA Reads that the peer admits, and those that it wants to have outstanding.
  [[nodiscard]] std::size_t peer_ird() const { return peer_ird_; }
  [[nodiscard]] std::size_t peer_ord() const { return peer_ord_; }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  // For a Connection, which decides then. Once.
  [[nodiscard]] CmId take() { return std::move(id_); }
  // No-op when it was decided.
  void reject();

 private:
  std::shared_ptr<Device> device_;
  CmId id_;
  tcp::endpoint local_, remote_;
  std::vector<std::byte> private_data_;
  std::size_t peer_ird_, peer_ord_;
};

class Listener {
 public:
  using tcp = boost::asio::ip::tcp;
  // Peers that the system holds until they are looked at.
  static constexpr int kBacklog = 128;

  struct Handlers {
    std::function<void(std::unique_ptr<Request>)> request;  // the listener may be destroyed in it
    std::function<void(const Error&)> lost;                 // once: nobody comes any more, for the device is gone
  };
  // At an address of the device, or of all (0.0.0.0, ::): then requests that come over other devices are rejected.
  // Errors: kSystem, kInvalidArgument (an address of another device), kResource.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> listen(boost::asio::io_context& io,
                                                                std::shared_ptr<Device> device, const tcp::endpoint& at,
                                                                Handlers handlers);
  // Stops listening; the port is free.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] const tcp::endpoint& local() const { return local_; }

 private:
  Listener(boost::asio::io_context& io, std::shared_ptr<Device> device, Handlers handlers);
  [[nodiscard]] Result<void> open(const tcp::endpoint& at);
  void wait_for_events();
  void take_events();
  void on_request(const CmEvent& event);
  void lose(const Error& why);

  boost::asio::io_context& io_;
  std::shared_ptr<Device> device_;
  Handlers handlers_;
  CmId id_;
  tcp::endpoint local_;
  boost::asio::posix::stream_descriptor events_;
  std::shared_ptr<const void> device_watch_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace iwarp::device
