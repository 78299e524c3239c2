// Registered buffers for one connection: a bounded amount of memory, in few size classes, registered once and used
// again and again. Exhaustion is an answer (nullopt), never an error: the caller delays work until buffers come back.
// Each purpose has a budget of its own, so that Calls waiting for memory can never keep Replies from being drained.
//
// One pool serves one connection (or one trust domain): a recycled buffer still holds what was in it, and a peer that
// announces more octets than it wrote would get them shown to its own client. Not thread-safe, like the connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/ids.h"
#include "iwarp/base/result.h"
#include "iwarp/rpcrdma/endpoint.h"
#include "iwarp/rpcrdma/memory_budget.h"

namespace iwarp::rpcrdma {

// Makes memory usable as LocalSlice. Must outlive the pool.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // Registers `memory` for local use; it must stay allocated until deregister_local().
  [[nodiscard]] virtual Result<Stag> register_local(MutBytes memory) = 0;
  // Ends that.
  virtual void deregister_local(Stag lkey) = 0;
};

// Memory of somebody else's that a pool may send from.
struct LentMemory {
  MutBytes bytes{};                     // all of it
  std::shared_ptr<const void> pages{};  // who holds this holds the memory
};

class BufferPool;

// Owns one buffer of a pool and returns it when destroyed. bytes() is a view inside it, which may leave headroom in
// front. The pool must outlive it. An empty Buffer (default, moved-from) has no bytes and may only be assigned, tested
// or destroyed.
class Buffer {
 public:
  Buffer() = default;
  // Takes the buffer over; `other` is empty afterwards.
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  // The same; what this one held goes back to its pool first.
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { reset(); }

  // Whether it holds a buffer.
  [[nodiscard]] explicit operator bool() const { return pool_ != nullptr; }
  // The view. Valid as long as this object holds the buffer.
  [[nodiscard]] MutBytes bytes() const { return storage_.subspan(offset_, size_); }
  // Octets of the view.
  [[nodiscard]] std::size_t size() const { return size_; }
  // Everything the buffer can hold, at least what was asked for.
  [[nodiscard]] MutBytes storage() const { return storage_; }
  // Octets in front of the view that may be overwritten, e.g. with a record mark.
  [[nodiscard]] std::size_t headroom() const { return offset_; }
  // Precondition: offset + size <= storage().size().
  void set_view(std::size_t offset, std::size_t size);
  // STag of its registration, for local use.
  [[nodiscard]] Stag lkey() const { return lkey_; }
  // Part of the view. Precondition: offset + length <= size().
  [[nodiscard]] LocalSlice slice(std::size_t offset, std::size_t length) const {
    return {bytes().subspan(offset, length), lkey_};
  }
  [[nodiscard]] LocalSlice slice() const { return {bytes(), lkey_}; }
  // Gives the buffer back now.
  void reset();

 private:
  friend class BufferPool;

  BufferPool* pool_ = nullptr;
  MutBytes storage_{};
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
  Stag lkey_{};
  std::uint8_t size_class_ = 0;
  std::uint8_t purpose_ = 0;
};

// Octets of headroom that every received message handed to the user has: room for a TCP record mark (RFC 5531 s11).
inline constexpr std::size_t kHeadroomBytes = 4;

class BufferPool final : private MemoryBudget::Member {
 public:
  // What a buffer is for: each has a budget.
  enum class Purpose : std::uint8_t {
    kControl,   // posted Receives, what arrived in them, transport headers
    kCall,      // Calls that did not fit in line
    kReply,     // Replies: from the RPC server, or for the peer to write into
    kBackward,  // Calls and Replies of the backward direction
  };
  static constexpr std::size_t kPurposes = 4;  // number of them

  // Most octets in use at a time, by purpose; a buffer counts with the size of its class. What a value below one buffer
  // breaks: that purpose never gets any. Defaults suit 64 credits, 4096-octet messages and 1 MiB Calls and Replies.
  struct Options {
    std::size_t control_bytes = 2u << 20;   // (2 x Receives + Sends) x 4 KiB with room to spare; see *_pool_options()
    std::size_t call_bytes = 16u << 20;     // 15 Calls of 1 MiB are pulled at a time
    std::size_t reply_bytes = 16u << 20;    // 15 Replies of 1 MiB are on the way at a time
    std::size_t backward_bytes = 1u << 20;  // Calls and Replies of the backward direction are short
    // Unused memory above 4 KiB a piece that is kept for reuse, at most; the rest is freed. By default all of it, until
    // trim(): what one burst needed serves the next. Less than a burst needs maps, clears and registers for every RPC.
    std::size_t idle_bytes = SIZE_MAX;
    std::shared_ptr<MemoryBudget> budget{};  // that of the process, shared by pools of one thread; null: no other bound
  };

