#include "tests/programs/memory.h"

#include <algorithm>
#include <cstring>

namespace iwarp::programs {
namespace {

// Whether `later` may begin while `earlier` is under way: what both do must not depend on which is first.
bool compatible(const Use& earlier, const Use& later, std::size_t fence) {
  using Kind = Use::Kind;
  if (!earlier.writes() && !later.writes()) return true;
  if (earlier.qp != later.qp) return false;  // RFC 5040 s5.5 items 1 and 2: there is no order between them
  const bool behind_a_fence = fence > earlier.request;
  // What a Read brings may be sent by a request that waits for it.
  if (earlier.kind == Kind::kSink && later.kind == Kind::kSource) return behind_a_fence && !earlier.loose;
  if (!earlier.remote() || !later.remote()) return false;
  // Of one stream, in the order of posting: each is placed, and its Response made, behind what was posted before (RFC
  // 5040 s5.5 items 12, 17 and 20, RFC 7306 s7). But a Write may overtake the Response of what was posted before it,
  // and a Read may bring what an Atomic behind it has made: when the buffer is read is left open.
  if (earlier.kind == Kind::kRemoteWrite || later.kind == Kind::kRemoteRead || behind_a_fence) return true;
  return earlier.kind == Kind::kRemoteAtomic && later.kind == Kind::kRemoteAtomic;
}

}  // namespace

Memory::Memory(const Setup& setup) : regions_(setup.pairs * kHosts * kRegions) {
  for (std::size_t i = 0; i < regions_.size(); ++i) regions_[i].octets = octets(i + 1, setup.region_bytes);
}

bool Memory::may_use(std::size_t qp, std::size_t index, const Use& wanted, std::size_t fence) const {
  const auto& uses = region(qp, index).uses;
  return std::all_of(uses.begin(), uses.end(), [&](const Use& u) {
    return !u.overlaps(wanted.begin, wanted.end) || compatible(u, wanted, fence);
  });
}

bool Memory::within(std::size_t qp, const Piece& p) const {
  if (p.region >= kRegions) return false;
  const std::size_t size = region(qp, p.region).octets.size();
  return p.offset <= size && p.length <= size - p.offset;
}

Bytes Memory::read(std::size_t qp, const std::vector<Piece>& pieces) const {
  Bytes out;
  for (const Piece& p : pieces) {
    const auto from = region(qp, p.region).octets.begin() + p.offset;
    out.insert(out.end(), from, from + p.length);
  }
  return out;
}

void Memory::write(std::size_t qp, const std::vector<Piece>& pieces, ConstBytes octets) {
  for (const Piece& p : pieces) {
    const std::size_t n = std::min<std::size_t>(p.length, octets.size());
    if (n != 0) std::memcpy(region(qp, p.region).octets.data() + p.offset, octets.data(), n);
    octets = octets.subspan(n);
  }
}

bool Memory::holds(std::size_t qp, const std::vector<Piece>& pieces, ConstBytes expected) const {
  for (const Piece& p : pieces) {
    const ConstBytes actual = region(qp, p.region).actual;
    const std::size_t n = std::min<std::size_t>(p.length, expected.size());
    if (n != 0 && !actual.empty() && std::memcmp(actual.data() + p.offset, expected.data(), n) != 0) return false;
    expected = expected.subspan(n);
  }
  return true;
}

bool Memory::settle_for(std::size_t qp, const std::vector<Piece>& pieces, ConstBytes one, ConstBytes other) {
  std::size_t at = 0;
  for (const Piece& p : pieces) {
    const ConstBytes actual = region(qp, p.region).actual;
    for (std::size_t i = 0; i < p.length && !actual.empty(); ++i, ++at) {
      const std::byte is = actual[p.offset + i];
      if (is != one[at] && is != other[at]) return false;
    }
    accept(qp, p);
  }
  return true;
}

bool Memory::holds_but_uses(std::size_t qp, std::size_t index, std::uint32_t begin, std::uint32_t end) const {
  const Region& r = region(qp, index);
  if (r.actual.empty() || begin == end) return true;
  if (std::memcmp(r.actual.data() + begin, r.octets.data() + begin, end - begin) == 0) return true;
  for (std::uint32_t at = begin; at < end; ++at) {
    if (r.actual[at] == r.octets[at]) continue;
    const bool in_use =
        std::any_of(r.uses.begin(), r.uses.end(), [&](const Use& u) { return u.writes() && u.overlaps(at, at + 1); });
    if (!in_use) return false;
  }
  return true;
}

std::size_t Memory::first_difference(std::size_t qp, std::size_t index) const {
  const Region& r = region(qp, index);
  if (r.actual.empty()) return r.octets.size();
  if (std::memcmp(r.actual.data(), r.octets.data(), r.octets.size()) == 0) return r.octets.size();
  const auto at = std::mismatch(r.octets.begin(), r.octets.end(), r.actual.begin()).first;
  return static_cast<std::size_t>(at - r.octets.begin());
}

void Memory::accept(std::size_t qp, const Piece& p) {
  Region& r = region(qp, p.region);
  if (!r.actual.empty() && p.length != 0) std::memcpy(r.octets.data() + p.offset, r.actual.data() + p.offset, p.length);
}

}  // namespace iwarp::programs
