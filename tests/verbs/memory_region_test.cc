#include "iwarp/verbs/memory_region.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/support/covers.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using test::Bytes;
using test::region;

class MemoryRegionTest : public ::testing::Test {
 protected:
  ddp::StagTable& stags() { return context_->stags(); }
  Result<MemoryRegion> make(const MemoryRegion::Options& o = {}) {
    return MemoryRegion::register_memory(pd_, memory_, o);
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  ProtectionDomain pd_{context_};
  Bytes memory_ = test::pattern(256);
};

TEST_F(MemoryRegionTest, LivesAsLongAsTheObject) {
  COVERS("RFC5040-8.1.1-5");
  COVERS("RFC5041-8.3.1-5");
  Stag stag{};
  {
    const MemoryRegion mr = region(pd_, memory_);
    stag = mr.stag();
    EXPECT_TRUE(mr);
    EXPECT_TRUE(stags().valid(stag));
    EXPECT_EQ(mr.memory().data(), memory_.data());
    EXPECT_EQ(mr.memory().size(), memory_.size());
  }
  EXPECT_FALSE(stags().valid(stag));
  EXPECT_EQ(stags().size(), 0U);
}

TEST_F(MemoryRegionTest, DefaultConstructedIsEmpty) {
  MemoryRegion mr;
  EXPECT_FALSE(mr);
  mr.invalidate();
  mr.reset();
  EXPECT_FALSE(mr);
}

TEST_F(MemoryRegionTest, MoveLeavesOneOwner) {
  MemoryRegion a = region(pd_, memory_);
  const Stag stag = a.stag();
  MemoryRegion b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): that is the point
  EXPECT_TRUE(a.memory().empty());
  EXPECT_EQ(b.stag(), stag);
  a.reset();
  a.invalidate();
  EXPECT_TRUE(stags().valid(stag));

  Bytes other(16);
  MemoryRegion c = region(pd_, other);
  const Stag replaced = c.stag();
  c = std::move(b);
  EXPECT_FALSE(stags().valid(replaced)) << "assignment deregisters what was there";
  EXPECT_TRUE(stags().valid(stag));
  EXPECT_EQ(stags().size(), 1U);
  MemoryRegion& same = c;
  c = std::move(same);
  EXPECT_TRUE(stags().valid(stag)) << "self-assignment changes nothing";
}

TEST_F(MemoryRegionTest, BaseToIsTheAddressUnlessGiven) {
  const MemoryRegion by_address = region(pd_, memory_);
  EXPECT_EQ(by_address.base_to(), reinterpret_cast<std::uintptr_t>(memory_.data()));
  EXPECT_EQ(by_address.to_of(memory_.data() + 10), by_address.base_to() + 10);

  MemoryRegion::Options o;
  o.base_to = 0;
  const auto zero_based = make(o);
  ASSERT_TRUE(zero_based.ok());
  EXPECT_EQ(zero_based->base_to(), 0U);
  EXPECT_EQ(zero_based->to_of(memory_.data() + 10), 10U);
}

TEST_F(MemoryRegionTest, RefusesARangeThatWraps) {
  MemoryRegion::Options o;
  o.base_to = ~std::uint64_t{0} - memory_.size() + 2;
  const auto wraps = make(o);
  ASSERT_FALSE(wraps.ok());
  EXPECT_EQ(wraps.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(stags().size(), 0U);

  o.base_to = ~std::uint64_t{0} - memory_.size();
  EXPECT_TRUE(make(o).ok());
}

TEST_F(MemoryRegionTest, AnIovaNamesItHereAndToPeers) {
  const auto mr = make({.iova = 0x5000});
  ASSERT_TRUE(mr.ok());
  EXPECT_EQ(mr->iova(), 0x5000U);
  EXPECT_EQ(mr->base_to(), 0x5000U);
  EXPECT_EQ(mr->to_of(memory_.data() + 10), 0x500AU) << "to_of() takes addresses";
  EXPECT_EQ(mr->memory().data(), memory_.data());
  const Sge piece = mr->sge(16, 32);
  EXPECT_EQ(piece.at(0), 0x5010U);
  const auto p = stags().pin_local(piece.lkey, pd_.id(), ddp::Access::kLocalWrite, piece.at(2), 30);
  ASSERT_TRUE(p.ok);
  EXPECT_EQ(p.pin.bytes().data(), memory_.data() + 18);
  EXPECT_EQ(region(pd_, memory_).iova(), reinterpret_cast<std::uintptr_t>(memory_.data())) << "unless given";

  auto both = make({.base_to = 7, .iova = 0});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->base_to(), 7U);
  EXPECT_EQ(both->sge().at(0), 0U);
  MemoryRegion moved = std::move(*both);
  EXPECT_EQ(moved.sge().at(3), 3U);
  MemoryRegion assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.sge().at(3), 3U);

  const auto read_only = MemoryRegion::register_read_only(pd_, memory_, {.iova = 99});
  ASSERT_TRUE(read_only.ok());
  EXPECT_EQ(read_only->sge().at(0), 99U);
}

