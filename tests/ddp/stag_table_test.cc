#include "iwarp/ddp/stag_table.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::ddp {
namespace {

constexpr StreamKey kMe{PdId{1}, StreamId{11}};
constexpr StreamKey kSibling{PdId{1}, StreamId{12}};  // same Protection Domain, other stream
constexpr StreamKey kStranger{PdId{2}, StreamId{13}};
constexpr Access kAll = Access::kLocalWrite | Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteInvalidate;

class StagTableTest : public ::testing::Test {
 protected:
  Stag add_with_key(std::uint8_t key) {
    return table_.register_memory({memory_, 1000, PdId{1}, StreamId::kAny, kAll}, (random_() & ~0xFFULL) | key).value();
  }
  Stag add(Access access = kAll, std::uint64_t base_to = 1000, StreamId stream = StreamId::kAny) {
    return table_.register_memory({memory_, base_to, PdId{1}, stream, access}, random_()).value();
  }
  std::optional<StagFault> fault(Stag stag, StreamKey who, std::uint64_t to, std::size_t length,
                                 Access need = Access::kRemoteWrite) {
    const auto p = table_.pin(stag, who, need, to, length);
    return p.ok ? std::nullopt : std::optional(p.fault);
  }
  void drop(Stag stag) {
    EXPECT_TRUE(table_.invalidate(stag));
    EXPECT_TRUE(table_.quiescent(stag));
    table_.release(stag);
  }

  std::uint64_t address(std::ptrdiff_t offset = 0) const {
    return reinterpret_cast<std::uintptr_t>(memory_.data()) + static_cast<std::uint64_t>(offset);
  }

