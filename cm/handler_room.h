// Room for one handler at a time, so that posting it needs no memory.
#pragma once

#include <array>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <new>
#include <utility>

namespace iwarp::cm {

class HandlerRoom {
 public:
  HandlerRoom() = default;
  HandlerRoom(const HandlerRoom&) = delete;
  HandlerRoom& operator=(const HandlerRoom&) = delete;

  // Precondition: the handler posted before has begun to run. `handler` must keep this object alive. Not thread-safe.
  template <class Handler>
  void post(boost::asio::io_context& io, Handler handler) {
    boost::asio::post(io, boost::asio::bind_allocator(Allocator<void>(*this), std::move(handler)));
  }

 private:
  template <class T>
  class Allocator {
   public:
    using value_type = T;
    explicit Allocator(HandlerRoom& room) : room_(&room) {}
    template <class U>
    Allocator(const Allocator<U>& other) : room_(other.room()) {}  // NOLINT: implicit, as allocators are

    [[nodiscard]] T* allocate(std::size_t n) const {
      static_assert(sizeof(T) <= sizeof(HandlerRoom) && alignof(T) <= alignof(std::max_align_t));
      if (n != 1) throw std::bad_alloc();
      return reinterpret_cast<T*>(room_->octets_.data());
    }
    void deallocate(T*, std::size_t) const noexcept {}
    [[nodiscard]] HandlerRoom* room() const { return room_; }
    template <class U>
    friend bool operator==(const Allocator& a, const Allocator<U>& b) {
      return a.room() == b.room();
    }

   private:
    HandlerRoom* room_;
  };

  alignas(std::max_align_t) std::array<std::byte, 256> octets_;
};

}  // namespace iwarp::cm
