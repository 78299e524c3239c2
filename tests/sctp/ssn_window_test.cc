#include "iwarp/sctp/ssn_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::sctp {
namespace {

using test::Bytes;

constexpr std::uint32_t kPpid = static_cast<std::uint32_t>(Ppid::kDdpSegment);

// A message whose content tells which one it is.
Bytes message(std::uint32_t index) {
  Bytes out(6);
  write_ssn(DdpSsn{static_cast<std::uint16_t>(index)}, out);
  for (int i = 0; i < 4; ++i) out[static_cast<std::size_t>(2 + i)] = static_cast<std::byte>(index >> (24 - 8 * i));
  return out;
}

// A session's receiving end: what was delivered, by index.
class Receiver {
 public:
  explicit Receiver(std::size_t limit = HoldBudget::kDefaultBytes, std::uint16_t ahead = SsnWindow::kDefaultAhead)
      : budget_(limit), window_(budget_, ahead) {}

  Errc receive(std::uint32_t index) {
    const Bytes bytes = message(index);
    const auto due = window_.take({kPpid, false, bytes});
    if (!due) return due.error().code;
    if (*due) deliver(bytes);
    while (const auto m = window_.next()) deliver(m->bytes);
    return Errc::kOk;
  }
  void receive_all(std::uint32_t from, std::uint32_t to) {
    for (; from < to; ++from) ASSERT_EQ(receive(from), Errc::kOk);
  }
  // Those from 0 on, each once and in order?
  [[nodiscard]] bool in_order(std::size_t count) const {
    if (delivered_.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (delivered_[i] != first_ + i) return false;
    }
    return true;
  }
  // Behind `count` messages that were delivered.
  void forget_delivered() {
    first_ += delivered_.size();
    delivered_.clear();
  }
  SsnWindow& window() { return window_; }
  HoldBudget& budget() { return budget_; }

