// The registered memory of all connections together. The BufferPools of a process draw from one MemoryBudget, each
// within budgets of its own. What is refused waits in the pool's connection and is tried again.
//
// Nobody can wait for ever on account of others. What comes earlier in the life of an RPC may fill the budget less far,
// so that what comes later, and gives memory back, always finds some: new connections a half, Calls three quarters,
// Replies seven eighths; headers, Receives and the backward direction the whole. And when more than half is taken, a
// connection that holds more than its equal part gets no memory for Calls.
//
// Not thread-safe: all its pools belong to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace iwarp::rpcrdma {

class MemoryBudget {
 public:
  // A pool.
  class Member {
   public:
    virtual ~Member() = default;
    // Frees what it holds unused, and says so with give().
    virtual void give_back() = 0;
    // How much that would be, at least.
    [[nodiscard]] virtual std::size_t idle_bytes() const = 0;
  };
  enum class Stage : std::uint8_t { kConnection, kCall, kReply, kControl };
  // What a connection may hold whatever its equal part is: its Receives, a Call and a Reply of 1 MiB.
  static constexpr std::size_t kLeastPart = std::size_t{3} << 20;

  // `limit`: octets, 8 MiB or more; less serves few connections, or none. A Call or Reply of more than an eighth of it
  // may wait for ever. What registration itself, sockets and the kernel take is not counted. `least_part`: where
  // connections need more than kLeastPart.
  explicit MemoryBudget(std::size_t limit, std::size_t least_part = kLeastPart)
      : limit_(limit), least_part_(std::max(least_part, kLeastPart)) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  void join(Member& member);
  // Precondition: it has given everything back.
  void leave(Member& member);

  // Takes `bytes` for a member that holds `held` already. Before it refuses, all members give back what they hold
  // unused, unless that cannot help: what is given back is mapped and registered anew for the next RPC.
  [[nodiscard]] bool take(std::size_t bytes, Stage stage, std::size_t held);
  void give(std::size_t bytes) { used_ -= bytes; }

  // Whether a member that holds so much should give back what it does not use: memory is short, and it has more than
  // its part.
  [[nodiscard]] bool presses(std::size_t held) const { return used_ > limit_ / 2 && held > part(); }
  // Whether another connection may come.
  [[nodiscard]] bool admits_connection();
  [[nodiscard]] std::size_t limit() const { return limit_; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  [[nodiscard]] bool fits(std::size_t bytes, Stage stage, std::size_t held) const;
  // As far as the limit of `stage` goes.
  [[nodiscard]] bool has_room(std::size_t bytes, Stage stage) const;
  [[nodiscard]] std::size_t idle_bytes() const;
  [[nodiscard]] std::size_t part() const;
  void reclaim();

  std::size_t limit_;
  std::size_t least_part_;
  std::size_t used_ = 0;
  std::vector<Member*> members_;
};

}  // namespace iwarp::rpcrdma
