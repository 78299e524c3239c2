// Payload in any order leaves memory as if it had come in order.
#include "iwarp/session/early_placement.h"

#include "tests/session/early_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::session {
namespace {

using test::Bytes;

class Placing : public ::testing::Test {
 protected:
  std::vector<ddp::Pin> pins(std::size_t at, std::size_t bytes) {
    std::vector<ddp::Pin> out;
    auto p = memory.stags.pin_local(region.stag(), memory.key.pd, ddp::Access::kLocalWrite, region.sge(at, bytes).at(0),
                                    bytes);
    EXPECT_TRUE(p.ok);
    out.push_back(std::move(p.pin));
    return out;
  }
  bool place(std::uint64_t position, std::size_t at, const Bytes& payload) {
    auto targets = pins(at, payload.size());
    const bool placed = early.place(position, targets, payload);
    EXPECT_TRUE(targets.empty());
    return placed;
  }
  void place_due(std::size_t at, const Bytes& payload) { early.place_due(pins(at, payload.size()), payload); }
  static Bytes of(unsigned value, std::size_t bytes) { return Bytes(bytes, static_cast<std::byte>(value)); }
  // The octets of the region, as digits.
  std::string text() {
    std::string out;
    for (const std::byte b : region.bytes()) out += static_cast<char>('0' + std::to_integer<int>(b));
    return out;
  }

  test::EndMemory memory{{PdId{1}, ddp::StreamId{1}}};
  test::Region& region = memory.region(20);
  EarlyPlacement early;
};

TEST_F(Placing, AnEarlierOneGoesAroundLaterOnes) {
  EXPECT_TRUE(place(5, 2, of(5, 3)));
  EXPECT_TRUE(place(7, 10, of(7, 2)));
  EXPECT_TRUE(place(6, 4, of(6, 7)));  // over 5, under 7
  EXPECT_EQ(text(), "00556666667700000000");
  place_due(0, of(1, 20));
  EXPECT_EQ(text(), "11556666667711111111");
}

TEST_F(Placing, WhatIsDeliveredIsForgotten) {
  EXPECT_TRUE(early.empty());
  EXPECT_TRUE(place(5, 2, of(5, 3)));
  EXPECT_TRUE(place(6, 8, of(6, 3)));
  EXPECT_TRUE(early.delivered());
  place_due(0, of(1, 20));
  EXPECT_EQ(text(), "11111111666111111111");
  EXPECT_TRUE(early.delivered());
  EXPECT_TRUE(early.empty());
  place_due(0, of(2, 20));
  EXPECT_EQ(text(), std::string(20, '2'));
}

TEST_F(Placing, TwoTargetsAreOneMessage) {
  auto targets = pins(0, 4);
  targets.push_back(std::move(pins(10, 4)[0]));
  const Bytes payload = test::hex("0102030405060708");
  EXPECT_TRUE(early.place(5, targets, payload));
  EXPECT_EQ(text(), "12340000005678000000");
  EXPECT_TRUE(place(6, 3, of(9, 1)));
  place_due(0, of(0, 20));
  EXPECT_EQ(text(), "12390000005678000000");
  EXPECT_TRUE(early.delivered());
  place_due(0, of(0, 20));
  EXPECT_EQ(text(), "00090000000000000000");
}

TEST_F(Placing, MoreTargetsAreNotTaken) {
  auto targets = pins(0, 4);
  targets.push_back(std::move(pins(6, 4)[0]));
  targets.push_back(std::move(pins(12, 4)[0]));
  EXPECT_FALSE(early.place(5, targets, of(5, 12)));
  EXPECT_EQ(text(), std::string(20, '0'));
  EXPECT_TRUE(early.empty());
}

// It holds nobody up, and whoever registers that memory next is not hindered by it.
TEST_F(Placing, RevokedMemoryIsFreeAgain) {
  COVERS("RFC5041-8.3-2");
  EXPECT_TRUE(place(5, 2, of(5, 3)));
  EXPECT_TRUE(memory.stags.invalidate(region.stag()));
  EXPECT_TRUE(memory.stags.quiescent(region.stag()));
  memory.stags.release(region.stag());
  const auto again =
      memory.stags.register_memory({region.bytes(), 0, memory.key.pd, ddp::StreamId::kAny, test::kLocal}, 77);
  ASSERT_TRUE(again);
  std::vector<ddp::Pin> targets;
  auto p = memory.stags.pin_local(*again, memory.key.pd, ddp::Access::kLocalWrite, region.sge(0, 20).at(0), 20);
  ASSERT_TRUE(p.ok);
  targets.push_back(std::move(p.pin));
  early.place_due(targets, of(1, 20));
  EXPECT_EQ(text(), std::string(20, '1'));
}

// Against the same in order.
TEST_F(Placing, AnyOrderOfAnyRangesEndsTheSame) {
  struct Write {
    std::size_t at;
    Bytes payload;
  };
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % 12;
    std::vector<Write> writes;
    Bytes expected = region.bytes();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = 1 + random() % 12, at = random() % (21 - bytes);
      writes.push_back({at, {}});
      for (std::size_t k = 0; k < bytes; ++k) writes.back().payload.push_back(static_cast<std::byte>(random() % 40));
      std::copy(writes[i].payload.begin(), writes[i].payload.end(), expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    std::size_t due = 0;
    std::vector<bool> there(count + 1);
    for (const std::size_t i : order) {
      if (i == due) {
        place_due(writes[i].at, writes[i].payload);
        for (++due; there[due]; ++due) EXPECT_TRUE(early.delivered());
      } else {
        there[i] = place(i, writes[i].at, writes[i].payload);
      }
    }
    ASSERT_EQ(region.bytes(), expected) << "round " << round;
    ASSERT_TRUE(early.empty());
  }
}

}  // namespace
}  // namespace iwarp::session
