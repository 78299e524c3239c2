// Threads that access memory while its owner revokes, reuses and registers it. Meant to run under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "iwarp/ddp/stag_table.h"
#include "tests/support/covers.h"

namespace iwarp::ddp {
namespace {

constexpr StreamKey kMe{PdId{1}, StreamId{1}};
constexpr Access kAccess = Access::kRemoteWrite | Access::kLocalWrite | Access::kRemoteInvalidate;
constexpr std::size_t kBytes = 256;

// No access may reach memory after its STag was invalidated and the table said that it is quiescent: the owner then
// writes it without any lock, and must find its own octets.
TEST(StagTableStress, RevokedMemoryBelongsToItsOwnerAgain) {
  COVERS("RFC5041-8.3.1-7");
  StagTable table;
  std::atomic<std::uint32_t> published{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> hits{0};

  std::vector<std::thread> peers;
  for (unsigned n = 0; n < 3; ++n) {
    peers.emplace_back([&, n] {
      std::mt19937 random(n);
      Pin kept;
      while (!stop.load()) {
        const Stag s{published.load()};
        auto p = table.pin(s, kMe, Access::kRemoteWrite, 0, kBytes);
        if (!p.ok) {
          std::this_thread::yield();
          continue;
        }
        // One writer at a time in these octets: each peer has its own part of the buffer.
        const MutBytes mine = p.pin.bytes().subspan(n * 64, 64);
        std::memset(mine.data(), 0x50 + static_cast<int>(n), mine.size());
        hits.fetch_add(1, std::memory_order_relaxed);
        if (random() % 8 == 0) {
          p.pin.suspend();
          kept = std::move(p.pin);
        } else if (kept.resume()) {
          if (!kept.bytes().empty()) std::memset(kept.bytes().data() + n * 64, 0x50, 1);
          kept.suspend();
        } else {
          kept = Pin{};
        }
        if (random() % 64 == 0) (void)table.invalidate_remote(s, kMe);
      }
    });
  }

  std::vector<std::byte> memory(kBytes);
  peers.emplace_back([&] {
    HeldRegion held;
    const std::uint64_t iova = reinterpret_cast<std::uintptr_t>(&memory[192]);
    for (unsigned n = 0; !stop.load(); ++n) {
      const auto last = table.local(held, Stag{published.load()}, kMe.pd, Access::kLocalWrite, iova, 64);
      if (last) std::memset(last->data(), 0x53, last->size());
      if (!last || n % 8 == 0) std::this_thread::yield();
      if (n % 4 == 0) held.release();
    }
  });
  std::mt19937_64 random(99);
  for (int round = 0; round < 20000; ++round) {
    const Stag s = table.register_memory({memory, 0, kMe.pd, kMe.stream, kAccess}, random()).value();
    published.store(raw(s));
    if (round % 16 == 0) std::this_thread::yield();
    table.invalidate(s);  // unless a peer was faster
    while (!table.quiescent(s)) std::this_thread::yield();
    std::memset(memory.data(), 0xAA, memory.size());
    for (const std::byte b : memory) ASSERT_EQ(b, std::byte{0xAA});
    table.release(s);
  }
  stop.store(true);
  for (auto& t : peers) t.join();
  EXPECT_EQ(table.size(), 0U);
  EXPECT_GT(hits.load(), 0U);
}

}  // namespace
}  // namespace iwarp::ddp
