#include "tests/faults/writer.h"

#include <gtest/gtest.h>

#include "iwarp/base/wire.h"
#include "tests/faults/written.h"

namespace iwarp::faults {
namespace {

constexpr std::size_t kOutstanding = 8;
constexpr int kPatienceMs = 400;  // then the client believes that the connection is dead

}  // namespace

void Writer::run(std::size_t acknowledgements) {
  const std::size_t goal = acknowledged.size() + acknowledgements;
  while (acknowledged.size() < goal && !::testing::Test::HasFatalFailure()) {
    if (!connection_) reconnect();
    while (connection_ && outstanding_.size() < kOutstanding) send_new();
    if (connection_) receive();
  }
}

void Writer::reset() {
  if (connection_) connection_->reset();
  connection_.reset();
}

void Writer::finish() {
  run(outstanding_.size());
  connection_.reset();
}

void Writer::reconnect() {
  ++reconnects;
  chain_.read_logs();
  ASSERT_LT(reconnects, 1000u) << "no connection lives";
  connection_.emplace(chain_.port(Chain::kTcpFront));
  for (const auto& [id, size] : outstanding_) send(id, size);
}

void Writer::send_new() {
  const auto size = static_cast<std::uint32_t>(random_() % (random_() % 3 == 0 ? 200'000 : 5'000));
  outstanding_[++latest_] = size;
  send(latest_, size);
}

void Writer::send(std::uint32_t id, std::uint32_t size) {
  if (connection_ && !connection_->send(write_call(id, id, size))) connection_.reset();
}

void Writer::receive() {
  const auto reply = connection_->receive(kPatienceMs);
  if (!reply) return reset();
  const auto xid = load_be<std::uint32_t>(*reply);
  EXPECT_TRUE(*reply == rpcrdma::test::write_reply(xid)) << "a corrupted acknowledgement";
  const auto found = outstanding_.find(xid);
  ASSERT_NE(found, outstanding_.end()) << "an acknowledgement of what was not asked";
  acknowledged.insert(*found);
  outstanding_.erase(found);
}

void Writer::check() const {
  std::map<std::uint32_t, std::uint32_t> applied;
  for (const std::string& line : chain_.applied()) {
    std::uint32_t id = 0, size = 0;
    std::array<char, 8> how{};
    ASSERT_EQ(std::sscanf(line.c_str(), "%u %u %7s", &id, &size, how.data()), 3) << line;
    EXPECT_STREQ(how.data(), "intact") << line;
    applied[id] = size;
  }
  for (const auto& [id, size] : acknowledged) {
    ASSERT_TRUE(applied.contains(id)) << "write " << id << " was acknowledged, and is lost";
    EXPECT_EQ(applied[id], size);
  }
}

}  // namespace iwarp::faults
