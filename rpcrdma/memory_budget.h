// The registered memory of all connections together. The BufferPools of a process draw from one MemoryBudget, each
// within budgets of its own. What is refused waits in the pool's connection and is tried again.
//
// Nobody can wait for ever on account of others. What comes earlier in the life of an RPC may fill the budget less far,
// so that what comes later, and gives memory back, always finds some: new connections a half, Calls three quarters,
// Replies seven eighths; headers, Receives and the backward direction the whole. And when more than half is taken, a
// connection that holds more than its equal part gets no memory for Calls. What it holds unused is no reason to refuse:
// it gives that back first.
//
// All pools of a MemoryBudget belong to one thread, its own. Budgets of several threads may be parts of one: they share
// the limit, what is taken and the number of pools, without a lock. What the pools of another thread hold unused only
// that thread can give back: it is asked to, and who needs it is refused meanwhile, and tries again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
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
  explicit MemoryBudget(std::size_t limit, std::size_t least_part = kLeastPart) : whole_(std::make_shared<Whole>()) {
    change(limit, least_part);
  }
  // Another part of the same budget, for another thread.
  [[nodiscard]] std::shared_ptr<MemoryBudget> another_part() const {
    return std::shared_ptr<MemoryBudget>(new MemoryBudget(whole_));
  }
  // Called when memory is refused that others may hold unused: to have reclaim() called in the thread of each other
  // part. In the thread of this part; to be set before it is used.
  void set_ask_others(std::function<void()> ask) { ask_others_ = std::move(ask); }
  // From now on, for all parts. What is taken stays taken, though it be more than that. Any thread.
  void change(std::size_t limit, std::size_t least_part) {
    whole_->limit = limit;
    whole_->least_part = std::max(least_part, kLeastPart);
  }
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  void join(Member& member);
  // Precondition: it has given everything back.
  void leave(Member& member);

  // Takes `bytes` for a member. Before it refuses, this member gives back what it holds unused, or all members do. But
  // nobody does where that cannot help: what is given back is mapped and registered anew for the next RPC.
  [[nodiscard]] bool take(std::size_t bytes, Stage stage, Member& member);
  void give(std::size_t bytes) { whole_->used -= bytes; }
  // Has its members give back what they hold unused.
  void reclaim();

  // Whether a member should give back what it does not use: memory is short, and it has more than its part.
  [[nodiscard]] bool presses(const Member& member) const {
    return used() > limit() / 2 && member.registered_bytes() > part();
  }
  // Whether another connection may come. Members give back for it as in take().
  [[nodiscard]] bool admits_connection();
  [[nodiscard]] std::size_t limit() const { return whole_->limit; }
  // By all parts.
  [[nodiscard]] std::size_t used() const { return whole_->used; }

 private:
  // What the parts share.
  struct Whole {
    std::atomic<std::size_t> limit{0}, least_part{0}, used{0}, members{0};
  };
  explicit MemoryBudget(std::shared_ptr<Whole> whole) : whole_(std::move(whole)) {}

  // Takes them if they fit.
  [[nodiscard]] bool try_take(std::size_t bytes, Stage stage, std::size_t held);
  void ask_others() const {
    if (ask_others_) ask_others_();
  }
  // Whether `bytes` may be taken when `used` are, `held` of them by the member that asks.
  [[nodiscard]] bool fits(std::size_t bytes, Stage stage, std::size_t used, std::size_t held) const;
  [[nodiscard]] std::size_t unused_bytes() const;
  [[nodiscard]] std::size_t part() const;

  std::shared_ptr<Whole> whole_;
  std::vector<Member*> members_;
  std::function<void()> ask_others_;
};

}  // namespace iwarp::rpcrdma
