// `iwarp gateway` as a service: a file instead of flags, SIGHUP, and what it tells its manager.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/gateway/rpc_server.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/tools/notify_socket.h"
#include "tests/tools/recording.h"
#include "tests/tools/subprocess.h"

namespace iwarp::gateway::test {
namespace {

namespace samples = rpcrdma::test;
using iwarp::test::Finished;
using iwarp::test::kPatience;
using iwarp::test::NotifySocket;
using iwarp::test::run;
using iwarp::test::Scratch;
using iwarp::test::Subprocess;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

std::string listener(const std::string& name, const std::string& more = {}, const std::string& server = "127.0.0.1:1") {
  return "[[listener]]\nname = '" + name + "'\nrdma-listen = '127.0.0.1:0'\ntcp = '" + server + "'\n" + more;
}

class GatewayAsService : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(file) << text; }
  static std::string port_of(const Subprocess& gateway, const std::string& name) {
    const std::string& out = gateway.output();
    const std::string head = name + ": listening on 127.0.0.1:";
    const auto at = out.rfind(head);
    return at == std::string::npos ? ""
                                   : out.substr(at + head.size(), out.find(' ', at + head.size()) - at - head.size());
  }

  Scratch scratch{"gateway-service"};
  const std::string file = scratch.file("gateway.toml");
};

