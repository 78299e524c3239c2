#include "iwarp/verbs/memory_region.h"

namespace iwarp::verbs {

Result<MemoryRegion> MemoryRegion::register_memory(const ProtectionDomain& pd, MutBytes memory,
                                                   const Options& options) {
  ddp::Registration r;
  r.memory = memory;
  r.base_to = options.base_to.value_or(reinterpret_cast<std::uintptr_t>(memory.data()));
  r.pd = pd.id();
  r.stream = options.stream;
  r.access = options.access;
  const auto stag = pd.context()->register_memory(r);
  if (!stag) return stag.error();
  MemoryRegion region;
  region.context_ = pd.context();
  region.memory_ = memory;
  region.base_to_ = r.base_to;
  region.stag_ = *stag;
  return region;
}

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept
    : context_(std::move(other.context_)),
      memory_(std::exchange(other.memory_, {})),
      base_to_(other.base_to_),
      stag_(std::exchange(other.stag_, {})) {}

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
  if (this != &other) {
    reset();
    context_ = std::move(other.context_);
    memory_ = std::exchange(other.memory_, {});
    base_to_ = other.base_to_;
    stag_ = std::exchange(other.stag_, {});
  }
  return *this;
}

void MemoryRegion::invalidate() {
  if (context_) context_->invalidate(stag_);
}

void MemoryRegion::reset() {
  if (context_) context_->deregister(stag_);
  context_.reset();
  memory_ = {};
}

}  // namespace iwarp::verbs
