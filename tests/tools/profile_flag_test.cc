// --profile and `iwarp profiles`: who wins over whom, and what users are told.
#include "tools/profile_flag.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/subprocess.h"
#include "tools/perf_run_flags.h"
#include "tools/policy_flags.h"

namespace iwarp::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using tools::PolicyFlags;
using Words = std::vector<std::string>;
using First = PolicyFlags::First;

stream::ProfileSettings settings_of(Words words, First first = First::kPeerToPeer, std::uint16_t ird_ord = 32) {
  CLI::App app;
  PolicyFlags flags;
  flags.add(app, ird_ord, first);
  std::ranges::reverse(words);  // as CLI11 wants them
  app.parse(words);
  stream::ProfileSettings s{.policy = flags.policy()};
  flags.apply(s.stream);
  return s;
}

TEST(ProfileFlag, WithoutAndGenericAreTheSame) {
  for (const First first : {First::kPeerToPeer, First::kClientServer}) {
    EXPECT_EQ(settings_of({"--profile", "generic"}, first, 1), settings_of({}, first, 1));
    const auto usual = settings_of({}, first, 1);
    EXPECT_EQ(usual.policy.peer_to_peer, first == First::kPeerToPeer);
    EXPECT_EQ(usual.policy.ird, 1);
    EXPECT_EQ(usual.policy.ord, 1);
  }
  EXPECT_EQ(settings_of({}), stream::ProfileSettings{}) << "the defaults of the library";
}

TEST(ProfileFlag, GoesBeforeTheDefaultsOfTheCommand) {
  for (const stream::Profile& p : stream::profiles()) {
    stream::ProfileSettings want;
    want.policy.peer_to_peer = false;
    want.policy.ird = want.policy.ord = 1;
    p.apply(want);
    EXPECT_EQ(settings_of({"--profile", std::string(p.name())}, First::kClientServer, 1), want) << p.name();
  }
  EXPECT_TRUE(settings_of({"--profile", "linux-irdma"}, First::kClientServer).policy.peer_to_peer);
  EXPECT_FALSE(settings_of({"--profile", "linux-siw"}, First::kPeerToPeer).policy.peer_to_peer);
}

// Each flag, and what it makes of the settings whatever the profile says.
struct Explicit {
  Words words;
  void (*set)(stream::ProfileSettings&);
};

const Explicit kExplicit[] = {
    {{"--crc", "prefer-off"}, [](auto& s) { s.policy.crc = mpa::Policy::Crc::kPreferOff; }},
    {{"--markers", "ask"}, [](auto& s) { s.policy.markers = mpa::Policy::Markers::kAsk; }},
    {{"--p2p"}, [](auto& s) { s.policy.peer_to_peer = s.policy.allow_peer_to_peer_fallback = true; }},
    {{"--no-p2p"}, [](auto& s) { s.policy.peer_to_peer = s.policy.allow_peer_to_peer_fallback = false; }},
    {{"--rtr", "write"}, [](auto& s) { s.policy.rtr_write = true, s.policy.rtr_read = false; }},
    {{"--rtr", "read"}, [](auto& s) { s.policy.rtr_write = false, s.policy.rtr_read = true; }},
    {{"--rtr", "write,read"}, [](auto& s) { s.policy.rtr_write = s.policy.rtr_read = true; }},
    {{"--ird", "7"}, [](auto& s) { s.policy.ird = 7; }},
    {{"--ord", "9"}, [](auto& s) { s.policy.ord = 9; }},
    {{"--fpdu", "max"}, [](auto& s) { s.stream.fpdu = mpa::FpduPolicy::kMax; }},
    {{"--wake"}, [](auto& s) { s.stream.early_wake = true; }},
    {{"--no-wake"}, [](auto& s) { s.stream.early_wake = false; }},
    {{"--mpa-rev", "1"}, [](auto& s) { s.policy.revision = 1, s.policy.peer_to_peer = false; }},
};

TEST(ProfileFlag, LosesToEveryFlagInEitherOrder) {
  for (const stream::Profile& p : stream::profiles()) {
    for (const Explicit& flag : kExplicit) {
      stream::ProfileSettings want;
      p.apply(want);
      flag.set(want);
      Words before = flag.words, after = {"--profile", std::string(p.name())};
      before.insert(before.end(), {"--profile", std::string(p.name())});
      after.insert(after.end(), flag.words.begin(), flag.words.end());
      EXPECT_EQ(settings_of(before), want) << p.name() << ' ' << flag.words[0];
      EXPECT_EQ(settings_of(after), want) << p.name() << ' ' << flag.words[0];
    }
  }
}

