// `iwarp rping` against itself over loopback.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "iwarp/base/wire.h"
#include "tests/cm/node.h"
#include "tests/faults/process_facts.h"
#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

Words client(const std::string& port, Words more, const std::string& host = "127.0.0.1") {
  Words w{"rping", "-c", "-a", host, "-p", port};
  w.insert(w.end(), more.begin(), more.end());
  return w;
}

// An advertisement of node.in as rping sends it, at an offset of node.out.
constexpr std::size_t kInfo = 16;
void advertise(Node& node, std::uint32_t size, std::size_t at = 0) {
  FixedWriter<kInfo> w{std::span<std::byte, kInfo>(node.out.data() + at, kInfo)};
  w.be<0>(node.in_mr.to_of(node.in.data()));
  w.be<8>(raw(node.in_mr.stag()));
  w.be<12>(size);
}

TEST(Rping, PingsAndSaysWhatWasNegotiatedAndMoved) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "-V"});
  const Finished f = run(client(server.listening_port(), {"-C", "3", "-V", "-v"}));
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, HasSubstr("established local="));
  EXPECT_THAT(f.output, HasSubstr("role=initiator rev=2 enhanced=1 crc=1 p2p=1"));
  EXPECT_THAT(f.output, HasSubstr("ping data: rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr"));
  EXPECT_THAT(f.output, HasSubstr("ping data: rdma-ping-2: C"));
  EXPECT_THAT(f.output, HasSubstr("end=\"done\" rx_write=3/192 rx_read=3/192 tx_send=6/96 rx_send=6/96"));
  EXPECT_EQ(server.wait(), 0) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("role=responder"));
  EXPECT_THAT(server.output(), HasSubstr("end=\"client closed\" tx_write="));
}

// Like rdma-core's server: the client ends the connection.
TEST(Rping, ServerLeavesTheCountToTheClient) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "-C", "2", "-v"});
  const Finished f = run(client(server.listening_port(), {"-C", "5"}));
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_EQ(server.wait(), 0) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("server ping data: rdma-ping-4: "));
  EXPECT_THAT(server.output(), HasSubstr("end=\"client closed\" tx_write="));
}

// A server that stops in the middle.
TEST(Rping, ClientGivesUpOnAServerThatDoesNotAnswer) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "-v"});
  Subprocess pinging(client(server.listening_port(), {"--timeout", "1"}));
  ASSERT_TRUE(server.wait_for("rdma-ping-10: "));
  server.signal(SIGSTOP);
  EXPECT_EQ(pinging.wait(), 1);
  EXPECT_THAT(pinging.output(), HasSubstr("nothing from the server within 1 s (--timeout)"));
  server.signal(SIGCONT);
  EXPECT_NE(server.wait(), -1);
}

// Or 256 of them would keep all others out for ever.
TEST(Rping, ServerGivesUpOnAClientThatIsSilent) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "-v", "--timeout", "3"});
  Subprocess pinging(client(server.listening_port(), {}));
  ASSERT_TRUE(server.wait_for("rdma-ping-10: "));
  pinging.signal(SIGSTOP);
  EXPECT_EQ(server.wait(), 1);
  EXPECT_THAT(server.output(), HasSubstr("nothing from the client within 3 s (--timeout)"));
  pinging.signal(SIGCONT);
  EXPECT_EQ(pinging.wait(), 1);
}

// A second message, which promises more than there is room for, and a third one, while the server still reads what the
// first one promised.
TEST(Rping, ServerEndsWhenMessagesComeOutOfTurn) {
  for (const Words& flags : {Words{"-V"}, Words{"-V", "-v"}}) {
    Words words{"rping", "-s", "-a", "127.0.0.1", "-p", "0", "--trace", "-"};
    words.insert(words.end(), flags.begin(), flags.end());
    Subprocess server(words);
    const auto port = static_cast<std::uint16_t>(std::stoi(server.listening_port()));
    cm::Engine engine(cm::Engine::Mode::kManual);  // nobody answers the server's Read
    Node node(engine);
    Connecting connecting = start_connect(node, to_port(port));
    ASSERT_TRUE(engine.wait_for(connecting, kPatience));
    const Outcome outcome = get_outcome(std::move(connecting));
    ASSERT_EQ(outcome.error.code, Errc::kOk) << outcome.error.why;
    advertise(node, 64);
    advertise(node, 0xFFFFFFFFU, kInfo);
    node.send(1, kInfo);
    ASSERT_TRUE(server.wait_for("tx rdmap ReadRequest(")) << server.output();  // two Receives are posted again
    node.send(2, kInfo, kInfo);
    node.send(3, kInfo, kInfo);
    EXPECT_TRUE(server.wait_for("out of turn")) << server.output();
    EXPECT_TRUE(eventually([&] {
      engine.poll();
      return outcome.connection->disconnected().has_value();
    }));
    EXPECT_EQ(server.wait(), 1) << server.output();
  }
}

