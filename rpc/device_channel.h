// A device::Connection as a Channel. Its event loop and the owner of the channel take its lock in the same way, so the
// owner's posts and polls are done in the owner's thread. Internal to rpc_device.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "iwarp/device/connection.h"
#include "iwarp/rpc/channel.h"

namespace iwarp::rpc {

class DeviceChannel final : public Channel, public rpcrdma::Endpoint, public rpcrdma::Registrar {
 public:
  // With its queue pair, before it has ended. `peer_data`: what the peer has announced.
  DeviceChannel(std::shared_ptr<device::Connection> connection, std::vector<std::byte> peer_data);
  ~DeviceChannel() override { close(); }
  DeviceChannel(const DeviceChannel&) = delete;
  DeviceChannel& operator=(const DeviceChannel&) = delete;

  // To be called when it is established: from then on the end wakes the owner, too.
  [[nodiscard]] std::function<void()> end_watch() const;

  [[nodiscard]] rpcrdma::Endpoint& endpoint() override { return *this; }
  [[nodiscard]] rpcrdma::Registrar& registrar() override { return *this; }
  [[nodiscard]] ConstBytes peer_data() const override { return peer_data_; }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] std::uint16_t peer_port() const override { return peer_port_; }
  [[nodiscard]] Result<void> flush() override;
  std::size_t poll(std::span<rpcrdma::Completion> into) override;
  void set_wake(std::function<void()> wake) override { wake_->call = std::move(wake); }
  void arm() override;
  void disarm() override { wake_->armed = false; }
  void close() override;

  [[nodiscard]] rpcrdma::EndpointLimits limits() const override { return connection_->endpoint().limits(); }
  [[nodiscard]] Result<void> post_recv(std::uint64_t id, rpcrdma::LocalSlice into) override;
  [[nodiscard]] Result<void> post_send(std::uint64_t id, std::span<const rpcrdma::LocalSlice> from,
                                       std::optional<Stag> invalidate) override;
  [[nodiscard]] Result<void> post_write(std::uint64_t id, std::span<const rpcrdma::LocalSlice> from, Stag handle,
                                        std::uint64_t offset) override;
  [[nodiscard]] Result<void> post_read(std::uint64_t id, rpcrdma::LocalSlice into, Stag handle,
                                       std::uint64_t offset) override;
  // These need no lock: the event loop has no business with registrations, and a system call may take its time.
  [[nodiscard]] Result<rpcrdma::ExposedMemory> register_memory(MutBytes memory, rpcrdma::RemoteAccess access,
                                                               bool remote_invalidation) override;
  [[nodiscard]] Result<void> invalidate(Stag handle) override;
  [[nodiscard]] Result<Stag> register_local(MutBytes memory) override;
  void deregister_local(Stag lkey) override;

 private:
  struct Wake {
    std::function<void()> call{};
    std::atomic<bool> armed{false};
    void ring() {
      if (armed.exchange(false)) call();
    }
  };

  const std::shared_ptr<device::Connection> connection_;
  const std::shared_ptr<Wake> wake_ = std::make_shared<Wake>();
  const std::vector<std::byte> peer_data_;
  const std::string peer_;
  const std::uint16_t peer_port_;
};

}  // namespace iwarp::rpc
