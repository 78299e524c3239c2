// What the modes of dropin_stress share. The program knows rdma_cma.h and verbs.h only; built into it, the library's
// functions have other names (a sanitizer's build has no shared ones).
#pragma once

#ifdef IWARP_DROPIN_BUILT_IN
#include "tests/dropin/rdma_names.h"
#else
#include <rdma/rdma_cma.h>
#endif
//
#include <netinet/in.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace iwarp::stress {

// Ends the process with status 1 where the condition does not hold, and says what this thread was doing.
#define DEMAND(condition) \
  ((condition) ? void() : ::iwarp::stress::give_up(__FILE__, __LINE__, #condition, std::string()))
#define DEMAND_OR_SAY(condition, text) \
  ((condition) ? void() : ::iwarp::stress::give_up(__FILE__, __LINE__, #condition, text))
[[noreturn]] void give_up(const char* file, int line, const char* what, const std::string& more);

// What this thread does, for give_up() and the watchdog. Any change of it is progress. At most 64 threads at a time.
class Doing {
 public:
  explicit Doing(const char* what);
  ~Doing();
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

  // `what` is a literal. `number`: of the connection.
  static void now(const char* what);
  static void number(unsigned number);

 private:
  std::size_t slot_;
};

// Ends the process with status 3, and says what all threads do, when nothing has moved for so long.
void watch(std::chrono::seconds patience);

// No single step takes that long, unless it hangs. For machines that are slow and sanitizers that are slower.
inline constexpr std::chrono::seconds kPatience{60};

[[nodiscard]] std::size_t descriptors();
// Waits for the politely ending connections of the past. What there was before must be there, and no more.
void demand_descriptors(std::size_t before);

[[nodiscard]] bool readable(int descriptor, int timeout_ms = 0);
[[nodiscard]] sockaddr_in loopback(std::uint16_t port);
[[nodiscard]] inline sockaddr* as_sockaddr(sockaddr_in& address) {
  return reinterpret_cast<sockaddr*>(&address);
}
void pause_us(unsigned microseconds);

// Data that say where they are from.
void fill(std::span<std::byte> to, unsigned from);
[[nodiscard]] bool is_from(std::span<const std::byte> data, unsigned from);

// A request for one piece of memory. `opcode` of a Write or Read: at `there`.
struct There {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};
[[nodiscard]] int post_send(ibv_qp* qp, std::uint64_t id, ibv_wr_opcode opcode, std::span<std::byte> memory,
                            std::uint32_t key, There there = {}, unsigned flags = IBV_SEND_SIGNALED);
[[nodiscard]] int post_receive(ibv_qp* qp, std::uint64_t id, std::span<std::byte> memory, std::uint32_t key);

// A listener at a port of the loopback that the kernel has picked.
[[nodiscard]] rdma_cm_id* make_listener(rdma_event_channel* channel, int backlog);
// Waits; null: nothing came in that time.
[[nodiscard]] rdma_cm_event* next_event(rdma_event_channel* channel, std::chrono::milliseconds patience);

// As the environment says.
[[nodiscard]] bool presents_roce();

struct Settings {
  unsigned count = 0;
  std::uint64_t seed = 1;
  unsigned threads = 4;
  int only = -1;          // connects: this connection alone
  bool list = false;      // connects: print the courses, and end
  const char* program{};  // fork: of the children
};

// The modes. They end the process where something is wrong.
void connects(const Settings& settings);
void pairs(const Settings& settings);
void forks(const Settings& settings);
void exec_child(std::uint16_t port);

}  // namespace iwarp::stress
