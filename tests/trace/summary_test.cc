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
  return s.connections().at(0).second;
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
  s.open(record("tcp", open.word("client", "10.0.0.1:4000").word("server", "10.0.0.2:20049")));
  s.add(record("rdmap", Pdu("Send")));
  s.add(record("rdmap", Pdu("SendInvalidate")));
  s.add(record("rdmap", Pdu("Write")));
  s.add(record("rdmap", Pdu("ReadRequest")));
  EXPECT_EQ(first(s).end, "still open");
  s.add(record("tcp", Pdu("Fin"), Direction::kRx));
  s.add(record("tcp", Pdu("Fin")));
  Pdu total("Total");
  s.add(record("tcp", total.number("bytes", 20'000'000'000).number("messages", 4)));
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
    for (const Record& r : records) s.add(r);
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
  s.add(record("tcp", Pdu("NotMpa")));
  EXPECT_FALSE(first(s).is_iwarp);
  std::istringstream lines(to_text(s));
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) EXPECT_LE(line.size(), 120U);
  EXPECT_EQ(n, 1);
}

}  // namespace
}  // namespace iwarp::trace
