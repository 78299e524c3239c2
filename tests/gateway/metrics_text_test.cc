#include "iwarp/gateway/metrics_text.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/gateway/exposition.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

ListenerMetrics listener(const std::string& name) {
  return {name, "rdma-to-tcp", "0.0.0.0:20049", "127.0.0.1:2049", {}};
}

TEST(MetricsText, HasEveryFamilyThatTheDocumentNames) {
  Stats stats;
  stats.connection_ended(Errc::kPeerClosed);
  auto l = listener("nfs");
  l.stats = stats.snapshot();
  std::set<std::string> written, named;
  for (const auto& [name, family] : Exposition::parse(metrics_text({l}, {"1.2.3", 1u << 20})).families) {
    written.insert(name);
    EXPECT_FALSE(family.samples.empty()) << name;
  }
  // Rows of its table: | `name` | type | ...
  std::ifstream document(IWARP_SOURCE_DIR "/docs/GATEWAY-METRICS.md");
  ASSERT_TRUE(document);
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("| `iwarp_")) named.insert(line.substr(3, line.find('`', 3) - 3));
  }
  EXPECT_EQ(written, named);
}

TEST(MetricsText, WithoutListenersIsAPage) {
  const auto page = Exposition::parse(metrics_text({}, {"1.2.3", 7}));
  EXPECT_EQ(page.value("iwarp_build_info{version=\"1.2.3\"}"), 1);
  EXPECT_EQ(page.value("iwarp_gateway_registered_limit_bytes"), 7);
  EXPECT_TRUE(page.families.at("iwarp_gateway_calls_total").samples.empty());
}

TEST(MetricsText, TellsWhatWasCounted) {
  Stats stats;
  RpcMeter meter(stats.rpc());
  for (int i = 0; i < 4; ++i) meter.called(RpcProgram::kNfs, 100);
  meter.replied(RpcProgram::kNfs, 5000, 80us);
  meter.replied(RpcProgram::kNfs, 5000, 1500ms, {.read = 60, .write = 4000});
  meter.failed(RpcProgram::kNfs);
  stats.received(MessageKind::kCall);
  stats.dropped(MessageKind::kCall, DropReason::kLimit);
  stats.rdma_bytes(RdmaOperation::kWrite, Way::kOut, std::uint64_t{1} << 40);
  stats.tcp_bytes(Way::kIn, 12);
  stats.connection_opened();
  stats.connection_refused(RefuseReason::kNotAllowed);
  stats.connection_ended(Errc::kTimeout);
  stats.connection_given_up(EndReason::kLostCall);
  stats.incident(Incident::kHighPort, 3);
  stats.connection_speaks(Spoken::kDraft2005);
  stats.draft_messages(DraftMessage::kPaddedCall, 5);
  stats.crc_terminate(true);
  auto l = listener("nfs");
  l.stats = stats.snapshot();
  l.stats.registered_bytes = 4096;
  l.stats.credits_granted = 64;
  const auto page = Exposition::parse(metrics_text({l}, {"1", 0}));
  const auto value = [&](const std::string& metric, const std::string& more = {}) {
    return page.value("iwarp_gateway_" + metric + "{listener=\"nfs\",direction=\"rdma-to-tcp\"" + more + "}");
  };
  const std::string nfs = ",program=\"nfs\"";
  EXPECT_EQ(value("calls_total", nfs), 4);
  EXPECT_EQ(value("calls_total", ",program=\"other\""), 0);
  EXPECT_EQ(value("replies_total", nfs), 2);
  EXPECT_EQ(value("failed_calls_total", nfs), 1);
  EXPECT_EQ(value("outstanding_calls", nfs), 1);
  EXPECT_EQ(value("call_bytes_total", nfs), 400);
  EXPECT_EQ(value("reply_bytes_total", nfs), 10000);
  EXPECT_EQ(value("call_read_bytes_total", nfs), 60);
  EXPECT_EQ(value("reply_write_bytes_total", nfs), 4000);
  EXPECT_EQ(value("latency_seconds_bucket", nfs + ",le=\"5e-05\""), 0);
  EXPECT_EQ(value("latency_seconds_bucket", nfs + ",le=\"0.0001\""), 1);
  EXPECT_EQ(value("latency_seconds_bucket", nfs + ",le=\"1\""), 1);
  EXPECT_EQ(value("latency_seconds_bucket", nfs + ",le=\"2.5\""), 2);
  EXPECT_EQ(value("latency_seconds_count", nfs), 2);
  EXPECT_DOUBLE_EQ(value("latency_seconds_sum", nfs), 1.50008);
  EXPECT_EQ(value("messages_dropped_total", ",kind=\"call\",reason=\"limit\""), 1);
  EXPECT_EQ(value("rdma_bytes_total", ",operation=\"write\",way=\"out\""), std::pow(2, 40));
  EXPECT_EQ(value("tcp_bytes_total", ",way=\"in\""), 12);
  EXPECT_EQ(value("connections"), 1);
  EXPECT_EQ(value("connections_refused_total", ",reason=\"not_allowed\""), 1);
  EXPECT_EQ(value("connections_ended_total", ",reason=\"timeout\""), 1);
  EXPECT_EQ(value("connections_given_up_total", ",reason=\"lost_call\""), 1);
  EXPECT_EQ(value("incidents_total", ",incident=\"high_port\""), 3);
  EXPECT_EQ(value("connections_by_version_total", ",version=\"2005\""), 1);
  EXPECT_EQ(value("connections_by_version_total", ",version=\"1\""), 0);
  EXPECT_EQ(value("draft_2005_messages_total", ",message=\"padded_call\""), 5);
  EXPECT_EQ(value("siw_crc_faults_total"), 1);
  EXPECT_EQ(value("registered_bytes"), 4096);
  EXPECT_EQ(value("credits_granted"), 64);
  EXPECT_EQ(value("listener_info", ",local=\"0.0.0.0:20049\",backend=\"127.0.0.1:2049\""), 1);
}

TEST(MetricsText, AddsUpListenersOfTheSameLabels) {
  Stats stats;
  stats.rpc().called(RpcProgram::kMount, 1);
  std::vector<ListenerMetrics> all = {listener("a"), listener("b"), listener("a")};
  for (auto& l : all) l.stats = stats.snapshot();
  const auto page = Exposition::parse(metrics_text(all, {"1", 0}));
  const auto calls = [&](const std::string& name) {
    return page.value("iwarp_gateway_calls_total{listener=\"" + name +
                      "\",direction=\"rdma-to-tcp\",program=\"mount\"}");
  };
  EXPECT_EQ(calls("a"), 2);
  EXPECT_EQ(calls("b"), 1);
}

TEST(MetricsText, EscapesWhatOperatorsWrite) {
  const auto page = Exposition::parse(metrics_text({listener("a\"b\\c\nd\xff")}, {"1", 0}));
  EXPECT_EQ(page.value("iwarp_gateway_connections{listener=\"a\\\"b\\\\c\\nd?\",direction=\"rdma-to-tcp\"}"), 0);
}

}  // namespace
}  // namespace iwarp::gateway::test
