// Messages of 2^32 - 1 octets, the longest there are, from end to end, and what is longer.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/sanitized.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::Pair;
using test::PairOptions;

constexpr std::uint32_t kLongest = std::numeric_limits<std::uint32_t>::max();

// 4 GiB of addresses with little behind them: each quarter is one window of 4 MiB, mapped again and again. So what is
// placed 1, 2 or 4 GiB from where it belongs shows.
class Folded {
 public:
  static constexpr std::size_t kWindow = std::size_t{4} << 20, kQuarter = std::size_t{1} << 30, kAll = 4 * kQuarter;

  Folded() {
    void* const room = ::mmap(nullptr, kAll, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return;
    at_ = static_cast<std::byte*>(room);
    for (std::size_t quarter = 0; quarter < 4 && good_; ++quarter) {
      const int fd = ::memfd_create("iwarp-test", MFD_CLOEXEC);
      good_ = fd >= 0 && ::ftruncate(fd, kWindow) == 0;
      for (std::size_t i = 0; i < kQuarter / kWindow && good_; ++i) {
        void* const here = at_ + quarter * kQuarter + i * kWindow;
        good_ = ::mmap(here, kWindow, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == here;
      }
      if (fd >= 0) ::close(fd);
    }
  }
  ~Folded() {
    if (at_ != nullptr) ::munmap(at_, kAll);
  }
  Folded(const Folded&) = delete;
  Folded& operator=(const Folded&) = delete;

  // Takes what was touched out of the address space, so that the process does not look like one of 4 GiB. The octets
  // stay.
  void fold() { EXPECT_EQ(::madvise(at_, kAll, MADV_DONTNEED), 0); }

  [[nodiscard]] bool good() const { return at_ != nullptr && good_; }
  [[nodiscard]] MutBytes all() { return {at_, kAll}; }
  [[nodiscard]] MutBytes window(std::size_t quarter) { return {at_ + quarter * kQuarter, kWindow}; }

 private:
  std::byte* at_ = nullptr;
  bool good_ = true;
};

class LongestMessage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << "12 GiB through sanitized copies take minutes";
    ASSERT_TRUE(source_.good() && sink_.good()) << "no room for 8 GiB of addresses";
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      const Bytes content = test::pattern(Folded::kWindow, static_cast<unsigned>(quarter));
      std::memcpy(source_.window(quarter).data(), content.data(), content.size());
    }
  }

  static PairOptions options(bool crc) {
    PairOptions o;
    o.initiator_policy.crc = o.responder_policy.crc = crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kOff;
    o.initiator.fpdu = o.responder.fpdu = mpa::FpduPolicy::kMax;
    o.scratch_bytes = std::size_t{1} << 20;
    return o;
  }

  // The whole of a region, but for its last octet.
  static rdmap::Sge longest(Stag stag, Folded& of) { return {of.all().data(), kLongest, stag}; }
  static Stag add(test::Endpoint& end, Folded& of) {
    const ddp::StreamKey who{end.key().pd, ddp::StreamId::kAny};
    return end.stags().register_memory({of.all(), kBase, who.pd, who.stream, test::kRemoteAll}, 7).value();
  }

  // As Pair::settle(), but keeps nothing of what goes over the wire.
  void move(test::Endpoint& from, test::Endpoint& to, TimePoint now) {
    constexpr std::size_t kAtATime = std::size_t{1} << 20;
    for (std::size_t round = 1; from.conn().tx_pending(); ++round) {
      if (round % 128 == 0) {
        source_.fold();
        sink_.fold();
      }
      const Bytes some = from.send(kAtATime, now);
      for (ConstBytes rest = some; !rest.empty();) {
        const std::size_t taken = to.receive(rest, now);
        ASSERT_GT(taken, 0U) << to.log();
        rest = rest.subspan(taken);
      }
    }
  }

  void expect_all_placed() {
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      EXPECT_EQ(std::memcmp(source_.window(quarter).data(), sink_.window(quarter).data(), Folded::kWindow - 1), 0)
          << quarter;
    }
  }

  static constexpr std::uint64_t kBase = 0xFFFF'FFFF'0000'0000 - Folded::kAll;  // TOs beyond 32 bits
  Folded source_, sink_;
};

TEST_F(LongestMessage, OfASendArrivesWithCrc) {
  COVERS("RFC5040-5.3-4");
  Pair p(options(true));
  p.establish();
  const Stag from = add(p.initiator, source_), to = add(p.responder, sink_);
  p.responder.post(rdmap::RecvWr{1, longest(to, sink_)});
  p.initiator.post(test::send_wr(2, longest(from, source_)));
  move(p.initiator, p.responder, p.now);
  ASSERT_EQ(p.responder.recvs.size(), 1U) << p.log();
  EXPECT_EQ(p.responder.recvs[0].status, Errc::kOk);
  EXPECT_EQ(p.responder.recvs[0].byte_len, kLongest);
  EXPECT_EQ(p.initiator.sends.size(), 1U);
  expect_all_placed();
}

TEST_F(LongestMessage, OfAWriteArrivesWithoutCrc) {
  Pair p(options(false));
  p.establish();
  const Stag from = add(p.initiator, source_), to = add(p.responder, sink_);
  rdmap::SendWr write = test::send_wr(1, longest(from, source_));
  write.op = rdmap::SendOp::kWrite;
  write.remote_stag = to;
  write.remote_to = kBase;
  p.initiator.post(write);
  move(p.initiator, p.responder, p.now);
  EXPECT_EQ(p.initiator.sends.size(), 1U) << p.log();
  EXPECT_EQ(p.responder.conn().rx_counters().writes, 1U);
  EXPECT_EQ(p.responder.conn().rx_counters().write_bytes, kLongest);
  expect_all_placed();
}

TEST_F(LongestMessage, OfAReadArrivesWithoutCrc) {
  Pair p(options(false));
  p.establish();
  const Stag to = add(p.initiator, sink_), from = add(p.responder, source_);
  rdmap::SendWr read = test::send_wr(1, longest(to, sink_));
  read.op = rdmap::SendOp::kRead;
  read.remote_stag = from;
  read.remote_to = kBase;
  p.initiator.post(read);
  move(p.initiator, p.responder, p.now);
  move(p.responder, p.initiator, p.now);
  ASSERT_EQ(p.initiator.sends.size(), 1U) << p.log();
  EXPECT_EQ(p.initiator.sends[0].status, Errc::kOk);
  EXPECT_EQ(p.initiator.sends[0].byte_len, kLongest);
  expect_all_placed();
}

// One octet more is refused when it is posted, and nothing of it is sent.
TEST(LongerMessage, IsRefusedByPosting) {
  Pair p;
  p.establish();
  auto& memory = p.initiator.region(8);
  const rdmap::Sge longest{memory.bytes().data(), kLongest, memory.stag()};
  const rdmap::SgeList longer = test::list({longest, memory.sge(0, 1)});
  ASSERT_EQ(longer.total(), std::uint64_t{1} << 32);
  for (const auto op : {rdmap::SendOp::kSend, rdmap::SendOp::kWrite, rdmap::SendOp::kRead}) {
    rdmap::SendWr wr = test::send_wr(1, longer);
    wr.op = op;
    EXPECT_EQ(p.initiator.conn().post_send(wr).error().code, Errc::kInvalidArgument) << static_cast<int>(op);
  }
  EXPECT_EQ(p.initiator.conn().post_recv({1, longer}).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(p.initiator.conn().post_recv({1, longest}).ok());
  EXPECT_FALSE(p.initiator.conn().tx_pending());
}

}  // namespace
}  // namespace iwarp::stream
