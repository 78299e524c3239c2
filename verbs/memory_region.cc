#include "iwarp/verbs/memory_region.h"

#include <limits>
#include <stdexcept>

namespace iwarp::verbs {

ddp::Registration MemoryRegion::registration(const ProtectionDomain& pd, MutBytes memory, const Options& options) {
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uint64_t iova = options.iova.value_or(address);
  ddp::Registration r;
  r.memory = memory;
  r.base_to = options.base_to.value_or(iova);
  r.pd = pd.id();
  r.stream = options.stream;
  r.access = options.access;
  r.iova_shift = iova - address;
  return r;
}

void MemoryRegion::names(const ddp::Registration& r, Stag stag) {
  memory_ = r.memory;
  base_to_ = r.base_to;
  iova_shift_ = r.iova_shift;
  stag_ = stag;
}

Result<MemoryRegion> MemoryRegion::register_memory(const ProtectionDomain& pd, MutBytes memory,
                                                   const Options& options) {
  const ddp::Registration r = registration(pd, memory, options);
  const auto stag = pd.context()->register_memory(r);
  if (!stag) return stag.error();
  MemoryRegion region;
  region.context_ = pd.context();
  region.names(r, *stag);
  return region;
}

Result<MemoryRegion> MemoryRegion::register_read_only(const ProtectionDomain& pd, ConstBytes memory,
                                                      const ReadOnlyOptions& options) {
  using ddp::Access;
  if (includes(options.access, Access::kLocalWrite) || includes(options.access, Access::kRemoteWrite) ||
      includes(options.access, Access::kRemoteAtomic))
    return make_error(Errc::kInvalidArgument, "read-only memory with an access that writes");
  // The table knows one kind of memory, and lets nobody write this: the access has no such right.
  const MutBytes as_known{const_cast<std::byte*>(memory.data()), memory.size()};  // NOLINT
  Options o;
  o.access = options.access;
  o.base_to = options.base_to;
  o.stream = options.stream;
  o.iova = options.iova;
  auto made = register_memory(pd, as_known, o);
  if (made) made->read_only_ = true;
  return made;
}

rdmap::Sge MemoryRegion::sge(std::size_t offset, std::size_t length) const {
  if (offset > memory_.size() || length > memory_.size() - offset)
    throw std::out_of_range("MemoryRegion::sge: not within the region");
  if (length > std::numeric_limits<std::uint32_t>::max())
    throw std::out_of_range("MemoryRegion::sge: longer than 4 GiB - 1");
  auto* const at = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(iova() + offset));  // NOLINT
  return {at, static_cast<std::uint32_t>(length), stag_};
}

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept
    : context_(std::move(other.context_)),
      memory_(std::exchange(other.memory_, {})),
      read_only_(other.read_only_),
      base_to_(other.base_to_),
      iova_shift_(std::exchange(other.iova_shift_, 0)),
      stag_(std::exchange(other.stag_, {})) {}

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
  if (this != &other) {
    reset();
    context_ = std::move(other.context_);
    memory_ = std::exchange(other.memory_, {});
    read_only_ = other.read_only_;
    base_to_ = other.base_to_;
    iova_shift_ = std::exchange(other.iova_shift_, 0);
    stag_ = std::exchange(other.stag_, {});
  }
  return *this;
}

Result<void> MemoryRegion::reregister(const ProtectionDomain& pd, MutBytes memory, const Options& options,
                                      std::optional<std::uint8_t> key) {
  if (!context_) return make_error(Errc::kInvalidArgument, "there is no region to register anew");
  if (pd.context() != context_)
    return make_error(Errc::kInvalidArgument, "a region is registered anew within its context only");
  const ddp::Registration r = registration(pd, memory, options);
  const auto stag = context_->reregister(stag_, r, key);
  if (!stag) return stag.error();
  names(r, *stag);
  read_only_ = false;
  return {};
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
