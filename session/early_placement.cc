#include "iwarp/session/early_placement.h"

#include <algorithm>
#include <cassert>
#include <new>

#include "iwarp/rdmap/copy_forwards.h"

namespace iwarp::session {
namespace {

std::uintptr_t address(const std::byte* octet) {
  return reinterpret_cast<std::uintptr_t>(octet);
}

}  // namespace

bool EarlyPlacement::place(std::uint64_t position, std::vector<ddp::Pin>& targets, ConstBytes payload) {
  if (targets.size() > kMaxTargets || placed_.size() + targets.size() > kMaxRemembered) return false;
  const auto behind = [position](const Placed& p) { return p.position > position; };
  auto at = std::ranges::upper_bound(placed_, position, {}, &Placed::position);
  assert(at == placed_.begin() || std::prev(at)->position < position);
  const auto count = std::distance(placed_.begin(), at);
  try {
    for (const ddp::Pin& target : targets) {
      find_above(at, target.bytes());
      copy_around(target.bytes(), payload.first(target.bytes().size()));
      payload = payload.subspan(target.bytes().size());
    }
    while (!targets.empty()) {
      targets.back().suspend();
      at = placed_.insert(at, Placed{position, std::move(targets.back())});
      targets.pop_back();
    }
  } catch (const std::bad_alloc&) {  // it is placed again when it is due
    const auto first = placed_.begin() + count;
    placed_.erase(first, std::find_if(first, placed_.end(), behind));
    targets.clear();
    return false;
  }
  return true;
}

void EarlyPlacement::place_due(const std::vector<ddp::Pin>& targets, ConstBytes payload) {
  for (const ddp::Pin& target : targets) {
    find_above(placed_.begin(), target.bytes());
    copy_around(target.bytes(), payload.first(target.bytes().size()));
    payload = payload.subspan(target.bytes().size());
  }
}

bool EarlyPlacement::delivered() {
  assert(!placed_.empty());
  const std::uint64_t position = placed_.front().position;
  bool stands = true;
  for (; !placed_.empty() && placed_.front().position == position; placed_.pop_front())
    stands = placed_.front().memory.resume() && stands;
  return stands;
}

// Memory that was revoked since may be another's by now, and is passed over.
void EarlyPlacement::find_above(Iterator first, MutBytes memory) {
  above_.clear();
  const std::uintptr_t begin = address(memory.data()), end = begin + memory.size();
  for (; first != placed_.end(); ++first) {
    const std::uintptr_t from = address(first->memory.bytes().data());
    const std::uintptr_t to = from + first->memory.bytes().size();
    if (to <= begin || end <= from || !first->memory.resume()) continue;
    first->memory.suspend();
    above_.emplace_back(std::max(from, begin), std::min(to, end));
    if (from <= begin && end <= to) break;  // it covers all
  }
  std::sort(above_.begin(), above_.end());
}

void EarlyPlacement::copy_around(MutBytes memory, ConstBytes payload) const {
  const std::uintptr_t begin = address(memory.data());
  std::size_t at = 0;  // copied, or passed over
  for (const auto& [from, to] : above_) {
    if (from - begin > at) rdmap::copy_forwards(memory.subspan(at, from - begin - at), payload.subspan(at));
    at = std::max<std::size_t>(at, to - begin);
  }
  if (at < memory.size()) rdmap::copy_forwards(memory.subspan(at), payload.subspan(at));
}

}  // namespace iwarp::session
