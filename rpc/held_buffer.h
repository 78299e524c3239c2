// A message in the registered memory of a connection, kept by somebody who knows nothing of the connection's lock.
#pragma once

#include <memory>
#include <utility>

#include "iwarp/rpcrdma/buffer_pool.h"

namespace iwarp::rpc {

// Who owns the pool of a Buffer, and locks it.
class BufferKeeper {
 public:
  virtual ~BufferKeeper() = default;
  // Takes it back. Any thread, without a lock of the library.
  virtual void give_back(rpcrdma::Buffer&& buffer) noexcept = 0;
};

// Move-only. Any thread, one at a time. The engine of the connection must outlive it.
class HeldBuffer {
 public:
  // Holds nothing.
  HeldBuffer() = default;
  // Holds `buffer`, which is the keeper's.
  HeldBuffer(std::shared_ptr<BufferKeeper> keeper, rpcrdma::Buffer buffer)
      : keeper_(std::move(keeper)), buffer_(std::move(buffer)) {}
  // Takes it over.
  HeldBuffer(HeldBuffer&& other) noexcept = default;
  // The same; what this one held goes back first.
  HeldBuffer& operator=(HeldBuffer&& other) noexcept {
    reset();
    keeper_ = std::move(other.keeper_);
    buffer_ = std::move(other.buffer_);
    return *this;
  }
  ~HeldBuffer() { reset(); }

  // The message; empty when it holds nothing. Valid as long as this object holds it.
  [[nodiscard]] ConstBytes bytes() const { return buffer_ ? ConstBytes(buffer_.bytes()) : ConstBytes{}; }
  // Gives it back now: the memory serves other messages.
  void reset() noexcept {
    if (buffer_) keeper_->give_back(std::move(buffer_));
    keeper_.reset();
  }

 private:
  std::shared_ptr<BufferKeeper> keeper_;
  rpcrdma::Buffer buffer_;
};

}  // namespace iwarp::rpc
