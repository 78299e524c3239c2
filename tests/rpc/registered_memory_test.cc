// The allocator.
#include "iwarp/rpc/registered_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace iwarp::rpc::test {
namespace {

struct Allocation {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  std::size_t alignment = 0;
};

// All of it is written to, the room in front as well: what overlaps is found by check().
Allocation take(RegisteredMemory& memory, std::size_t bytes, std::size_t alignment, std::byte mark) {
  const Allocation a{static_cast<std::byte*>(memory.allocate(bytes, alignment)), bytes, alignment};
  std::fill(a.at - RegisteredMemory::kHeadBytes, a.at + bytes, mark);
  return a;
}
bool is_marked(const Allocation& a, std::byte mark) {
  return std::all_of(a.at - RegisteredMemory::kHeadBytes, a.at + a.bytes, [&](std::byte b) { return b == mark; });
}
void give(RegisteredMemory& memory, const Allocation& a) {
  memory.deallocate(a.at, a.bytes, a.alignment);
}

TEST(RegisteredMemory, GivesWhatIsAskedFor) {
  RegisteredMemory memory(100000);
  EXPECT_EQ(memory.size_bytes(), 102400u);  // whole pages
  for (const std::size_t alignment : {1u, 8u, 64u, 256u, 4096u, 32768u}) {
    for (const std::size_t bytes : {0u, 1u, 63u, 64u, 4096u}) {
      const auto a = take(memory, bytes, alignment, std::byte{1});
      const auto b = take(memory, bytes, alignment, std::byte{2});
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.at) % std::max<std::size_t>(alignment, 64), 0u);
      EXPECT_TRUE(is_marked(a, std::byte{1}));
      give(memory, a);
      EXPECT_TRUE(is_marked(b, std::byte{2}));
      EXPECT_GE(memory.in_use_bytes(), bytes + RegisteredMemory::kHeadBytes);
      give(memory, b);
      EXPECT_EQ(memory.in_use_bytes(), 0u);
    }
  }
  RegisteredMemory other(1);
  EXPECT_TRUE(memory.is_equal(memory));
  EXPECT_FALSE(memory.is_equal(other));
  std::pmr::map<int, std::pmr::string> map(&memory);
  for (int i = 0; i < 20; ++i) map.emplace(i, std::string(100, static_cast<char>('a' + i)));
  EXPECT_EQ(std::string_view(map.at(7)), std::string(100, 'h'));
}

TEST(RegisteredMemory, ThrowsAtItsBound) {
  RegisteredMemory memory(64u << 10);
  volatile std::size_t most = SIZE_MAX;  // the compiler is not to know
  EXPECT_THROW(RegisteredMemory{most}, std::bad_alloc);
  EXPECT_THROW(RegisteredMemory{most / 2 - 8191}, std::bad_alloc);
  EXPECT_THROW((void)memory.allocate(most), std::bad_alloc);
  EXPECT_THROW((void)memory.allocate(64u << 10), std::bad_alloc);
  EXPECT_THROW((void)memory.allocate(1, most / 2 + 1), std::bad_alloc);
  EXPECT_EQ(memory.in_use_bytes(), 0u);
  std::vector<Allocation> all;
  try {
    for (;;) all.push_back(take(memory, 1000, 8, static_cast<std::byte>(all.size())));
  } catch (const std::bad_alloc&) {
  }
  EXPECT_EQ(all.size(), (64u << 10) / 1920);  // 896 in front, and both in lines of 64
  for (std::size_t i = 0; i < all.size(); i += 2) give(memory, all[i]);
  EXPECT_THROW((void)memory.allocate(8000), std::bad_alloc);  // half is free, in pieces
  for (std::size_t i = 1; i < all.size(); i += 2) give(memory, all[i]);
  EXPECT_EQ(memory.in_use_bytes(), 0u);
  const std::size_t whole = (64u << 10) - RegisteredMemory::kHeadBytes;
  give(memory, take(memory, whole, 8, std::byte{9}));  // they have become one
  EXPECT_THROW((void)memory.allocate(whole + 1), std::bad_alloc);
}

TEST(RegisteredMemory, AllocationsNeverMeet) {
  std::mt19937 random(7);
  RegisteredMemory memory(1u << 20);
  std::vector<std::pair<Allocation, std::byte>> all;
  for (int i = 0; i < 4000; ++i) {
    if (!all.empty() && random() % 2 == 0) {
      std::swap(all[random() % all.size()], all.back());
      ASSERT_TRUE(is_marked(all.back().first, all.back().second));
      give(memory, all.back().first);
      all.pop_back();
      continue;
    }
    const auto mark = static_cast<std::byte>(random());
    try {
      all.emplace_back(take(memory, random() % 20000, std::size_t{1} << random() % 13, mark), mark);
    } catch (const std::bad_alloc&) {
    }
  }
  for (const auto& [allocation, mark] : all) {
    ASSERT_TRUE(is_marked(allocation, mark));
    give(memory, allocation);
  }
  EXPECT_EQ(memory.in_use_bytes(), 0u);
}

TEST(RegisteredMemory, ServesThreads) {
  RegisteredMemory memory(4u << 20);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, mark = static_cast<std::byte>(t + 1)] {
      for (std::size_t i = 0; i < 1000; ++i) {
        const auto a = take(memory, i % 3000, 8, mark);
        EXPECT_TRUE(is_marked(a, mark));
        give(memory, a);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(memory.in_use_bytes(), 0u);
}

TEST(RegisteredOctets, KnowWhereTheyAre) {
  RegisteredMemory memory(64u << 10);
  {
    std::pmr::vector<std::byte> octets(100, std::byte{5}, &memory);
    const std::byte* const at = octets.data();
    RegisteredOctets there(std::move(octets));
    EXPECT_TRUE(there.in_place());
    EXPECT_EQ(there.bytes().data(), at);
    RegisteredOctets moved = std::move(there);
    EXPECT_EQ(moved.bytes().data(), at);
    EXPECT_EQ(moved.bytes().size(), 100u);
    EXPECT_FALSE(RegisteredOctets(std::pmr::vector<std::byte>(100)).in_place());
    EXPECT_FALSE(RegisteredOctets(std::pmr::vector<std::byte>(&memory)).in_place());
    EXPECT_GT(memory.in_use_bytes(), 0u);
  }
  EXPECT_EQ(memory.in_use_bytes(), 0u);
}

}  // namespace
}  // namespace iwarp::rpc::test
