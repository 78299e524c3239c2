// The registered memory of all connections together. The BufferPools of a process draw from one MemoryBudget, each
// within budgets of its own. What is refused waits in the pool's connection and is tried again.
//
// Nobody can wait for ever on account of others. What comes earlier in the life of an RPC may fill the budget less far,
// so that what comes later, and gives memory back, always finds some: new connections a half, Calls three quarters,
// Replies seven eighths; headers, Receives and the backward direction the whole. And when more than half is taken, a
// connection that holds more than its equal part gets no memory for Calls. What it holds unused is no reason to refuse:
// it gives that back first.
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
    // How much that would be.
    [[nodiscard]] virtual std::size_t unused_bytes() const = 0;
    // What it has taken and not given back, used or not.
    [[nodiscard]] virtual std::size_t registered_bytes() const = 0;
  };
  enum class Stage : std::uint8_t { kConnection, kCall, kReply, kControl };
  // What a connection may hold whatever its equal part is: its Receives, a Call and a Reply of 1 MiB.
  static constexpr std::size_t kLeastPart = std::size_t{3} << 20;

  // `limit`: octets, 8 MiB or more; less serves few connections, or none. A Call or Reply of more than an eighth of it
  // may wait for ever. What registration itself, sockets and the kernel take is not counted. `least_part`: where
  // connections need more than kLeastPart.
  explicit MemoryBudget(std::size_t limit, std::size_t least_part = kLeastPart)
      : limit_(limit), least_part_(std::max(least_part, kLeastPart)) {}
  // From now on. What is taken stays taken, though it be more than that.
  void change(std::size_t limit, std::size_t least_part) {
    limit_ = limit;
    least_part_ = std::max(least_part, kLeastPart);
  }
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  void join(Member& member);
  // Precondition: it has given everything back.
  void leave(Member& member);

  // Takes `bytes` for a member. Before it refuses, this member gives back what it holds unused, or all members do. But
  // nobody does where that cannot help: what is given back is mapped and registered anew for the next RPC.
  [[nodiscard]] bool take(std::size_t bytes, Stage stage, Member& member);
  void give(std::size_t bytes) { used_ -= bytes; }

  // Whether a member should give back what it does not use: memory is short, and it has more than its part.
  [[nodiscard]] bool presses(const Member& member) const {
    return used_ > limit_ / 2 && member.registered_bytes() > part();
  }
  // Whether another connection may come. Members give back for it as in take().
  [[nodiscard]] bool admits_connection();
  [[nodiscard]] std::size_t limit() const { return limit_; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  // Whether `bytes` may be taken when `used` are, `held` of them by the member that asks.
  [[nodiscard]] bool fits(std::size_t bytes, Stage stage, std::size_t used, std::size_t held) const;
  [[nodiscard]] std::size_t unused_bytes() const;
  [[nodiscard]] std::size_t part() const;
  void reclaim();

  std::size_t limit_;
  std::size_t least_part_;
  std::size_t used_ = 0;
  std::vector<Member*> members_;
};

}  // namespace iwarp::rpcrdma