// A good iteration, then a message that is none of rping's, from a client that stays.
TEST(Rping, ServerEndsAndFailsWhenALaterMessageIsMalformed) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  cm::Engine engine;
  Node node(engine);
  for (const std::size_t id : {1U, 2U}) node.recv(id, node.in.size() - id * kInfo, kInfo);
  const auto port = static_cast<std::uint16_t>(std::stoi(server.listening_port()));
  const Outcome outcome = get_outcome(start_connect(node, to_port(port)));
  ASSERT_EQ(outcome.error.code, Errc::kOk) << outcome.error.why;
  advertise(node, 64);
  for (const std::uint64_t step : {1U, 2U}) {
    node.send(step, kInfo);
    node.expect(verbs::WcOp::kSend, step);
    node.expect(verbs::WcOp::kRecv, step);
  }
  node.send(3, 8);
  EXPECT_EQ(server.wait(), 1) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("a message of 8 octets"));
}

class RpingSize : public ::testing::TestWithParam<const char*> {};

TEST_P(RpingSize, Validates) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "-V"});
  const Finished f = run(client(server.listening_port(), {"-C", "5", "-V", "-S", GetParam()}));
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_EQ(server.wait(), 0) << server.output();
}

INSTANTIATE_TEST_SUITE_P(Octets, RpingSize, ::testing::Values("26", "64", "1000", "4096", "65535"));

TEST(Rping, EveryPolicy) {
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--crc", "prefer-off"});
  const std::string port = server.listening_port();
  for (const Words& policy :
       {Words{"--crc", "prefer-off"}, Words{"--crc", "off"}, Words{"--mpa-rev", "1"}, Words{"--no-p2p"},
        Words{"--rtr", "write"}, Words{"--rtr", "read"}, Words{"--fpdu", "max", "--crc", "off"}, Words{"--fpdu", "16k"},
        Words{"--markers", "ask"}}) {
    Words more{"-C", "3", "-V", "-S", "60000"};
    more.insert(more.end(), policy.begin(), policy.end());
    const Finished f = run(client(port, more));
    EXPECT_EQ(f.code, 0) << ::testing::PrintToString(policy) << '\n' << f.output;
  }
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 130);
}

TEST(Rping, RtrBySendIsForTwoThatKnowIt) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "--rtr", "send"});
  const Finished f = run(client(server.listening_port(), {"-C", "3", "-V", "--rtr", "write,send"}));
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_EQ(server.wait(), 0) << server.output();

  Subprocess usual({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"});
  const Finished refused = run(client(usual.listening_port(), {"-C", "3", "--rtr", "send"}));
  EXPECT_NE(refused.code, 0) << refused.output;
  EXPECT_NE(refused.output.find("no matching RTR option"), std::string::npos) << refused.output;
  usual.signal(SIGINT);
  EXPECT_EQ(usual.wait(), 130);
}

TEST(Rping, Ipv6AndDualStack) {
  const int probe = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has_ipv6 = ::bind(probe, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
  ::close(probe);
  if (!has_ipv6) GTEST_SKIP() << "this host has no ::1";
  Subprocess server({"rping", "-s", "-P", "-a", "::", "-p", "0"});
  const std::string port = server.listening_port();
  for (const char* host : {"::1", "127.0.0.1", "localhost"}) {
    const Finished f = run(client(port, {"-C", "2", "-V"}, host));
    EXPECT_EQ(f.code, 0) << host << '\n' << f.output;
  }
}

TEST(Rping, ManyClientsAtATime) {
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"});
  const std::string port = server.listening_port();
  std::vector<std::unique_ptr<Subprocess>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<Subprocess>(client(port, {"-C", "50", "-V"})));
  for (const auto& c : clients) EXPECT_EQ(c->wait(), 0) << c->output();
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 130);
}

