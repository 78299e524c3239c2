// SmallVector<T, N>: a vector whose first N elements live inside the object, for chunk lists that are nearly always
// short. It grows to the heap beyond N; the caller bounds the count before filling it. Elements move when it grows, so
// references do not survive push_back(). Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace iwarp::rpcrdma {

// T is default-constructible and copyable. Equality compares elements, wherever they live. A moved-from vector may only
// be assigned or destroyed.
template <class T, std::size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) {
    for (const T& v : values) push_back(v);
  }

  // One allocation at most, and none when n <= N.
  void reserve(std::size_t n) {
    if (n <= N) return;
    heap_.reserve(n);
    spill();
  }
  void push_back(T value) {
    if (!on_heap_ && size_ < N) {
      inline_[size_++] = std::move(value);
      return;
    }
    spill();
    heap_.push_back(std::move(value));
  }
  void clear() {
    heap_.clear();
    size_ = 0;
    on_heap_ = false;
  }

  [[nodiscard]] std::size_t size() const { return on_heap_ ? heap_.size() : size_; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] T* begin() { return on_heap_ ? heap_.data() : inline_.data(); }
  [[nodiscard]] T* end() { return begin() + size(); }
  [[nodiscard]] const T* begin() const { return on_heap_ ? heap_.data() : inline_.data(); }
  [[nodiscard]] const T* end() const { return begin() + size(); }
  [[nodiscard]] T* data() { return begin(); }
  [[nodiscard]] const T* data() const { return begin(); }
  // Precondition: i < size().
  [[nodiscard]] T& operator[](std::size_t i) {
    assert(i < size());
    return begin()[i];
  }
  [[nodiscard]] const T& operator[](std::size_t i) const {
    assert(i < size());
    return begin()[i];
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void spill() {
    if (on_heap_) return;
    for (std::size_t i = 0; i < size_; ++i) heap_.push_back(std::move(inline_[i]));
    size_ = 0;
    on_heap_ = true;
  }

  std::array<T, N> inline_{};
  std::size_t size_ = 0;  // of inline_
  std::vector<T> heap_;
  bool on_heap_ = false;
};

}  // namespace iwarp::rpcrdma
