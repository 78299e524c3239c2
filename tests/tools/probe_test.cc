// `iwarp probe` against our own server, and against servers that do not behave.
#include <gmock/gmock.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/eventually.h"
#include "tests/tools/subprocess.h"
#include "tools/probe/question.h"

namespace iwarp::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Serves connections one after the other with `behave`, until destroyed.
class RawServer {
 public:
  explicit RawServer(std::function<void(RawTcp&)> behave)
      : thread_([this, behave = std::move(behave)](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            if (!listener_.anybody(20)) continue;
            RawTcp tcp = listener_.accept();
            behave(tcp);
          }
        }) {}
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(listener_.port()); }

 private:
  RawListener listener_;
  std::jthread thread_;
};

// Reads the Request, answers with what `reply` makes of it, waits for the end.
std::function<void(RawTcp&)> answering(const std::function<Bytes(const mpa::StartupFrame&)>& reply) {
  return [reply](RawTcp& tcp) {
    const FrameRead request = read_frame(tcp, false);
    if (!request.complete) return;
    (void)tcp.send(reply(request.frame));
    (void)tcp.end(2000);
  };
}

Bytes accept(const mpa::StartupFrame& request) {
  mpa::StartupFrame f = request;
  f.is_reply = true;
  f.private_data = {};
  return octets(f);
}

json probe(const std::string& address, const std::vector<std::string>& more = {}, const char* timeout = "0.3") {
  std::vector<std::string> words{"probe", address, "--json", "--timeout", timeout};
  words.insert(words.end(), more.begin(), more.end());
  const Finished f = run(words);
  json j = json::parse(f.output.substr(f.output.find("{\n")));  // the log goes before it
  j["code"] = f.code;
  return j;
}

std::vector<std::string> requirements(const json& connection) {
  std::vector<std::string> ids;
  for (const json& d : connection.at("deviations")) ids.push_back(d.at("requirement"));
  return ids;
}

