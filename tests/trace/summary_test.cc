#include "iwarp/trace/summary.h"

#include <gmock/gmock.h>

#include <sstream>

namespace iwarp::trace {
namespace {

using std::chrono::microseconds;
using ::testing::ContainsRegex;

Record record(const char* layer, Pdu pdu, Direction d = Direction::kTx) {
  Record r;
  r.connection = "1";
  r.layer = layer;
  r.pdu = std::move(pdu);
  r.direction = d;
  return r;
}
std::shared_ptr<SeenRpc> read_rpc() {
  auto rpc = std::make_shared<SeenRpc>();
  rpc->known = true;
  rpc->name = "NFS 3 READ";
  rpc->send_bytes = 200;
  rpc->write_bytes = 4096;
  return rpc;
}
void call(Summary& s, const std::shared_ptr<SeenRpc>& rpc, bool again = false) {
  Record r = record("rpc", Pdu("Call"));
  r.rpc = rpc;
  r.retransmission = r.error = again;
  s.add(r);
}
void reply(Summary& s, const std::shared_ptr<SeenRpc>& rpc, Duration latency, bool error = false) {
  Record r = record("rpc", Pdu("Reply"), Direction::kRx);
  r.rpc = rpc;
  r.latency = latency;
  r.error = error;
  s.add(r);
}
Summary::Connection first(const Summary& s) {
  return s.connections().front().second;
}
void give(Summary& s, const Record& r) {
  s.see(r);
  s.add(r);
}

TEST(TraceSummary, Procedures) {
  Summary s;
  for (int i = 1; i <= 100; ++i) {
    const auto rpc = read_rpc();
    call(s, rpc, i == 2);
    reply(s, rpc, microseconds(i), i == 3);
  }
  call(s, read_rpc());
  const Summary::Procedure& p = s.procedures().at("NFS 3 READ");
  EXPECT_EQ(p.calls, 101U);
  EXPECT_EQ(p.replies, 100U);
  EXPECT_EQ(p.errors, 1U);
  EXPECT_EQ(p.retransmissions, 1U);
  EXPECT_EQ(p.send_bytes, 20000U);
  EXPECT_EQ(p.write_bytes, 409600U);
  EXPECT_EQ(p.latency(0), microseconds(1));
  EXPECT_EQ(p.latency(0.5), microseconds(50));
  EXPECT_EQ(p.latency(0.99), microseconds(99));
  EXPECT_EQ(p.latency(1), microseconds(100));
  EXPECT_EQ(first(s).calls, 101U);
  EXPECT_EQ(first(s).errors, 2U);
  EXPECT_THAT(to_text(s), ContainsRegex("NFS 3 READ +101 +1 +1 +1 +20000 +409600 +0 +0.001 +0.050 +0.099 +0.100"));
}

TEST(TraceSummary, AnRdmaErrorIsAnAnswer) {
  Summary s;
  const auto rpc = read_rpc();
  call(s, rpc);
  Record r = record("rpcrdma", Pdu("RDMA_ERROR"), Direction::kRx);
  r.rpc = rpc;
  r.error = true;
  s.add(r);
  EXPECT_EQ(s.procedures().at("NFS 3 READ").errors, 1U);
  EXPECT_EQ(s.procedures().at("NFS 3 READ").replies, 1U);
  EXPECT_THAT(to_text(s), ContainsRegex("NFS 3 READ +1 +1 +0 +0 +200 "));
}

TEST(TraceSummary, Connections) {
  Summary s;
  Pdu open("Open");
  give(s, record("tcp", open.word("client", "10.0.0.1:4000").word("server", "10.0.0.2:20049")));
  give(s, record("rdmap", Pdu("Send")));
  give(s, record("rdmap", Pdu("SendInvalidate")));
  give(s, record("rdmap", Pdu("Write")));
  give(s, record("rdmap", Pdu("ReadRequest")));
  EXPECT_EQ(first(s).end, "still open");
  give(s, record("tcp", Pdu("Fin"), Direction::kRx));
  give(s, record("tcp", Pdu("Fin")));
  Pdu total("Total");
  give(s, record("tcp", total.number("bytes", 20'000'000'000).number("messages", 4)));
  EXPECT_EQ(first(s).client, "10.0.0.1:4000");
  EXPECT_EQ(first(s).sends, 2U);
  EXPECT_EQ(first(s).writes, 1U);
  EXPECT_EQ(first(s).reads, 1U);
  EXPECT_EQ(first(s).messages[0], 4U);
  EXPECT_EQ(first(s).end, "server closed");
  EXPECT_THAT(to_text(s), ContainsRegex("1 10.0.0.1:4000 +10.0.0.2:20049 +20.0G +0 +2 +1 +1 +0 +0  server closed"));
}

TEST(TraceSummary, HowConnectionsEnd) {
  const auto end_of = [](std::vector<Record> records) {
    Summary s;
    for (const Record& r : records) give(s, r);
    return first(s).end;
  };
  Record rejected = record("mpa", Pdu("Reply"), Direction::kRx);
  rejected.error = true;
  EXPECT_EQ(end_of({rejected, record("tcp", Pdu("Fin"))}), "rejected");
  EXPECT_EQ(end_of({record("rdmap", Pdu("Terminate")), record("tcp", Pdu("Reset"))}), "Terminate");
  EXPECT_EQ(end_of({record("tcp", Pdu("Fin")), record("tcp", Pdu("Reset"))}), "reset");
  EXPECT_EQ(end_of({record("tcp", Pdu("Fin"))}), "client closed");
}

TEST(TraceSummary, OtherConnectionsAreLeftOut) {
  Summary s;
  give(s, record("tcp", Pdu("NotMpa")));
  EXPECT_FALSE(first(s).is_iwarp);
  std::istringstream lines(to_text(s));
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) EXPECT_LE(line.size(), 120U);
  EXPECT_EQ(n, 1);
}

// What a filter leaves out says nothing of how a connection ended.
TEST(TraceSummary, EndsOfConnectionsWhoseRecordsAreNotAdded) {
  Summary s;
  Pdu total("Total");
  s.see(record("tcp", total.number("bytes", 100).number("messages", 3)));
  s.see(record("rdmap", Pdu("Send")));
  s.see(record("tcp", Pdu("Fin")));
  EXPECT_EQ(first(s).end, "client closed");
  EXPECT_EQ(first(s).bytes[0], 100U);
  EXPECT_EQ(first(s).sends, 0U);
}

// The Reply was captured in part, or makes no sense: its Call has an answer all the same.
TEST(TraceSummary, AnUnreadableReplyIsAnAnswer) {
  for (const char* name : {"Cut", "Malformed"}) {
    Summary s;
    const auto rpc = read_rpc();
    call(s, rpc);
    Record r = record("rpc", Pdu(name), Direction::kRx);
    r.rpc = rpc;
    r.latency = microseconds(5);
    s.add(r);
    EXPECT_THAT(to_text(s), ContainsRegex("NFS 3 READ +1 +0 +0 +0 +200 +4096 +0 +0.005"));
  }
}

// A connection that is over, with a Send and 10 octets from each end.
void short_connection(Summary& s, const std::string& name) {
  const auto give_it = [&](Record r) {
    r.connection = name;
    give(s, r);
  };
  Pdu total("Total");
  total.number("bytes", 10);
  give_it(record("rdmap", Pdu("Send")));
  give_it(record("tcp", total));
  give_it(record("tcp", total, Direction::kRx));
}

TEST(TraceSummary, CountsConnectionsTogetherThatFindNoRoom) {
  Summary s;
  Record longest = record("rdmap", Pdu("Send"));
  longest.connection = "longest";
  give(s, longest);
  Record http = record("tcp", Pdu("NotMpa"));
  http.connection = "http";
  give(s, http);
  for (std::size_t n = 0; n < Summary::kMaxConnections + 10; ++n) short_connection(s, std::to_string(n));
  EXPECT_EQ(s.connections().size(), Summary::kMaxConnections);
  EXPECT_EQ(s.connections().front().first, "longest");
  EXPECT_EQ((++s.connections().begin())->first, "11");
  EXPECT_EQ(s.other_connections(), 11U);
  EXPECT_EQ(s.others().sends, 11U);
  EXPECT_EQ(s.others().bytes[1], 110U);
  EXPECT_THAT(to_text(s).substr(0, 400), ContainsRegex(" 11 others +110 +110 +11 +0 +0 +0 +0  over"));
}

TEST(TraceSummary, CountsProceduresTogetherThatFindNoRoom) {
  Summary s;
  for (std::size_t n = 0; n < Summary::kMaxProcedures + 10; ++n) {
    const auto rpc = read_rpc();
    rpc->name = "procedure " + std::to_string(n);
    call(s, rpc);
  }
  EXPECT_EQ(s.procedures().size(), Summary::kMaxProcedures + 1);
  EXPECT_EQ(s.procedures().at(Summary::kOtherProcedures).calls, 10U);
}

TEST(TraceSummary, KeepsABoundedNumberOfLatencies) {
  Summary s;
  const auto rpc = read_rpc();
  for (std::size_t n = 0; n < Summary::kMaxLatencies + 2; ++n) reply(s, rpc, microseconds(1));
  EXPECT_EQ(s.forgotten().latencies, 2U);
  EXPECT_THAT(to_text(s), ContainsRegex("Forgotten, .* 2 latencies"));
}

TEST(TraceSummary, SaysWhatWasForgotten) {
  Summary s;
  EXPECT_EQ(to_text(s).find("orgotten"), std::string::npos);
  s.forgot(12, 3);
  EXPECT_THAT(to_text(s), ContainsRegex("Forgotten, for want of memory: 12 RPCs under way, the end of 3 connections"));
}

}  // namespace
}  // namespace iwarp::trace
