// So many places and no more. A Server has them for connections: one that has ended keeps its place while a handler has
// a Call of it, as the memory is still in use. A Client has them for the Calls of its server. Internal to rpc.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace iwarp::rpc {

class Places {
 public:
  // Holds one.
  class Place {
   public:
    explicit Place(std::shared_ptr<Places> all) : all_(std::move(all)) {}
    ~Place() { --all_->taken_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    const std::shared_ptr<Places> all_;
  };

  explicit Places(std::size_t most) : most_(most) {}
  // Null: all are taken. Any thread.
  [[nodiscard]] static std::unique_ptr<Place> take(const std::shared_ptr<Places>& from) {
    auto place = std::make_unique<Place>(from);
    return ++from->taken_ <= from->most_ ? std::move(place) : nullptr;
  }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> taken_{0};
};

}  // namespace iwarp::rpc
