// What `iwarp trace` says of captures of two gateways in a row that speak version 2 of RPC-over-RDMA, that ask for it
// in vain, and that use the draft of 2005.
#include <gmock/gmock.h>

#include <csignal>
#include <regex>

#include "iwarp/rpcrdma/config_rdma.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "tests/gateway/rpc_server.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/tools/recording.h"
#include "tests/tools/subprocess.h"

namespace iwarp::gateway::test {
namespace {

namespace samples = rpcrdma::test;
using iwarp::test::Lines;
using iwarp::test::lines_of;
using iwarp::test::pattern;
using iwarp::test::Scratch;
using iwarp::test::Subprocess;
using iwarp::test::with;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Words = std::vector<std::string>;

constexpr std::uint32_t kBulk = 100'000;  // octets

class RecorderVersions : public ::testing::Test {
 protected:
  // A client sends these Calls, one after the other, and the server answers each. `client`, `server`: flags of the
  // gateways on their sides. What `iwarp trace` says of the capture between the two: lines without their times.
  Lines traced(const Words& client, const Words& server, const std::vector<Bytes>& calls) {
    const std::string capture = scratch_.file("between.pcap");
    const auto joined = [](Words words, const Words& more) {
      words.insert(words.end(), more.begin(), more.end());
      return words;
    };
    Subprocess rdma_front(
        joined({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", server_.host_port().to_string()}, server));
    Subprocess tcp_front(joined({"gateway", "--insecure-ports", "--tcp-listen", "127.0.0.1:0", "--rdma",
                                 "127.0.0.1:" + rdma_front.listening_port(), "--pcap", capture},
                                client));
    tcp::socket socket(loop_.io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"),
                    static_cast<std::uint16_t>(std::stoi(tcp_front.listening_port()))});
    const auto peer = std::make_shared<TcpPeer>(std::move(socket));
    peer->start();
    for (const Bytes& call : calls) {
      peer->send(call);
      EXPECT_TRUE(loop_.until([&] { return !peer->inbox.empty() || peer->ended(); }));
      EXPECT_THAT(peer->inbox, SizeIs(1)) << tcp_front.output() << rdma_front.output();
      peer->inbox.clear();
    }
    peer->close();
    for (Subprocess* gateway : {&tcp_front, &rdma_front}) {
      gateway->signal(SIGTERM);
      EXPECT_EQ(gateway->wait(), 0) << gateway->output();
      log_ += gateway->output();
    }
    const auto trace = iwarp::test::run({"trace", "-v", capture});
    EXPECT_EQ(trace.code, 0) << trace.output;
    return lines_of(trace.output);
  }
  // The number that the only such line has in this field.
  static std::string field(const Lines& lines, const std::string& name) {
    if (lines.size() != 1) throw std::runtime_error(std::to_string(lines.size()) + " lines have " + name);
    std::smatch found;
    return std::regex_search(lines[0], found, std::regex("[( ]" + name + "=([^,)]*)")) ? found[1].str() : "";
  }

  Loop loop_;
  RpcServer server_{loop_};
  const Scratch scratch_{"recorder-versions"};
  std::string log_;
};

const std::vector<Bytes> kCalls = {samples::null_call(1), samples::write_call(2, pattern(2000)),
                                   samples::read_call(3, kBulk), samples::write_call(4, pattern(kBulk, 9))};

void expect_rpcs(const Lines& lines) {
  for (const char* xid : {"xid=0x1,", "xid=0x2,", "xid=0x3,", "xid=0x4,"}) {
    EXPECT_THAT(with(with(lines, " tx rpc Call("), xid), SizeIs(1)) << xid;
    EXPECT_THAT(with(with(lines, " rpc Reply("), xid), SizeIs(1)) << xid;
  }
  EXPECT_THAT(with(lines, "Malformed"), IsEmpty());
  EXPECT_THAT(with(lines, "undecoded=0, lost=0, bad_crc=0, malformed=0)"), SizeIs(2));
}

TEST_F(RecorderVersions, Version2) {
  const Lines lines = traced({"--rpcrdma-version", "2"}, {"--rpcrdma-version", "2"}, kCalls);
  EXPECT_THAT(with(lines, " rpcrdma RDMA_"), SizeIs(8));
  EXPECT_THAT(with(lines, " rpcrdma RDMA_"), Each(HasSubstr(", vers=2, ")));
  expect_rpcs(lines);
  EXPECT_THAT(log_, HasSubstr(" rpcrdma=2"));
}

TEST_F(RecorderVersions, AServerOfVersion1DeclinesVersion2) {
  const Lines lines = traced({"--rpcrdma-version", "2"}, {}, kCalls);
  const Lines headers = with(lines, " rpcrdma RDMA_");
  ASSERT_THAT(headers, SizeIs(10));
  EXPECT_THAT(headers[0], HasSubstr(" tx rpcrdma RDMA_MSG("));
  EXPECT_THAT(headers[0], HasSubstr(", vers=2, "));
  EXPECT_THAT(headers[1], HasSubstr(" rx rpcrdma RDMA_ERROR("));
  EXPECT_THAT(headers[1], HasSubstr("error=ERR_VERS, low=1, high=1)"));
  const Lines settled(headers.begin() + 2, headers.end());
  EXPECT_THAT(settled, Each(HasSubstr(", vers=1, ")));
  EXPECT_THAT(with(settled, "RDMA_ERROR"), IsEmpty());
  EXPECT_THAT(log_, HasSubstr(" rpcrdma=1"));
}

TEST_F(RecorderVersions, TheDraftOf2005) {
  const Lines lines = traced({"--draft-2005", "--reply-reads"}, {"--draft-2005", "--align", "256"}, kCalls);
  // Before all else, the configuration.
  const Lines rpcs = with(lines, " rpc ");
  ASSERT_THAT(rpcs, Not(IsEmpty()));
  EXPECT_THAT(rpcs[0], HasSubstr(" tx rpc Call("));
  EXPECT_THAT(rpcs[0],
              HasSubstr("prog=CONFIG_RDMA, vers=1, proc=CONF_RDMA, maxcall=4096, maxreply=3968, maxrdmaread=32"));
  EXPECT_THAT(rpcs[1], HasSubstr(" rx rpc Reply("));
  EXPECT_THAT(rpcs[1], HasSubstr("stat=SUCCESS, prog=CONFIG_RDMA, vers=1, maxcall=3968, align=256, maxrdmaread=32"));
  EXPECT_THAT(log_, HasSubstr(" config_rdma=configured call=3968 reply=3968 reads=32 align=256"));
  // Data of 2000 octets in line, aligned.
  EXPECT_THAT(with(with(lines, " tx rpcrdma RDMA_MSGP("), "xid=0x2, vers=1, "), SizeIs(1));
  EXPECT_THAT(with(lines, "RDMA_MSGP("), Each(HasSubstr(", align=256, thresh=1024, reads=[], writes=[], reply=-")));
  // The data of the long Reply as a Read chunk, fetched, and done.
  const Lines offered = with(with(lines, " rx rpcrdma RDMA_MSG("), "xid=0x3, vers=1, ");
  ASSERT_THAT(offered, SizeIs(1));
  EXPECT_THAT(offered[0], HasSubstr("reads=["));
  EXPECT_THAT(offered[0], Not(AnyOf(HasSubstr("reads=[]"), HasSubstr("reads=[0/"))));
  EXPECT_THAT(with(with(lines, " tx rdmap ReadRequest("), "xid=0x3"), Not(IsEmpty()));
  const Lines done = with(lines, " tx rpcrdma RDMA_DONE(");
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_THAT(done[0], HasSubstr("xid=0x3, vers=1, "));
  EXPECT_EQ(field(done, "reply_in"), field(offered, "frame"));
  EXPECT_NE(field(done, "kept_ms"), "");
  // Its head is there before the data are.
  const Lines reply = with(with(lines, " rpc Reply("), "xid=0x3,");
  ASSERT_THAT(reply, SizeIs(1)) << ::testing::PrintToString(with(lines, "xid=0x3,"));
  EXPECT_THAT(reply[0], HasSubstr("status=NFS3_OK"));
  EXPECT_EQ(field(reply, "frame"), field(offered, "frame"));
  expect_rpcs(lines);
}

// One end alone: the other answers as to any program that it does not have, and nothing of the draft follows.
TEST_F(RecorderVersions, TheDraftOf2005WithoutAPeerThatHasIt) {
  server_.on_call = [](TcpPeer& from, const Bytes& call) {
    const auto head = rpcrdma::RpcCall::parse(call).value();
    if (head.program != rpcrdma::kConfigProgram) return from.send(serve(call));
    const auto refusal = rpcrdma::make_error_reply(head.xid, rpcrdma::AcceptStat::kProgUnavail);
    from.send(Bytes(refusal.begin(), refusal.end()));
  };
  const Lines lines = traced({"--draft-2005"}, {}, kCalls);
  const Lines rpcs = with(lines, "CONFIG_RDMA");
  ASSERT_THAT(rpcs, SizeIs(2));
  EXPECT_THAT(rpcs[1], HasSubstr("stat=PROG_UNAVAIL"));
  EXPECT_THAT(with(lines, "RDMA_MSGP("), IsEmpty());
  EXPECT_THAT(with(lines, "RDMA_DONE("), IsEmpty());
  EXPECT_THAT(log_, HasSubstr(" config_rdma=refused"));
  expect_rpcs(lines);
}

}  // namespace
}  // namespace iwarp::gateway::test
