// The ring that the peer writes data to. Its halves are granted to the peer in turn: it fills one, then the other, and
// has one again when the application has read it. Which octets and messages have come, were read and may come: no
// memory is touched here. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace iwarp::dropin::rsockets {

class ReceiveBuffer {
 public:
  // The first half of `half` octets is granted already.
  explicit ReceiveBuffer(std::size_t half) : half_(half), granted_(half) {}

  // Octets of the ring.
  [[nodiscard]] std::size_t size() const { return 2 * half_; }
  // A message says that `octets` have come. False, and nothing is changed: more than were granted.
  [[nodiscard]] bool arrive(std::uint32_t octets);
  // A message has come that counts like those, and has no data.
  void count_message() { ++messages_read_; }

  // Octets that wait to be read.
  [[nodiscard]] std::size_t readable() const { return static_cast<std::size_t>(arrived_ - read_); }
  // A piece of the ring.
  struct Piece {
    std::size_t offset, length;
  };
  // The octets that wait from the one with number `skip` on, as far as they lie in a row. Precondition: skip <=
  // readable().
  [[nodiscard]] Piece piece(std::size_t skip) const;
  // The application has read the next `octets`. Precondition: as many wait.
  void read(std::size_t octets);
  // Messages that were read to their ends, modulo 2^16.
  [[nodiscard]] std::uint16_t messages_read() const { return messages_read_; }

  // Whether a half is free that the peer does not have.
  [[nodiscard]] bool may_grant() const { return granted_ - read_ <= half_; }
  // Grants it: where in the ring it begins. Precondition: may_grant().
  [[nodiscard]] std::size_t grant();
  [[nodiscard]] std::size_t half() const { return half_; }

 private:
  std::size_t half_;
  std::uint64_t granted_, arrived_ = 0, read_ = 0;  // octets since the beginning
  std::deque<std::uint32_t> messages_;              // octets of each that are to be read
  std::uint16_t messages_read_ = 0;
};

}  // namespace iwarp::dropin::rsockets
