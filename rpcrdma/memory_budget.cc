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
  ++whole_->members;
}

void MemoryBudget::leave(Member& member) {
  if (std::erase(members_, &member) > 0) --whole_->members;
}

bool MemoryBudget::take(std::size_t bytes, Stage stage, Member& member) {
  if (try_take(bytes, stage, member.registered_bytes())) return true;
  const auto fits_without = [&](std::size_t own, std::size_t all) {
    return fits(bytes, stage, used() - all, member.registered_bytes() - own);
  };
  const std::size_t own = member.unused_bytes();
  if (fits_without(own, own)) {
    member.give_back();
  } else if (fits_without(own, unused_bytes())) {
    reclaim();
  } else if (stage != Stage::kCall || member.registered_bytes() - own + bytes <= part()) {
    ask_others();  // whoever has more than its part waits for its own
  }
  return try_take(bytes, stage, member.registered_bytes());
}

// Others take at the same time.
bool MemoryBudget::try_take(std::size_t bytes, Stage stage, std::size_t held) {
  std::size_t used = whole_->used;
  do {
    if (!fits(bytes, stage, used, held)) return false;
  } while (!whole_->used.compare_exchange_weak(used, used + bytes));
  return true;
}

bool MemoryBudget::admits_connection() {
  const auto fits_without = [&](std::size_t all) { return fits(0, Stage::kConnection, used() - all, 0); };
  if (fits_without(0)) return true;
  fits_without(unused_bytes()) ? reclaim() : ask_others();
  return fits_without(0);
}

bool MemoryBudget::fits(std::size_t bytes, Stage stage, std::size_t used, std::size_t held) const {
  const std::size_t limit = whole_->limit;
  const std::size_t ceiling = stage == Stage::kControl ? limit : limit / 8 * eighths(stage);
  if (used >= ceiling || bytes > ceiling - used) return false;
  // Not for what lets Calls finish that are there already: they would wait for each other.
  return stage != Stage::kCall || used + bytes <= limit / 2 || held + bytes <= part();
}

std::size_t MemoryBudget::unused_bytes() const {
  std::size_t sum = 0;
  for (const Member* member : members_) sum += member->unused_bytes();
  return sum;
}

std::size_t MemoryBudget::part() const {
  return std::max(whole_->limit / std::max<std::size_t>(whole_->members, 1), whole_->least_part.load());
}

void MemoryBudget::reclaim() {
  for (Member* member : members_) member->give_back();
}

}  // namespace iwarp::rpcrdma
