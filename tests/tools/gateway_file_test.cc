// The configuration file of `iwarp gateway`: what it may say, and what is said about it when it is wrong.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/tools/recording.h"
#include "tests/tools/subprocess.h"
#include "tools/command.h"
#include "tools/gateway_config.h"
#include "tools/nearest_key.h"

namespace iwarp::test {
namespace {

using gateway::Direction;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using tools::read_gateway_config;
using tools::ReadConfig;

const std::string kListener = "[[listener]]\nname = 'a'\nrdma-listen = '127.0.0.1:0'\ntcp = '127.0.0.1:2049'\n";

class GatewayFile : public ::testing::Test {
 protected:
  ReadConfig read(const std::string& text) {
    std::ofstream(scratch.file("gateway.toml")) << text;
    ReadConfig out = read_gateway_config(scratch.file("gateway.toml"));
    const std::string prefix = scratch.file("gateway.toml") + ":";
    for (std::string& error : out.errors) {
      EXPECT_EQ(error.rfind(prefix, 0), 0u) << error;
      error.erase(0, prefix.size());
    }
    EXPECT_EQ(out.config.has_value(), out.errors.empty());
    return out;
  }

  Scratch scratch{"gateway-file"};
};

TEST_F(GatewayFile, HasListenersWithSettingsOfTheirOwn) {
  const ReadConfig r = read(R"(
[process]
memory = 512
drain = 3
workers = 3
max-connections = 77
log-level = "warning"

[[listener]]
name = "nfs"
rdma-listen = "127.0.0.1:20049"
tcp = "127.0.0.1:2049"
allow = ["10.0.0.0/8", "fd00::/8"]
credits = 16
crc = "prefer-off"
markers = "ask"
pnfs = "on"

[[listener]]
name = "far"
tcp-listen = "[::1]:2050"
rdma = "server.example:20049"
insecure-ports = true
no-wake = false
max-connections = 5
allow = "192.0.2.0/24"
)");
  ASSERT_THAT(r.errors, IsEmpty());
  const auto& s = r.config->service;
  EXPECT_EQ(s.process.memory_bytes, std::size_t{512} << 20);
  EXPECT_EQ(s.process.drain_timeout, std::chrono::seconds(3));
  EXPECT_EQ(s.process.max_connections, 77u);
  EXPECT_EQ(s.process.workers, 3u);
  EXPECT_EQ(r.config->process.log_level, "warning");
  ASSERT_THAT(s.listeners, SizeIs(2));
  EXPECT_EQ(s.listeners[0].name, "nfs");
  EXPECT_EQ(s.listeners[0].direction, Direction::kRdmaToTcp);
  EXPECT_EQ(s.listeners[0].options.allow.to_string(), "10.0.0.0/8,fd00::/8");
  EXPECT_EQ(s.listeners[0].options.credits, 16u);
  EXPECT_EQ(s.listeners[0].options.policy.crc, mpa::Policy::Crc::kPreferOff);
  EXPECT_EQ(s.listeners[0].options.policy.markers, mpa::Policy::Markers::kAsk);
  EXPECT_TRUE(s.listeners[0].options.pnfs);
  EXPECT_EQ(s.listeners[0].options.max_connections, 77u);  // as the process says
  EXPECT_EQ(s.listeners[1].direction, Direction::kTcpToRdma);
  EXPECT_EQ(s.listeners[1].server.to_string(), "server.example:20049");
  EXPECT_EQ(s.listeners[1].listen.port(), 2050);
  EXPECT_TRUE(s.listeners[1].options.insecure_ports);
  EXPECT_TRUE(s.listeners[1].options.stream.early_wake);
  EXPECT_EQ(s.listeners[1].options.credits, 64u);
  EXPECT_EQ(s.listeners[1].options.max_connections, 5u);
  EXPECT_EQ(s.listeners[1].options.policy.crc, mpa::Policy::Crc::kOn);
}

TEST_F(GatewayFile, HasAProfileForEachListenerThatOtherKeysWinOver) {
  const ReadConfig r = read(R"(
[[listener]]
name = "server-with-irdma"
tcp-listen = "127.0.0.1:0"
rdma = "10.0.0.1:20049"
profile = "linux-irdma"

[[listener]]
name = "server-with-cxgb4"
tcp-listen = "127.0.0.1:0"
rdma = "10.0.0.2:20049"
rtr = ["write", "read"]
wake = true
profile = "linux-cxgb4"

[[listener]]
name = "any-server"
tcp-listen = "127.0.0.1:0"
rdma = "10.0.0.3:20049"
)");
  ASSERT_THAT(r.errors, IsEmpty());
  const auto& listeners = r.config->service.listeners;
  EXPECT_TRUE(listeners[0].options.policy.peer_to_peer) << "at once";
  EXPECT_TRUE(listeners[0].options.policy.rtr_write);
  EXPECT_FALSE(listeners[0].options.stream.early_wake);
  EXPECT_TRUE(listeners[1].options.policy.peer_to_peer);
  EXPECT_TRUE(listeners[1].options.policy.rtr_write) << "as its key says";
  EXPECT_TRUE(listeners[1].options.stream.early_wake) << "as its key says";
  EXPECT_FALSE(listeners[1].options.policy.allow_revision_1_fallback);
  EXPECT_EQ(listeners[2].options.policy, gateway::Options{}.policy) << "the gateway's own";
  EXPECT_EQ(listeners[2].options.stream, gateway::Options{}.stream);
}

struct Wrong {
  const char* name;
  std::string text;
  const char* says;  // with line and column
};

class WrongGatewayFile : public GatewayFile, public ::testing::WithParamInterface<Wrong> {};

TEST_P(WrongGatewayFile, SaysWhereAndWhatWouldBeRight) {
  EXPECT_THAT(read(GetParam().text).errors, Contains(HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    Files, WrongGatewayFile,
    ::testing::Values(
        Wrong{"NoToml", "[process\n", "1:9: "}, Wrong{"Empty", "", "1:1: there is no [[listener]]"},
        Wrong{"UnknownKey", kListener + "alow = '10.0.0.0/8'\n",
              "5:1: unknown key 'alow' in [[listener]], did you mean 'allow'?"},
        Wrong{"UnknownKeyFarFromAny", kListener + "colour = 'red'\n", "5:1: unknown key 'colour' in [[listener]]"},
        Wrong{"UnknownTable", kListener + "[proces]\n", "5:2: unknown key 'proces': write [process] or [[listener]]"},
        Wrong{"KeyOfTheProcess", kListener + "memory = 64\n", "5:1: unknown key 'memory' in [[listener]]"},
        Wrong{"KeyOfAListener", "[process]\ncredits = 3\n" + kListener, "2:1: unknown key 'credits' in [process]"},
        Wrong{"KeyOfNoTable", "credits = 3\n" + kListener, "1:1: unknown key 'credits': write [process] or"},
        Wrong{"OneListenerOnly", "[listener]\nname = 'a'\n", "1:1: listener: write [[listener]]"},
        Wrong{"ProcessIsNoTable", "process = 1\n" + kListener, "1:11: process: must be a table"},
        Wrong{"NumberInQuotes", kListener + "credits = '8'\n", "5:11: credits: must be a whole number, without quotes"},
        Wrong{"Fraction", kListener + "credits = 8.5\n", "5:11: credits: must be a whole number"},
        Wrong{"TextWithoutQuotes", kListener + "crc = true\n", "5:7: crc: must be text in quotes"},
        Wrong{"FlagWithText", kListener + "p2p = 'yes'\n", "5:7: p2p: must be true or false"},
        Wrong{"ListWithNumbers", kListener + "allow = [10]\n", "5:9: allow: must be text in quotes, or a list of such"},
        Wrong{"ListWhereNoneIs", kListener + "crc = ['on']\n", "5:7: crc: must be text in quotes"},
        Wrong{"EmptyText", kListener + "allow = ''\n", "5:9: allow: is empty; leave the key out"},
        Wrong{"Range", kListener + "credits = 97\n", "5:11: credits: '97' is not a number from 1 to 96"},
        Wrong{"BelowZero", kListener + "credits = -1\n", "5:11: credits: "},
        Wrong{"Choice", kListener + "crc = 'maybe'\n", "5:7: crc: unknown value 'maybe': use "},
        Wrong{"Contradiction", kListener + "p2p = true\nno-p2p = true\n", "1:1: p2p does not go with no-p2p"},
        Wrong{"Profile", kListener + "profile = 'linux-swi'\n",
              "5:11: profile: there is no profile 'linux-swi'; did you mean linux-siw? There are generic, linux-siw"},
        Wrong{"Network", kListener + "allow = '10.0.0.1/8'\n", "5:9: allow: "},
        Wrong{"NoName", "[[listener]]\nrdma-listen = '127.0.0.1:0'\ntcp = '127.0.0.1:1'\n", "1:1: name is missing"},
        Wrong{"NameWithBlank", "[[listener]]\nname = 'a b'\n", "2:8: name: must be text of 1 to 64 letters"},
        Wrong{"NameIsNoText", "[[listener]]\nname = 1\n", "2:8: name: must be text"},
        Wrong{"NameTwice", kListener + kListener, "6:8: name: 'a' is the name of another listener (line 2)"},
        Wrong{"NoDirection", "[[listener]]\nname = 'a'\n", "1:1: choose one direction: rdma-listen with tcp, or"},
        Wrong{"NoServer", "[[listener]]\nname = 'a'\nrdma-listen = '127.0.0.1:0'\n",
              "3:15: rdma-listen: goes with tcp HOST:PORT"},
        Wrong{"KeyOfTheOtherDirection", kListener + "insecure-ports = true\n",
              "5:18: insecure-ports: goes with tcp-listen"},
        Wrong{"ServerWithoutPort", "[[listener]]\nname = 'a'\nrdma-listen = '127.0.0.1:0'\ntcp = 'server'\n",
              "4:7: tcp: 'server' has no port"},
        Wrong{"NoAddress", "[[listener]]\nname = 'a'\nrdma-listen = 'nfs:20049'\ntcp = 'server:1'\n",
              "3:15: rdma-listen: 'nfs' is not an IP address of this host"},
        Wrong{"RecordsBeyondMemory", "[process]\nmemory = 16\n" + kListener + "max-record = 4096\n",
              "7:14: max-record: must be at least 64 KiB below an eighth of memory, which is 16 MiB"},
        Wrong{"AddressTwice",
              "[[listener]]\nname = 'a'\nrdma-listen = '0.0.0.0:7'\ntcp = 'x:1'\n"
              "[[listener]]\nname = 'b'\ntcp-listen = '127.0.0.1:7'\nrdma = 'x:1'\n",
              "7:14: another listener has 0.0.0.0:7 already (line 3)"},
        Wrong{"TraceOfFpdusWithoutTrace", "[process]\ntrace-fpdus = true\n" + kListener, "1:1: trace-fpdus needs"}),
    [](const auto& wrong) { return std::string(wrong.param.name); });

TEST_F(GatewayFile, TellsAllThatIsWrongInTheOrderOfTheLines) {
  const ReadConfig r = read("[process]\nmemroy = 1\n" + kListener + "credits = 0\nirdd = 1\n");
  EXPECT_THAT(r.errors, ElementsAre(HasSubstr("2:1: "), HasSubstr("7:11: "), HasSubstr("8:1: ")));
}

TEST_F(GatewayFile, ThatIsNotThere) {
  const ReadConfig r = read_gateway_config(scratch.file("none"));
  EXPECT_THAT(r.errors, ElementsAre(HasSubstr("none: cannot be read: No such file")));
}

TEST(NearestKey, IsTheOneThatWasMeant) {
  const std::vector<std::string> keys = {"allow", "ord", "ird", "tcp", "max-connections"};
  EXPECT_EQ(tools::nearest_key("alow", keys), "allow");
  EXPECT_EQ(tools::nearest_key("max_connections", keys), "max-connections");
  EXPECT_EQ(tools::nearest_key("maximal-connections", keys), "max-connections");
  EXPECT_EQ(tools::nearest_key("xyz", keys), "");
  EXPECT_EQ(tools::nearest_key("", keys), "");
}

// Every flag is a key, of the process or of a listener, and the default of every number is one.
TEST(GatewayKeys, AreTheFlags) {
  CLI::App process, listener, command("x", "iwarp");
  tools::ProcessFlags of_process;
  tools::LimitFlags limits;
  tools::ListenerFlags of_listener;
  of_process.add(process);
  limits.add(process);
  of_listener.add(listener);
  const tools::Run run = tools::add_gateway(command);
  std::set<std::string> keys, flags;
  const auto names = [](const CLI::App& app, std::set<std::string>& to) {
    for (const CLI::Option* o : app.get_options()) to.insert(o->get_lnames().begin(), o->get_lnames().end());
  };
  names(process, keys);
  names(listener, keys);
  names(*command.get_subcommand("gateway"), flags);
  for (const char* own : {"config", "check"}) flags.erase(own);
  EXPECT_EQ(keys, flags);
}

TEST_F(GatewayFile, TakesEveryDefaultThatTheHelpTells) {
  std::string text = kListener + std::string("draft-2005 = true\n");  // some keys go with it
  CLI::App listener;
  tools::ListenerFlags flags;
  flags.add(listener);
  for (const CLI::Option* o : listener.get_options()) {
    const std::string value = o->get_default_str();
    if (value.empty()) continue;
    const bool number = std::ranges::all_of(value, [](unsigned char c) { return std::isdigit(c) != 0; });
    text += o->get_lnames().front() + " = " + (number ? value : "'" + value + "'") + "\n";
  }
  EXPECT_THAT(text, HasSubstr("ird = 32"));
  EXPECT_THAT(read(text).errors, IsEmpty());
}

}  // namespace
}  // namespace iwarp::test
