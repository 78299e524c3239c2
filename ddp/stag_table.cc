#include "iwarp/ddp/stag_table.h"

#include <array>
#include <cassert>
#include <new>

namespace iwarp::ddp {
using internal::Slot;

struct StagTable::Chunk {
  std::array<Slot, kSlotsPerChunk> slots;
};

namespace {
constexpr std::uint8_t key_of(Stag s) {
  return static_cast<std::uint8_t>(raw(s) & 0xFF);
}
constexpr std::uint32_t index_of(Stag s) {
  return raw(s) >> 8;
}
// Both scopes of an STag. req: RFC5041-8.2-5 RFC5042-2.2.5-1
bool associated(const Registration& r, StreamKey who) {
  // req: RFC5041-2.3-2 RFC5041-8.3.1-2 RFC5040-8.1.1-2 RFC5042-6.1.1-5
  if (r.pd != who.pd) return false;
  // req: RFC5041-8.3-3 RFC5041-8.3.1-3 RFC5040-8.1.1-3 RFC5042-6.1.1-6
  return r.stream == StreamId::kAny || r.stream == who.stream;
}

std::optional<StagFault> remote_fault(const Registration& r, StreamKey who, Access need, std::uint64_t to,
                                      std::size_t length) {
  // req: RFC5041-8.2-1 RFC5041-8.2-2 RFC5040-7.2-10 RFC5042-6.1.1-2
  if (!associated(r, who)) return StagFault::kNotAssociated;
  // req: RFC5040-8.1.1-6 RFC5041-8.3.1-6 RFC5042-6.3.5-1
  if (!includes(r.access, need)) return StagFault::kAccess;
  if (to + length < to) return StagFault::kWrap;  // req: RFC5041-7.1-15 RFC5040-7.2-13
  const std::size_t size = r.memory.size();
  // Any place within. req: RFC5041-4.2-12 RFC5041-7.1-13 RFC5040-7.2-11
  if (to < r.base_to || to - r.base_to > size) return StagFault::kBounds;
  // To the octet. req: RFC5041-7.1-14 RFC5040-7.2-12 RFC5041-8.1-1 RFC5042-6.2.1-1
  // req: RFC5040-8.1.1-4 RFC5041-8.3-1 RFC5041-8.3.1-4 RFC5042-6.2.1-2
  if (length > size - (to - r.base_to)) return StagFault::kBounds;
  return std::nullopt;
}

// Where in the region an IOVA lies; more than its size: outside.
std::uint64_t local_offset(const Registration& r, std::uint64_t iova) {
  return iova - r.iova();
}

std::optional<StagFault> local_fault(const Registration& r, PdId pd, Access need, std::uint64_t iova,
                                     std::size_t length) {
  if (r.pd != pd) return StagFault::kNotAssociated;
  if (!includes(r.access, need)) return StagFault::kAccess;
  const std::uint64_t offset = local_offset(r, iova);
  const std::size_t size = r.memory.size();
  if (offset > size || length > size - offset) return StagFault::kBounds;
  return std::nullopt;
}

// Precondition: local_fault() has none.
MutBytes local_bytes(const Registration& r, std::uint64_t iova, std::size_t length) {
  return r.memory.subspan(local_offset(r, iova), length);
}

// Without a fault the access stands; with one its pin is let go.
void conclude(StagTable::PinResult& result, std::optional<StagFault> fault) {
  result.ok = !fault;
  if (result.ok) return;
  result.fault = *fault;
  result.pin = {};
}
}  // namespace

Error tagged_error(StagFault fault) {
  switch (fault) {
    case StagFault::kInvalid:
      // req: RFC5041-7.2-3
      return make_error(Errc::kTaggedInvalidStag);
    case StagFault::kNotAssociated:
      // req: RFC5041-7.2-5
      return make_error(Errc::kTaggedNotAssociated);
    case StagFault::kAccess:
      return make_error(Errc::kTaggedInvalidStag, "STag gives no remote write access");  // req: RFC5041-7.1-12
    case StagFault::kWrap:
      // req: RFC5041-7.2-6
      return make_error(Errc::kTaggedWrap);
    case StagFault::kBounds:
      // req: RFC5041-7.2-4
      return make_error(Errc::kTaggedBounds);
  }
  return make_error(Errc::kDdpCatastrophic);
}

Error read_error(StagFault fault) {
  switch (fault) {
    case StagFault::kInvalid:
      // req: RFC5040-4.8-12
      return make_error(Errc::kReadInvalidStag);
    case StagFault::kNotAssociated:
      // req: RFC5040-4.8-15
      return make_error(Errc::kReadNotAssociated);
    case StagFault::kAccess:
      // req: RFC5040-4.8-14
      return make_error(Errc::kReadAccess);
    case StagFault::kWrap:
      // req: RFC5040-4.8-16
      return make_error(Errc::kReadWrap);
    case StagFault::kBounds:
      // req: RFC5040-4.8-13
      return make_error(Errc::kReadBounds);
  }
  return make_error(Errc::kRdmapCatastrophic);
}

bool Pin::resume() {
  if (slot_ == nullptr || held_) return true;
  const std::uint64_t before = slot_->state.fetch_add(1, std::memory_order_acquire);
  held_ = true;
  if ((before & ~Slot::kPinMask) == identity_) return true;
  suspend();
  return false;
}

StagTable::StagTable() : chunks_(std::make_unique<std::atomic<Chunk*>[]>(kChunks)) {}

StagTable::~StagTable() = default;

Slot* StagTable::slot_of(Stag stag) const {
  const std::uint32_t index = index_of(stag);
  Chunk* chunk = chunks_[index / kSlotsPerChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk->slots[index % kSlotsPerChunk];
}

const Registration* StagTable::acquire(Stag stag, Pin& pin) const {
  Slot* slot = slot_of(stag);
  if (slot == nullptr) return nullptr;
  assert(!pin.held_);
  const std::uint64_t before = slot->state.fetch_add(1, std::memory_order_acquire);
  pin.slot_ = slot;
  pin.identity_ = before & ~Slot::kPinMask;
  pin.held_ = true;
  if ((before & Slot::kValid) != 0 && Slot::key(before) == key_of(stag)) return &slot->registration;
  pin.suspend();
  return nullptr;
}

bool StagTable::add_chunk(std::uint64_t random) {
  if (owned_.size() == kChunks) return false;
  auto chunk = static_cast<std::uint32_t>(random % kChunks);
  while (chunks_[chunk].load(std::memory_order_relaxed) != nullptr) chunk = (chunk + 1) % kChunks;
  free_.reserve(free_.size() + kSlotsPerChunk);  // what comes after the chunk must not fail
  owned_.push_back(std::make_unique<Chunk>());
  chunks_[chunk].store(owned_.back().get(), std::memory_order_release);
  for (std::uint32_t i = 0; i < kSlotsPerChunk; ++i) {
    const std::uint32_t index = chunk * kSlotsPerChunk + i;
    if (index != 0) free_.push_back(index);  // STag 0 kills Chelsio connections; index 0 never leaves this table
  }
  return true;
}

Result<void> StagTable::check(const Registration& r) {
  if (r.base_to + r.memory.size() < r.base_to)
    return make_error(Errc::kInvalidArgument, "base TO plus length wraps 64 bits");
  if (r.iova() + r.memory.size() < r.iova())
    return make_error(Errc::kInvalidArgument, "IOVA plus length wraps 64 bits");
  return {};
}

Result<Stag> StagTable::register_memory(const Registration& r, std::uint64_t random) {
  if (const auto ok = check(r); !ok) return ok.error();
  try {
    while (!quarantine_.empty() && registrations_ - quarantine_.front().since >= kQuarantine) {
      free_.push_back(quarantine_.front().index);
      quarantine_.pop_front();
    }
    // A thin free list would make the next index predictable: keep at least half a chunk to draw from.
    if (free_.size() < kSlotsPerChunk / 2 && !add_chunk(random >> 20) && free_.empty()) {
      return make_error(Errc::kResource, "all STags are in use");
    }
  } catch (const std::bad_alloc&) {
    return make_error(Errc::kResource, "no memory for another STag");
  }
  const std::size_t pick = (random >> 8) % free_.size();  // req: RFC5040-8.1.1-9 RFC5040-8.1.1-10
  const std::uint32_t index = free_[pick];
  free_[pick] = free_.back();
  free_.pop_back();
  const Stag stag{index << 8 | static_cast<std::uint32_t>(random & 0xFF)};
  enter(stag, r);
  ++registrations_;
  ++in_use_;
  return stag;
}

void StagTable::enter(Stag stag, const Registration& r) {
  Slot* slot = slot_of(stag);
  // req: RFC5040-3.2-11 RFC5041-8.3.1-5
  slot->registration = r;
  // A stale look-up may hold a passing pin on this slot: leave the count alone, replace key and validity.
  std::uint64_t old = slot->state.load(std::memory_order_relaxed);
  const std::uint64_t generation = (++generation_ & Slot::kGenerationMask) << Slot::kGenerationShift;
  const std::uint64_t key_and_valid =
      Slot::kValid | static_cast<std::uint64_t>(key_of(stag)) << Slot::kKeyShift | generation;
  while (!slot->state.compare_exchange_weak(old, (old & Slot::kPinMask) | key_and_valid, std::memory_order_acq_rel)) {
  }
}

Stag StagTable::renew(Stag stag, const Registration& r, std::uint8_t key) {
  assert(check(r).ok() && !valid(stag) && key != key_of(stag));
  const Stag renewed{(raw(stag) & ~std::uint32_t{0xFF}) | key};
  enter(renewed, r);
  return renewed;
}

StagTable::PinResult StagTable::pin(Stag stag, StreamKey who, Access need, std::uint64_t to, std::size_t length) const {
  PinResult result;
  std::optional<StagFault> fault = StagFault::kInvalid;
  // req: RFC5041-7.1-11 RFC5040-7.2-9 RFC5041-4.2-7 RFC5041-8.3-5 RFC5042-5.1.1-1 RFC5042-6.1.1-1
  if (const Registration* r = acquire(stag, result.pin)) {
    fault = remote_fault(*r, who, need, to, length);
    if (!fault) result.pin.bytes_ = r->memory.subspan(to - r->base_to, length);  // req: RFC5040-1.2-3 RFC5041-5.1.1-1
    result.stable = includes(r->access, Access::kStableSource);
  }
  conclude(result, fault);
  return result;
}

StagTable::PinResult StagTable::pin_local(Stag lkey, PdId pd, Access need, std::uint64_t iova,
                                          std::size_t length) const {
  PinResult result;
  std::optional<StagFault> fault = StagFault::kInvalid;
  if (const Registration* r = acquire(lkey, result.pin)) {
    fault = local_fault(*r, pd, need, iova, length);
    if (!fault) result.pin.bytes_ = local_bytes(*r, iova, length);
  }
  conclude(result, fault);
  return result;
}

std::optional<MutBytes> StagTable::local(HeldRegion& held, Stag lkey, PdId pd, Access need, std::uint64_t iova,
                                         std::size_t length) const {
  Pin& pin = held.pin_;
  if (!pin.held_ || held.lkey_ != lkey || !pin.stands()) {
    pin.suspend();
    if (acquire(lkey, pin) == nullptr) return std::nullopt;
    held.lkey_ = lkey;
  }
  const Registration& r = pin.slot_->registration;
  if (local_fault(r, pd, need, iova, length)) return std::nullopt;
  return local_bytes(r, iova, length);
}

std::optional<std::uint64_t> StagTable::to_of(Stag lkey, PdId pd, std::uint64_t iova) const {
  PinResult p = pin_local(lkey, pd, Access::kLocalRead, iova, 0);
  if (!p.ok) return std::nullopt;
  const Registration& r = p.pin.slot_->registration;
  return r.base_to + local_offset(r, iova);
}

// The STag alone is enough. req: RFC5040-3.2-12
bool StagTable::invalidate(Stag stag) {
  Slot* slot = slot_of(stag);
  if (slot == nullptr) return false;
  std::uint64_t old = slot->state.load(std::memory_order_relaxed);
  do {
    if ((old & Slot::kValid) == 0 || Slot::key(old) != key_of(stag)) return false;
    // From here on no look-up succeeds. req: RFC5041-8.3-2 RFC5041-8.3.1-7 RFC5040-8.1.1-5 RFC5040-8.1.1-7
  } while (!slot->state.compare_exchange_weak(old, old & ~Slot::kValid, std::memory_order_acq_rel));
  return true;
}

Result<void> StagTable::invalidate_remote(Stag stag, StreamKey who) {
  Pin held;
  const Registration* r = acquire(stag, held);
  if (r == nullptr)
    return make_error(Errc::kCannotInvalidate,
                      "Send with Invalidate names an unknown or invalid STag");  // req: RFC5040-7.2-4
  if (!associated(*r, who))
    return make_error(Errc::kCannotInvalidate);           // req: RFC5040-5.3-14 RFC5040-5.3-16 RFC5040-7.2-5
  if (!includes(r->access, Access::kRemoteInvalidate)) {  // req: RFC5040-8.1.1-8 RFC5040-4.8-17
    return make_error(Errc::kCannotInvalidate, "Send with Invalidate names an STag that the peer may not invalidate");
  }
  // Invalidated by one stream, it would be gone for the others. req: RFC5040-8.1.1-8 RFC5042-6.4.5-1
  if (r->stream == StreamId::kAny)
    return make_error(Errc::kCannotInvalidate, "Send with Invalidate names an STag that is shared by several streams");
  invalidate(stag);  // req: RFC5040-5.3-15 RFC5040-1.2-2
  return {};
}

Result<void> StagTable::invalidate_local(Stag stag, PdId pd) {
  Pin held;
  if (const Registration* r = acquire(stag, held)) {
    if (r->pd != pd) return make_error(Errc::kLocalProtection, "Local Invalidate of another Protection Domain's STag");
    invalidate(stag);  // req: RFC5040-8.1.1-5
    return {};
  }
  const Slot* slot = slot_of(stag);
  const std::uint64_t s = slot == nullptr ? 0 : slot->state.load(std::memory_order_acquire);
  if ((s & ~Slot::kPinMask) != 0 && Slot::key(s) == key_of(stag)) return {};
  return make_error(Errc::kLocalProtection, "Local Invalidate names an unknown STag");
}

bool StagTable::quiescent(Stag stag) const {
  const Slot* slot = slot_of(stag);
  if (slot == nullptr) return true;
  const std::uint64_t s = slot->state.load(std::memory_order_acquire);
  // Another valid key: the index lives on, registered anew, which waited until nothing had the old one pinned.
  return (s & Slot::kPinMask) == 0 || ((s & Slot::kValid) != 0 && Slot::key(s) != key_of(stag));
}

bool StagTable::valid(Stag stag) const {
  Slot* slot = slot_of(stag);
  if (slot == nullptr) return false;
  const std::uint64_t s = slot->state.load(std::memory_order_acquire);
  return (s & Slot::kValid) != 0 && Slot::key(s) == key_of(stag);
}

void StagTable::release(Stag stag) {
  quarantine_.push_back({index_of(stag), registrations_});
  --in_use_;
}

}  // namespace iwarp::ddp
