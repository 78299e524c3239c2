// MemoryRegion: registered memory (RAII). It does not own the memory: keep that allocated as long as the region lives.
// The destructor revokes all access and returns when none is under way. Move-only; a moved-from region is empty. Not
// thread-safe per object, distinct objects are.
#pragma once

#include <optional>
#include <utility>

#include "iwarp/verbs/context.h"

namespace iwarp::verbs {

class MemoryRegion {
 public:
  struct Options {
    ddp::Access access = ddp::Access::kLocalWrite;
    // Tagged Offset of the first octet as the peer sees it. Default: the virtual address, as RNICs do; 0 hides
    // addresses.
    std::optional<std::uint64_t> base_to{};
    // Restricts the STag to one queue pair (QueuePair::stream()). Without it kRemoteInvalidate grants nothing.
    ddp::StreamId stream = ddp::StreamId::kAny;
  };

  MemoryRegion() = default;
  // Errors: kInvalidArgument (base + length wraps), kResource.
  [[nodiscard]] static Result<MemoryRegion> register_memory(const ProtectionDomain& pd, MutBytes memory,
                                                            const Options& options);
  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  ~MemoryRegion() { reset(); }

  // STag for scatter/gather entries and for the peer: the same number.
  [[nodiscard]] Stag stag() const { return stag_; }
  [[nodiscard]] MutBytes memory() const { return memory_; }
  [[nodiscard]] std::uint64_t base_to() const { return base_to_; }
  // Tagged Offset of the octet at `address`, which must lie in memory().
  [[nodiscard]] std::uint64_t to_of(const std::byte* address) const {
    return base_to_ + static_cast<std::uint64_t>(address - memory_.data());
  }
  // Revokes all access and waits until none is under way; the STag stays dead. No-op when the peer has revoked it
  // already.
  void invalidate();
  // Deregisters.
  void reset();
  explicit operator bool() const { return context_ != nullptr; }

 private:
  std::shared_ptr<Context> context_;
  MutBytes memory_;
  std::uint64_t base_to_ = 0;
  Stag stag_{};
};

}  // namespace iwarp::verbs
