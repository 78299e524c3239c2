#include "iwarp/rpcrdma/buffer_pool.h"

#include <cassert>
#include <cstring>
#include <new>

namespace iwarp::rpcrdma {
namespace {

constexpr std::size_t kPage = 4096;
// In-line messages; 64 KiB and 256 KiB of data with their heads; a record of 1 MiB + 64 KiB with headroom.
constexpr std::array<std::size_t, 4> kClassBytes = {kPage, (64u << 10) + kPage, (256u << 10) + kPage,
                                                    (1u << 20) + (64u << 10) + kPage};
constexpr std::size_t kPiecesPerSlab = 32;
constexpr std::size_t kOneOffGranule = 64u << 10;

std::size_t class_bytes(std::size_t size_class) {
  return kClassBytes[size_class];
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  pool_ = std::exchange(other.pool_, nullptr);
  storage_ = std::exchange(other.storage_, {});
  offset_ = std::exchange(other.offset_, 0);
  size_ = std::exchange(other.size_, 0);
  lkey_ = other.lkey_;
  size_class_ = other.size_class_;
  purpose_ = other.purpose_;
  return *this;
}

void Buffer::set_view(std::size_t offset, std::size_t size) {
  assert(offset <= storage_.size() && size <= storage_.size() - offset);
  offset_ = offset;
  size_ = size;
}

void Buffer::reset() {
  if (pool_ == nullptr) return;
  pool_->release(*this);
  pool_ = nullptr;
  storage_ = {};
  offset_ = size_ = 0;
}

void BufferPool::AlignedDelete::operator()(std::byte* p) const {
  ::operator delete (p, std::align_val_t{kPage});
}

BufferPool::BufferPool(Registrar& registrar, const Options& options)
    : registrar_(registrar),
      budget_{options.control_bytes, options.call_bytes, options.reply_bytes, options.backward_bytes},
      idle_limit_(options.idle_bytes) {
  static_assert(kClassBytes.size() == kClasses);
}

BufferPool::~BufferPool() {
  for ([[maybe_unused]] const std::size_t bytes : in_use_) assert(bytes == 0 && "a Buffer outlives its pool");
  trim();
  for (const auto& [memory, lkey] : small_slabs_) registrar_.deregister_local(lkey);
}

std::uint8_t BufferPool::class_of(std::size_t bytes) {
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (bytes <= class_bytes(i)) return static_cast<std::uint8_t>(i);
  }
  return kOneOff;
}

std::size_t BufferPool::charged_bytes(std::size_t bytes) {
  const std::uint8_t size_class = class_of(bytes);
  if (size_class != kOneOff) return class_bytes(size_class);
  return (bytes + kOneOffGranule - 1) / kOneOffGranule * kOneOffGranule;
}

bool BufferPool::can_hold(std::size_t bytes, Purpose purpose, std::size_t headroom) const {
  return bytes <= SIZE_MAX / 2 && charged_bytes(bytes + headroom) <= budget_bytes(purpose);
}

std::optional<Buffer> BufferPool::acquire(std::size_t bytes, Purpose purpose, std::size_t headroom) {
  if (!can_hold(bytes, purpose, headroom)) return std::nullopt;
  const std::size_t charge = charged_bytes(bytes + headroom);
  std::size_t& in_use = in_use_[static_cast<std::size_t>(purpose)];
  if (charge > budget_bytes(purpose) - in_use) return std::nullopt;

  const std::uint8_t size_class = class_of(bytes + headroom);
  std::optional<FreePiece> piece;
  if (size_class == kOneOff) {
    piece = allocate(charge);
  } else if (!free_[size_class].empty() || (size_class == 0 && grow_small())) {
    piece = free_[size_class].back();
    free_[size_class].pop_back();
    if (size_class != 0) idle_ -= charge;
  } else if (size_class != 0) {
    piece = allocate(charge);
  }
  if (!piece) {
    ++shortages_;
    return std::nullopt;
  }

  in_use += charge;
  Buffer out;
  out.pool_ = this;
  out.storage_ = piece->storage;
  out.lkey_ = piece->lkey;
  out.size_class_ = size_class;
  out.purpose_ = static_cast<std::uint8_t>(purpose);
  out.set_view(headroom, bytes);
  return out;
}

void BufferPool::release(Buffer& buffer) {
  const std::size_t charge = buffer.storage_.size();
  in_use_[buffer.purpose_] -= charge;
  ++releases_;
  const FreePiece piece{buffer.storage_, buffer.lkey_};
  if (buffer.size_class_ == 0) {
    free_[0].push_back(piece);
  } else if (buffer.size_class_ != kOneOff && idle_ + charge <= idle_limit_) {
    idle_ += charge;
    free_[buffer.size_class_].push_back(piece);
  } else {
    free_piece(piece);
  }
}

void BufferPool::trim() {
  for (std::size_t i = 1; i < kClasses; ++i) {
    for (const FreePiece& piece : free_[i]) free_piece(piece);
    free_[i].clear();
  }
  idle_ = 0;
}

std::optional<BufferPool::FreePiece> BufferPool::allocate(std::size_t bytes) {
  Memory memory(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kPage}, std::nothrow)));
  if (!memory) return std::nullopt;
  // The heap may hold what other connections left there, and a peer can make us show octets that it did not write.
  std::memset(memory.get(), 0, bytes);
  const MutBytes storage(memory.get(), bytes);
  const Result<Stag> lkey = registrar_.register_local(storage);
  if (!lkey) return std::nullopt;
  registered_ += bytes;
  (void)memory.release();  // free_piece() deletes it
  return FreePiece{storage, *lkey};
}

void BufferPool::free_piece(const FreePiece& piece) {
  registrar_.deregister_local(piece.lkey);
  registered_ -= piece.storage.size();
  AlignedDelete{}(piece.storage.data());
}

bool BufferPool::grow_small() {
  const auto slab = allocate(kPage * kPiecesPerSlab);
  if (!slab) return false;
  small_slabs_.emplace_back(Memory(slab->storage.data()), slab->lkey);
  free_[0].reserve(small_slabs_.size() * kPiecesPerSlab);  // release() never allocates
  for (std::size_t i = kPiecesPerSlab; i-- > 0;) {
    free_[0].push_back({slab->storage.subspan(i * kPage, kPage), slab->lkey});
  }
  return true;
}

}  // namespace iwarp::rpcrdma