TEST(ProfileFlag, UnknownNameIsAnErrorThatListsAndSuggests) {
  EXPECT_THAT(
      tools::unknown_profile("linux-swi"),
      AllOf(StartsWith("there is no profile 'linux-swi'; did you mean linux-siw? There are generic, linux-siw, "),
            HasSubstr(", windows-smbd")));
  EXPECT_THAT(tools::unknown_profile("freebsd"), StartsWith("there is no profile 'freebsd': use generic, linux-siw, "));
  for (const Words& command : {Words{"rping", "-c", "-a", "::1"}, Words{"perf", "run", "write_bw"},
                               Words{"perf", "idle"}, Words{"gateway", "--check"}}) {
    Words words = command;
    words.insert(words.end(), {"--profile", "linux-swi"});
    const Finished f = run(words);
    EXPECT_EQ(f.code, 2) << f.output;
    EXPECT_THAT(f.output, HasSubstr("--profile: there is no profile 'linux-swi'; did you mean linux-siw?"));
  }
  const Finished f = run({"profiles", "linux-swi"});
  EXPECT_EQ(f.code, 2);
  EXPECT_THAT(f.output, StartsWith("iwarp profiles: there is no profile 'linux-swi'; did you mean linux-siw?"));
}

TEST(ProfileFlag, NamesFlagsThatThereAre) {
  CLI::App app;
  PolicyFlags flags;
  flags.add(app, 32);
  for (const stream::Profile& p : stream::profiles()) {
    for (const stream::ProfileValue& v : p.values()) {
      std::istringstream in{std::string(tools::flag_of(v.option->name))};
      for (std::string flag; in >> flag;) {
        if (flag.back() == ',') flag.pop_back();
        EXPECT_NE(app.get_option_no_throw(flag), nullptr) << v.option->name << ' ' << flag;
      }
    }
  }
}

// --- iwarp perf

tools::perf::Spec spec_of(Words words) {
  CLI::App app;
  tools::PerfRunFlags flags;
  flags.add(app);
  words.insert(words.begin(), "write_bw");
  words.insert(words.end(), {"--size", "8"});
  std::ranges::reverse(words);
  app.parse(words);
  return flags.specs().at(0);
}

TEST(ProfileOfPerf, LosesToItsFlags) {
  EXPECT_EQ(spec_of({}).fpdu, "max");
  EXPECT_EQ(spec_of({"--profile", "generic"}).fpdu, "max");
  EXPECT_EQ(spec_of({"--profile", "linux-siw"}).fpdu, "max") << "siw takes any length";
  EXPECT_EQ(spec_of({"--profile", "linux-irdma"}).fpdu, "emss");
  EXPECT_EQ(spec_of({"--profile", "linux-irdma", "--fpdu", "16k"}).fpdu, "16k");
  EXPECT_EQ(spec_of({"--fpdu", "16k", "--profile", "linux-irdma"}).fpdu, "16k");
  EXPECT_TRUE(spec_of({"--profile", "linux-irdma"}).crc);
  EXPECT_FALSE(spec_of({"--crc", "off", "--profile", "linux-irdma"}).crc);
  EXPECT_EQ(spec_of({"--profile", "linux-cxgb4"}).profile, "linux-cxgb4");
}

TEST(ProfileOfPerf, EveryTestRunsWithEach) {
  for (const stream::Profile& p : stream::profiles()) {
    const Finished f = run({"perf", "run", "write_bw,read_bw,send_bw,send_rate,read_lat,send_lat,connect_rate",
                            "--profile", std::string(p.name()), "--size", "64", "--seconds", "0.05", "--pairs", "1"});
    EXPECT_EQ(f.code, 0) << p.name() << '\n' << f.output;
    if (!p.values().empty()) {
      EXPECT_THAT(f.output, HasSubstr("profile " + std::string(p.name())));
    }
  }
  const Finished idle = run({"perf", "idle", "--connections", "20", "--profile", "linux-siw"});
  EXPECT_EQ(idle.code, 0) << idle.output;
}

// --- iwarp rping

struct Outcome {
  const char* profile;
  std::vector<std::string> more;
  bool peer_to_peer;
  const char* rtr;
};