TEST_F(MemoryRegionTest, RefusesAnIovaThatWraps) {
  const auto wraps = make({.base_to = 0, .iova = ~std::uint64_t{0} - memory_.size() + 2});
  ASSERT_FALSE(wraps.ok());
  EXPECT_EQ(wraps.error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(make({.iova = ~std::uint64_t{0} - memory_.size()}).ok());
}

TEST_F(MemoryRegionTest, RegisteredAnewItHasAnotherKeyAndTheOldStagIsDead) {
  COVERS("RFC5040-8.1.1-5");
  MemoryRegion mr = region(pd_, memory_, ddp::Access::kRemoteRead);
  const Stag old = mr.stag();
  Bytes other(16);
  const ProtectionDomain elsewhere{context_};
  ASSERT_TRUE(mr.reregister(elsewhere, other, {.access = ddp::Access::kRemoteWrite, .base_to = 5, .iova = 6}).ok());
  EXPECT_EQ(raw(mr.stag()) >> 8, raw(old) >> 8);
  EXPECT_NE(mr.stag(), old);
  EXPECT_FALSE(stags().valid(old));
  EXPECT_EQ(mr.memory().data(), other.data());
  EXPECT_EQ(mr.memory().size(), 16U);
  EXPECT_EQ(mr.base_to(), 5U);
  EXPECT_EQ(mr.sge().at(0), 6U);
  const ddp::StreamKey who{elsewhere.id(), ddp::StreamId{1}};
  EXPECT_TRUE(stags().pin(mr.stag(), who, ddp::Access::kRemoteWrite, 5, 16).ok);
  EXPECT_EQ(stags().pin(mr.stag(), who, ddp::Access::kRemoteRead, 5, 16).fault, ddp::StagFault::kAccess);
  EXPECT_EQ(stags().pin(mr.stag(), {pd_.id(), ddp::StreamId{1}}, ddp::Access::kRemoteWrite, 5, 16).fault,
            ddp::StagFault::kNotAssociated);
  EXPECT_EQ(stags().size(), 1U);
  const Stag last = mr.stag();
  mr.reset();
  EXPECT_FALSE(stags().valid(last));
  EXPECT_EQ(stags().size(), 0U);
}

TEST_F(MemoryRegionTest, RegisteredAnewWithTheKeyThatIsAskedFor) {
  MemoryRegion mr = region(pd_, memory_);
  for (int i = 0; i < 600; ++i) {
    const auto next = static_cast<std::uint8_t>(raw(mr.stag()) + 1);
    ASSERT_TRUE(mr.reregister(pd_, memory_, {}, next).ok());
    ASSERT_EQ(raw(mr.stag()) & 0xFF, next);
  }
  for (int i = 0; i < 2000; ++i) {  // drawn: each time another one
    const Stag old = mr.stag();
    ASSERT_TRUE(mr.reregister(pd_, memory_, {}).ok());
    ASSERT_NE(mr.stag(), old);
  }
}

TEST_F(MemoryRegionTest, RegisteringAnewIsAllOrNothing) {
  MemoryRegion mr = region(pd_, memory_);
  const Stag stag = mr.stag();
  const auto refused = [&](const Result<void>& result) {
    return !result && result.error().code == Errc::kInvalidArgument && mr.stag() == stag && stags().valid(stag) &&
           mr.memory().size() == memory_.size();
  };
  Bytes other(16);
  EXPECT_TRUE(refused(mr.reregister(pd_, other, {.base_to = ~std::uint64_t{0}})));
  EXPECT_TRUE(refused(mr.reregister(pd_, other, {.base_to = 0, .iova = ~std::uint64_t{0}})));
  EXPECT_TRUE(refused(mr.reregister(pd_, other, {}, static_cast<std::uint8_t>(raw(stag)))));
  EXPECT_TRUE(refused(mr.reregister(ProtectionDomain{std::make_shared<Context>()}, other, {})));
  EXPECT_FALSE(MemoryRegion().reregister(pd_, other, {}).ok());
}

TEST_F(MemoryRegionTest, RegisteredAnewAfterItWasInvalidatedOrReadOnly) {
  MemoryRegion mr = region(pd_, memory_);
  mr.invalidate();
  ASSERT_TRUE(mr.reregister(pd_, memory_, {}).ok());
  EXPECT_TRUE(stags().valid(mr.stag()));
  auto read_only = MemoryRegion::register_read_only(pd_, memory_);
  ASSERT_TRUE(read_only.ok());
  ASSERT_TRUE(read_only->reregister(pd_, memory_, {}).ok());
  EXPECT_FALSE(read_only->read_only());
}

TEST_F(MemoryRegionTest, RegisteringAnewWaitsForAnAccessUnderWay) {
  COVERS("RFC5040-8.1.1-7");
  COVERS("RFC5042-6.2.2-2");
  MemoryRegion mr = region(pd_, memory_);
  const Stag old = mr.stag();
  auto access = stags().pin_local(old, pd_.id(), ddp::Access::kLocalRead, mr.sge().at(0), 16);
  ASSERT_TRUE(access.ok);
  std::atomic<bool> done{false};
  std::thread owner([&] {
    EXPECT_TRUE(mr.reregister(pd_, memory_, {}).ok());
    done = true;
  });
  while (stags().valid(old)) std::this_thread::yield();
  EXPECT_FALSE(done) << "dead at once, but not replaced";
  { const ddp::Pin let_go = std::move(access.pin); }
  owner.join();
  EXPECT_TRUE(stags().valid(mr.stag()));
}

TEST_F(MemoryRegionTest, GivesPiecesOfItself) {
  const MemoryRegion mr = region(pd_, memory_);
  const Sge piece = mr.sge(16, 32);
  EXPECT_EQ(piece.address, memory_.data() + 16);
  EXPECT_EQ(piece.length, 32U);
  EXPECT_EQ(piece.lkey, mr.stag());
  EXPECT_EQ(mr.sge().length, memory_.size());
  EXPECT_EQ(mr.sge(200).length, memory_.size() - 200);
  EXPECT_EQ(mr.sge(memory_.size()).length, 0U);
}

TEST_F(MemoryRegionTest, GivesNoPieceBeyondItsEnd) {
  const MemoryRegion mr = region(pd_, memory_);
  EXPECT_THROW((void)mr.sge(memory_.size() + 1), std::out_of_range);
  EXPECT_THROW((void)mr.sge(memory_.size() + 1, 0), std::out_of_range);
  EXPECT_THROW((void)mr.sge(200, memory_.size() - 199), std::out_of_range);
  EXPECT_THROW((void)mr.sge(1, ~std::size_t{0}), std::out_of_range);
  EXPECT_THROW((void)MemoryRegion().sge(0, 1), std::out_of_range);
}

TEST_F(MemoryRegionTest, ReadOnlyMemoryIsRegisteredWithoutRightsToWrite) {
  static constexpr std::byte kText[] = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  MemoryRegion mr = MemoryRegion::register_read_only(pd_, kText).value();
  EXPECT_TRUE(mr.read_only());
  EXPECT_TRUE(mr.memory().empty()) << "or somebody could write it";
  EXPECT_EQ(mr.bytes().data(), kText);
  EXPECT_EQ(mr.sge(1).length, 2U);
  const auto may = [&](ddp::Access need) {
    return stags().pin_local(mr.stag(), pd_.id(), need, mr.sge().at(0), sizeof kText).ok;
  };
  EXPECT_TRUE(may(ddp::Access::kLocalRead));
  EXPECT_FALSE(may(ddp::Access::kLocalWrite));
  EXPECT_FALSE(may(ddp::Access::kRemoteWrite));
  const MemoryRegion moved = std::move(mr);
  EXPECT_TRUE(moved.read_only());
}

TEST_F(MemoryRegionTest, ReadOnlyMemoryRefusesAccessThatWrites) {
  for (const ddp::Access access :
       {ddp::Access::kLocalWrite, ddp::Access::kRemoteWrite, ddp::Access::kRemoteWrite | ddp::Access::kRemoteRead}) {
    const auto made = MemoryRegion::register_read_only(pd_, memory_, {.access = access});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, Errc::kInvalidArgument);
  }
  EXPECT_TRUE(MemoryRegion::register_read_only(pd_, memory_, {.access = ddp::Access::kRemoteRead}).ok());
}

