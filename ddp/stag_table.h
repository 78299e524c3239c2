// STag table: which memory an STag names and who may touch it (RFC 5041 s5.1.1, s7.1, s8; RFC 5042 s5, s6).
//
// An STag is a 24-bit index << 8 | 8-bit key. Index 0 is never used; indices are handed out in unpredictable order,
// freed ones rest in quarantine for 65,536 further registrations and come back with a fresh key. Randomness is passed
// in.
//
// Thread-safety: pin(), local(), invalidate() and its kin and quiescent() are lock-free and may run in any thread at
// any time. register_memory(), renew() and release() change the table and must be serialised by the caller (verbs
// does).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"
#include "iwarp/ddp/access.h"

namespace iwarp::ddp {

// What an STag names. `memory` must stay allocated until invalidate() was called and quiescent() became true.
struct Registration {
  MutBytes memory{};
  std::uint64_t base_to = 0;  // Tagged Offset of the first octet; base_to + size must not wrap 64 bits
  PdId pd{};
  StreamId stream = StreamId::kAny;  // restricts the STag to one stream; kAny: every stream of the Protection Domain
  Access access = Access::kLocalRead;
  // IOVA of the first octet minus its address, modulo 2^64: scatter/gather entries name IOVAs. 0: they name addresses.
  // IOVA + size must not wrap 64 bits.
  std::uint64_t iova_shift = 0;

  // IOVA of the first octet.
  [[nodiscard]] std::uint64_t iova() const { return reinterpret_cast<std::uintptr_t>(memory.data()) + iova_shift; }
};

// Why an access was refused, in the order in which the checks are made.
enum class StagFault : std::uint8_t { kInvalid, kNotAssociated, kAccess, kWrap, kBounds };

// The error owed to the peer when an RDMA Write or a Read Response was refused, and when a Read Request was.
[[nodiscard]] Error tagged_error(StagFault fault);
[[nodiscard]] Error read_error(StagFault fault);

namespace internal {

// `state` is the valid bit, the key, a generation and the count of pins in one word, so that "still valid, same
// registration, now pinned" is one atomic step. The registration is written only while the slot is neither valid nor
// pinned by a successful look-up.
struct Slot {
  static constexpr std::uint64_t kValid = 1ULL << 63;
  static constexpr unsigned kKeyShift = 55;
  static constexpr unsigned kGenerationShift = 24;
  static constexpr std::uint64_t kGenerationMask = 0x7FFFFFFF;
  static constexpr std::uint64_t kPinMask = 0xFFFFFF;

  std::atomic<std::uint64_t> state{0};
  Registration registration;

  [[nodiscard]] static std::uint8_t key(std::uint64_t s) { return static_cast<std::uint8_t>(s >> kKeyShift); }
};

}  // namespace internal

// Keeps the memory of one access from being released: while a Pin exists, quiescent() of its STag is false. Hold it
// only around a copy, a batch of them that one call makes, or a non-blocking system call.
class Pin {
 public:
  Pin() = default;
  // Of octets that are not registered: whoever makes it keeps them for as long as it may be used.
  [[nodiscard]] static Pin unregistered(MutBytes bytes) {
    Pin pin;
    pin.bytes_ = bytes;
    return pin;
  }
  Pin(Pin&& other) noexcept
      : slot_(std::exchange(other.slot_, nullptr)),
        bytes_(other.bytes_),
        identity_(other.identity_),
        held_(std::exchange(other.held_, false)) {}
  Pin& operator=(Pin&& other) noexcept {
    if (this != &other) {
      suspend();
      slot_ = std::exchange(other.slot_, nullptr);
      bytes_ = other.bytes_;
      identity_ = other.identity_;
      held_ = std::exchange(other.held_, false);
    }
    return *this;
  }
  ~Pin() { suspend(); }
  // The pinned octets; valid while this Pin lives and is not suspended.
  [[nodiscard]] MutBytes bytes() const { return bytes_; }
  // Lets go of the memory without forgetting it, so that its owner need not wait for us. Idempotent.
  void suspend() {
    if (held_) slot_->state.fetch_sub(1, std::memory_order_release);
    held_ = false;
  }
  // Takes hold again; false when the registration was revoked meanwhile. True for one that holds no registration.
  [[nodiscard]] bool resume();

 private:
  friend class StagTable;
  // Whether the registration was not revoked yet. Precondition: it holds a slot.
  [[nodiscard]] bool stands() const {
    return (slot_->state.load(std::memory_order_acquire) & ~internal::Slot::kPinMask) == identity_;
  }

  internal::Slot* slot_ = nullptr;
  MutBytes bytes_;
  std::uint64_t identity_ = 0;  // validity, key and generation of the slot when it was pinned
  bool held_ = false;
};

// Keeps the region of one access pinned for the next ones, of many small copies from or to the same region: an atomic
// step for the first of them alone. Release it as soon as they are over, as one does with a Pin. For one thread.
class HeldRegion {
 public:
  void release() { pin_ = {}; }