TEST(ProfileOfRping, DecidesWhatIsNegotiatedAndFlagsWin) {
  const Outcome kOutcomes[] = {
      {"generic", {}, true, "read"},          {"linux-siw", {}, false, "none"},
      {"linux-siw", {"--p2p"}, true, "read"}, {"linux-cxgb4", {}, true, "read"},
      {"linux-irdma", {}, true, "read"},      {"linux-irdma", {"--rtr", "write"}, true, "write"},
      {"windows-chelsio", {}, true, "read"},  {"windows-smbd", {"--no-p2p"}, false, "none"},
  };
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"});
  const std::string port = server.listening_port();
  for (const Outcome& o : kOutcomes) {
    Words words{"rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "2", "-V", "--json"};
    words.insert(words.end(), o.more.begin(), o.more.end());
    words.insert(words.end(), {"--profile", o.profile});
    const Finished f = run(words);
    EXPECT_EQ(f.code, 0) << o.profile << '\n' << f.output;
    const json j = json::parse(f.output.substr(f.output.find("{\n"), f.output.rfind("\n}") + 2 - f.output.find("{\n")));
    EXPECT_EQ(j["connection"]["peer_to_peer"], o.peer_to_peer) << o.profile;
    EXPECT_EQ(j["connection"]["rtr"], o.rtr) << o.profile;
    EXPECT_EQ(j["connection"]["ird"], 1) << "rping's own, which no profile sets";
  }
}

// The Responder names what its profile has, of what is offered.
TEST(ProfileOfRping, IsTheListenersToo) {
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--profile", "linux-cxgb4"});
  const Finished f = run(
      {"probe", "127.0.0.1:" + server.listening_port(), "--json", "--only", "rtr-write,private-data-max,depth-ulp"});
  const json j = json::parse(f.output.substr(f.output.find("{\n")));
  EXPECT_EQ(j["connections"][0]["reply"]["D"], true) << f.output;
  EXPECT_EQ(j["connections"][0]["reply"]["C_write"], false) << "Write is not named, though it alone is offered";
  EXPECT_EQ(j["profile"]["name"], "generic") << "an iwarp is not taken for the peer that it is made for";
}

// --- iwarp profiles

TEST(Profiles, AreListed) {
  const Finished f = run({"profiles"});
  EXPECT_EQ(f.code, 0);
  for (const stream::Profile& p : stream::profiles()) {
    EXPECT_THAT(f.output, HasSubstr("  " + std::string(p.name()) + " "));
    EXPECT_THAT(f.output, HasSubstr(std::string(p.peer())));
  }
}

TEST(Profiles, AreExplainedInEightyColumns) {
  for (const stream::Profile& p : stream::profiles()) {
    const Finished f = run({"profiles", std::string(p.name())});
    EXPECT_EQ(f.code, 0);
    EXPECT_THAT(f.output, StartsWith(std::string(p.name()) + ": "));
    std::istringstream lines(f.output);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    std::istringstream words(f.output);
    std::string text;
    for (std::string word; words >> word;) text += word + " ";
    for (const stream::ProfileValue& v : p.values()) {
      EXPECT_THAT(text, HasSubstr(std::string(v.option->name) + ": " + v.text() + " ("));
      EXPECT_THAT(text, HasSubstr(std::string(v.reason)));
    }
  }
  EXPECT_THAT(run({"profiles", "generic"}).output, HasSubstr("It sets nothing"));
  EXPECT_THAT(run({"profiles", "linux-siw"}).output,
              AllOf(HasSubstr("  peer_to_peer: no (default yes; --p2p, --no-p2p)\n      With A=1 the kernel"),
                    HasSubstr("  early_wake: yes (as by default; --wake, --no-wake)\n"),
                    HasSubstr("  unheard_wait: 200 ms (as by default)\n")));
}

TEST(Profiles, AreJsonToo) {
  const Finished all = run({"profiles", "--json"});
  const json j = json::parse(all.output);
  EXPECT_EQ(j["iwarp"]["command"], "profiles");
  ASSERT_EQ(j["profiles"].size(), stream::profiles().size());
  EXPECT_EQ(j["profiles"][0]["name"], "generic");
  EXPECT_THAT(j["profiles"][0]["values"], IsEmpty());
  const json one = json::parse(run({"profiles", "linux-siw", "--json"}).output);
  ASSERT_EQ(one["profiles"].size(), 1U);
  EXPECT_EQ(one["profiles"][0], j["profiles"][1]);
  const auto value = [&](const std::string& option) {
    for (const json& v : one["profiles"][0]["values"]) {
      if (v["option"] == option) return v;
    }
    return json();
  };
  EXPECT_EQ(value("peer_to_peer")["value"], false);
  EXPECT_EQ(value("peer_to_peer")["default"], true);
  EXPECT_EQ(value("peer_to_peer")["flag"], "--p2p, --no-p2p");
  EXPECT_THAT(value("peer_to_peer")["reason"], HasSubstr("crashes"));
  EXPECT_EQ(value("unheard_wait")["value"], 200) << "milliseconds";
  EXPECT_TRUE(value("unheard_wait")["flag"].is_null());
  EXPECT_EQ(value("crc")["value"], "on");
  EXPECT_EQ(value("max_ird")["default"], 128);
}

}  // namespace
}  // namespace iwarp::test
