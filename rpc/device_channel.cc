#include "iwarp/rpc/device_channel.h"

#include <mutex>
#include <utility>

namespace iwarp::rpc {

using device::Life;
using rpcrdma::LocalSlice;

DeviceChannel::DeviceChannel(std::shared_ptr<device::Connection> connection, std::vector<std::byte> peer_data)
    : connection_(std::move(connection)),
      peer_data_(std::move(peer_data)),
      peer_(connection_->remote().address().to_string()),
      peer_port_(connection_->remote().port()) {}

std::function<void()> DeviceChannel::end_watch() const {
  return [weak = std::weak_ptr(connection_), wake = wake_] {
    const auto connection = weak.lock();
    if (connection == nullptr) return;
    const std::lock_guard lock(connection->mutex());
    connection->on_end([wake](const device::End&) { wake->ring(); });
  };
}

Result<void> DeviceChannel::flush() {
  const std::lock_guard lock(connection_->mutex());
  if (connection_->life() == Life::kOver) return connection_->end()->reason;
  return connection_->endpoint().flush();
}

std::size_t DeviceChannel::poll(std::span<rpcrdma::Completion> into) {
  const std::lock_guard lock(connection_->mutex());
  if (connection_->life() == Life::kOver) connection_->endpoint().flush_rest();
  return connection_->poll(into);
}

// Armed before anybody looks at the queue again: what comes from then on, the end included, finds it so.
void DeviceChannel::arm() {
  const std::lock_guard lock(connection_->mutex());
  wake_->armed = true;
  connection_->arm([wake = wake_] { wake->ring(); });
}

void DeviceChannel::close() {
  const std::lock_guard lock(connection_->mutex());
  wake_->armed = false;
  connection_->leave_at_once();
}

Result<void> DeviceChannel::post_recv(std::uint64_t id, LocalSlice into) {
  const std::lock_guard lock(connection_->mutex());
  return connection_->endpoint().post_recv(id, into);
}

Result<void> DeviceChannel::post_send(std::uint64_t id, std::span<const LocalSlice> from,
                                      std::optional<Stag> invalidate) {
  const std::lock_guard lock(connection_->mutex());
  return connection_->endpoint().post_send(id, from, invalidate);
}

Result<void> DeviceChannel::post_write(std::uint64_t id, std::span<const LocalSlice> from, Stag handle,
                                       std::uint64_t offset) {
  const std::lock_guard lock(connection_->mutex());
  return connection_->endpoint().post_write(id, from, handle, offset);
}

Result<void> DeviceChannel::post_read(std::uint64_t id, LocalSlice into, Stag handle, std::uint64_t offset) {
  const std::lock_guard lock(connection_->mutex());
  return connection_->endpoint().post_read(id, into, handle, offset);
}

Result<rpcrdma::ExposedMemory> DeviceChannel::register_memory(MutBytes memory, rpcrdma::RemoteAccess access,
                                                              bool remote_invalidation) {
  return connection_->endpoint().register_memory(memory, access, remote_invalidation);
}

Result<void> DeviceChannel::invalidate(Stag handle) {
  return connection_->endpoint().invalidate(handle);
}

Result<Stag> DeviceChannel::register_local(MutBytes memory) {
  return connection_->endpoint().register_local(memory);
}

void DeviceChannel::deregister_local(Stag lkey) {
  connection_->endpoint().deregister_local(lkey);
}

}  // namespace iwarp::rpc