 private:
  void deliver(ConstBytes m) {
    std::uint32_t index = 0;
    for (const std::byte b : m.subspan(2)) index = index << 8 | std::to_integer<std::uint32_t>(b);
    delivered_.push_back(index);
  }
  HoldBudget budget_;
  SsnWindow window_;
  std::size_t first_ = 0;
  std::vector<std::size_t> delivered_;
};

TEST(SsnWindow, EveryPermutationIsDeliveredInOrderAndOnce) {
  COVERS("RFC5043-10-2");
  COVERS("RFC5043-10-3");
  COVERS("RFC5043-10-5");
  COVERS("RFC5043-5.2.1-4");
  COVERS("RFC5043-6.1-4");
  for (const std::uint32_t before : {0U, 65533U}) {  // with the wrap in the middle
    std::vector<std::uint32_t> order(7);
    std::iota(order.begin(), order.end(), before);
    Receiver r;
    r.receive_all(0, before);
    std::uint32_t base = before;
    do {
      r.forget_delivered();
      for (std::size_t i = 0; i < order.size(); ++i) {
        ASSERT_EQ(r.receive(order[i] - before + base), Errc::kOk);
        ASSERT_TRUE(i + 1 == order.size() || r.window().kept() <= i + 1);
      }
      ASSERT_TRUE(r.in_order(order.size()));
      ASSERT_EQ(r.budget().held(), 0U);
      base += static_cast<std::uint32_t>(order.size());
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// SCTP shows no message twice; one that comes twice all the same is no second delivery, wherever it comes.
TEST(SsnWindow, EveryDuplicateInEveryPermutationIsTold) {
  COVERS("RFC5043-10-8");
  COVERS("RFC5043-10-10");
  std::vector<std::uint32_t> order(4);
  std::iota(order.begin(), order.end(), 0U);
  do {
    for (std::size_t first = 0; first < order.size(); ++first) {
      for (std::size_t again = first + 1; again <= order.size(); ++again) {
        Receiver r;
        for (std::size_t i = 0; i <= order.size(); ++i) {
          if (i == again) {
            ASSERT_EQ(r.receive(order[first]), Errc::kDdpSsn);
          }
          if (i < order.size()) {
            ASSERT_EQ(r.receive(order[i]), Errc::kOk);
          }
        }
        ASSERT_TRUE(r.in_order(order.size()));
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Without one of them nothing behind it is delivered, and what is kept is given back.
TEST(SsnWindow, NothingOvertakesWhatIsMissing) {
  COVERS("RFC5043-10-4");
  COVERS("RFC5043-6-2");
  std::vector<std::uint32_t> order(6);
  std::iota(order.begin(), order.end(), 0U);
  do {
    const std::uint32_t missing = order.back();
    Receiver r;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) ASSERT_EQ(r.receive(order[i]), Errc::kOk);
    ASSERT_TRUE(r.in_order(missing));
    ASSERT_EQ(r.window().due().value, missing);
    ASSERT_EQ(r.window().kept(), order.size() - 1 - missing);
    ASSERT_EQ(r.budget().held(), r.window().kept() * (6 + SsnWindow::kHoldOverheadBytes));
    r.window().clear();
    ASSERT_EQ(r.budget().held(), 0U);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(SsnWindow, TakesNothingThatIsTooFarAhead) {
  COVERS("RFC5043-10-8");
  COVERS("RFC5043-10-9");
  COVERS("RFC5043-10-10");
  for (const std::uint32_t before : {0U, 40000U, 65535U}) {
    Receiver r;
    r.receive_all(0, before);
    EXPECT_EQ(r.receive(before + 4096), Errc::kDdpSsn);
    EXPECT_EQ(r.receive(before + 32767), Errc::kDdpSsn);
    EXPECT_EQ(r.receive(before + 32768), Errc::kDdpSsn);
    EXPECT_EQ(r.receive(before + 65535), Errc::kDdpSsn) << "behind";
    EXPECT_EQ(r.budget().held(), 0U) << "nothing was allocated for them";
    EXPECT_EQ(r.receive(before + 4095), Errc::kOk);
    EXPECT_EQ(r.window().kept(), 1U);
  }
}

TEST(SsnWindow, WidestWindowStillTellsEarlyFromLate) {
  COVERS("RFC5043-10-5");
  Receiver r(HoldBudget::kDefaultBytes, 32767);
  EXPECT_EQ(r.receive(32766), Errc::kOk);
  EXPECT_EQ(r.receive(32767), Errc::kDdpSsn);
  EXPECT_EQ(r.receive(32768), Errc::kDdpSsn);
  r.receive_all(0, 32766);
  EXPECT_TRUE(r.in_order(32767));
}

TEST(SsnWindow, SharesABudgetWithOthers) {
  COVERS("RFC5043-10-9");
  const std::size_t one = 6 + SsnWindow::kHoldOverheadBytes;
  HoldBudget budget(3 * one);
  SsnWindow window(budget);
  {
    SsnWindow other(budget);
    EXPECT_TRUE(other.take({kPpid, false, message(1)}).ok());
    EXPECT_TRUE(other.take({kPpid, false, message(2)}).ok());
    EXPECT_TRUE(window.take({kPpid, false, message(1)}).ok());
    const auto full = window.take({kPpid, false, message(2)});
    ASSERT_FALSE(full.ok());
    EXPECT_EQ(full.error().code, Errc::kResource);
    EXPECT_EQ(window.kept(), 1U);
    EXPECT_TRUE(window.take({kPpid, false, message(0)}).value()) << "what is due needs no room";
    EXPECT_TRUE(window.next());
    EXPECT_FALSE(window.next());
    EXPECT_EQ(budget.held(), 2 * one);
  }
  EXPECT_EQ(budget.held(), 0U) << "a session that ends gives back what it had";
}

TEST(SsnWindow, KeepsWhatCameWithAMessage) {
  HoldBudget budget;
  SsnWindow window(budget);
  EXPECT_FALSE(window.take({99, true, message(1)}).value());
  EXPECT_TRUE(window.take({kPpid, false, message(0)}).value());
  const auto kept = window.next();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->ppid, 99U);
  EXPECT_TRUE(kept->ordered);
}

// What is early has its place in the order: the number of those in front of it, whatever the wrap.
TEST(SsnWindow, TellsWhereAnEarlyMessageStands) {
  COVERS("RFC5041-3-7");
  for (const std::uint32_t before : {0U, 65530U, 200'000U}) {
    Receiver r;
    r.receive_all(0, before);
    const auto early = [&](std::uint32_t index) { return r.window().early({kPpid, false, message(index)}); };
    EXPECT_FALSE(early(before)) << "it is due";
    EXPECT_EQ(early(before + 1), before + 1);
    EXPECT_EQ(early(before + 4095), before + 4095);
    EXPECT_FALSE(early(before + 4096)) << "too far ahead";
    EXPECT_FALSE(early(before + 40'000)) << "behind";
    EXPECT_FALSE(r.window().early({kPpid, false, test::hex("00")}));
    EXPECT_EQ(r.receive(before + 7), Errc::kOk);
    EXPECT_FALSE(early(before + 7)) << "it is there";
    EXPECT_EQ(early(before + 8), before + 8);
  }
}

TEST(SsnWindow, OfWhatIsPlacedOnlyTheFrontIsKept) {
  COVERS("RFC5041-3-6");
  HoldBudget budget;
  SsnWindow window(budget);
  const Bytes octets = message(1);
  EXPECT_FALSE(window.take({kPpid, false, ConstBytes(octets).first(4), 1000}).value());
  EXPECT_EQ(budget.held(), 4 + SsnWindow::kHoldOverheadBytes);
  EXPECT_TRUE(window.take({kPpid, false, message(0)}).value());
  const auto kept = window.next();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->placed, 1000U);
  EXPECT_EQ(Bytes(kept->bytes.begin(), kept->bytes.end()), Bytes(octets.begin(), octets.begin() + 4));
  EXPECT_EQ(budget.held(), 0U);
}

TEST(SsnWindow, AMessageWithoutSsnChangesNothing) {
  COVERS("RFC5043-5.2.2-1");
  HoldBudget budget;
  SsnWindow window(budget);
  const auto r = window.take({kPpid, false, test::hex("00")});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::kSessionSequence);
  EXPECT_EQ(window.due().value, 0);
}

// A net with virtual time: each message takes a while of its own, the latest of many are 40 times as slow.
TEST(SsnWindow, LongStreamsOverANetThatReorders) {
  COVERS("RFC5043-10-2");
  struct UnderWay {
    std::uint64_t at;
    std::uint32_t index;
    bool operator>(const UnderWay& other) const { return std::tie(at, index) > std::tie(other.at, other.index); }
  };
  for (const unsigned seed : {1U, 2U}) {
    std::mt19937 random(seed);
    Receiver r;
    constexpr std::uint32_t kCount = 70'000;
    std::vector<UnderWay> net;
    std::uint32_t sent = 0;
    for (std::uint64_t now = 0; sent < kCount || !net.empty(); ++now) {
      if (sent < kCount) {
        const std::uint64_t delay = random() % 100 == 0 ? 4000 : random() % 100;
        net.push_back({now + delay, sent++});
        std::push_heap(net.begin(), net.end(), std::greater<>());
      }
      while (!net.empty() && net.front().at <= now) {
        std::pop_heap(net.begin(), net.end(), std::greater<>());
        ASSERT_EQ(r.receive(net.back().index), Errc::kOk) << "seed " << seed;
        net.pop_back();
      }
    }
    EXPECT_TRUE(r.in_order(kCount)) << "seed " << seed;
    EXPECT_EQ(r.budget().held(), 0U);
  }
}

TEST(SsnSource, DrawsWithoutGapsAndWraps) {
  COVERS("RFC5043-5.2.1-2");
  COVERS("RFC5043-5.2.1-3");
  COVERS("RFC5043-6-2");
  COVERS("RFC5043-6.1-1");
  SsnSource source;
  for (std::uint32_t i = 0; i < 70'000; ++i) {
    ASSERT_EQ(source.next().value, i % 65536);
    ASSERT_EQ(source.next().value, i % 65536) << "not drawn before SCTP has taken it";
    source.taken();
    source.arrived(1);
  }
}

TEST(SsnSource, HasNoMoreThan32767UnderWay) {
  COVERS("RFC5043-10-6");
  COVERS("RFC5043-10-7");
  SsnSource source;
  for (int i = 0; i < 32767; ++i) {
    ASSERT_TRUE(source.may_send());
    source.taken();
  }
  EXPECT_FALSE(source.may_send());
  source.arrived(2);
  EXPECT_EQ(source.under_way(), 32765);
  source.taken();
  source.taken();
  EXPECT_FALSE(source.may_send());
  source.arrived(1'000'000);
  EXPECT_EQ(source.under_way(), 0);
  EXPECT_TRUE(source.may_send());
}

}  // namespace
}  // namespace iwarp::sctp
