// A write that was acknowledged is never lost or torn, whatever dies and whenever: a client that sends again what was
// not acknowledged, and processes, connections and octets that come to harm meanwhile.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/faults/chain.h"
#include "tests/faults/written.h"

namespace iwarp::faults {
namespace {

constexpr std::size_t kOutstanding = 8;
constexpr int kPatienceMs = 400;  // then the client believes that the connection is dead

// Keeps WRITEs outstanding, and sends those again that were not acknowledged when it has to reconnect.
class Writer {
 public:
  Writer(Chain& chain, unsigned seed) : chain_(chain), random_(seed) {}

  // Until so many more are acknowledged.
  void run(std::size_t acknowledgements) {
    const std::size_t goal = acknowledged.size() + acknowledgements;
    while (acknowledged.size() < goal && !::testing::Test::HasFatalFailure()) {
      if (!connection_) reconnect();
      while (connection_ && outstanding_.size() < kOutstanding) send_new();
      if (connection_) receive();
    }
  }
  // While Calls are outstanding.
  void reset() {
    if (connection_) connection_->reset();
    connection_.reset();
  }
  // Acknowledges the rest.
  void finish() { run(outstanding_.size()); }

  std::map<std::uint32_t, std::uint32_t> acknowledged;  // id to size
  std::size_t reconnects = 0;

 private:
  void reconnect() {
    ++reconnects;
    chain_.read_logs();
    ASSERT_LT(reconnects, 1000u) << "no connection lives";
    connection_.emplace(chain_.port(Chain::kTcpFront));
    for (const auto& [id, size] : outstanding_) send(id, size);
  }
  void send_new() {
    const auto size = static_cast<std::uint32_t>(random_() % (random_() % 3 == 0 ? 200'000 : 5'000));
    outstanding_[++latest_] = size;
    send(latest_, size);
  }
  void send(std::uint32_t id, std::uint32_t size) {
    if (connection_ && !connection_->send(write_call(id, id, size))) connection_.reset();
  }
  void receive() {
    const auto reply = connection_->receive(kPatienceMs);
    if (!reply) return connection_.reset();
    const auto xid = load_be<std::uint32_t>(*reply);
    EXPECT_TRUE(*reply == rpcrdma::test::write_reply(xid)) << "a corrupted acknowledgement";
    const auto found = outstanding_.find(xid);
    ASSERT_NE(found, outstanding_.end()) << "an acknowledgement of what was not asked";
    acknowledged.insert(*found);
    outstanding_.erase(found);
  }

  Chain& chain_;
  std::mt19937 random_;
  std::optional<RpcClient> connection_;
  std::map<std::uint32_t, std::uint32_t> outstanding_;
  std::uint32_t latest_ = 0;
};

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
  // A bit, or an end, somewhere in the connection that comes after this one.
  void damage_next_connection() {
    Way way;
    const std::size_t at = 100 + random_() % 300'000;
    switch (random_() % 3) {
      case 0:
        way.flip_bit = at * 8 + random_() % 8;
        break;
      case 1:
        way.cut = Way::Cut::kFin;
        break;
      default:
        way.cut = Way::Cut::kReset;
    }
    way.cut_at = at;
    chain_.relay().set_once(random_() % 4 == 0 ? Relay::Plan{{}, way} : Relay::Plan{way, {}});
    writer_.reset();
  }
  void check() {
    std::map<std::uint32_t, std::uint32_t> applied;
    for (const std::string& line : chain_.applied()) {
      std::uint32_t id = 0, size = 0;
      std::array<char, 8> how{};
      ASSERT_EQ(std::sscanf(line.c_str(), "%u %u %7s", &id, &size, how.data()), 3) << line;
      EXPECT_STREQ(how.data(), "intact") << line;
      applied[id] = size;
    }
    for (const auto& [id, size] : writer_.acknowledged) {
      ASSERT_TRUE(applied.contains(id)) << "write " << id << " was acknowledged, and is lost";
      EXPECT_EQ(applied[id], size);
    }
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
  check();
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
