// How `iwarp rping` ends and what it says then; and flags that rdma-core's rping has.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

Words client(const std::string& port, const Words& more) {
  Words w{"rping", "-c", "-a", "127.0.0.1", "-p", port};
  w.insert(w.end(), more.begin(), more.end());
  return w;
}

// The last JSON document, or the last line that is one, of an output that has log lines as well.
json json_in(const std::string& output) {
  const std::size_t at = output.find("{\n");
  return json::parse(output.substr(at, output.rfind("\n}") + 2 - at));
}

// Answers so many pings as rping does, but for the data, and closes.
void serve(Node& node, cm::Listener& listener, int pings) {
  constexpr std::size_t kInfo = 16;
  for (const std::size_t id : {1U, 2U}) node.recv(id, node.in.size() - id * kInfo, kInfo);
  const auto request = next_request(listener);
  std::promise<Outcome> accepted;
  request->accept(node.qp, {}, [&](const Error& e, std::shared_ptr<cm::Connection> c) {
    accepted.set_value({e, std::move(c)});
  });
  const Outcome outcome = get(accepted.get_future());
  ASSERT_EQ(outcome.error.code, Errc::kOk);
  for (int i = 0; i < 2 * pings; ++i) {
    verbs::Completion c = node.next();
    if (c.op == verbs::WcOp::kSend) c = node.next();
    ASSERT_EQ(c.op, verbs::WcOp::kRecv);
    node.recv(c.wr_id, node.in.size() - c.wr_id * kInfo, kInfo);
    node.send(7, kInfo);
  }
  outcome.connection->disconnect();
  (void)ending(*outcome.connection);
}

TEST(RpingEnd, ServerThatClosesEarlyIsAnErrorWithACause) {
  for (const auto& [count, says] : {std::pair{"10", "the server closed the connection after 3 of 10 pings"},
                                    {"0", "the server closed the connection after 3 pings"}}) {
    cm::Engine engine;
    Node node(engine);
    const auto listener = listen(engine);
    Subprocess pinging(client(std::to_string(listener->local().port()), {"-C", count, "--json"}));
    serve(node, *listener, 3);
    EXPECT_EQ(pinging.wait(), 1) << pinging.output();
    EXPECT_THAT(pinging.output(), HasSubstr(says));
    const json j = json_in(pinging.output());
    EXPECT_EQ(j["pings"], 3);
    EXPECT_EQ(j["end"], "peer_closed");
    EXPECT_THAT(j["error"], HasSubstr(says));
  }
}

TEST(RpingEnd, ServerThatIsInterruptedIsNamed) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  Subprocess endless(client(server.listening_port(), {"-v"}));
  ASSERT_TRUE(endless.wait_for("ping data: rdma-ping-10:"));
  server.signal(SIGINT);
  EXPECT_EQ(endless.wait(), 1) << endless.output();
  EXPECT_THAT(endless.output(), HasSubstr("the connection to the server was lost after "));
  EXPECT_THAT(endless.output(), HasSubstr(" pings of 64 octets, RTT min "));
  EXPECT_EQ(server.wait(), 130) << server.output();
  EXPECT_THAT(server.output(), HasSubstr(" pings answered"));
}

TEST(RpingEnd, InterruptedClientSaysHowLongItsPingsTook) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  Subprocess endless(client(server.listening_port(), {"-v"}));
  ASSERT_TRUE(endless.wait_for("ping data: rdma-ping-10:"));
  endless.signal(SIGINT);
  EXPECT_EQ(endless.wait(), 130) << endless.output();
  EXPECT_THAT(endless.output(), HasSubstr(" pings of 64 octets, RTT min "));
  EXPECT_EQ(server.wait(), 0) << "a client that leaves is no error\n" << server.output();
}

TEST(RpingEnd, ClientThatIsKilledIsNoErrorOfTheServer) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  Subprocess endless(client(server.listening_port(), {"-v"}));
  ASSERT_TRUE(endless.wait_for("ping data: rdma-ping-10:"));
  endless.signal(SIGKILL);
  EXPECT_EQ(server.wait(), 0) << server.output();
  EXPECT_THAT(server.output(), Not(HasSubstr("error")));
}

// A client that connects, and leaves without a word.
TEST(RpingEnd, ClientWithoutAPingIsNoErrorOfTheServer) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  cm::Engine engine;
  Node node(engine);
  const auto port = static_cast<std::uint16_t>(std::stoi(server.listening_port()));
  const Outcome outcome = get_outcome(start_connect(node, to_port(port)));
  ASSERT_EQ(outcome.error.code, Errc::kOk) << outcome.error.why;
  outcome.connection->disconnect();
  EXPECT_EQ(server.wait(), 0) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("0 pings answered"));
}

// A listener that takes the TCP connection and never answers the MPA Request.
TEST(RpingEnd, TimeoutCoversTheSetUpOfTheConnection) {
  const RawListener silent;
  const Finished f = run(client(std::to_string(silent.port()), {"-C", "1", "--timeout", "1"}));
  EXPECT_EQ(f.code, 1) << f.output;
  EXPECT_THAT(f.output, HasSubstr("reason=startup_timeout"));
}

