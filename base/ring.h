// Ring<T>: FIFO of bounded size whose storage is allocated once, so that pushing never allocates. Not thread-safe.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace iwarp {

template <class T>
class Ring {
 public:
  // Capacity in elements; 0 makes a ring that is always full.
  explicit Ring(std::size_t capacity) : slots_(capacity) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return slots_.size(); }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool full() const { return size_ == slots_.size(); }

  // Appends; false (and no change) when full.
  bool push(T value) {
    T* const added = add();
    if (added != nullptr) *added = std::move(value);
    return added != nullptr;
  }
  // Appends an element to be filled in: it still has the value of an earlier one. Null (and no change) when full.
  [[nodiscard]] T* add() { return full() ? nullptr : &slots_[wrap(head_ + size_++)]; }
  // The i-th oldest element. Precondition: i < size(). The reference lives until that element is
  // popped or dropped.
  [[nodiscard]] T& at(std::size_t i) {
    assert(i < size_);
    return slots_[wrap(head_ + i)];
  }
  [[nodiscard]] const T& at(std::size_t i) const {
    assert(i < size_);
    return slots_[wrap(head_ + i)];
  }
  [[nodiscard]] T& front() { return at(0); }
  [[nodiscard]] const T& front() const { return at(0); }
  [[nodiscard]] T& back() { return at(size_ - 1); }
  // Removes and returns the oldest element. Precondition: !empty().
  T pop() {
    T out = std::move(front());
    drop();
    return out;
  }
  // Removes the oldest element; its slot keeps the value until it is used again. Precondition: !empty().
  void drop() {
    assert(size_ > 0);
    head_ = wrap(head_ + 1);
    --size_;
  }
  void clear() {
    while (!empty()) pop();
  }

 private:
  [[nodiscard]] std::size_t wrap(std::size_t i) const { return i >= slots_.size() ? i - slots_.size() : i; }

  std::vector<T> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace iwarp