TEST_F(GatewayAsService, ServesWhatTheFileSays) {
  write(listener("one") + listener("two", "allow = '10.0.0.0/8'\n"));
  Subprocess gateway({"gateway", "--config", file});
  ASSERT_TRUE(gateway.wait_for("listening on", 2)) << gateway.output();
  EXPECT_THAT(gateway.output(), AllOf(HasSubstr("one: listening on 127.0.0.1:"), HasSubstr("two: listening on"),
                                      HasSubstr("allowed: 10.0.0.0/8")));
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

TEST_F(GatewayAsService, FlagsDoNotGoWithAFile) {
  write(listener("one"));
  const Finished f = run({"gateway", "--config", file, "--credits", "8"});
  EXPECT_EQ(f.code, 2);
  EXPECT_THAT(f.output, HasSubstr("--config: does not go with --credits: write it into the file"));
}

TEST_F(GatewayAsService, CountersGoWhereTheFlagSaysWhateverTheFileSays) {
  const std::string stats = scratch.file("stats.json");
  write("[process]\nstats = '" + scratch.file("other.json") + "'\n" + listener("one"));
  Subprocess gateway({"gateway", "--config", file, "--json", stats});
  ASSERT_TRUE(gateway.wait_for("listening on")) << gateway.output();
  write("[process]\nstats = '" + scratch.file("third.json") + "'\n" + listener("one"));
  gateway.signal(SIGHUP);
  ASSERT_TRUE(gateway.wait_for("reloaded")) << gateway.output();
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
  EXPECT_THAT(gateway.output(), Not(HasSubstr("read at the start only")));
  EXPECT_TRUE(std::filesystem::exists(stats));
  EXPECT_FALSE(std::filesystem::exists(scratch.file("other.json")));
  EXPECT_FALSE(std::filesystem::exists(scratch.file("third.json")));
}

TEST_F(GatewayAsService, CheckSaysWhatWouldBeRun) {
  boost::asio::io_context io;
  const tcp::acceptor taken(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  const std::string at = "127.0.0.1:" + std::to_string(taken.local_endpoint().port());
  write("[process]\nmemory = 256\n[[listener]]\nname = 'one'\nrdma-listen = '" + at + "'\ntcp = 'nfs:2049'\n");
  const Finished f = run({"gateway", "--config", file, "--check"});
  EXPECT_EQ(f.code, 0) << f.output;  // it does not bind
  EXPECT_THAT(f.output, AllOf(HasSubstr("256 MiB of registered memory, 1024 connections"),
                              HasSubstr("one: would listen on " + at + " for RPC-over-RDMA, forwarding to nfs:2049")));
  const Finished flags = run({"gateway", "--check", "--rdma-listen", at, "--tcp", "nfs:2049"});
  EXPECT_EQ(flags.code, 0) << flags.output;
  EXPECT_THAT(flags.output, HasSubstr("would listen on " + at));
}

TEST_F(GatewayAsService, AWrongFileIsAnErrorWithItsPlace) {
  write(listener("one", "alow = '10.0.0.0/8'\n"));
  for (const auto& words : {std::vector<std::string>{"gateway", "--config", file, "--check"},
                            std::vector<std::string>{"gateway", "--config", file}}) {
    const Finished f = run(words);
    EXPECT_EQ(f.code, 2);
    EXPECT_THAT(f.output,
                MatchesRegex("iwarp gateway: " + file + ":5:1: unknown key 'alow' in .*, did you mean 'allow'.\n"));
  }
}

// RPCs are under way on a connection whose listener changes, and is removed.
TEST_F(GatewayAsService, AConnectionLivesThroughReloads) {
  Loop loop;
  RpcServer server(loop);
  write(listener("front", "", server.host_port().to_string()));
  Subprocess rdma({"gateway", "--config", file});
  ASSERT_TRUE(rdma.wait_for("listening on")) << rdma.output();
  Subprocess near(
      {"gateway", "--insecure-ports", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:" + port_of(rdma, "front")});
  tcp::socket socket(loop.io);
  socket.connect(
      {boost::asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(std::stoi(near.listening_port()))});
  const auto client = std::make_shared<TcpPeer>(std::move(socket));
  client->start();
  std::uint32_t xid = 0;
  const auto ask = [&] { client->send(samples::null_call(++xid)); };
  const auto expect_answer = [&] {
    ASSERT_TRUE(loop.until([&] { return !client->inbox.empty() || client->ended(); }, kPatience));
    ASSERT_FALSE(client->inbox.empty()) << "the connection ended" << rdma.output();
    EXPECT_EQ(client->inbox.front(), samples::rpc_reply(xid));
    client->inbox.pop_front();
  };
  ask();
  expect_answer();
  TcpPeer* held = nullptr;
  const auto hold = [&] {
    held = nullptr;
    server.on_call = [&](TcpPeer& peer, const Bytes&) { held = &peer; };
    ask();
    ASSERT_TRUE(loop.until([&] { return held != nullptr; }, kPatience));
    server.on_call = nullptr;
  };
  const auto reload = [&](const std::string& text, const std::string& line) {
    write(text);
    rdma.signal(SIGHUP);
    ASSERT_TRUE(rdma.wait_for(line)) << rdma.output();
  };
  hold();
  reload(listener("front", "credits = 8\nallow = '192.0.2.1'\n", server.host_port().to_string()),
         "reloaded: 0 added, 0 removed, 1 changed");
  held->send(samples::rpc_reply(xid));
  expect_answer();
  hold();
  reload(listener("other"), "reloaded: 1 added, 1 removed, 0 changed");
  ASSERT_TRUE(rdma.wait_for("other: listening on")) << rdma.output();
  held->send(samples::rpc_reply(xid));
  expect_answer();
  ask();
  expect_answer();
  client->close();
  for (Subprocess* gateway : {&near, &rdma}) {
    gateway->signal(SIGTERM);
    EXPECT_EQ(gateway->wait(), 0) << gateway->output();
  }
  server.shut_down();
}

TEST_F(GatewayAsService, AWrongFileChangesNothing) {
  write(listener("one"));
  Subprocess gateway({"gateway", "--config", file});
  ASSERT_TRUE(gateway.wait_for("listening on")) << gateway.output();
  write(listener("one") + listener("two", "credits = 1000\n"));
  gateway.signal(SIGHUP);
  ASSERT_TRUE(gateway.wait_for("not reloaded: everything stays as it was")) << gateway.output();
  EXPECT_THAT(gateway.output(), HasSubstr("error " + file + ":9:11: credits: '1000' is not a number from 1 to 96"));
  EXPECT_THAT(gateway.output(), Not(HasSubstr("two: listening")));
  std::remove(file.c_str());
  gateway.signal(SIGHUP);
  ASSERT_TRUE(gateway.wait_for("cannot be read: No such file")) << gateway.output();
  write("[process]\nstats = '-'\n" + listener("one") + listener("two"));
  gateway.signal(SIGHUP);
  ASSERT_TRUE(gateway.wait_for("reloaded: 1 added, 0 removed, 0 changed")) << gateway.output();
  EXPECT_TRUE(gateway.wait_for("are read at the start only")) << gateway.output();
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

TEST_F(GatewayAsService, TellsItsManager) {
  NotifySocket socket("@iwarp-test-gateway-" + std::to_string(::getpid()));
  ASSERT_TRUE(socket.bound());
  write(listener("one"));
  Subprocess gateway("/usr/bin/env", {"NOTIFY_SOCKET=" + socket.name(), "WATCHDOG_USEC=100000", IWARP_COMMAND,
                                      "gateway", "--config", file});
  EXPECT_EQ(socket.next_news(), "READY=1\nSTATUS=1 listener\n");
  gateway.read_pending();
  EXPECT_THAT(socket.next(), HasSubstr("WATCHDOG=1"));
  EXPECT_THAT(socket.next(), HasSubstr("WATCHDOG=1"));
  write(listener("one") + listener("two"));
  gateway.signal(SIGHUP);
  EXPECT_THAT(socket.next_news(), MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+\n"));
  EXPECT_EQ(socket.next_news(), "READY=1\nSTATUS=2 listeners\n");
  write("nothing = 1\n");
  gateway.signal(SIGHUP);
  EXPECT_THAT(socket.next_news(), HasSubstr("RELOADING=1"));
  EXPECT_THAT(socket.next_news(), HasSubstr("STATUS=reload failed, everything stays as it was: "));
  gateway.signal(SIGTERM);
  EXPECT_THAT(socket.next_news(), HasSubstr("STOPPING=1"));
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

TEST_F(GatewayAsService, TellsItsManagerNothingWhenItCannotListen) {
  NotifySocket socket("@iwarp-test-gateway-" + std::to_string(::getpid()));
  boost::asio::io_context io;
  const tcp::acceptor taken(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  write(listener("one") + "[[listener]]\nname = 'two'\ntcp = '127.0.0.1:1'\nrdma-listen = '127.0.0.1:" +
        std::to_string(taken.local_endpoint().port()) + "'\n");
  Subprocess gateway("/usr/bin/env", {"NOTIFY_SOCKET=" + socket.name(), IWARP_COMMAND, "gateway", "--config", file});
  EXPECT_EQ(gateway.wait(), 1);
  EXPECT_THAT(gateway.output(), HasSubstr("two: cannot listen on 127.0.0.1:"));
  EXPECT_THAT(socket.next(std::chrono::milliseconds(0)), IsEmpty());
}

TEST_F(GatewayAsService, OutputFilesAreOpenedAtTheStart) {
  for (const char* flag : {"--stats", "--trace", "--pcap"}) {
    const Finished f = run(
        {"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", flag, scratch.file("no/such/directory")});
    EXPECT_EQ(f.code, 1) << flag;
    EXPECT_THAT(f.output, HasSubstr("cannot write " + scratch.file("no/such/directory"))) << flag;
  }
  const Finished f = run({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--stats", "/tmp"});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("/tmp: it is a directory"));
}

TEST_F(GatewayAsService, WarnsOfServersThatAreNotThere) {
  write(listener("one") + listener("two", "", "nowhere.invalid:2049"));
  Subprocess gateway({"gateway", "--config", file});
  EXPECT_TRUE(
      gateway.wait_for("one: the server 127.0.0.1:1 is not ready: it cannot be connected to: Connection refused"))
      << gateway.output();
  EXPECT_TRUE(gateway.wait_for("two: the server nowhere.invalid:2049 is not ready: its name cannot be looked up: ", 1,
                               2 * kPatience))
      << gateway.output();
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
}

// A gateway that ends while a Call is at the server: the next one has the client's port from the file.
TEST_F(GatewayAsService, TheSourcePortOfAClientOutlivesTheGateway) {
  Loop loop;
  RpcServer server(loop);
  server.on_call = [](TcpPeer&, const Bytes&) {};  // no answer
  std::vector<std::uint16_t> ports;
  for (int life = 0; life < 2; ++life) {
    Subprocess rdma({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", server.host_port().to_string(), "--state-dir",
                     scratch.file("")});
    Subprocess near(
        {"gateway", "--insecure-ports", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:" + rdma.listening_port()});
    tcp::socket socket(loop.io);
    socket.connect(
        {boost::asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(std::stoi(near.listening_port()))});
    const auto client = std::make_shared<TcpPeer>(std::move(socket));
    client->start();
    const std::size_t before = server.calls.size();
    client->send(samples::null_call(1));
    std::uint16_t port = 0;
    server.on_call = [&port](TcpPeer& peer, const Bytes&) { port = peer.remote().port(); };
    ASSERT_TRUE(loop.until([&] { return server.calls.size() > before && port != 0; }, kPatience)) << rdma.output();
    ports.push_back(port);
    rdma.signal(SIGTERM);
    ASSERT_TRUE(rdma.wait_for("shutting down")) << rdma.output();
    rdma.signal(SIGTERM);
    EXPECT_EQ(rdma.wait(), 0) << rdma.output();
    server.on_call = nullptr;
    client->close();
    loop.run_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(ports.at(0), ports.at(1));
  server.shut_down();
}

TEST_F(GatewayAsService, ADamagedStateIsToldOfAndADirectoryThatIsNotThereIsAnError) {
  std::ofstream(scratch.file("ports")) << "nonsense";
  write("[process]\nstate-dir = '" + scratch.file("") + "'\n" + listener("one"));
  Subprocess gateway({"gateway", "--config", file});
  ASSERT_TRUE(gateway.wait_for("listening on")) << gateway.output();
  EXPECT_THAT(gateway.output(), HasSubstr("source ports of before are not known: "));
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0) << gateway.output();
  const Finished f =
      run({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--state-dir", scratch.file("none")});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("see --state-dir"));
}

}  // namespace
}  // namespace iwarp::gateway::test
