// Memory that the peer may write: riomap(), riounmap(), riowrite().
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "dropin/rdmacm/entry.h"
#include "dropin/rsocket/socket.h"

namespace iwarp::dropin::rsockets {

using rdmacm::fail;

off_t Socket::map(void* memory, std::size_t size, int protection, off_t offset) {
  if ((protection & ~PROT_WRITE) != 0 || memory == nullptr || size == 0 || size > UINT32_MAX) return fail(EINVAL);
  Turn turn(*this);
  if (state_ != State::kConnected) return fail(state_ == State::kClosed ? EBADF : ENOTCONN);
  turn.process();
  // The memory's own address, where nothing else is asked for.
  if (offset == -1) offset = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(memory));
  const MutBytes octets(static_cast<std::byte*>(memory), size);
  if ((protection & PROT_WRITE) == 0) {
    unwritten_.push_back(octets);
    return offset;
  }
  const int error = stream_->map(octets, static_cast<std::uint64_t>(offset));
  return error == 0 ? offset : fail(error);
}

int Socket::unmap(void* memory, std::size_t size) {
  const Turn turn(*this);
  if (stream_ == nullptr) return fail(EINVAL);
  const auto local = std::find_if(unwritten_.begin(), unwritten_.end(),
                                  [&](MutBytes m) { return m.data() == memory && m.size() == size; });
  if (local != unwritten_.end()) {
    unwritten_.erase(local);
    return 0;
  }
  return stream_->unmap({static_cast<std::byte*>(memory), size}) ? 0 : fail(EINVAL);
}

ssize_t Socket::write_mapped(const void* octets, std::size_t size, off_t offset, int flags) {
  Turn turn(*this);
  if (const int error = await_connection(turn, flags); error != 0) return fail(error);
  ConstBytes rest(static_cast<const std::byte*>(octets), size);
  auto to = static_cast<std::uint64_t>(offset);
  const auto result = [&](int error) {
    return rest.size() < size ? static_cast<ssize_t>(size - rest.size()) : fail(error);
  };
  bool driven = false;
  while (!rest.empty()) {
    if (state_ == State::kClosed) return result(EBADF);
    turn.process();
    const std::size_t written = stream_->write_mapped(rest, to);
    rest = rest.subspan(written);
    to += written;
    if (written > 0) continue;
    if (const int error = stream_->why_not_send(); error != 0) return result(error);
    if (stream_->can_write_mapped() && !stream_->peer_maps(to)) break;  // nobody has mapped that
    if (waits(flags)) {
      if (!turn.wait()) return result(EINTR);
    } else {
      if (rest.size() < size || driven) return result(EAGAIN);
      driven = true;
      turn.drive();
    }
  }
  return static_cast<ssize_t>(size - rest.size());
}

}  // namespace iwarp::dropin::rsockets
