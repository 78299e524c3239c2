#include "iwarp/gateway/xid_table.h"

#include <algorithm>
#include <bit>

namespace iwarp::gateway {

XidTable::XidTable(std::size_t capacity)
    : slots_(std::bit_ceil(std::max<std::size_t>(capacity * 2, 2))), mask_(slots_.size() - 1), capacity_(capacity) {}

std::size_t XidTable::home(std::uint32_t xid) const {
  // Clients count xids up, from a random start: multiplying spreads runs that interleave.
  return static_cast<std::size_t>((std::uint64_t{xid} * 0x9E3779B97F4A7C15) >> 32) & mask_;
}

std::size_t XidTable::find(std::uint32_t xid) const {
  for (std::size_t i = home(xid); slots_[i].used; i = (i + 1) & mask_) {
    if (slots_[i].xid == xid) return i;
  }
  return slots_.size();
}

XidTable::Insert XidTable::insert(std::uint32_t xid) {
  std::size_t i = home(xid);
  for (; slots_[i].used; i = (i + 1) & mask_) {
    if (slots_[i].xid == xid) return Insert::kDuplicate;
  }
  if (size_ == capacity_) return Insert::kFull;
  slots_[i] = {xid, true};
  ++size_;
  return Insert::kInserted;
}

bool XidTable::erase(std::uint32_t xid) {
  std::size_t hole = find(xid);
  if (hole == slots_.size()) return false;
  --size_;
  // Close the hole: move back every later entry of the run that may not stand behind it.
  for (std::size_t i = (hole + 1) & mask_; slots_[i].used; i = (i + 1) & mask_) {
    const std::size_t distance_from_home = (i - home(slots_[i].xid)) & mask_;
    const std::size_t distance_from_hole = (i - hole) & mask_;
    if (distance_from_home >= distance_from_hole) {
      slots_[hole] = slots_[i];
      hole = i;
    }
  }
  slots_[hole].used = false;
  return true;
}

void XidTable::clear() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  size_ = 0;
}

}  // namespace iwarp::gateway
