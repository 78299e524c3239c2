// A write that was acknowledged is never lost or torn, whatever dies and whenever: processes, connections and octets
// come to harm while a client writes. Whoever survives all that keeps nothing of it.
#include <gtest/gtest.h>

#include "tests/cm/node.h"
#include "tests/faults/survivor.h"
#include "tests/faults/writer.h"
#include "tests/faults/written.h"

namespace iwarp::faults {
namespace {

using namespace std::chrono_literals;

class AcknowledgedWrite : public ::testing::Test {
 protected:
  void break_something() {
    switch (random_() % 7) {
      case 0:
        chain_.kill(Chain::kStore);
        return chain_.start(Chain::kStore);
      case 1:
        chain_.kill(Chain::kRdmaFront);
        return chain_.start(Chain::kRdmaFront);
      case 2:
        chain_.kill(Chain::kTcpFront);
        return chain_.start(Chain::kTcpFront);
      case 3:
        return chain_.relay().reset_all();
      case 4:
        return writer_.reset();
      default:
        return damage_next_connection();
    }
  }
  // A bit, an end or a stall somewhere in the connection that comes after this one, or a bad network.
  void damage_next_connection() {
    Way way;
    const std::size_t at = 100 + random_() % 300'000;
    switch (const auto what = random_() % 6; what) {
      case 0:
        way.flip_bit = at * 8 + random_() % 8;
        break;
      case 1:
        way.delay = std::chrono::milliseconds(1 + random_() % 5);
        way.coalesce = random_() % 5000;
        break;
      case 2:
        way.pieces = {1 + random_() % 100, 1 + random_() % 3000};
        break;
      default:
        way.cut = std::array{Way::Cut::kFin, Way::Cut::kReset, Way::Cut::kStall}.at(what - 3);
    }
    way.cut_at = at;
    chain_.relay().set_once(random_() % 4 == 0 ? Relay::Plan{{}, way} : Relay::Plan{way, {}});
    writer_.reset();
  }

  const unsigned seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
  Chain chain_;
  Writer writer_{chain_, seed_ + 1};
};

TEST_F(AcknowledgedWrite, IsNeverLostNorTorn) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  constexpr int kFaults = 100;
  for (int i = 0; i < kFaults; ++i) {
    writer_.run(random_() % 30);
    break_something();
  }
  writer_.finish();
  EXPECT_GT(writer_.acknowledged.size(), 500u);
  EXPECT_GE(writer_.reconnects, std::size_t{kFaults} / 2);
  writer_.check();

  chain_.relay().reset_all();  // what it stalled
  for (const Chain::Process p : {Chain::kRdmaFront, Chain::kTcpFront})
    EXPECT_TRUE(test::eventually([&] { return chain_.at_rest(p); }, kFreed)) << chain_[p].output();
}

// The check itself: what it looks for would be found.
TEST(Written, TornAndShortPayloadsShow) {
  const test::Bytes good = write_call(7, 3, 1001);
  EXPECT_TRUE(parse_write(good)->intact);
  EXPECT_EQ(parse_write(good)->id, 3u);
  EXPECT_EQ(parse_write(good)->size, 1001u);
  for (std::size_t i = good.size() - 1004; i < good.size(); i += 100) {
    test::Bytes torn = good;
    torn[i] ^= std::byte{4};
    EXPECT_FALSE(parse_write(torn)->intact);
  }
  EXPECT_FALSE(parse_write(test::Bytes(good.begin(), good.end() - 4))->intact);
}

}  // namespace
}  // namespace iwarp::faults
