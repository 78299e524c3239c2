#include "tests/dropin/stress_support.h"

#include <dirent.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

namespace iwarp::stress {
namespace {

struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<const char*> what{""};
  std::atomic<unsigned> number{0}, changes{0};
};
std::array<Slot, 64> slots;
thread_local Slot* own = nullptr;

void say_all() {
  for (const Slot& slot : slots) {
    if (slot.taken) std::fprintf(stderr, "  %u: %s\n", slot.number.load(), slot.what.load());
  }
}

unsigned all_changes() {
  unsigned sum = 0;
  for (const Slot& slot : slots) sum += slot.changes;
  return sum;
}

}  // namespace

void give_up(const char* file, int line, const char* what, const std::string& more) {
  const int error = errno;
  std::fflush(stdout);
  std::fprintf(stderr, "dropin_stress: %s:%d: %s, errno %d (%s) %s\n", file, line, what, error, std::strerror(error),
               more.c_str());
  if (own != nullptr) std::fprintf(stderr, "in %u: %s; all:\n", own->number.load(), own->what.load());
  say_all();
  std::_Exit(1);
}

Doing::Doing(const char* what) : slot_(0) {
  while (slots.at(slot_).taken.exchange(true)) ++slot_;
  own = &slots.at(slot_);
  now(what);
}

Doing::~Doing() {
  own = nullptr;
  slots.at(slot_).taken = false;
}

void Doing::now(const char* what) {
  if (own == nullptr) return;
  own->what = what;
  ++own->changes;
}

void Doing::number(unsigned number) {
  if (own != nullptr) own->number = number;
}

void watch(std::chrono::seconds patience) {
  std::thread([patience] {
    unsigned before = 0;
    auto moved = std::chrono::steady_clock::now();
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      const unsigned changes = all_changes();
      const auto now = std::chrono::steady_clock::now();
      if (changes != before) moved = now;
      before = changes;
      if (now - moved < patience) continue;
      std::fprintf(stderr, "dropin_stress: nothing moves:\n");
      say_all();
      std::_Exit(3);
    }
  }).detach();
}

std::size_t descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  DEMAND(folder != nullptr);
  std::size_t found = 0;
  while (const dirent* const entry = ::readdir(folder)) found += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return found - 1;  // that of the folder
}

void demand_descriptors(std::size_t before) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::size_t now = descriptors();
  while (now != before && std::chrono::steady_clock::now() < until) {
    pause_us(20000);
    now = descriptors();
  }
  DEMAND_OR_SAY(now == before, std::to_string(before) + " descriptors before, " + std::to_string(now) + " after");
}

bool readable(int descriptor, int timeout_ms) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, timeout_ms) == 1;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void pause_us(unsigned microseconds) {
  if (microseconds != 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

namespace {

std::byte octet(unsigned from, std::size_t at) {
  return static_cast<std::byte>(((from * 2654435761U) >> (at % 4 * 8)) + at / 4);
}

}  // namespace

void fill(std::span<std::byte> to, unsigned from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = octet(from, i);
}

bool is_from(std::span<const std::byte> data, unsigned from) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != octet(from, i)) return false;
  }
  return true;
}

int post_send(ibv_qp* qp, std::uint64_t id, ibv_wr_opcode opcode, std::span<std::byte> memory, std::uint32_t key,
              There there, unsigned flags) {
  ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(memory.data()),
              .length = static_cast<std::uint32_t>(memory.size()),
              .lkey = key};
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = opcode;
  wr.send_flags = flags;
  wr.sg_list = &sge;
  wr.num_sge = memory.empty() ? 0 : 1;
  wr.wr.rdma.remote_addr = there.address;
  wr.wr.rdma.rkey = there.key;
  ibv_send_wr* bad = nullptr;
  return ::ibv_post_send(qp, &wr, &bad);
}

int post_receive(ibv_qp* qp, std::uint64_t id, std::span<std::byte> memory, std::uint32_t key) {
  ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(memory.data()),
              .length = static_cast<std::uint32_t>(memory.size()),
              .lkey = key};
  ibv_recv_wr wr{.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  return ::ibv_post_recv(qp, &wr, &bad);
}

rdma_cm_id* make_listener(rdma_event_channel* channel, int backlog) {
  rdma_cm_id* id = nullptr;
  DEMAND(::rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0);
  sockaddr_in address = loopback(0);
  DEMAND(::rdma_bind_addr(id, as_sockaddr(address)) == 0);
  DEMAND(::rdma_listen(id, backlog) == 0);
  return id;
}

rdma_cm_event* next_event(rdma_event_channel* channel, std::chrono::milliseconds patience) {
  if (!readable(channel->fd, static_cast<int>(patience.count()))) return nullptr;
  rdma_cm_event* event = nullptr;
  DEMAND(::rdma_get_cm_event(channel, &event) == 0);
  return event;
}

bool presents_roce() {
  const char* const present = std::getenv("IWARP_PRESENT");
  return present != nullptr && std::string_view(present) == "roce";
}

}  // namespace iwarp::stress