TEST(Probe, OurServerDeviatesInNothing) {
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"});
  const std::string port = server.listening_port();
  const json j = probe("127.0.0.1:" + port, {}, "20");
  EXPECT_EQ(j["code"], 0) << j;
  ASSERT_EQ(j["connections"].size(), tools::probe::questions().size());
  for (const json& c : j["connections"]) {
    const std::string name = c["question"];
    if (name == "enhanced") {
      EXPECT_THAT(requirements(c), ElementsAre("RFC6581-9.2-12")) << "advice: it names one form of two";
    } else {
      EXPECT_THAT(requirements(c), IsEmpty()) << c;
    }
    if (name == "rtr-read" || name == "rtr-write") {
      EXPECT_EQ(c["rtr"]["fate"], "taken");
    }
  }
  EXPECT_EQ(j["summary"]["crc"], "always on");
  EXPECT_EQ(j["profile"]["name"], "generic");
  EXPECT_THAT(j["summary"]["ird_ord"], HasSubstr("at most 128/1"));
  // It came to no harm.
  const Finished ping = run({"rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "1", "-V"});
  EXPECT_EQ(ping.code, 0) << ping.output;
}

TEST(Probe, NothingIsWrongIsExitCode0) {
  Subprocess server({"rping", "-s", "-P", "-a", "::1", "-p", "0", "--crc", "prefer-off"});
  const Finished f = run({"probe", "--only", "enhanced,crc-off,revision-3", "[::1]:" + server.listening_port()});
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, AllOf(HasSubstr("crc           on if either side wants it"), HasSubstr("deviations    none")));
}

TEST(Probe, RpcPrivateDataIsDecoded) {
  const RawServer server(answering([](const mpa::StartupFrame& request) {
    mpa::StartupFrame f = request;  // with the private data that came
    f.is_reply = true;
    return octets(f);
  }));
  const json j = probe(server.address(), {"--only", "enhanced", "--private-data", "rpcrdma"});
  EXPECT_EQ(j["connections"][0]["reply"]["rpcrdma"]["receive_bytes"], 4096);
  EXPECT_THAT(j["summary"]["inline"], HasSubstr("sends 4096, receives 4096"));
}

TEST(Probe, NobodyListens) {
  std::uint16_t port = 0;
  { port = RawListener().port(); }
  const Finished f = run({"probe", "127.0.0.1:" + std::to_string(port)});
  EXPECT_EQ(f.code, 4);
  EXPECT_THAT(f.output, AllOf(HasSubstr("cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused"),
                              HasSubstr("cannot be reached")));
}

TEST(Probe, HostDoesNotExist) {
  const Finished f = run({"probe", "does-not-exist.invalid"});
  EXPECT_EQ(f.code, 4);
  EXPECT_THAT(f.output, AllOf(HasSubstr("cannot resolve the host name does-not-exist.invalid"),
                              HasSubstr("does-not-exist.invalid:20049 cannot be reached")));
}

// It takes one client, as rping -s does without -P, and nobody after that.
TEST(Probe, ServerThatGoesAwayIsNotJudgedForWhatItDidNotSay) {
  cm::Engine engine;
  Node node(engine);
  auto listener = listen(engine);
  const std::uint16_t port = listener->local().port();
  auto probed = std::async(std::launch::async, [&] { return probe("127.0.0.1:" + std::to_string(port), {}, "20"); });
  const auto request = next_request(*listener);
  listener.reset();
  ASSERT_TRUE(eventually([&] {
    try {
      (void)RawTcp::connect(port);
      return false;
    } catch (const std::exception&) {
      return true;
    }
  }));
  request->accept(node.qp, {}, [](const Error&, const std::shared_ptr<cm::Connection>&) {});
  const json j = probed.get();
  EXPECT_EQ(j["code"], 4) << j;
  EXPECT_EQ(j["verdict"], "unreachable");
  EXPECT_EQ(j["deviations"], 0);
  EXPECT_EQ(j["summary"]["private_data"], "64 octets: not known; 508 octets: not known");
}

TEST(Probe, ResultsComeOneByOne) {
  const RawServer server([](RawTcp& tcp) {
    const FrameRead request = read_frame(tcp, false);
    if (!request.complete) return;
    if (request.frame.enhanced) (void)tcp.send(accept(request.frame));
    (void)tcp.end(60'000);  // silent where it is not enhanced
  });
  Subprocess probing({"probe", server.address(), "--timeout", "60", "--only", "client-server,revision-1"});
  EXPECT_TRUE(probing.wait_for("client-server     accepted M=0 C=1")) << "before the next one has its answer";
  EXPECT_THAT(probing.output(), Not(HasSubstr("revision-1")));
}

TEST(Probe, StandardOutputThatIsFullIsAnError) {
  const RawServer server(answering(accept));
  const Finished f =
      shell(std::string(IWARP_COMMAND) + " probe --only client-server " + server.address() + " 2>&1 >/dev/full");
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output, HasSubstr("cannot write standard output: No space left on device"));
}

TEST(Probe, JsonInAFileLeavesTheText) {
  const RawServer server(answering(accept));
  const std::string file = ::testing::TempDir() + "probe-" + std::to_string(::getpid()) + ".json";
  const Finished f = run({"probe", "--only", "client-server", "--json", file, server.address()});
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_THAT(f.output, HasSubstr("client-server     accepted"));
  std::ifstream in(file);
  const json j = json::parse(in);
  std::remove(file.c_str());
  EXPECT_EQ(j["iwarp"]["command"], "probe");
  EXPECT_EQ(j["examined"], "responder");
  EXPECT_EQ(j["verdict"], "healthy");
}

struct Stranger {
  const char* name;
  std::function<void(RawTcp&)> behave;
  const char* says;
};

class NoMpaPeer : public ::testing::TestWithParam<Stranger> {};

TEST_P(NoMpaPeer, IsExitCode5AfterTwoConnections) {
  const RawServer server(GetParam().behave);
  const Finished f = run({"probe", server.address(), "--timeout", "0.3"});
  EXPECT_EQ(f.code, 5) << f.output;
  EXPECT_THAT(f.output, AllOf(HasSubstr(GetParam().says), HasSubstr("is not known as an MPA responder"),
                              HasSubstr("revision-1 "), Not(HasSubstr("client-server"))));
}

INSTANTIATE_TEST_SUITE_P(
    Kind, NoMpaPeer,
    ::testing::Values(Stranger{"Silent", [](RawTcp& tcp) { (void)tcp.end(2000); }, "no answer in time"},
                      Stranger{"Closes", [](RawTcp& tcp) { (void)read_frame(tcp, false); }, "closed without a Reply"},
                      Stranger{"Resets",
                               [](RawTcp& tcp) {
                                 (void)read_frame(tcp, false);
                                 tcp.reset();
                               },
                               "reset without a Reply"},
                      Stranger{"Echoes",
                               [](RawTcp& tcp) {
                                 const Bytes request = read_frame(tcp, false).bytes;
                                 (void)tcp.send(request);
                                 (void)tcp.end(2000);
                               },
                               "both ends play Initiator"},
                      Stranger{"SpeaksHttp",
                               [](RawTcp& tcp) {
                                 (void)tcp.send(hex("48545450 2f312e31 20343030 20426164 20526571 75657374"));
                                 (void)tcp.end(2000);
                               },
                               "no MPA but HTTP: \"HTTP/1.1 400 Bad Request\""},
                      Stranger{"SpeaksTls",
                               [](RawTcp& tcp) {
                                 (void)read_frame(tcp, false);
                                 (void)tcp.send(hex("1503010002 0246"));
                               },
                               "no MPA but TLS"},
                      Stranger{"SpeaksSshFirst",
                               [](RawTcp& tcp) {
                                 (void)tcp.send(hex("5353482d322e302d780d0a"));
                                 (void)tcp.end(2000);
                               },
                               "no MPA but SSH: \"SSH-2.0-x\""},
                      // An octet every 50 ms would be a Reply after a second and a half.
                      Stranger{"Trickles",
                               [](RawTcp& tcp) {
                                 for (const std::byte b : octets(good_reply())) {
                                   if (!tcp.send(ConstBytes{&b, 1})) return;
                                   std::this_thread::sleep_for(std::chrono::milliseconds(50));
                                 }
                               },
                               "no Reply but 4d5041"},
                      Stranger{"Floods",
                               [](RawTcp& tcp) {
                                 const Bytes much(1 << 20);
                                 (void)tcp.send(much);
                               },
                               "no Reply but 0000"}),
    [](const auto& p) { return std::string(p.param.name); });

struct RuleBreaker {
  const char* name;
  std::function<Bytes(const mpa::StartupFrame&)> reply;
  std::vector<std::string> requirements;  // broken on the connection `enhanced`
};

class BadResponder : public ::testing::TestWithParam<RuleBreaker> {};

TEST_P(BadResponder, IsExitCode3) {
  const RawServer server(answering(GetParam().reply));
  const json j = probe(server.address(), {"--only", "enhanced"});
  EXPECT_EQ(j["code"], 3) << j;
  EXPECT_EQ(requirements(j["connections"][0]), GetParam().requirements);
}

INSTANTIATE_TEST_SUITE_P(
    Kind, BadResponder,
    ::testing::Values(RuleBreaker{"DropsS",
                                  [](const mpa::StartupFrame& request) {
                                    mpa::StartupFrame f = request;
                                    f.enhanced = false;
                                    return accept(f);
                                  },
                                  {"RFC6581-10-8"}},
                      RuleBreaker{"WantsMoreReads",
                                  [](const mpa::StartupFrame& request) {
                                    mpa::StartupFrame f = request;
                                    f.enhanced_data.ord = 100;
                                    return accept(f);
                                  },
                                  {"RFC6581-9.1-12", "RFC6581-9.2-6"}},  // and nobody answers the Read RTR
                      RuleBreaker{"NamesRevision1",
                                  [](const mpa::StartupFrame& request) {
                                    Bytes out = accept(request);
                                    out[17] = std::byte{1};
                                    return out;
                                  },
                                  {"RFC6581-6-7", "RFC6581-9.2-6"}},
                      RuleBreaker{"HugePrivateData",
                                  [](const mpa::StartupFrame& request) {
                                    Bytes out = accept(request);
                                    out[18] = out[19] = std::byte{0xFF};
                                    return out + Bytes(65535 - 4);
                                  },
                                  {"RFC5044-7.1.1-34"}},
                      RuleBreaker{"SendsFirst",
                                  [](const mpa::StartupFrame& request) { return accept(request) + Bytes(8); },
                                  {"RFC5044-7.1.2-18"}},
                      RuleBreaker{"RejectsWithLongPrivateData",
                                  [](const mpa::StartupFrame& request) {
                                    mpa::StartupFrame f = request;
                                    f.reject = true;
                                    Bytes out = accept(f);
                                    out[19] = std::byte{200};  // 196 of them never come
                                    return out;
                                  },
                                  {"RFC5044-7.1.1-29"}}),
    [](const auto& p) { return std::string(p.param.name); });

// Allowed, and told.
TEST(Probe, MarkersWantedByThePeer) {
  const RawServer server(answering([](const mpa::StartupFrame& request) {
    mpa::StartupFrame f = request;
    f.markers = true;
    return accept(f);
  }));
  const json j = probe(server.address(), {"--only", "enhanced"});
  EXPECT_EQ(j["code"], 0);
  EXPECT_THAT(j["summary"]["markers"], HasSubstr("wanted by it"));
  EXPECT_FALSE(j["connections"][0].contains("rtr")) << "it would have to carry Markers";
}

TEST(Probe, RejectionWithPrivateData) {
  const RawServer server(answering([](const mpa::StartupFrame& request) {
    const Bytes reason = hex("0001");
    mpa::StartupFrame f = request;
    f.is_reply = f.reject = true;
    f.private_data = reason;
    return octets(f);
  }));
  const json j = probe(server.address(), {"--only", "enhanced"});
  EXPECT_EQ(j["code"], 6) << "it answers as it should; its ULP does not want it";
  EXPECT_EQ(j["verdict"], "refused");
  EXPECT_EQ(j["connections"][0]["reply"]["R"], true);
  EXPECT_EQ(j["connections"][0]["reply"]["private_data_hex"], "0001");
}

}  // namespace
}  // namespace iwarp::test