  // `registrar` must outlive the pool. Nothing is allocated before it is needed. Used and unused memory above 4 KiB a
  // piece never exceed the budgets for Calls, Replies and the backward direction together.
  BufferPool(Registrar& registrar, const Options& options);
  // Precondition: all Buffers came back.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A buffer whose view is exactly `bytes` octets behind `headroom` octets. Nullopt: the budget of `purpose` is used
  // up, or memory cannot be had or registered; try again when a Buffer of that purpose was given back.
  [[nodiscard]] std::optional<Buffer> acquire(std::size_t bytes, Purpose purpose, std::size_t headroom = 0);
  // Whether such a request could ever succeed.
  [[nodiscard]] bool can_hold(std::size_t bytes, Purpose purpose, std::size_t headroom = 0) const;
  // A Buffer of somebody else's memory: `view`, inside `whole->bytes`, all of which is registered for local use at the
  // first Buffer of it, and its pages held, until the pool goes, or, where `whole` has gone, until the next adopt() of
  // other memory. `keeper` is let go of when the Buffer comes back; to be destroyed it needs nothing of this pool. It
  // counts for no budget and for none of the numbers below but releases(). Nullopt: it could not be registered, which
  // is a shortage.
  [[nodiscard]] std::optional<Buffer> adopt(const std::shared_ptr<const LentMemory>& whole, MutBytes view,
                                            std::shared_ptr<const void> keeper);
  // Frees all unused memory above 4 KiB a piece.
  void trim();
  // Frees what of it has not been used since the last call of either. Call it once in a while: a connection with little
  // to do gives back what a burst has needed.
  void trim_unused();
  // Gives the system what the unused pieces of 4 KiB cost: for an idle connection. They remain at hand.
  void rest();
  // The same for a buffer whose content nobody needs: its octets may be zero from now on.
  static void forget(const Buffer& buffer);

  // Octets in use for a purpose, at the size of their classes.
  [[nodiscard]] std::size_t in_use_bytes(Purpose purpose) const { return in_use_[static_cast<std::size_t>(purpose)]; }
  // Most octets that may be in use for a purpose.
  [[nodiscard]] std::size_t budget_bytes(Purpose purpose) const { return budget_[static_cast<std::size_t>(purpose)]; }
  // Memory registered at present, used or not.
  [[nodiscard]] std::size_t registered_bytes() const override { return registered_; }
  // What trim() would free.
  [[nodiscard]] std::size_t idle_bytes() const { return idle_; }
  // Rises whenever a Buffer comes back: a cheap way to see whether waiting work may go on.
  [[nodiscard]] std::uint64_t releases() const { return releases_; }
  // Requests that failed because the system gave no memory, with budget left. No Buffer need be on its way back then:
  // whoever waits has to try again by itself, or be told with wake_waiting() after a while.
  [[nodiscard]] std::uint64_t shortages() const { return shortages_; }
  // As if a Buffer had come back.
  void wake_waiting() { ++releases_; }
  // Octets a request is charged with.
  [[nodiscard]] static std::size_t charged_bytes(std::size_t bytes);

 private:
  friend class Buffer;
  struct FreePiece {
    MutBytes storage;
    Stag lkey;
  };
  static constexpr std::size_t kClasses = 4;
  static constexpr std::uint8_t kOneOff = 255;   // larger than any class: allocated for one use
  static constexpr std::uint8_t kAdopted = 254;  // not ours
  struct Adopted {
    std::weak_ptr<const LentMemory> whole;
    std::shared_ptr<const void> pages;
    Stag lkey{};
  };

  [[nodiscard]] static std::uint8_t class_of(std::size_t bytes);
  [[nodiscard]] std::optional<FreePiece> allocate(std::size_t bytes, Purpose purpose);
  [[nodiscard]] bool grow_small(Purpose purpose);
  // A piece of that many octets, of class `size_class` or kOneOff.
  [[nodiscard]] std::optional<FreePiece> allocate_large(std::size_t bytes, std::uint8_t size_class, Purpose purpose);
  // Whether none of its pieces is in use.
  [[nodiscard]] bool is_unused(const FreePiece& slab) const;
  void free_unused_slabs();
  void give_back() override;
  [[nodiscard]] std::size_t unused_bytes() const override;
  void free_piece(const FreePiece& piece);
  [[nodiscard]] FreePiece take_free(std::size_t size_class);
  void free_last(std::size_t size_class);
  // Frees unused memory until that much more keeps the total within its bound.
  void make_room(std::size_t bytes);
  void release(Buffer& buffer);
  // Those whose memory has gone, but for its pages.
  void drop_adopted();

  Registrar& registrar_;
  std::array<std::size_t, kPurposes> budget_{};
  std::array<std::size_t, kPurposes> in_use_{};
  std::array<std::vector<FreePiece>, kClasses> free_;  // the one used last at the back
  std::array<std::size_t, kClasses> pieces_{};         // of each class above 4 KiB, used or not
  std::array<std::size_t, kClasses> unused_{};         // fewest in free_ since trim_unused()
  std::vector<FreePiece> small_slabs_;
  std::vector<Adopted> adopted_;
  std::unordered_multimap<const std::byte*, std::shared_ptr<const void>> keepers_;  // by the beginning of the Buffer
  std::shared_ptr<MemoryBudget> process_;
  std::size_t idle_limit_;
  std::size_t large_limit_;
  std::size_t large_ = 0;  // octets in pieces above 4 KiB, used or not
  std::size_t idle_ = 0;   // those in free_
  std::size_t registered_ = 0;
  std::uint64_t releases_ = 0;
  std::uint64_t shortages_ = 0;
};

}  // namespace iwarp::rpcrdma
