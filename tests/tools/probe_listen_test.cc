// `iwarp probe --listen` against iwarp's own initiator, and against initiators that do not behave.
#include <gmock/gmock.h>

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"
#include "tests/tools/subprocess.h"
#include "tools/probe/trial.h"

namespace iwarp::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

Words listening(const Words& more) {
  Words words{"probe", "--listen", "127.0.0.1:0", "--timeout", "20"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json document(const std::string& output) {
  return json::parse(output.substr(output.find("{\n")));
}

std::vector<std::string> requirements(const json& connection) {
  std::vector<std::string> ids;
  for (const json& d : connection.at("deviations")) ids.push_back(d.at("requirement"));
  return ids;
}

TEST(ProbeListen, OurInitiatorDoesNotDeviate) {
  Subprocess probing(listening({"--json"}));
  const std::string port = probing.listening_port();
  for (std::size_t i = 0; i < tools::probe::trials().size(); ++i)
    (void)run({"rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "1", "--timeout", "20"});
  EXPECT_EQ(probing.wait(), 0) << probing.output();
  const json j = document(probing.output());
  EXPECT_EQ(j["examined"], "initiator");
  EXPECT_EQ(j["verdict"], "healthy");
  ASSERT_EQ(j["connections"].size(), tools::probe::trials().size());
  for (const json& c : j["connections"]) EXPECT_THAT(requirements(c), IsEmpty()) << c;
  EXPECT_EQ(j["summary"]["crc"], "C=1; of its FPDUs: right");
  EXPECT_EQ(j["profile"]["name"], "generic");
  EXPECT_THAT(j["summary"]["rtr"], HasSubstr("only Write: Write RTR; only Read: Read RTR; only Send: Terminate 2/0/7"));
  EXPECT_EQ(j["summary"]["fallback"], "tries again with revision 1");
}

struct RuleBreaker {
  const char* name;
  const char* question;
  std::function<void(RawTcp&)> behave;
  int code;
  std::vector<std::string> requirements;
};

Bytes write_rtr(bool crc) {
  return fpdu(write_segment(Stag{1}, 1, {}), crc);
}

void ask(RawTcp& tcp) {
  (void)tcp.send(octets(good_request()));
  (void)read_frame(tcp, true);
}

class BadInitiator : public ::testing::TestWithParam<RuleBreaker> {};

TEST_P(BadInitiator, IsTold) {
  Subprocess probing({"probe", "--listen", "127.0.0.1:0", "--timeout", "1", "--json", "--only", GetParam().question});
  RawTcp tcp = RawTcp::connect(static_cast<std::uint16_t>(std::stoi(probing.listening_port())));
  GetParam().behave(tcp);
  EXPECT_EQ(probing.wait(), GetParam().code) << probing.output();
  EXPECT_EQ(requirements(document(probing.output())["connections"][0]), GetParam().requirements);
}

INSTANTIATE_TEST_SUITE_P(Kind, BadInitiator,
                         ::testing::Values(RuleBreaker{"SendsNoRtr", "accept", ask, 3, {"RFC6581-9.2-17"}},
                                           RuleBreaker{"DoesAsItShould",
                                                       "accept",
                                                       [](RawTcp& tcp) {
                                                         ask(tcp);
                                                         (void)tcp.send(write_rtr(true));
                                                       },
                                                       0,
                                                       {}},
                                           RuleBreaker{"HasNoCrc",
                                                       "crc",
                                                       [](RawTcp& tcp) {
                                                         ask(tcp);
                                                         (void)tcp.send(write_rtr(false));
                                                       },
                                                       3,
                                                       {"RFC5044-7.1.1-16"}},
                                           RuleBreaker{"DoesNotWaitForTheReply",
                                                       "accept",
                                                       [](RawTcp& tcp) {
                                                         (void)tcp.send(octets(good_request()) + write_rtr(true));
                                                         (void)read_frame(tcp, true);
                                                         (void)tcp.send(write_rtr(true));
                                                       },
                                                       3,
                                                       {"RFC5044-7.1.2-13"}},
                                           RuleBreaker{"GoesOnAfterReject",
                                                       "reject",
                                                       [](RawTcp& tcp) {
                                                         ask(tcp);
                                                         (void)tcp.send(write_rtr(true));
                                                       },
                                                       3,
                                                       {"RFC5044-7.1.2-16"}},
                                           RuleBreaker{"TakesAnyReply",
                                                       "wrong-key",
                                                       [](RawTcp& tcp) {
                                                         (void)tcp.send(octets(good_request()));
                                                         (void)tcp.end(20'000);
                                                       },
                                                       3,
                                                       {"RFC5044-7.1.1-7"}},
                                           RuleBreaker{"SpeaksHttp",
                                                       "accept",
                                                       [](RawTcp& tcp) {
                                                         (void)tcp.send(
                                                             hex("474554202f20485454502f312e310d0a 0d0a 0d0a 0d0a"));
                                                       },
                                                       5,
                                                       {"RFC5044-7.1.1-2"}}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(ProbeListen, NobodyComes) {
  const Finished f = run({"probe", "--listen", "127.0.0.1:0", "--wait", "0.3"});
  EXPECT_EQ(f.code, 4) << f.output;
  EXPECT_THAT(f.output, HasSubstr("nobody has connected"));
}

TEST(ProbeListen, InterruptTellsWhatIsKnown) {
  Subprocess nobody(listening({}));
  ASSERT_TRUE(nobody.wait_for("Ctrl-C ends it")) << nobody.output();
  nobody.signal(SIGINT);
  EXPECT_EQ(nobody.wait(), 130) << nobody.output();

  Subprocess probing(listening({}));
  RawTcp tcp = RawTcp::connect(static_cast<std::uint16_t>(std::stoi(probing.listening_port())));
  ask(tcp);
  (void)tcp.send(write_rtr(true));
  ASSERT_TRUE(probing.wait_for("accept            Request M=0 C=1 R=0 S=1 rev=2 A=1")) << "as it comes";
  probing.signal(SIGTERM);
  EXPECT_EQ(probing.wait(), 0) << probing.output();
  EXPECT_THAT(probing.output(), AllOf(HasSubstr("all named: Write RTR"), HasSubstr("fallback      not known")));
}

TEST(ProbeListen, PortInUse) {
  const RawListener other;
  const Finished f = run({"probe", "--listen", "127.0.0.1:" + std::to_string(other.port())});
  EXPECT_EQ(f.code, 1);
  EXPECT_THAT(f.output,
              HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(other.port()) + ": Address already in use"));
}

}  // namespace
}  // namespace iwarp::test