TEST(RpingEnd, TimeoutMayBeLongerThanTheUsualOneOfTheSetUp) {
  const RawListener silent;
  Subprocess waiting(client(std::to_string(silent.port()), {"-C", "1", "--timeout", "0"}));
  EXPECT_FALSE(waiting.wait_for("startup_timeout", 1, 6500ms)) << "usually 5 s\n" << waiting.output();
  waiting.signal(SIGINT);
  EXPECT_EQ(waiting.wait(), 130) << waiting.output();
}

TEST(RpingFlags, SourceAddress) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  const Finished f = run(client(server.listening_port(), {"-C", "1", "-I", "127.0.0.7"}));
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_EQ(server.wait(), 0);
  EXPECT_THAT(server.output(), HasSubstr("peer=127.0.0.7:"));
}

TEST(RpingFlags, SourceAddressThatIsNotOfThisHost) {
  const Finished f = run(client("1", {"-C", "1", "-I", "192.0.2.1"}));
  EXPECT_EQ(f.code, 1) << f.output;
  EXPECT_THAT(f.output, HasSubstr("local address"));
}

TEST(RpingFlags, DebugSaysEachStepAndQueuePairsAreMadeAsEver) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "-d", "-q"});
  const Finished f = run(client(server.listening_port(), {"-C", "2", "-d", "-q"}));
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, HasSubstr("sends an advertisement: 64 octets at 0x"));
  EXPECT_THAT(f.output, HasSubstr("ping 1: RTT "));
  EXPECT_EQ(server.wait(), 0) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("sends a go-ahead"));
}

TEST(RpingFlags, PingDataIsAllThatGoesToStandardOutput) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  const Finished f = shell(std::string(IWARP_COMMAND) + " rping -c -a 127.0.0.1 -v -V -C 2 -p " +
                           server.listening_port() + " 2>/dev/null");
  EXPECT_EQ(f.code, 0);
  EXPECT_EQ(f.output,
            "ping data: rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\n"
            "ping data: rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrs\n");
}

TEST(RpingFlags, StandardOutputThatIsFullIsAnError) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  const Finished f = shell(std::string(IWARP_COMMAND) + " rping -c -a 127.0.0.1 -v -p " + server.listening_port() +
                           " 2>&1 >/dev/full");
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("cannot write standard output: No space left on device"));
}

// Ctrl-C in `iwarp rping -c -v | less`, for one.
TEST(RpingFlags, ReaderThatDoesNotReadHoldsUpNoInterruption) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  Subprocess one(client(server.listening_port(), {"-v"}));
  ASSERT_TRUE(one.wait_for("rdma-ping-0: "));
  const int pipe = open(("/proc/" + std::to_string(one.pid()) + "/fd/1").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  const auto held = [&] {
    int octets = 0;
    return ioctl(pipe, FIONREAD, &octets) == 0 ? octets : -1;
  };
  // Each page of it may have no room for one more line.
  const int full = fcntl(pipe, F_GETPIPE_SZ) * 9 / 10;
  int before = -1;
  ASSERT_TRUE(eventually([&] { return std::exchange(before, held()) == held() && before >= full; })) << before;
  one.signal(SIGINT);
  EXPECT_EQ(one.wait(), 130);
  EXPECT_THAT(one.output(), Not(HasSubstr("standard output")));
  close(pipe);
}

TEST(RpingJson, OfAClient) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  const Finished f = shell(std::string(IWARP_COMMAND) + " rping -c -a 127.0.0.1 -v -C 4 -S 100 --json -p " +
                           server.listening_port() + " 2>/dev/null");
  EXPECT_EQ(f.code, 0);
  const json j = json::parse(f.output);
  EXPECT_EQ(j["iwarp"]["command"], "rping");
  EXPECT_EQ(j["role"], "client");
  EXPECT_EQ(j["pings"], 4);
  EXPECT_EQ(j["wanted"], 4);
  EXPECT_EQ(j["size"], 100);
  EXPECT_LE(j["rtt_us"]["min"], j["rtt_us"]["avg"]);
  EXPECT_LE(j["rtt_us"]["avg"], j["rtt_us"]["max"]);
  EXPECT_EQ(j["connection"]["revision"], 2);
  EXPECT_TRUE(j["error"].is_null());
}

TEST(RpingJson, OfAServerHasALineForEachClient) {
  const std::string file = ::testing::TempDir() + "rping-" + std::to_string(::getpid()) + ".json";
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--json", file});
  const std::string port = server.listening_port();
  for (const char* count : {"2", "5"}) {
    const Finished f = run(client(port, {"-C", count}));
    ASSERT_EQ(f.code, 0) << f.output;
  }
  ASSERT_TRUE(server.wait_for(" pings answered", 2)) << server.output();
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 130) << server.output();
  std::ifstream in(file);
  std::vector<json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  std::remove(file.c_str());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["iwarp"]["command"], "rping");
  EXPECT_EQ(lines[1]["role"], "server");
  EXPECT_EQ(lines[1]["pings"].get<int>() + lines[2]["pings"].get<int>(), 7);
}

TEST(RpingJson, OfAConnectionThatFails) {
  const Finished f = run(client("1", {"-C", "1", "--json"}));
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(json_in(f.output)["error"], HasSubstr("Connection refused"));
  const Finished full = run(client("1", {"-C", "1", "--json=/nonexistent/x.json"}));
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.output, HasSubstr("cannot write /nonexistent/x.json: No such file or directory"));
}

}  // namespace
}  // namespace iwarp::test
