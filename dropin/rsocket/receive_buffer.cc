#include "dropin/rsocket/receive_buffer.h"

#include <algorithm>

namespace iwarp::dropin::rsockets {

bool ReceiveBuffer::arrive(std::uint32_t octets) {
  if (octets > granted_ - arrived_) return false;
  if (octets == 0) {
    ++messages_read_;
    return true;
  }
  messages_.push_back(octets);
  arrived_ += octets;
  return true;
}

ReceiveBuffer::Piece ReceiveBuffer::piece(std::size_t skip) const {
  const auto offset = static_cast<std::size_t>((read_ + skip) % size());
  return {offset, std::min(readable() - skip, size() - offset)};
}

void ReceiveBuffer::read(std::size_t octets) {
  read_ += octets;
  while (octets > 0) {
    std::uint32_t& first = messages_.front();
    if (first > octets) {
      first -= static_cast<std::uint32_t>(octets);
      return;
    }
    octets -= first;
    messages_.pop_front();
    ++messages_read_;
  }
}

std::size_t ReceiveBuffer::grant() {
  const auto offset = static_cast<std::size_t>(granted_ % size());
  granted_ += half_;
  return offset;
}

}  // namespace iwarp::dropin::rsockets
