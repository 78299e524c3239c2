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
  stats.connection_ended(Errc::kTimeout);
  stats.incident(Incident::kReplyTooLong, 3);
  stats.connection_given_up(EndReason::kLostCall);
  stats.connection_speaks(Spoken::kVersion2);
  stats.draft_messages(DraftMessage::kDone, 4);
  stats.received(MessageKind::kBackwardReply);
  stats.dropped(MessageKind::kBackwardReply, DropReason::kLimit);
  stats.tcp_bytes(Way::kIn, 1000);
  stats.tcp_bytes(Way::kOut, 1);
  stats.rdma_bytes(RdmaOperation::kWrite, Way::kOut, std::uint64_t{1} << 40);
  stats.rdma_bytes(RdmaOperation::kRead, Way::kIn, 5);
  stats.early_wakes(2);

  const nlohmann::json j = stats.snapshot();
  EXPECT_EQ(j["connections"], nlohmann::json::parse(R"({"opened": 1, "closed": 0, "active": 1,
      "ended": {"timeout": 1}, "refused": {"not_allowed": 0, "insecure_port": 0, "no_reserved_port": 0, "backend_unreachable": 1, "handshake_failed": 0, "limit": 0}, "given_up":
      {"lost_call": 1, "no_credit": 0, "malformed_reply": 0, "half_record": 0, "unanswered_read": 0, "unread_reply": 0,
       "client_left": 0, "no_version": 0}, "by_version": {"1": 0, "2": 1, "2005": 0}})"));
  EXPECT_EQ(j["messages"].size(), kMessageKinds);
  EXPECT_EQ(j["messages"]["backward_reply"],
            nlohmann::json::parse(R"({"received": 1, "forwarded": 0, "pending": 0, "dropped": 1, "dropped_by_reason":
      {"duplicate_xid": 0, "unknown_xid": 0, "malformed": 0, "too_long": 0, "limit": 1,
       "connection_closed": 0, "auth_tls": 0}})"));
  EXPECT_EQ(j["incidents"].size(), kIncidents);
  EXPECT_EQ(j["incidents"]["reply_too_long"], 3);
  EXPECT_EQ(j["draft_2005_messages"],
            nlohmann::json::parse(
                R"({"config_rdma": 0, "padded_call": 0, "padded_reply": 0, "reply_in_read_chunk": 0, "done": 4})"));
  EXPECT_EQ(j["tcp_bytes"], nlohmann::json::parse(R"({"in": 1000, "out": 1})"));
  EXPECT_EQ(j["rdma_bytes"], nlohmann::json::parse(R"({"send": {"in": 0, "out": 0},
      "write": {"in": 0, "out": 1099511627776}, "read": {"in": 5, "out": 0}})"));
  EXPECT_EQ(j["early_wakes"], 2);
}

template <class Enum>
void expect_distinct_names(std::size_t count) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.insert(name(static_cast<Enum>(i)));
  EXPECT_EQ(names.size(), count);
  EXPECT_EQ(names.count("?"), 0U);
}

TEST(GatewayStats, NamesAreDistinct) {
  expect_distinct_names<DropReason>(kDropReasons);
  expect_distinct_names<RefuseReason>(kRefuseReasons);
  expect_distinct_names<Incident>(kIncidents);
  expect_distinct_names<EndReason>(kEndReasons);
  expect_distinct_names<Spoken>(kSpoken);
  expect_distinct_names<DraftMessage>(kDraftMessages);
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