TEST_F(MemoryRegionTest, InvalidateRevokesButKeepsTheIndex) {
  MemoryRegion mr = region(pd_, memory_);
  mr.invalidate();
  EXPECT_FALSE(stags().valid(mr.stag()));
  EXPECT_EQ(stags().size(), 1U);
  mr.invalidate();
  mr.reset();
  EXPECT_EQ(stags().size(), 0U);
}

TEST_F(MemoryRegionTest, OutlivesTheContextHandle) {
  MemoryRegion mr = region(pd_, memory_);
  context_.reset();
  pd_ = ProtectionDomain(std::make_shared<Context>());
  EXPECT_TRUE(mr);
  mr.reset();
}

TEST_F(MemoryRegionTest, DeregistrationWaitsForAnAccessUnderWay) {
  COVERS("RFC5040-8.1.1-7");
  COVERS("RFC5042-6.2.2-2");
  MemoryRegion mr = region(pd_, memory_);
  auto access = stags().pin_local(mr.stag(), pd_.id(), ddp::Access::kLocalRead, mr.sge().at(0), 16);
  ASSERT_TRUE(access.ok);
  std::atomic<bool> gone{false};
  std::thread owner([&] {
    mr.reset();
    gone = true;
  });
  const Stag stag = mr.stag();
  while (stags().valid(stag)) std::this_thread::yield();
  EXPECT_FALSE(gone);
  { const ddp::Pin let_go = std::move(access.pin); }
  owner.join();
  EXPECT_TRUE(gone);
}

TEST_F(MemoryRegionTest, RegistersFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      Bytes mine(64);
      for (int i = 0; i < 500; ++i) {
        MemoryRegion mr = region(pd_, mine);
        EXPECT_TRUE(stags().valid(mr.stag()));
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(stags().size(), 0U);
}

}  // namespace
}  // namespace iwarp::verbs
