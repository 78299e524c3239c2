#include "iwarp/rpc/registered_memory.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <new>
#include <utility>

#include "iwarp/rpcrdma/pages.h"

namespace iwarp::rpc {
namespace {

// Of two allocations no octet is in one line of the cache.
constexpr std::size_t kGranule = 64;
static_assert(RegisteredMemory::kHeadBytes % kGranule == 0);
// Head and octets together have to fit into one segment of a chunk.
constexpr std::size_t kMostBytes = UINT32_MAX - 4096;

constexpr std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

std::shared_ptr<const rpcrdma::LentMemory> mapped(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  auto made = std::make_unique<MutBytes>();
  *made = rpcrdma::map_pages(round_up(std::max<std::size_t>(bytes, 1), rpcrdma::kPageBytes));
  if (made->empty()) throw std::bad_alloc();
  const std::shared_ptr<const MutBytes> pages(made.release(), [](const MutBytes* all) {
    rpcrdma::unmap_pages(*all);
    delete all;
  });
  return std::make_shared<const rpcrdma::LentMemory>(rpcrdma::LentMemory{*pages, pages});
}

}  // namespace

RegisteredMemory::RegisteredMemory(std::size_t bytes) : whole_(mapped(bytes)), pieces_{{0, {size_bytes(), false}}} {}

RegisteredMemory::~RegisteredMemory() {
  assert(in_use_ == 0 && "an allocation outlives its RegisteredMemory");
  rpcrdma::forget_pages(whole_->bytes);
}

std::size_t RegisteredMemory::in_use_bytes() const {
  const std::lock_guard lock(mu_);
  return in_use_;
}

void* RegisteredMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > std::min(kMostBytes, size_bytes()) || alignment > size_bytes()) throw std::bad_alloc();
  alignment = std::max(alignment, kGranule);
  const auto base = reinterpret_cast<std::uintptr_t>(whole_->bytes.data());
  const std::lock_guard lock(mu_);
  for (auto& [offset, piece] : pieces_) {
    if (piece.used) continue;
    const std::size_t at = round_up(base + offset + kHeadBytes, alignment) - base;
    const std::size_t size = round_up(at + std::max<std::size_t>(bytes, 1), kGranule) - offset;
    if (size > piece.size) continue;
    if (size < piece.size) {
      pieces_.emplace(offset + size, Piece{piece.size - size, false});
      piece.size = size;
    }
    piece.used = true;
    in_use_ += size;
    return whole_->bytes.data() + at;
  }
  throw std::bad_alloc();
}

void RegisteredMemory::do_deallocate(void* p, std::size_t /*bytes*/, std::size_t /*alignment*/) {
  const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(p) - whole_->bytes.data());
  const std::lock_guard lock(mu_);
  auto piece = std::prev(pieces_.upper_bound(at));
  assert(piece->second.used && "not an allocation");
  in_use_ -= piece->second.size;
  piece->second.used = false;
  if (const auto next = std::next(piece); next != pieces_.end() && !next->second.used) {
    piece->second.size += next->second.size;
    pieces_.erase(next);
  }
  if (piece == pieces_.begin()) return;
  if (const auto before = std::prev(piece); !before->second.used) {
    before->second.size += piece->second.size;
    pieces_.erase(piece);
  }
}

RegisteredOctets::RegisteredOctets(std::pmr::vector<std::byte> octets) {
  // What has no octets has no memory either.
  if (!octets.empty()) memory_ = dynamic_cast<RegisteredMemory*>(octets.get_allocator().resource());
  octets_ = std::make_shared<std::pmr::vector<std::byte>>(std::move(octets));
}

}  // namespace iwarp::rpc