  test::Bytes memory_ = test::Bytes(100);
  StagTable table_;
  std::mt19937_64 random_{1};
};

TEST_F(StagTableTest, PinGivesTheOctetsAsked) {
  const Stag s = add();
  const auto p = table_.pin(s, kMe, Access::kRemoteWrite, 1010, 20);
  ASSERT_TRUE(p.ok);
  EXPECT_EQ(p.pin.bytes().data(), memory_.data() + 10);
  EXPECT_EQ(p.pin.bytes().size(), 20U);
}

TEST_F(StagTableTest, BoundsAreExactToTheOctet) {
  COVERS("RFC5041-7.1-13");
  COVERS("RFC5041-7.1-14");
  COVERS("RFC5041-8.1-1");
  COVERS("RFC5041-8.3-1");
  COVERS("RFC5041-8.3.1-4");
  COVERS("RFC5040-8.1.1-4");
  COVERS("RFC5041-4.2-12");
  const Stag s = add();
  EXPECT_EQ(fault(s, kMe, 1000, 100), std::nullopt);
  EXPECT_EQ(fault(s, kMe, 1099, 1), std::nullopt);
  EXPECT_EQ(fault(s, kMe, 1100, 0), std::nullopt);  // nothing, just behind the end
  EXPECT_EQ(fault(s, kMe, 1000, 0), std::nullopt);
  EXPECT_EQ(fault(s, kMe, 999, 1), StagFault::kBounds);
  EXPECT_EQ(fault(s, kMe, 999, 0), StagFault::kBounds);
  EXPECT_EQ(fault(s, kMe, 1101, 0), StagFault::kBounds);
  EXPECT_EQ(fault(s, kMe, 1099, 2), StagFault::kBounds);
  EXPECT_EQ(fault(s, kMe, 1000, 101), StagFault::kBounds);
  EXPECT_EQ(fault(s, kMe, 0, 100), StagFault::kBounds);
  EXPECT_EQ(fault(s, kMe, 0xFFFF'FFFF'FFFF'FF00, 0xFF), StagFault::kBounds);
}

TEST_F(StagTableTest, AHeldRegionStaysOnOneRegionAndIsCheckedEachTime) {
  const Stag s = add(), read_only = add(Access::kRemoteRead);
  HeldRegion held;
  const auto at = [&](Stag stag, std::ptrdiff_t offset, std::size_t length, PdId pd = kMe.pd) {
    return table_.local(held, stag, pd, Access::kLocalWrite, address(offset), length);
  };
  for (int i = 0; i < 2; ++i) {
    const auto octets = at(s, 10, 20);
    ASSERT_TRUE(octets);
    EXPECT_EQ(octets->data(), memory_.data() + 10);
    EXPECT_EQ(octets->size(), 20U);
    EXPECT_TRUE(at(s, 99, 1));
    EXPECT_FALSE(at(s, 99, 2));
    EXPECT_FALSE(at(s, -1, 1));
    EXPECT_FALSE(at(s, 0, 1, kStranger.pd));
    EXPECT_TRUE(at(s, 0, 100)) << "a refusal changes nothing";
    EXPECT_FALSE(at(read_only, 0, 1)) << "no right to write";
    EXPECT_TRUE(table_.quiescent(s)) << "it is on the other region now";
  }
}

TEST_F(StagTableTest, AHeldRegionIsHeldUntilReleasedButNotItsRight) {
  const Stag s = add();
  HeldRegion held;
  const auto at = [&](Stag stag) {
    return table_.local(held, stag, kMe.pd, Access::kLocalWrite, address(), 1).has_value();
  };
  EXPECT_TRUE(at(s));
  EXPECT_FALSE(table_.quiescent(s));
  EXPECT_TRUE(table_.invalidate(s));
  EXPECT_FALSE(at(s));
  EXPECT_TRUE(table_.quiescent(s)) << "let go of when it was found revoked";
  table_.release(s);
  const Stag again = add();
  EXPECT_TRUE(at(again));
  held.release();
  EXPECT_TRUE(table_.quiescent(again));
  EXPECT_TRUE(at(again)) << "once released it can be used again";
  {
    const HeldRegion gone = std::move(held);
    EXPECT_FALSE(table_.quiescent(again));
  }
  EXPECT_TRUE(table_.quiescent(again));
}

TEST_F(StagTableTest, WrapOfTheOffset) {
  COVERS("RFC5041-7.1-15");
  COVERS("RFC5040-7.2-13");
  const Stag s = add();
  EXPECT_EQ(fault(s, kMe, 0xFFFF'FFFF'FFFF'FFFF, 1), StagFault::kWrap);
  EXPECT_EQ(fault(s, kMe, 0xFFFF'FFFF'FFFF'FFFF, 0), StagFault::kBounds);
  EXPECT_EQ(fault(s, kMe, 1001, 0xFFFF'FFFF'FFFF'FFFF), StagFault::kWrap);
}

TEST_F(StagTableTest, BufferAtTheTopOfTheAddressSpace) {
  const std::uint64_t base = 0xFFFF'FFFF'FFFF'FFFF - 100;
  const Stag s = add(kAll, base);
  EXPECT_EQ(fault(s, kMe, base, 100), std::nullopt);
  EXPECT_EQ(fault(s, kMe, base + 99, 1), std::nullopt);
  EXPECT_EQ(fault(s, kMe, base + 99, 2), StagFault::kWrap);
  const auto wraps = table_.register_memory({memory_, base + 2, PdId{1}, StreamId::kAny, kAll}, 1);
  ASSERT_FALSE(wraps.ok());
  EXPECT_EQ(wraps.error().code, Errc::kInvalidArgument);
}

TEST_F(StagTableTest, AssociationByProtectionDomain) {
  COVERS("RFC5041-8.2-1");
  COVERS("RFC5041-8.3.1-2");
  COVERS("RFC5040-8.1.1-2");
  COVERS("RFC5040-7.2-10");
  COVERS("RFC5041-2.3-2");
  const Stag s = add();
  EXPECT_EQ(fault(s, kMe, 1000, 1), std::nullopt);
  EXPECT_EQ(fault(s, kSibling, 1000, 1), std::nullopt);
  EXPECT_EQ(fault(s, kStranger, 1000, 1), StagFault::kNotAssociated);
}

TEST_F(StagTableTest, AssociationByStream) {
  COVERS("RFC5041-8.2-2");
  COVERS("RFC5041-8.2-5");
  COVERS("RFC5041-8.3-3");
  COVERS("RFC5041-8.3.1-3");
  COVERS("RFC5040-8.1.1-3");
  const Stag s = add(kAll, 1000, kMe.stream);
  EXPECT_EQ(fault(s, kMe, 1000, 1), std::nullopt);
  EXPECT_EQ(fault(s, kSibling, 1000, 1), StagFault::kNotAssociated);
  EXPECT_EQ(fault(s, {PdId{2}, kMe.stream}, 1000, 1), StagFault::kNotAssociated);
  EXPECT_EQ(fault(s, {PdId{1}, StreamId::kAny}, 1000, 1), StagFault::kNotAssociated) << "a registration's, no stream's";
}

TEST_F(StagTableTest, RightsAreGrantedOneByOne) {
  COVERS("RFC5041-7.1-12");
  COVERS("RFC5040-8.1.1-6");
  COVERS("RFC5041-8.3.1-6");
  COVERS("RFC5040-3.2-11");
  const Stag write_only = add(Access::kRemoteWrite);
  EXPECT_EQ(fault(write_only, kMe, 1000, 1, Access::kRemoteWrite), std::nullopt);
  EXPECT_EQ(fault(write_only, kMe, 1000, 1, Access::kRemoteRead), StagFault::kAccess);
  const Stag read_only = add(Access::kRemoteRead);
  EXPECT_EQ(fault(read_only, kMe, 1000, 1, Access::kRemoteRead), std::nullopt);
  EXPECT_EQ(fault(read_only, kMe, 1000, 1, Access::kRemoteWrite), StagFault::kAccess);
  const Stag local = add(Access::kLocalWrite);
  EXPECT_EQ(fault(local, kMe, 1000, 1, Access::kRemoteRead), StagFault::kAccess);
}

TEST_F(StagTableTest, StableSourceIsAPromiseAndNoRight) {
  const Stag promise_only = add(Access::kStableSource);
  EXPECT_EQ(fault(promise_only, kMe, 1000, 1, Access::kRemoteRead), StagFault::kAccess);
  EXPECT_TRUE(table_.pin(add(Access::kRemoteRead | Access::kStableSource), kMe, Access::kRemoteRead, 1000, 1).stable);
  EXPECT_FALSE(table_.pin(add(kAll), kMe, Access::kRemoteRead, 1000, 1).stable);
}

TEST_F(StagTableTest, UnknownStagAndKeyMismatch) {
  COVERS("RFC5041-7.1-11");
  COVERS("RFC5040-7.2-9");
  const Stag s = add();
  for (unsigned key = 1; key < 256; ++key) {
    EXPECT_EQ(fault(Stag{raw(s) ^ key}, kMe, 1000, 1), StagFault::kInvalid);
  }
  EXPECT_EQ(fault(Stag{0}, kMe, 1000, 1), StagFault::kInvalid);
  EXPECT_EQ(fault(Stag{0xFFFFFFFF}, kMe, 1000, 1), StagFault::kInvalid);
  EXPECT_EQ(fault(Stag{raw(s) ^ 0x100}, kMe, 1000, 1), StagFault::kInvalid);
  EXPECT_TRUE(table_.quiescent(s)) << "refused look-ups must leave nothing behind";
  EXPECT_FALSE(table_.invalidate(Stag{raw(s) ^ 1}));
  EXPECT_FALSE(table_.invalidate(Stag{0x12345678}));
  EXPECT_TRUE(table_.valid(s));
  EXPECT_FALSE(table_.valid(Stag{raw(s) ^ 1}));
}

// All faults at once: the first of the order is told, then what is left.
TEST_F(StagTableTest, FaultsHaveAnOrder) {
  const Stag s = add(Access::kLocalRead, 1000, kMe.stream);
  const std::uint64_t wrapping = 0xFFFF'FFFF'FFFF'FFFF;
  EXPECT_EQ(fault(Stag{raw(s) ^ 1}, kStranger, wrapping, 9), StagFault::kInvalid);
  EXPECT_EQ(fault(s, kStranger, wrapping, 9), StagFault::kNotAssociated);
  EXPECT_EQ(fault(s, kSibling, wrapping, 9), StagFault::kNotAssociated);
  EXPECT_EQ(fault(s, kMe, wrapping, 9), StagFault::kAccess);
  EXPECT_EQ(fault(s, kMe, wrapping, 9, Access::kLocalRead), StagFault::kWrap);
  EXPECT_EQ(fault(s, kMe, 0, 9, Access::kLocalRead), StagFault::kBounds);
  EXPECT_EQ(fault(s, kMe, 1000, 9, Access::kLocalRead), std::nullopt);
}

TEST(StagFaults, HaveTheirTerminateCodes) {
  COVERS("RFC5041-7.2-3");
  COVERS("RFC5041-7.2-4");
  COVERS("RFC5041-7.2-5");
  COVERS("RFC5041-7.2-6");
  COVERS("RFC5040-4.8-12");
  COVERS("RFC5040-4.8-13");
  COVERS("RFC5040-4.8-14");
  COVERS("RFC5040-4.8-15");
  COVERS("RFC5040-4.8-16");
  struct Row {
    StagFault fault;
    TerminateCode tagged, read;
  };
  for (const Row& r :
       {Row{StagFault::kInvalid, {1, 1, 0}, {0, 1, 0}}, Row{StagFault::kNotAssociated, {1, 1, 2}, {0, 1, 3}},
        Row{StagFault::kAccess, {1, 1, 0}, {0, 1, 2}}, Row{StagFault::kWrap, {1, 1, 3}, {0, 1, 4}},
        Row{StagFault::kBounds, {1, 1, 1}, {0, 1, 1}}}) {
    EXPECT_EQ(tagged_error(r.fault).tell_peer, r.tagged);
    EXPECT_EQ(read_error(r.fault).tell_peer, r.read);
  }
}

TEST_F(StagTableTest, LocalAddresses) {
  const Stag s = add(Access::kLocalWrite);
  const auto p = table_.pin_local(s, PdId{1}, Access::kLocalWrite, address(99), 1);
  ASSERT_TRUE(p.ok);
  EXPECT_EQ(p.pin.bytes().data(), memory_.data() + 99);
  EXPECT_TRUE(table_.pin_local(s, PdId{1}, Access::kLocalRead, address(100), 0).ok);
  EXPECT_EQ(table_.pin_local(s, PdId{1}, Access::kLocalRead, address(99), 2).fault, StagFault::kBounds);
  EXPECT_EQ(table_.pin_local(s, PdId{1}, Access::kLocalRead, address(), ~std::size_t{0}).fault, StagFault::kBounds);
  EXPECT_EQ(table_.pin_local(s, PdId{1}, Access::kLocalRead, 0, 1).fault, StagFault::kBounds);
  EXPECT_EQ(table_.pin_local(s, PdId{2}, Access::kLocalRead, address(), 1).fault, StagFault::kNotAssociated);
  EXPECT_EQ(table_.pin_local(Stag{raw(s) ^ 1}, PdId{1}, Access::kLocalRead, address(), 1).fault, StagFault::kInvalid);
  const Stag read_only = add(Access::kLocalRead);
  EXPECT_EQ(table_.pin_local(read_only, PdId{1}, Access::kLocalWrite, address(), 1).fault, StagFault::kAccess);
  EXPECT_EQ(table_.to_of(s, PdId{1}, address(30)), 1030U);
  EXPECT_EQ(table_.to_of(s, PdId{2}, address(30)), std::nullopt);
  EXPECT_EQ(table_.to_of(s, PdId{1}, address(101)), std::nullopt);
}

// The IOVA of the first octet is 1 << 40, whatever its address and its Tagged Offset.
TEST_F(StagTableTest, LocalAccessesNameIovas) {
  constexpr std::uint64_t kIova = std::uint64_t{1} << 40;
  const auto s = table_.register_memory({memory_, 1000, PdId{1}, StreamId::kAny, kAll, kIova - address()}, random_());
  ASSERT_TRUE(s);
  const auto p = table_.pin_local(*s, PdId{1}, Access::kLocalWrite, kIova + 30, 70);
  ASSERT_TRUE(p.ok);
  EXPECT_EQ(p.pin.bytes().data(), memory_.data() + 30);
  EXPECT_EQ(p.pin.bytes().size(), 70U);
  const auto local = [&](std::uint64_t iova, std::size_t length) {
    return table_.pin_local(*s, PdId{1}, Access::kLocalWrite, iova, length).ok;
  };
  EXPECT_TRUE(local(kIova, 100));
  EXPECT_TRUE(local(kIova + 100, 0));
  EXPECT_FALSE(local(kIova, 101));
  EXPECT_FALSE(local(kIova + 99, 2));
  EXPECT_FALSE(local(kIova + 101, 0));
  EXPECT_FALSE(local(kIova - 1, 1));
  EXPECT_FALSE(local(kIova - 1, 0));
  EXPECT_FALSE(local(kIova + 1, ~std::uint64_t{0})) << "the end wraps";
  EXPECT_FALSE(local(address(), 1)) << "the address is no name of it";
  HeldRegion held;
  const auto copied = table_.local(held, *s, PdId{1}, Access::kLocalWrite, kIova + 7, 3);
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->data(), memory_.data() + 7);
  held.release();
  EXPECT_EQ(table_.to_of(*s, PdId{1}, kIova + 30), 1030U);
  EXPECT_EQ(table_.to_of(*s, PdId{1}, address(30)), std::nullopt);
  EXPECT_EQ(fault(*s, kMe, 1000, 100), std::nullopt) << "peers name Tagged Offsets";
}

TEST_F(StagTableTest, IovasAtTheEdgesOfTheAddressSpace) {
  const auto with_iova = [&](std::uint64_t iova) {
    return table_.register_memory({memory_, 0, PdId{1}, StreamId::kAny, kAll, iova - address()}, random_());
  };
  const auto lowest = with_iova(0);
  ASSERT_TRUE(lowest);
  const auto first = table_.pin_local(*lowest, PdId{1}, Access::kLocalRead, 0, 100);
  ASSERT_TRUE(first.ok);
  EXPECT_EQ(first.pin.bytes().data(), memory_.data());
  EXPECT_FALSE(table_.pin_local(*lowest, PdId{1}, Access::kLocalRead, ~std::uint64_t{0}, 1).ok);
  const std::uint64_t highest = ~std::uint64_t{0} - 100;
  const auto last = with_iova(highest);
  ASSERT_TRUE(last);
  EXPECT_TRUE(table_.pin_local(*last, PdId{1}, Access::kLocalRead, highest + 99, 1).ok);
  EXPECT_FALSE(table_.pin_local(*last, PdId{1}, Access::kLocalRead, highest + 99, 2).ok);
  const auto wraps = with_iova(highest + 2);
  ASSERT_FALSE(wraps);
  EXPECT_EQ(wraps.error().code, Errc::kInvalidArgument);
}

TEST_F(StagTableTest, InvalidationEndsAllAccess) {
  COVERS("RFC5041-8.3-2");
  COVERS("RFC5041-8.3.1-7");
  COVERS("RFC5040-8.1.1-5");
  COVERS("RFC5040-8.1.1-7");
  COVERS("RFC5040-1.2-3");
  COVERS("RFC5040-3.2-12");
  const Stag s = add();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fault(s, kMe, 1000, 1), std::nullopt);  // use does not use it up
  EXPECT_TRUE(table_.invalidate(s));
  EXPECT_EQ(fault(s, kMe, 1000, 1), StagFault::kInvalid);
  EXPECT_FALSE(table_.pin_local(s, PdId{1}, Access::kLocalRead, address(), 1).ok);
  EXPECT_FALSE(table_.invalidate(s));
  EXPECT_FALSE(table_.valid(s));
}

TEST_F(StagTableTest, RemoteInvalidation) {
  COVERS("RFC5040-5.3-14");
  COVERS("RFC5040-5.3-15");
  COVERS("RFC5040-7.2-4");
  const Stag s = add(kAll, 1000, kMe.stream);
  EXPECT_TRUE(table_.invalidate_remote(s, kMe).ok());
  EXPECT_FALSE(table_.valid(s));
  EXPECT_EQ(table_.invalidate_remote(s, kMe).error().code, Errc::kCannotInvalidate);  // twice
  EXPECT_EQ(table_.invalidate_remote(Stag{0x777777}, kMe).error().code, Errc::kCannotInvalidate);
}

TEST_F(StagTableTest, LocalInvalidation) {
  COVERS("RFC5040-8.1.1-5");
  const Stag s = add(Access::kLocalRead, 1000, StreamId{77});
  EXPECT_EQ(table_.invalidate_local(s, PdId{2}).error().code, Errc::kLocalProtection);
  EXPECT_TRUE(table_.valid(s));
  EXPECT_TRUE(table_.quiescent(s)) << "a refusal holds nothing";
  EXPECT_TRUE(table_.invalidate_local(s, PdId{1}).ok()) << "whatever its rights and its stream";
  EXPECT_FALSE(table_.valid(s));
  EXPECT_TRUE(table_.quiescent(s));
  EXPECT_TRUE(table_.invalidate_local(s, PdId{1}).ok()) << "the peer may have been sooner";
  EXPECT_EQ(table_.invalidate_local(Stag{raw(s) ^ 1}, PdId{1}).error().code, Errc::kLocalProtection);
  EXPECT_EQ(table_.invalidate_local(Stag{}, PdId{1}).error().code, Errc::kLocalProtection);
  const Stag renewed =
      table_.renew(s, {memory_, 1000, PdId{1}, StreamId::kAny, kAll}, static_cast<std::uint8_t>(raw(s) + 1));
  EXPECT_EQ(table_.invalidate_local(s, PdId{1}).error().code, Errc::kLocalProtection);
  EXPECT_TRUE(table_.valid(renewed));
}

TEST_F(StagTableTest, RemoteInvalidationOfWhatIsNotThePeers) {
  COVERS("RFC5040-5.3-16");
  COVERS("RFC5040-7.2-5");
  COVERS("RFC5040-8.1.1-8");
  COVERS("RFC5042-6.4.5-1");
  COVERS("RFC5040-4.8-17");
  const Stag bound = add(kAll, 1000, kMe.stream);
  const Stag forbidden = add(Access::kRemoteRead | Access::kRemoteWrite, 1000, kMe.stream);
  const Stag shared = add(kAll);
  for (const auto& [stag, who] : {std::pair{bound, kSibling}, {bound, kStranger}, {forbidden, kMe}, {shared, kMe}}) {
    const auto refused = table_.invalidate_remote(stag, who);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().tell_peer, (TerminateCode{0, 1, 9}));
    EXPECT_TRUE(table_.valid(stag)) << "it is left alone";
    EXPECT_TRUE(table_.quiescent(stag));
  }
}

TEST_F(StagTableTest, PinKeepsTheMemoryBusy) {
  const Stag s = add();
  {
    const auto one = table_.pin(s, kMe, Access::kRemoteWrite, 1000, 1);
    auto two = table_.pin(s, kMe, Access::kRemoteWrite, 1001, 1);
    EXPECT_FALSE(table_.quiescent(s));
    EXPECT_TRUE(table_.invalidate(s)) << "invalidation does not wait";
    Pin moved = std::move(two.pin);
    EXPECT_FALSE(table_.quiescent(s));
    moved = Pin{};
    EXPECT_FALSE(table_.quiescent(s)) << "the first pin still holds it";
  }
  EXPECT_TRUE(table_.quiescent(s));
}

TEST_F(StagTableTest, ARefusedAccessHoldsNothing) {
  const Stag s = add();
  const auto stranger = table_.pin(s, kStranger, Access::kRemoteWrite, 1000, 1);
  const auto outside = table_.pin_local(s, kMe.pd, Access::kLocalWrite, address(), 101);
  EXPECT_FALSE(stranger.ok);
  EXPECT_FALSE(outside.ok);
  EXPECT_TRUE(table_.quiescent(s)) << "though the results are still here";
}

TEST_F(StagTableTest, SuspendAndResume) {
  const Stag s = add();
  auto p = table_.pin(s, kMe, Access::kRemoteWrite, 1000, 5);
  p.pin.suspend();
  EXPECT_TRUE(table_.quiescent(s));
  p.pin.suspend();
  EXPECT_TRUE(table_.quiescent(s));
  EXPECT_TRUE(p.pin.resume());
  EXPECT_TRUE(p.pin.resume());
  EXPECT_FALSE(table_.quiescent(s));
  EXPECT_EQ(p.pin.bytes().data(), memory_.data());
  p.pin.suspend();
  EXPECT_TRUE(table_.invalidate(s));
  EXPECT_FALSE(p.pin.resume());
  EXPECT_TRUE(table_.quiescent(s));
  Pin nothing;
  EXPECT_TRUE(nothing.resume());
}

TEST_F(StagTableTest, SuspendedPinOfARegistrationWhoseSlotWasReusedIsDead) {
  const Stag s = add_with_key(7);
  auto p = table_.pin(s, kMe, Access::kRemoteWrite, 1000, 5);
  p.pin.suspend();
  drop(s);
  // Through the quarantine, until the same index is in use again, by chance with the same key.
  for (bool again = false; !again;) {
    const Stag other = add_with_key(7);
    again = raw(other) >> 8 == raw(s) >> 8;
    if (!again) drop(other);
    ASSERT_LT(table_.size(), 10U);
  }
  EXPECT_FALSE(p.pin.resume());
}

TEST_F(StagTableTest, RenewedRegistrationHasTheSameIndexAndAnotherKey) {
  const Stag old = add_with_key(7);
  ASSERT_TRUE(table_.invalidate(old));
  test::Bytes other(50);
  const Stag renewed = table_.renew(old, {other, 9, PdId{2}, StreamId::kAny, Access::kRemoteRead}, 200);
  EXPECT_EQ(raw(renewed), (raw(old) & 0xFFFFFF00) | 200);
  EXPECT_FALSE(table_.valid(old));
  EXPECT_EQ(fault(old, kMe, 1000, 1), StagFault::kInvalid);
  const auto p = table_.pin(renewed, kStranger, Access::kRemoteRead, 9, 50);
  ASSERT_TRUE(p.ok);
  EXPECT_EQ(p.pin.bytes().data(), other.data());
  EXPECT_EQ(fault(renewed, kStranger, 9, 51, Access::kRemoteRead), StagFault::kBounds);
  EXPECT_EQ(fault(renewed, kStranger, 9, 1), StagFault::kAccess);
  EXPECT_EQ(fault(renewed, kMe, 9, 1, Access::kRemoteRead), StagFault::kNotAssociated);
  EXPECT_FALSE(table_.invalidate(old));
  EXPECT_EQ(table_.size(), 1U);
}

// What a slow peer was promised stays suspended for as long as that peer likes; meanwhile keys and short counts come
// around.
TEST_F(StagTableTest, SuspendedPinIsDeadHoweverOftenItsRegionWasRenewed) {
  Stag s = add_with_key(0);
  auto p = table_.pin(s, kMe, Access::kRemoteWrite, 1000, 10);
  ASSERT_TRUE(p.ok);
  p.pin.suspend();
  for (unsigned i = 1; i <= 65536; ++i) {
    ASSERT_TRUE(table_.invalidate(s));
    s = table_.renew(s, {memory_, 1000, PdId{1}, StreamId::kAny, kAll}, static_cast<std::uint8_t>(i));
  }
  EXPECT_EQ(raw(s) & 0xFF, 0U) << "the STag is the one of the beginning";
  EXPECT_TRUE(table_.valid(s));
  EXPECT_FALSE(p.pin.resume());
  EXPECT_TRUE(table_.quiescent(s));
}

TEST_F(StagTableTest, FreedIndexRestsFor65536Registrations) {
  const Stag s = add();
  drop(s);
  bool back = false;
  for (unsigned i = 0; i < 65536; ++i) {
    const Stag other = add();
    ASSERT_NE(raw(other) >> 8, raw(s) >> 8) << "after " << i;
    drop(other);
  }
  for (unsigned i = 0; i < 1'000'000 && !back; ++i) {
    const Stag other = add();
    back = raw(other) >> 8 == raw(s) >> 8;
    drop(other);
  }
  EXPECT_TRUE(back) << "indices must come back in the end";
}

// Random numbers of 0 give the first index of the first chunk, which would be 0.
TEST_F(StagTableTest, NeverHandsOutIndexZero) {
  for (unsigned i = 0; i < 1024; ++i) {
    const Stag s = table_.register_memory({memory_, 1000, PdId{1}, StreamId::kAny, kAll}, 0).value();
    ASSERT_NE(raw(s) >> 8, 0U) << "after " << i;
  }
}

TEST_F(StagTableTest, StagsAreHardToPredict) {
  COVERS("RFC5040-8.1.1-9");
  COVERS("RFC5040-8.1.1-10");
  std::set<std::uint32_t> seen, keys, steps, top;
  std::uint32_t last = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t s = raw(add());
    EXPECT_TRUE(seen.insert(s).second);
    EXPECT_NE(s >> 8, 0U) << "index 0 is never used";
    keys.insert(s & 0xFF);
    steps.insert((s >> 8) - last);
    top.insert(s >> 24);
    last = s >> 8;
  }
  EXPECT_EQ(table_.size(), 2000U);
  EXPECT_GT(keys.size(), 240U) << "keys are random";
  EXPECT_GT(steps.size(), 1000U) << "the next index does not follow from the last one";
  EXPECT_GT(top.size(), 1U) << "they are spread over the range";
}

}  // namespace
}  // namespace iwarp::ddp