TEST(Rping, InterruptOfTheClientEndsBoth) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  Subprocess endless(client(server.listening_port(), {}));
  ASSERT_TRUE(endless.wait_for("established")) << endless.output();
  ASSERT_TRUE(server.wait_for("established")) << server.output();
  endless.signal(SIGINT);
  EXPECT_EQ(endless.wait(), 130) << endless.output();
  EXPECT_GE(server.wait(), 0) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("closed peer="));
}

TEST(Rping, InterruptOfTheServerEndsBoth) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  Subprocess endless(client(server.listening_port(), {}));
  ASSERT_TRUE(endless.wait_for("established")) << endless.output();
  ASSERT_TRUE(server.wait_for("established")) << server.output();
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 130) << server.output();
  EXPECT_EQ(endless.wait(), 1) << endless.output();
  EXPECT_THAT(endless.output(), HasSubstr("end=\"connection lost\""));
}

// Neither while nobody comes, nor while a client says nothing.
TEST(Rping, IdleServerSleeps) {
  if (faults::kSanitized) GTEST_SKIP() << "a sanitizer may have a thread of its own";
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"});
  const std::string port = server.listening_port();
  const auto wake_ups = [&] {
    std::this_thread::sleep_for(300ms);  // what went before comes to rest
    const std::uint64_t before = faults::sleeps(server.pid());
    std::this_thread::sleep_for(1500ms);
    return faults::sleeps(server.pid()) - before;
  };
  EXPECT_EQ(wake_ups(), 0U);
  Subprocess silent(client(port, {}));
  ASSERT_TRUE(server.wait_for("established")) << server.output();
  silent.signal(SIGSTOP);
  EXPECT_LE(wake_ups(), 2U) << "now and then something ends, once";
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 130) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("closed peer="));
}

TEST(Rping, InterruptOfAnIdleServer) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  ASSERT_TRUE(server.wait_for("listening on"));
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 130) << server.output();
}

// A peer that takes the TCP connection and never says a word.
TEST(Rping, InterruptWhileConnecting) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(::bind(silent, reinterpret_cast<const sockaddr*>(&at), size), 0);
  ASSERT_EQ(::listen(silent, 4), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&at), &size), 0);
  Subprocess waiting(client(std::to_string(ntohs(at.sin_port)), {}));
  const int taken = ::accept(silent, nullptr, nullptr);
  waiting.signal(SIGINT);
  EXPECT_EQ(waiting.wait(), 130) << waiting.output();
  ::close(taken);
  ::close(silent);
}

TEST(Rping, NobodyListens) {
  const Finished f = run(client("1", {"-C", "1"}));
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("Connection refused: nothing listens there"));
  EXPECT_THAT(f.output, HasSubstr("peer=127.0.0.1:1"));
}

TEST(Rping, HostDoesNotExist) {
  const Finished f = run(client("7174", {"-C", "1"}, "does-not-exist.invalid"));
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("cannot resolve the host name"));
}

TEST(Rping, AddressesOfIpv6AreBracketed) {
  const Finished f = run(client("1", {"-C", "1"}, "::1"));
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("peer=[::1]:1: "));
}

TEST(Rping, PortInUse) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0"});
  const Finished f = run({"rping", "-s", "-a", "127.0.0.1", "-p", server.listening_port()});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("Address already in use"));
}

TEST(Rping, ClientPingsWithMoreThanTheServerTakes) {
  Subprocess server({"rping", "-s", "-a", "127.0.0.1", "-p", "0", "-S", "64"});
  const Finished f = run(client(server.listening_port(), {"-C", "1", "-S", "100"}));
  EXPECT_EQ(f.code, 1) << f.output;
  EXPECT_EQ(server.wait(), 1);
  EXPECT_THAT(server.output(), HasSubstr("start it with -S 100"));
}

TEST(Rping, CrcOffRefusesAPeerThatWantsIt) {
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--crc", "on"});
  const Finished f = run(client(server.listening_port(), {"-C", "1", "--crc", "off"}));
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("reason=crc_refused"));
}

}  // namespace
}  // namespace iwarp::test
