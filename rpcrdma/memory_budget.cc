#include "iwarp/rpcrdma/memory_budget.h"

#include <algorithm>

namespace iwarp::rpcrdma {
namespace {

// Of the limit, in eighths.
std::size_t eighths(MemoryBudget::Stage stage) {
  switch (stage) {
    case MemoryBudget::Stage::kConnection:
      return 4;
    case MemoryBudget::Stage::kCall:
      return 6;
    case MemoryBudget::Stage::kReply:
      return 7;
    case MemoryBudget::Stage::kControl:
      return 8;
  }
  return 0;
}

}  // namespace

void MemoryBudget::join(Member& member) {
  members_.push_back(&member);
}

void MemoryBudget::leave(Member& member) {
  members_.erase(std::remove(members_.begin(), members_.end(), &member), members_.end());
}

bool MemoryBudget::take(std::size_t bytes, Stage stage, std::size_t held) {
  if (!fits(bytes, stage, held)) {
    if (has_room(bytes, stage) && used_ + bytes > limit_ / 2 + idle_bytes()) return false;  // its part is used up
    reclaim();
    if (!fits(bytes, stage, held)) return false;
  }
  used_ += bytes;
  return true;
}

bool MemoryBudget::admits_connection() {
  if (!fits(0, Stage::kConnection, 0)) reclaim();
  return fits(0, Stage::kConnection, 0);
}

bool MemoryBudget::fits(std::size_t bytes, Stage stage, std::size_t held) const {
  if (!has_room(bytes, stage)) return false;
  // Not for what lets Calls finish that are there already: they would wait for each other.
  return stage != Stage::kCall || used_ + bytes <= limit_ / 2 || held + bytes <= part();
}

bool MemoryBudget::has_room(std::size_t bytes, Stage stage) const {
  const std::size_t ceiling = stage == Stage::kControl ? limit_ : limit_ / 8 * eighths(stage);
  return used_ < ceiling && bytes <= ceiling - used_;
}

std::size_t MemoryBudget::idle_bytes() const {
  std::size_t sum = 0;
  for (const Member* member : members_) sum += member->idle_bytes();
  return sum;
}

std::size_t MemoryBudget::part() const {
  return std::max(limit_ / std::max<std::size_t>(members_.size(), 1), least_part_);
}

void MemoryBudget::reclaim() {
  for (Member* member : members_) member->give_back();
}

}  // namespace iwarp::rpcrdma
