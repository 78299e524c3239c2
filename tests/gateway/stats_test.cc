#include "iwarp/gateway/stats.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace iwarp::gateway {
namespace {

TEST(GatewayStats, CountsAddUp) {
  Stats stats;
  stats.connection_opened();
  stats.connection_opened();
  stats.connection_closed();
  stats.connection_refused(RefuseReason::kNotAllowed);
  for (int i = 0; i < 10; ++i) stats.received(MessageKind::kCall);
  for (int i = 0; i < 6; ++i) stats.forwarded(MessageKind::kCall);
  stats.dropped(MessageKind::kCall, DropReason::kDuplicateXid);
  stats.dropped(MessageKind::kCall, DropReason::kDuplicateXid);
  stats.dropped(MessageKind::kCall, DropReason::kLimit);
  stats.received(MessageKind::kReply);
  stats.dropped(MessageKind::kReply, DropReason::kUnknownXid);

  const auto s = stats.snapshot();
  EXPECT_EQ(s.active(), 1U);
  EXPECT_EQ(s.of(MessageKind::kCall).dropped_total(), 3U);
  EXPECT_EQ(s.of(MessageKind::kCall).pending(), 1U);
  EXPECT_EQ(s.of(MessageKind::kReply).pending(), 0U);
  EXPECT_EQ(s.of(MessageKind::kBackwardCall), Stats::Messages{});
}

TEST(GatewayStats, PrintsEveryCounterAsJson) {
  Stats stats;
  stats.connection_opened();
  stats.connection_refused(RefuseReason::kBackendUnreachable);
  stats.received(MessageKind::kBackwardReply);
  stats.dropped(MessageKind::kBackwardReply, DropReason::kLimit);
  stats.tcp_bytes(Way::kIn, 1000);
  stats.tcp_bytes(Way::kOut, 1);
  stats.rdma_bytes(RdmaOperation::kWrite, Way::kOut, std::uint64_t{1} << 40);
  stats.rdma_bytes(RdmaOperation::kRead, Way::kIn, 5);

  const nlohmann::json j = stats.snapshot();
  EXPECT_EQ(j["connections"], nlohmann::json::parse(R"({"opened": 1, "closed": 0, "active": 1, "refused":
      {"not_allowed": 0, "backend_unreachable": 1, "handshake_failed": 0, "limit": 0}})"));
  EXPECT_EQ(j["messages"].size(), kMessageKinds);
  EXPECT_EQ(j["messages"]["backward_reply"],
            nlohmann::json::parse(R"({"received": 1, "forwarded": 0, "pending": 0, "dropped": 1, "dropped_by_reason":
      {"duplicate_xid": 0, "unknown_xid": 0, "malformed": 0, "too_long": 0, "limit": 1,
       "connection_closed": 0}})"));
  EXPECT_EQ(j["tcp_bytes"], nlohmann::json::parse(R"({"in": 1000, "out": 1})"));
  EXPECT_EQ(j["rdma_bytes"], nlohmann::json::parse(R"({"send": {"in": 0, "out": 0},
      "write": {"in": 0, "out": 1099511627776}, "read": {"in": 5, "out": 0}})"));
}

TEST(GatewayStats, NamesAreDistinct) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kDropReasons; ++i) names.insert(name(static_cast<DropReason>(i)));
  EXPECT_EQ(names.size(), kDropReasons);
  EXPECT_EQ(names.count("?"), 0U);
}

TEST(GatewayStats, LosesNothingBetweenThreads) {
  Stats stats;
  constexpr int kRounds = 20000;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        stats.received(MessageKind::kCall);
        stats.forwarded(MessageKind::kCall);
        stats.tcp_bytes(Way::kIn, 3);
      }
    });
  }
  for (int i = 0; i < 1000; ++i) {
    const auto s = stats.snapshot();
    EXPECT_LE(s.of(MessageKind::kCall).forwarded, s.of(MessageKind::kCall).received);
  }
  for (auto& writer : writers) writer.join();
  const auto s = stats.snapshot();
  EXPECT_EQ(s.of(MessageKind::kCall).received, 4U * kRounds);
  EXPECT_EQ(s.of(MessageKind::kCall).pending(), 0U);
  EXPECT_EQ(s.tcp_bytes[0], 12U * kRounds);
}

}  // namespace
}  // namespace iwarp::gateway
