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

bool MemoryBudget::take(std::size_t bytes, Stage stage, Member& member) {
  const auto fits_without = [&](std::size_t own, std::size_t all) {
    return fits(bytes, stage, used_ - all, member.registered_bytes() - own);
  };
  if (!fits_without(0, 0)) {
    const std::size_t own = member.unused_bytes();
    if (fits_without(own, own)) {
      member.give_back();
    } else if (fits_without(own, unused_bytes())) {
      reclaim();
    }
    if (!fits_without(0, 0)) return false;
  }
  used_ += bytes;
  return true;
}

bool MemoryBudget::admits_connection() {
  const auto fits_without = [&](std::size_t all) { return fits(0, Stage::kConnection, used_ - all, 0); };
  if (!fits_without(0) && fits_without(unused_bytes())) reclaim();
  return fits_without(0);
}

bool MemoryBudget::fits(std::size_t bytes, Stage stage, std::size_t used, std::size_t held) const {
  const std::size_t ceiling = stage == Stage::kControl ? limit_ : limit_ / 8 * eighths(stage);
  if (used >= ceiling || bytes > ceiling - used) return false;
  // Not for what lets Calls finish that are there already: they would wait for each other.
  return stage != Stage::kCall || used + bytes <= limit_ / 2 || held + bytes <= part();
}

std::size_t MemoryBudget::unused_bytes() const {
  std::size_t sum = 0;
  for (const Member* member : members_) sum += member->unused_bytes();
  return sum;
}

std::size_t MemoryBudget::part() const {
  return std::max(limit_ / std::max<std::size_t>(members_.size(), 1), least_part_);
}

void MemoryBudget::reclaim() {
  for (Member* member : members_) member->give_back();
}

}  // namespace iwarp::rpcrdma