 private:
  friend class StagTable;
  Pin pin_;  // of the whole region
  Stag lkey_{};
};

class StagTable {
 public:
  StagTable();
  ~StagTable();
  StagTable(const StagTable&) = delete;
  StagTable& operator=(const StagTable&) = delete;

  // kInvalidArgument when base_to + size or IOVA + size wraps.
  [[nodiscard]] static Result<void> check(const Registration& registration);
  // Enters a registration. `random` must be unpredictable to peers (at least 32 good bits). Errors: those of check(),
  // kResource when all indices are in use.
  [[nodiscard]] Result<Stag> register_memory(const Registration& registration, std::uint64_t random);
  // Puts another registration in the place of one that has ended: the same index with the key `key`. `stag` itself
  // stays dead. Preconditions: check() is ok, `stag` is invalidated, quiescent and not released, its key is another
  // one.
  [[nodiscard]] Stag renew(Stag stag, const Registration& registration, std::uint8_t key);

  // A checked access of `length` octets at `to`. `need` are the rights it takes. A zero length is checked like any
  // other: callers that must not check zero-length accesses do not call. On failure gives the fault.
  struct PinResult {
    Pin pin;
    StagFault fault = StagFault::kInvalid;
    bool ok = false;
    bool stable = false;  // registered with kStableSource
  };
  [[nodiscard]] PinResult pin(Stag stag, StreamKey who, Access need, std::uint64_t to, std::size_t length) const;
  // The same by IOVA, as the scatter/gather entries of work requests name memory.
  [[nodiscard]] PinResult pin_local(Stag lkey, PdId pd, Access need, std::uint64_t iova, std::size_t length) const;

  // As pin_local(), for a copy that is over before `held` is released or used again; nullopt when it is refused, as it
  // is from invalidate() on.
  [[nodiscard]] std::optional<MutBytes> local(HeldRegion& held, Stag lkey, PdId pd, Access need, std::uint64_t iova,
                                              std::size_t length) const;

  // Tagged Offset of an IOVA inside the region of `lkey`; nullopt when it does not lie there (or lkey is invalid).
  [[nodiscard]] std::optional<std::uint64_t> to_of(Stag lkey, PdId pd, std::uint64_t iova) const;

  // Makes the STag unusable at once; accesses already pinned go on. False when it was not valid.
  bool invalidate(Stag stag);
  // What a Send with Invalidate from `who` does (RFC 5040 s5.3). Errors: kCannotInvalidate when the STag is unknown,
  // belongs to somebody else, was not registered with kRemoteInvalidate, or is not bound to one stream (s8.1.1 item 7).
  [[nodiscard]] Result<void> invalidate_remote(Stag stag, StreamKey who);
  // What a Local Invalidate of a queue pair in `pd` does: as invalidate(), whatever the access rights and the stream of
  // the registration. Of an STag that is dead already, but was never used again, it does nothing: the peer may have
  // been sooner. Errors: kLocalProtection when the STag is unknown or of another Protection Domain.
  [[nodiscard]] Result<void> invalidate_local(Stag stag, PdId pd);
  // True when no pinned access is under way. After invalidate() this becomes true within what one call of a connection
  // does (the copies and checks of one read, or of one batch to send, and the system call), whatever peers do.
  [[nodiscard]] bool quiescent(Stag stag) const;
  // True while the STag can be used.
  [[nodiscard]] bool valid(Stag stag) const;
  // Gives the index back. Precondition: invalidated and quiescent.
  void release(Stag stag);

  // Number of registrations not yet released. Any thread.
  [[nodiscard]] std::size_t size() const { return in_use_; }

 private:
  static constexpr std::uint32_t kSlotsPerChunk = 1024;
  static constexpr std::uint32_t kChunks = (1U << 24) / kSlotsPerChunk;
  static constexpr std::uint64_t kQuarantine = 65536;

  struct Chunk;
  struct Resting {
    std::uint32_t index;
    std::uint64_t since;
  };

  [[nodiscard]] internal::Slot* slot_of(Stag stag) const;
  // Pins the slot of `stag` without any further check; null, and nothing pinned, when the STag is not valid.
  // Precondition: `pin` holds nothing.
  [[nodiscard]] const Registration* acquire(Stag stag, Pin& pin) const;
  // Makes the slot of `stag` name `registration`.
  void enter(Stag stag, const Registration& registration);
  bool add_chunk(std::uint64_t random);

  std::unique_ptr<std::atomic<Chunk*>[]> chunks_;  // null: not allocated yet
  std::vector<std::unique_ptr<Chunk>> owned_;
  std::vector<std::uint32_t> free_;
  std::deque<Resting> quarantine_;
  std::uint64_t registrations_ = 0;
  std::uint64_t generation_ = 0;  // of the last entry
  std::atomic<std::size_t> in_use_{0};
};

}  // namespace iwarp::ddp
