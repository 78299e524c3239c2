#include <gtest/gtest.h>

#include <array>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using test::Pair;
using test::PairOptions;

PairOptions with_crc(bool crc) {
  PairOptions o;
  o.initiator_policy.crc = o.responder_policy.crc = crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
  return o;
}

constexpr std::size_t kSizes[] = {0, 1, 3, 4, 5, 127, 1427, 1428, 1429, 65535, 1 << 20};

struct Shape {
  bool crc;
  mpa::FpduPolicy policy;
  std::size_t emss;
  std::size_t scratch;
};

class Transfer : public ::testing::TestWithParam<Shape> {
 protected:
  static PairOptions options() {
    PairOptions o = with_crc(GetParam().crc);
    o.initiator.fpdu = o.responder.fpdu = GetParam().policy;
    o.emss = GetParam().emss;
    o.scratch_bytes = GetParam().scratch;
    o.max_steps = 200'000;
    return o;
  }
  // Every size, from odd addresses to odd addresses, cut into pieces at the sender and at the receiver, in both
  // directions.
  template <class Operation>
  static void each(const Operation& operation) {
    Pair p(options());
    p.establish();
    for (const std::size_t size : kSizes) {
      for (const bool forward : {true, false}) {
        SCOPED_TRACE(std::to_string(size) + (forward ? " from the initiator" : " from the responder"));
        operation(p, forward ? p.initiator : p.responder, forward ? p.responder : p.initiator, size);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
};

rdmap::SgeList three_pieces(test::Region& r, std::size_t offset, std::size_t size) {
  return test::list({r.sge(offset, size / 3), r.sge(offset + size / 3, size / 2),
                     r.sge(offset + size / 3 + size / 2, size - size / 3 - size / 2)});
}

TEST_P(Transfer, SendsArriveWhole) {
  COVERS("RFC5040-5.3-8");
  COVERS("RFC5040-5.3-12");
  COVERS("RFC5041-5.4-6");
  COVERS("RFC5041-3-9");
  each([](Pair& p, test::Endpoint& from, test::Endpoint& to, std::size_t size) {
    auto& source = from.region(size + 3);
    auto& sink = to.region(size + 10);
    source.fill(test::pattern(size + 3, 5));
    to.post(rdmap::RecvWr{7, three_pieces(sink, 1, size + 8)});
    from.post(test::send_wr(8, three_pieces(source, 3, size)));
    p.settle();
    ASSERT_EQ(to.recvs.size(), 1U) << p.log();
    EXPECT_EQ(to.recvs[0].status, Errc::kOk);
    EXPECT_EQ(to.recvs[0].byte_len, size);
    EXPECT_EQ(to.recvs[0].wr_id, 7U);
    ASSERT_EQ(from.sends.size(), 1U) << p.log();
    EXPECT_EQ(from.sends[0].status, Errc::kOk);
    EXPECT_TRUE(std::equal(source.bytes().begin() + 3, source.bytes().end(), sink.bytes().begin() + 1));
    EXPECT_EQ(sink.bytes()[0], std::byte{0});
    EXPECT_EQ(sink.bytes()[size + 1], std::byte{0});
    to.recvs.clear();
    from.sends.clear();
    source.revoke();
    sink.revoke();
  });
}

TEST_P(Transfer, WritesArriveWhole) {
  COVERS("RFC5040-5.1-2");
  COVERS("RFC5040-5.1-4");
  COVERS("RFC5040-5.1-5");
  COVERS("RFC5040-5.1-6");
  COVERS("RFC5040-5.1-10");
  each([](Pair& p, test::Endpoint& from, test::Endpoint& to, std::size_t size) {
    auto& source = from.region(size + 3);
    auto& sink = to.region(size + 10, test::kRemoteAll, 0xFFFF'FFFF'0000'0001);
    source.fill(test::pattern(size + 3, 6));
    from.post(test::write_wr(8, three_pieces(source, 3, size), sink, 5));
    p.settle();
    ASSERT_EQ(from.sends.size(), 1U) << p.log();
    EXPECT_EQ(from.sends[0].status, Errc::kOk);
    EXPECT_EQ(from.sends[0].op, rdmap::WcOp::kWrite);
    EXPECT_TRUE(std::equal(source.bytes().begin() + 3, source.bytes().end(), sink.bytes().begin() + 5));
    EXPECT_EQ(sink.bytes()[4], std::byte{0});
    EXPECT_EQ(sink.bytes()[size + 5], std::byte{0});
    EXPECT_TRUE(to.recvs.empty());
    from.sends.clear();
    source.revoke();
    sink.revoke();
  });
}

TEST_P(Transfer, ReadsFetchWhole) {
  COVERS("RFC5040-5.2-1");
  COVERS("RFC5040-4.4-3");
  COVERS("RFC5040-4.4-5");
  COVERS("RFC5040-4.4-8");
  COVERS("RFC5040-5.2.1-17");
  COVERS("RFC5040-5.2.2-4");
  COVERS("RFC5040-5.5-15");
  COVERS("RFC5040-5.2.1-11");
  COVERS("RFC5040-5.2.2-1");
  each([](Pair& p, test::Endpoint& from, test::Endpoint& to, std::size_t size) {
    auto& source = to.region(size + 10, test::kRemoteAll, 77);
    auto& sink = from.region(size + 3);
    source.fill(test::pattern(size + 10, 11));
    from.post(test::read_wr(8, sink.sge(1, size), source, 5));
    p.settle();
    ASSERT_EQ(from.sends.size(), 1U) << p.log();
    EXPECT_EQ(from.sends[0].status, Errc::kOk);
    EXPECT_EQ(from.sends[0].op, rdmap::WcOp::kRead);
    EXPECT_EQ(from.sends[0].byte_len, size);
    EXPECT_TRUE(std::equal(sink.bytes().begin() + 1, sink.bytes().end() - 2, source.bytes().begin() + 5));
    EXPECT_TRUE(to.recvs.empty() && to.sends.empty()) << "the Data Source takes no part";
    EXPECT_EQ(sink.bytes()[0], std::byte{0});
    EXPECT_EQ(sink.bytes()[size + 1], std::byte{0});
    from.sends.clear();
    source.revoke();
    sink.revoke();
  });
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Transfer,
    ::testing::Values(
        Shape{true, mpa::FpduPolicy::kEmss, 1448, 65536}, Shape{false, mpa::FpduPolicy::kEmss, 1448, 65536},
        Shape{true, mpa::FpduPolicy::kMax, 1448, 262144}, Shape{false, mpa::FpduPolicy::kMax, 1448, 262144},
        Shape{false, mpa::FpduPolicy::kMax, 1448, 64}, Shape{true, mpa::FpduPolicy::kMax, 1448, 64},
        Shape{true, mpa::FpduPolicy::k16k, 1448, 4096}, Shape{false, mpa::FpduPolicy::k16k, 1448, 4096},
        Shape{false, mpa::FpduPolicy::kEmss, 65483, 65536}, Shape{true, mpa::FpduPolicy::kEmss, 100, 1000},
        Shape{false, mpa::FpduPolicy::kEmss, 536, 777}, Shape{true, mpa::FpduPolicy::kEmss, 9000, 65536}),
    [](const auto& tested) {
      const Shape& s = tested.param;
      return std::string(s.crc ? "Crc" : "NoCrc") +
             (s.policy == mpa::FpduPolicy::kEmss  ? "Emss"
              : s.policy == mpa::FpduPolicy::k16k ? "16k"
                                                  : "Max") +
             std::to_string(s.emss) + "Scratch" + std::to_string(s.scratch);
    });

// Reads of several pieces, both ways at once, and more pieces than ORD lets out at a time: one completion each.
TEST(Read, FillsSeveralPieces) {
  COVERS("RFC5040-5.5-22");
  COVERS("RFC5040-5.5-26");
  for (const std::uint16_t ord : std::array<std::uint16_t, 3>{1, 3, 32}) {
    test::PairOptions o;
    o.accept_ird = o.accept_ord = ord;
    test::Pair p(o);
    p.establish();
    p.to_initiator.random_seed = p.to_responder.random_seed = ord;
    constexpr std::uint32_t kLengths[] = {5000, 0, 1, 3000, 0, 7, 20000, 400};
    constexpr std::size_t kTotal = 28408;
    test::Endpoint* const ends[] = {&p.initiator, &p.responder};
    test::Region *sources[2], *sinks[2];
    for (int i : {0, 1}) {
      sources[i] = &ends[i]->region(kTotal + 9, test::kRemoteAll);
      sources[i]->fill(test::pattern(kTotal + 9, i == 0 ? 1 : 101));
      sinks[i] = &ends[i]->region(40000);
    }
    for (int i : {0, 1}) {
      rdmap::SgeList pieces;
      std::size_t at = 40000;  // from the end of the sink to its beginning
      for (const std::uint32_t n : kLengths) {
        at -= n + 10;
        ASSERT_TRUE(pieces.add(sinks[i]->sge(at, n)));
      }
      ends[i]->post(test::read_wr(1, pieces, *sources[1 - i], 9));
      ends[i]->post(test::read_wr(2, sinks[i]->sge(0, 4), *sources[1 - i]));
    }
    p.settle();
    for (int i : {0, 1}) {
      ASSERT_EQ(ends[i]->sends.size(), 2U) << p.log();
      EXPECT_EQ(ends[i]->sends[0].wr_id, 1U);
      EXPECT_EQ(ends[i]->sends[0].status, Errc::kOk);
      EXPECT_EQ(ends[i]->sends[0].op, rdmap::WcOp::kRead);
      EXPECT_EQ(ends[i]->sends[0].byte_len, kTotal);
      test::Bytes expected(40000);
      std::size_t at = 40000, from = 9;
      for (const std::uint32_t n : kLengths) {
        at -= n + 10;
        std::copy_n(sources[1 - i]->bytes().begin() + static_cast<std::ptrdiff_t>(from), n,
                    expected.begin() + static_cast<std::ptrdiff_t>(at));
        from += n;
      }
      std::copy_n(sources[1 - i]->bytes().begin(), 4, expected.begin());
      EXPECT_EQ(sinks[i]->bytes(), expected);
      EXPECT_EQ(ends[i]->conn().tx_counters().reads, 7U) << "one Request for each piece that has octets";
    }
  }
}

// A large FPDU of which the first read brings a few octets, the second all but the CRC field.
TEST(Placing, WaitsForTheRestOfTheTrailer) {
  for (std::size_t missing = 1; missing <= 4; ++missing) {
    test::RawPeerOptions o;
    o.we_initiate = true;
    o.crc = false;
    test::RawPeer p(o);
    auto& local = p.end.region(20000);
    p.end.post(rdmap::RecvWr{1, local.all()});
    p.end.post(rdmap::RecvWr{2, local.all()});
    p.end.post(test::send_wr(3, local.sge(0, 10)));
    (void)p.ulpdus();
    const test::Bytes whole = test::fpdu(test::send_segment(test::pattern(20000)), false);
    const auto at = [&](std::size_t i) { return whole.begin() + static_cast<std::ptrdiff_t>(i); };
    p.feed(test::Bytes(at(0), at(4)));
    p.feed(test::Bytes(at(4), at(whole.size() - missing)));
    EXPECT_TRUE(p.end.recvs.empty()) << missing;
    p.feed(test::Bytes(at(whole.size() - missing), whole.end()));
    ASSERT_EQ(p.end.recvs.size(), 1U) << missing;
    p.feed_ulpdu(test::send_segment(test::pattern(4), {.msn = 2}));
    EXPECT_EQ(p.end.recvs.size(), 2U) << missing;
    EXPECT_EQ(p.end.disconnected(), nullptr) << missing;
  }
}

}  // namespace
}  // namespace iwarp::stream
