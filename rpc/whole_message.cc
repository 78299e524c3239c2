#include "iwarp/rpc/whole_message.h"

#include <algorithm>
#include <cassert>

namespace iwarp::rpc {
namespace {

// The longest head of a Call: eight words, flavors included, and two counted opaques. Those of Replies are shorter.
constexpr std::size_t kLongestHead = 8 * 4 + 2 * (4 + rpcrdma::kMaxAuthBytes);
static_assert(kLongestHead <= RegisteredMemory::kHeadBytes);

}  // namespace

WholeMessage::WholeMessage(ConstBytes head, RegisteredOctets body) {
  if (!body.in_place()) {
    const ConstBytes octets = body.bytes();
    octets_.reserve(head.size() + octets.size());
    octets_.assign(head.begin(), head.end());
    octets_.insert(octets_.end(), octets.begin(), octets.end());
    return;
  }
  assert(head.size() <= RegisteredMemory::kHeadBytes);
  std::byte* const begin = body.octets_->data() - head.size();
  std::copy(head.begin(), head.end(), begin);
  view_ = MutBytes(begin, head.size() + body.octets_->size());
  whole_ = body.memory_->whole_;
  kept_ = std::move(body.octets_);
}

std::optional<rpcrdma::Buffer> WholeMessage::put_into(rpcrdma::BufferPool& pool,
                                                      rpcrdma::BufferPool::Purpose purpose) const {
  if (kept_) return pool.adopt(whole_, view_, kept_);
  auto room = pool.acquire(octets_.size(), purpose);
  if (room) std::copy(octets_.begin(), octets_.end(), room->bytes().begin());
  return room;
}

bool WholeMessage::fits(const rpcrdma::BufferPool& pool, rpcrdma::BufferPool::Purpose purpose) const {
  return kept_ || pool.can_hold(octets_.size(), purpose);
}

}  // namespace iwarp::rpc
