#include "iwarp/rpcrdma/buffer_pool.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "iwarp/rpcrdma/pages.h"

namespace iwarp::rpcrdma {
namespace {

constexpr std::size_t kPage = kPageBytes;
// In-line messages; 64 KiB and 256 KiB of data with their heads; a record of 1 MiB + 64 KiB with headroom.
constexpr std::array<std::size_t, 4> kClassBytes = {kPage, (64u << 10) + kPage, (256u << 10) + kPage,
                                                    (1u << 20) + (64u << 10) + kPage};
constexpr std::size_t kPiecesPerSlab = 32;
constexpr std::size_t kOneOffGranule = 64u << 10;

MemoryBudget::Stage stage_of(BufferPool::Purpose purpose) {
  switch (purpose) {
    case BufferPool::Purpose::kCall:
      return MemoryBudget::Stage::kCall;
    case BufferPool::Purpose::kReply:
      return MemoryBudget::Stage::kReply;
    case BufferPool::Purpose::kControl:
    case BufferPool::Purpose::kBackward:
      return MemoryBudget::Stage::kControl;
  }
  return MemoryBudget::Stage::kCall;
}

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

BufferPool::BufferPool(Registrar& registrar, const Options& options)
    : registrar_(registrar),
      budget_{options.control_bytes, options.call_bytes, options.reply_bytes, options.backward_bytes},
      process_(options.budget),
      idle_limit_(options.idle_bytes),
      large_limit_(options.call_bytes + options.reply_bytes + options.backward_bytes) {
  static_assert(kClassBytes.size() == kClasses);
  if (process_) process_->join(*this);
}

BufferPool::~BufferPool() {
  for ([[maybe_unused]] const std::size_t bytes : in_use_) assert(bytes == 0 && "a Buffer outlives its pool");
  assert(keepers_.empty() && "a Buffer outlives its pool");
  for (const Adopted& a : adopted_) registrar_.deregister_local(a.lkey);
  trim();
  for (const FreePiece& slab : small_slabs_) free_piece(slab);
  if (process_) process_->leave(*this);
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
  if (size_class == 0) {
    if (!free_[0].empty() || grow_small(purpose)) piece = take_free(0);
  } else if (size_class != kOneOff && !free_[size_class].empty()) {
    piece = take_free(size_class);
    idle_ -= charge;
  } else {
    make_room(charge);
    piece = allocate_large(charge, size_class, purpose);
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

BufferPool::FreePiece BufferPool::take_free(std::size_t size_class) {
  const FreePiece piece = free_[size_class].back();
  free_[size_class].pop_back();
  unused_[size_class] = std::min(unused_[size_class], free_[size_class].size());
  return piece;
}

std::optional<Buffer> BufferPool::adopt(const std::shared_ptr<const LentMemory>& whole, MutBytes view,
                                        std::shared_ptr<const void> keeper) {
  auto known = std::find_if(adopted_.begin(), adopted_.end(), [&](const Adopted& a) {
    return !a.whole.owner_before(whole) && !whole.owner_before(a.whole);
  });
  if (known == adopted_.end()) {
    drop_adopted();
    adopted_.reserve(adopted_.size() + 1);
    const Result<Stag> lkey = registrar_.register_local(whole->bytes);
    if (!lkey) {
      ++shortages_;
      return std::nullopt;
    }
    adopted_.push_back({whole, whole->pages, *lkey});
    known = std::prev(adopted_.end());
  }
  keepers_.emplace(view.data(), std::move(keeper));
  Buffer out;
  out.pool_ = this;
  out.storage_ = view;
  out.lkey_ = known->lkey;
  out.size_class_ = kAdopted;
  out.set_view(0, view.size());
  return out;
}

void BufferPool::drop_adopted() {
  std::erase_if(adopted_, [this](const Adopted& a) {
    if (!a.whole.expired()) return false;
    registrar_.deregister_local(a.lkey);
    return true;
  });
}

void BufferPool::release(Buffer& buffer) {
  if (buffer.size_class_ == kAdopted) {
    ++releases_;
    const auto keeper = keepers_.extract(keepers_.find(buffer.storage_.data()));  // goes when all is done here
    return;
  }
  const std::size_t charge = buffer.storage_.size();
  in_use_[buffer.purpose_] -= charge;
  ++releases_;
  const FreePiece piece{buffer.storage_, buffer.lkey_};
  if (buffer.size_class_ == 0) {
    free_[0].push_back(piece);
  } else if (buffer.size_class_ != kOneOff && idle_ + charge <= idle_limit_ &&
             !(process_ && process_->presses(*this))) {
    idle_ += charge;
    free_[buffer.size_class_].push_back(piece);
  } else {
    large_ -= charge;
    if (buffer.size_class_ != kOneOff) --pieces_[buffer.size_class_];
    free_piece(piece);
  }
}

void BufferPool::trim() {
  unused_.fill(SIZE_MAX);
  trim_unused();
}

void BufferPool::trim_unused() {
  for (std::size_t i = 1; i < kClasses; ++i) {
    for (std::size_t n = std::min(unused_[i], free_[i].size()); n > 0; --n) free_last(i);
    unused_[i] = free_[i].size();
  }
}

void BufferPool::make_room(std::size_t bytes) {
  for (std::size_t i = kClasses - 1; i > 0; --i) {
    while (large_ + bytes > large_limit_ && !free_[i].empty()) free_last(i);
  }
}

void BufferPool::free_last(std::size_t size_class) {
  const FreePiece piece = take_free(size_class);
  idle_ -= piece.storage.size();
  large_ -= piece.storage.size();
  --pieces_[size_class];
  free_piece(piece);
}

void BufferPool::rest() {
  free_unused_slabs();
  for (const FreePiece& piece : free_[0]) forget_pages(piece.storage);
  for (std::size_t i = 1; i < kClasses; ++i) {
    if (pieces_[i] == 0) free_[i] = {};
  }
}

void BufferPool::forget(const Buffer& buffer) {
  forget_pages(buffer.storage());
}

bool BufferPool::is_unused(const FreePiece& slab) const {
  const auto inside = [&](const FreePiece& piece) { return piece.lkey == slab.lkey; };
  return std::count_if(free_[0].begin(), free_[0].end(), inside) == std::ptrdiff_t{kPiecesPerSlab};
}

void BufferPool::free_unused_slabs() {
  const auto free_it = [&](const FreePiece& slab) {
    if (!is_unused(slab)) return false;
    const auto inside = [&](const FreePiece& piece) { return piece.lkey == slab.lkey; };
    free_[0].erase(std::remove_if(free_[0].begin(), free_[0].end(), inside), free_[0].end());
    free_piece(slab);
    return true;
  };
  small_slabs_.erase(std::remove_if(small_slabs_.begin(), small_slabs_.end(), free_it), small_slabs_.end());
}

void BufferPool::give_back() {
  trim();
  free_unused_slabs();
}

std::size_t BufferPool::unused_bytes() const {
  std::size_t sum = idle_;
  if (free_[0].size() < kPiecesPerSlab) return sum;
  for (const FreePiece& slab : small_slabs_) sum += is_unused(slab) ? slab.storage.size() : 0;
  return sum;
}

std::optional<BufferPool::FreePiece> BufferPool::allocate(std::size_t bytes, Purpose purpose) {
  if (process_ && !process_->take(bytes, stage_of(purpose), *this)) return std::nullopt;
  // Fresh pages: a peer can make us show octets that it did not write, and the heap may hold what others left there.
  const MutBytes storage = map_pages(bytes);
  const Result<Stag> lkey = storage.empty() ? make_error(Errc::kResource) : registrar_.register_local(storage);
  if (!lkey) {
    if (!storage.empty()) unmap_pages(storage);
    if (process_) process_->give(bytes);
    return std::nullopt;
  }
  registered_ += bytes;
  return FreePiece{storage, *lkey};
}

std::optional<BufferPool::FreePiece> BufferPool::allocate_large(std::size_t bytes, std::uint8_t size_class,
                                                                Purpose purpose) {
  if (size_class != kOneOff) {
    std::vector<FreePiece>& free = free_[size_class];
    const std::size_t count = pieces_[size_class] + 1;
    if (free.capacity() < count) free.reserve(2 * count);  // release() never allocates
  }
  const auto piece = allocate(bytes, purpose);
  if (!piece) return std::nullopt;
  large_ += bytes;
  if (size_class != kOneOff) ++pieces_[size_class];
  return piece;
}

void BufferPool::free_piece(const FreePiece& piece) {
  registrar_.deregister_local(piece.lkey);
  registered_ -= piece.storage.size();
  if (process_) process_->give(piece.storage.size());
  unmap_pages(piece.storage);
}

bool BufferPool::grow_small(Purpose purpose) {
  const auto slab = allocate(kPage * kPiecesPerSlab, purpose);
  if (!slab) return false;
  small_slabs_.push_back(*slab);
  free_[0].reserve(small_slabs_.size() * kPiecesPerSlab);  // release() never allocates
  for (std::size_t i = kPiecesPerSlab; i-- > 0;) {
    free_[0].push_back({slab->storage.subspan(i * kPage, kPage), slab->lkey});
  }
  return true;
}

}  // namespace iwarp::rpcrdma
