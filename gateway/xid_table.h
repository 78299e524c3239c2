// The calls of one connection that are still waiting for their reply, by xid. A Call whose xid is in here already is a
// retransmission and must not be matched a second time; a Reply whose xid is not in here belongs to nobody.
// Fixed size, no allocation after construction. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace iwarp::gateway {

class XidTable {
 public:
  enum class Insert : std::uint8_t { kInserted, kDuplicate, kFull };

  // At most `capacity` outstanding calls. At least the credits granted, or clients that keep to them meet kFull.
  explicit XidTable(std::size_t capacity);

  // kDuplicate: drop the Call, count it, let the first one finish. kFull: the peer overran its credits.
  [[nodiscard]] Insert insert(std::uint32_t xid);
  // The Reply came. False: no such Call is outstanding, drop the Reply and count it.
  [[nodiscard]] bool erase(std::uint32_t xid);
  [[nodiscard]] bool contains(std::uint32_t xid) const { return find(xid) < slots_.size(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  void clear();

 private:
  struct Slot {
    std::uint32_t xid = 0;
    bool used = false;
  };

  [[nodiscard]] std::size_t home(std::uint32_t xid) const;
  // Index of the slot that holds xid; slots_.size() if there is none.
  [[nodiscard]] std::size_t find(std::uint32_t xid) const;

  // Open addressing, at most half full. xids chosen to collide cost their sender one walk of `capacity` slots a
  // message.
  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace iwarp::gateway
