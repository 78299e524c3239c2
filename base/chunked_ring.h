// ChunkedRing<T>: FIFO of bounded size that takes memory as it fills, eight slots at a time, and keeps it: what it
// holds follows the most elements that there ever were at a time. Elements do not move. Not thread-safe.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace iwarp {

template <class T>
class ChunkedRing {
 public:
  static constexpr std::size_t kChunk = 8;

  // Capacity in elements; 0 makes a ring that is always full.
  explicit ChunkedRing(std::size_t capacity) : capacity_(capacity), chunks_((capacity + kChunk - 1) / kChunk + 1) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool full() const { return size_ == capacity_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // Makes sure of memory for `more` elements beyond those that are there: so many times add() succeeds. False: they
  // exceed the capacity, or there is no memory.
  [[nodiscard]] bool reserve(std::size_t more) {
    if (more > capacity_ - size_) return false;
    while (head_ + size_ + more > allocated()) {
      if (!grow()) return false;
    }
    return true;
  }
  // Slots that there is memory for.
  [[nodiscard]] std::size_t allocated() const { return owned_ * kChunk; }

  // Appends; false (and no change) when full, or when there is no memory for more.
  bool push(T value) {
    T* const added = add();
    if (added != nullptr) *added = std::move(value);
    return added != nullptr;
  }
  // Appends an element to be filled in: it still has the value of an earlier one. Null (and no change) when full, or
  // when there is no memory for more.
  [[nodiscard]] T* add() {
    if (full()) return nullptr;
    const std::size_t at = head_ + size_;
    if (at / kChunk == owned_ && !grow()) return nullptr;
    ++size_;
    return &slot(at);
  }
  // Takes back the newest element, as if it had never been added. Precondition: !empty().
  void undo_add() {
    assert(size_ > 0);
    --size_;
  }
  // The i-th oldest element. Precondition: i < size(). The reference lives until that element is
  // popped or dropped.
  [[nodiscard]] T& at(std::size_t i) {
    assert(i < size_);
    return slot(head_ + i);
  }
  [[nodiscard]] const T& at(std::size_t i) const {
    assert(i < size_);
    return slot(head_ + i);
  }
  [[nodiscard]] T& front() { return at(0); }
  [[nodiscard]] const T& front() const { return at(0); }
  // Removes and returns the oldest element. Precondition: !empty().
  T pop() {
    T out = std::move(front());
    drop();
    return out;
  }
  // Removes the oldest element; its slot keeps the value until it is used again. Precondition: !empty().
  void drop() {
    assert(size_ > 0);
    if (--size_ == 0) {
      head_ = 0;  // a short queue stays in its first, warm slots
    } else if (++head_ == kChunk) {
      head_ = 0;
      rotate();
    }
  }

 private:
  [[nodiscard]] std::size_t wrap(std::size_t chunk) const {
    return chunk >= chunks_.size() ? chunk - chunks_.size() : chunk;
  }
  [[nodiscard]] T& slot(std::size_t at) const { return chunks_[wrap(first_ + at / kChunk)][at % kChunk]; }
  [[nodiscard]] bool grow() {
    std::unique_ptr<T[]> chunk(new (std::nothrow) T[kChunk]());
    if (!chunk) return false;
    chunks_[wrap(first_ + owned_++)] = std::move(chunk);
    return true;
  }
  // The first chunk is used up: it goes behind the last one.
  void rotate() {
    chunks_[first_].swap(chunks_[wrap(first_ + owned_)]);
    first_ = wrap(first_ + 1);
  }

  std::size_t capacity_;
  std::vector<std::unique_ptr<T[]>> chunks_;  // the `owned_` of them from `first_` on, circular, have memory
  std::size_t first_ = 0;
  std::size_t owned_ = 0;
  std::size_t head_ = 0;  // slot of the oldest element in the first chunk
  std::size_t size_ = 0;
};

}  // namespace iwarp
