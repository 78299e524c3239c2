#include "dropin/rsocket/table.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>

#include "dropin/verbs/per_process.h"

namespace iwarp::dropin::rsockets {
namespace {

PerProcess<Table> tables;

}  // namespace

Table& table() {
  return tables.get();
}

int Table::add(std::shared_ptr<Socket> socket) {
  rdmacm::Descriptor descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!descriptor) throw std::system_error(errno, std::generic_category(), "eventfd");
  std::shared_ptr<Socket> lost;  // of a descriptor that was closed by close(); goes without the lock
  const std::lock_guard lock(mutex_);
  auto& place = sockets_[descriptor.get()];
  lost = std::exchange(place, std::move(socket));
  return descriptor.release();
}

std::shared_ptr<Socket> Table::find(int descriptor) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = sockets_.find(descriptor); found != sockets_.end()) return found->second;
  }
  errno = EBADF;
  return nullptr;
}

std::vector<std::shared_ptr<Socket>> Table::find(std::span<const pollfd> watched) {
  std::vector<std::shared_ptr<Socket>> found;
  const std::shared_lock lock(mutex_);
  if (sockets_.empty()) return found;
  for (std::size_t i = 0; i < watched.size(); ++i) {
    const auto at = sockets_.find(watched[i].fd);
    if (at == sockets_.end()) continue;
    found.resize(watched.size());
    found[i] = at->second;
  }
  return found;
}

std::shared_ptr<Socket> Table::remove(int descriptor) {
  std::shared_ptr<Socket> removed;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = sockets_.find(descriptor); found != sockets_.end()) {
      removed = std::move(found->second);
      sockets_.erase(found);
    }
  }
  if (removed == nullptr) errno = EBADF;
  return removed;
}

}  // namespace iwarp::dropin::rsockets
