// --trace and --pcap of two gateways in a row, between two TCP clients and a TCP server of this process.
#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <sstream>

#include "tests/gateway/rpc_server.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/tools/recording.h"
#include "tests/tools/subprocess.h"

namespace iwarp::gateway::test {
namespace {

namespace samples = rpcrdma::test;
using iwarp::test::comparable;
using iwarp::test::Lines;
using iwarp::test::lines_in;
using iwarp::test::of_connection;
using iwarp::test::pattern;
using iwarp::test::read_back;
using iwarp::test::Scratch;
using iwarp::test::Subprocess;
using iwarp::test::tshark;
using iwarp::test::tshark_faults;
using iwarp::test::with;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

constexpr std::size_t kClients = 2;
constexpr std::uint32_t kBulk = 100'000;  // octets

class RecorderGateway : public ::testing::Test {
 protected:
  // Each client sends a small Call, one that reads and one that writes. One worker each: two would record connections
  // in an order of their own, and a Call that was answered might stand before its Reply.
  void SetUp() override {
    Subprocess rdma_front({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", server_.host_port().to_string(),
                           "--trace", scratch_.file("server"), "--pcap", scratch_.file("server.pcap"), "--workers",
                           "1"});
    Subprocess tcp_front({"gateway", "--insecure-ports", "--tcp-listen", "127.0.0.1:0", "--rdma",
                          "127.0.0.1:" + rdma_front.listening_port(), "--trace", scratch_.file("client"), "--pcap",
                          scratch_.file("client.pcap"), "--workers", "1"});
    const auto port = static_cast<std::uint16_t>(std::stoi(tcp_front.listening_port()));
    std::vector<std::shared_ptr<TcpPeer>> clients;
    for (std::size_t i = 0; i < kClients; ++i) {
      tcp::socket socket(loop_.io);
      socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
      clients.push_back(std::make_shared<TcpPeer>(std::move(socket)));
      clients.back()->start();
      ask(*clients.back(), samples::null_call(1));  // the connections are opened one after the other
    }
    for (const Bytes& call : {samples::read_call(2, kBulk), samples::write_call(3, pattern(kBulk, 9))}) {
      for (const auto& client : clients) ask(*client, call);
    }
    for (const auto& client : clients) client->close();
    for (Subprocess* gateway : {&tcp_front, &rdma_front}) {
      gateway->signal(SIGTERM);
      ASSERT_EQ(gateway->wait(), 0) << gateway->output();
    }
  }
  void ask(TcpPeer& client, const Bytes& call) {
    client.send(call);
    ASSERT_TRUE(loop_.until([&] { return !client.inbox.empty() || client.ended(); }));
    ASSERT_THAT(client.inbox, SizeIs(1)) << "connection ended: " << client.ended();
    client.inbox.clear();
  }

  Loop loop_;
  RpcServer server_{loop_};
  const Scratch scratch_{"recorder-gateway"};
};

// As the other end sees them.
Lines swapped(Lines lines) {
  for (std::string& line : lines) {
    const std::size_t at = line.find(' ') + 1;
    line.replace(at, 1, line[at] == 't' ? "r" : "t");
  }
  return lines;
}

TEST_F(RecorderGateway, EachEndHasAllMessagesOfAllConnections) {
  const Lines client = lines_in(scratch_.file("client")), server = lines_in(scratch_.file("server"));
  for (std::size_t i = 1; i <= kClients; ++i) {
    const Lines ours = of_connection(client, i), theirs = of_connection(server, i);
    EXPECT_THAT(with(ours, " tx tcp Open("), SizeIs(1));
    for (const char* direction : {" tx rpcrdma ", " rx rpcrdma "}) {
      const Lines messages = with(ours, direction);
      EXPECT_THAT(with(messages, "(xid="), SizeIs(3)) << ::testing::PrintToString(messages);
      for (const char* xid : {"xid=0x1,", "xid=0x2,", "xid=0x3,"}) EXPECT_THAT(with(messages, xid), SizeIs(1));
    }
    EXPECT_THAT(swapped(with(theirs, " tx rpcrdma ")), ElementsAreArray(with(ours, " rx rpcrdma ")));
    EXPECT_THAT(swapped(with(theirs, " rx rpcrdma ")), ElementsAreArray(with(ours, " tx rpcrdma ")));
    for (const Lines& lines : {ours, theirs})
      EXPECT_THAT(with(lines, "undecoded=0, lost=0, bad_crc=0, malformed=0)"), SizeIs(2));
  }
}

TEST_F(RecorderGateway, CapturesAreReadBackAsTheTracesSaid) {
  for (const std::string end : {"client", "server"}) {
    EXPECT_EQ(iwarp::test::run({"trace", scratch_.file(end + ".pcap")}).code, 0);
    const Lines read = read_back(scratch_.file(end + ".pcap")), traced = comparable(lines_in(scratch_.file(end)));
    for (std::size_t i = 1; i <= kClients; ++i) {
      // In a capture, tx is what the client sends; the totals come last, tx first.
      const Lines expected = of_connection(traced, i);
      EXPECT_THAT(of_connection(read, i), UnorderedElementsAreArray(end == "client" ? expected : swapped(expected)));
    }
  }
}

TEST_F(RecorderGateway, TsharkDecodesRpcOverRdma) {
  if (!iwarp::test::has_tshark()) GTEST_SKIP() << "tshark is not installed";
  for (const char* capture : {"client.pcap", "server.pcap"}) {
    const std::string file = scratch_.file(capture);
    // tshark 4.0 calls a READ's Reply malformed when its data went by RDMA Write, between two kernels as well.
    std::istringstream faults(tshark_faults(file));
    for (std::string line; std::getline(faults, line);)
      EXPECT_TRUE(line.find("READ Reply") != std::string::npos && line.ends_with("[Malformed Packet]")) << line;
    std::istringstream rows(tshark(file, "-Y rpcordma -T fields -e tcp.stream -e rpcordma.xid"));
    std::map<std::string, int> seen;
    for (std::string stream, xid; rows >> stream >> xid;) ++seen[stream + " " + xid];
    EXPECT_THAT(seen, ElementsAre(Pair("0 0x00000001", 2), Pair("0 0x00000002", 2), Pair("0 0x00000003", 2),
                                  Pair("1 0x00000001", 2), Pair("1 0x00000002", 2), Pair("1 0x00000003", 2)));
  }
}

}  // namespace
}  // namespace iwarp::gateway::test
