// MemoryRegion: registered memory (RAII). It does not own the memory: keep that allocated as long as the region lives.
// The destructor revokes all access and returns when none is under way. Move-only; a moved-from region is empty. Not
// thread-safe per object, distinct objects are.
#pragma once

#include <optional>
#include <utility>

#include "iwarp/rdmap/work_request.h"
#include "iwarp/verbs/context.h"

namespace iwarp::verbs {

class MemoryRegion {
 public:
  // Who may do what with it.
  struct Options {
    ddp::Access access = ddp::Access::kLocalWrite;  // rights; kLocalRead is always among them
    // Tagged Offset of the first octet as the peer sees it. Default: the IOVA, as RNICs do; 0 hides addresses.
    std::optional<std::uint64_t> base_to{};
    // Restricts the STag to one queue pair (QueuePair::stream()). Without it kRemoteInvalidate grants nothing.
    ddp::StreamId stream = ddp::StreamId::kAny;
    // The number by which scatter/gather entries name the first octet, as with ibv_reg_mr_iova(). Default: its virtual
    // address. sge() knows of it.
    std::optional<std::uint64_t> iova{};
  };

  // For memory that nothing may write.
  struct ReadOnlyOptions {
    ddp::Access access = ddp::Access::kLocalRead;  // without kLocalWrite, kRemoteWrite, kRemoteAtomic
    std::optional<std::uint64_t> base_to{};        // as above
    ddp::StreamId stream = ddp::StreamId::kAny;    // as above
    std::optional<std::uint64_t> iova{};           // as above
  };

  MemoryRegion() = default;
  // Errors: kInvalidArgument (base_to or iova plus length wraps 64 bits), kResource.
  [[nodiscard]] static Result<MemoryRegion> register_memory(const ProtectionDomain& pd, MutBytes memory,
                                                            const Options& options);
  // Memory that is only read: source of Sends and Writes, and, with kRemoteRead, of the peer's Reads. Receives and
  // Reads into it, and the peer's Writes, are refused as for any region without the right. Errors: kInvalidArgument,
  // also for an access that writes; kResource.
  [[nodiscard]] static Result<MemoryRegion> register_read_only(const ProtectionDomain& pd, ConstBytes memory,
                                                               const ReadOnlyOptions& options);
  [[nodiscard]] static Result<MemoryRegion> register_read_only(const ProtectionDomain& pd, ConstBytes memory) {
    return register_read_only(pd, memory, {});
  }
  // Takes the registration over; `other` is empty afterwards.
  MemoryRegion(MemoryRegion&& other) noexcept;
  // The same; what this one held is deregistered first.
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  ~MemoryRegion() { reset(); }

  // STag for scatter/gather entries and for the peer: the same number.
  [[nodiscard]] Stag stag() const { return stag_; }
  // Empty when it is read-only.
  [[nodiscard]] MutBytes memory() const { return read_only_ ? MutBytes{} : memory_; }
  // The memory, read-only or not.
  [[nodiscard]] ConstBytes bytes() const { return memory_; }
  // Whether nothing may write it.
  [[nodiscard]] bool read_only() const { return read_only_; }
  // A piece of it for a work request: `length` octets from `offset` on; without `length` all that follows. Throws
  // std::out_of_range when that is not within the region or longer than 4 GiB - 1.
  [[nodiscard]] rdmap::Sge sge(std::size_t offset, std::size_t length) const;
  [[nodiscard]] rdmap::Sge sge(std::size_t offset = 0) const {
    return sge(offset, offset <= memory_.size() ? memory_.size() - offset : 0);
  }
  // Tagged Offset of the first octet, as the peer has to name it.
  [[nodiscard]] std::uint64_t base_to() const { return base_to_; }
  // By which number scatter/gather entries name the first octet.
  [[nodiscard]] std::uint64_t iova() const { return reinterpret_cast<std::uintptr_t>(memory_.data()) + iova_shift_; }
  // Tagged Offset of the octet at `address`, which must lie in bytes().
  [[nodiscard]] std::uint64_t to_of(const std::byte* address) const {
    return base_to_ + static_cast<std::uint64_t>(address - memory_.data());
  }
  // Registers `memory` in the place of what it has now, in `pd` and with `options`; any of the three may be as before.
  // As ibv_rereg_mr(), and faster than to deregister and register: the STag keeps its index and gets another key, `key`
  // or, without, one that is drawn. The old STag is dead at once; waits until no access by it is under way, as reset()
  // does. Also for a region that was invalidated. Peers that knew the old STag can guess the new one, 255 keys being
  // left: for others' eyes register anew.
  // Errors: kInvalidArgument (base_to or iova plus length wraps, `key` is the present one, `pd` is of another context,
  // the region is empty), kResource. After an error all is as it was.
  [[nodiscard]] Result<void> reregister(const ProtectionDomain& pd, MutBytes memory, const Options& options,
                                        std::optional<std::uint8_t> key = std::nullopt);
  // Revokes all access and waits until none is under way; the STag stays dead. No-op when the peer has revoked it
  // already.
  void invalidate();
  // Deregisters.
  void reset();
  // Whether it holds a registration.
  explicit operator bool() const { return context_ != nullptr; }

 private:
  [[nodiscard]] static ddp::Registration registration(const ProtectionDomain& pd, MutBytes memory,
                                                      const Options& options);
  void names(const ddp::Registration& registration, Stag stag);

  std::shared_ptr<Context> context_;
  MutBytes memory_;  // nothing writes it when it is read-only
  bool read_only_ = false;
  std::uint64_t base_to_ = 0;
  std::uint64_t iova_shift_ = 0;  // iova() minus the address
  Stag stag_{};
};

}  // namespace iwarp::verbs
