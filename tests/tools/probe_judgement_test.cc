// What `iwarp probe` says about Replies as they should be and as they should not: pure, no sockets.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "iwarp/rpcrdma/private_data.h"
#include "tests/cm/raw_tcp.h"
#include "tools/probe/report.h"
#include "tools/probe/summary.h"

namespace iwarp::test {
namespace {

using namespace tools::probe;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Fate = RtrResult::Fate;

// A Reply to `name` by a responder that does all it is asked for.
Bytes good_reply_to(const std::string& name) {
  const Question& q = *question_named(name);
  mpa::StartupFrame f;
  f.is_reply = true;
  f.markers = false;
  f.crc = q.crc;
  f.enhanced = q.enhanced;
  f.revision = q.revision;
  f.enhanced_data = q.data;
  return octets(f);
}

Bytes with(Bytes reply, std::initializer_list<std::pair<std::size_t, unsigned>> changes) {
  for (const auto& [at, value] : changes) reply.at(at) = static_cast<std::byte>(value);
  return reply;
}

Record record(const std::string& name, const Bytes& octets, TcpState tcp = TcpState::kOpen) {
  Answer a;
  a.octets = octets;
  a.after_reply = a.at_end = tcp;
  return {question_named(name), a};
}

std::vector<std::string> ids(const Record& r, const Known& known) {
  std::vector<std::string> out;
  for (const Deviation& d : judge(r, known)) out.emplace_back(text(d.rule).id);
  return out;
}

constexpr Known kHealthy{.replies = true,
                         .enhanced = true,
                         .accepts = true,
                         .accepts_without_crc = true,
                         .names_send = false,
                         .names_write = true,
                         .names_read = true};

TEST(ProbeJudgement, GoodRepliesHaveNoDeviation) {
  for (const Question& q : questions()) {
    const std::string name(q.name);
    const Record r = name == "revision-3" ? record(name, {}, TcpState::kClosed) : record(name, good_reply_to(name));
    EXPECT_THAT(ids(r, kHealthy), IsEmpty()) << name;
  }
}

struct Wrong {
  const char* name;
  const char* question;
  Bytes reply;
  std::vector<std::string> ids;
};

class BadReply : public ::testing::TestWithParam<Wrong> {};

TEST_P(BadReply, IsNamed) {
  EXPECT_EQ(ids(record(GetParam().question, GetParam().reply), kHealthy), GetParam().ids);
}

// Octets: 16 flags M 80 C 40 R 20 S 10, 17 Rev, 18 PD_Length, 20 A 80 B 40 IRD, 22 C 80 D 40 ORD.
INSTANTIATE_TEST_SUITE_P(
    Rules, BadReply,
    ::testing::Values(
        Wrong{"RequestKey", "enhanced", with(good_reply_to("enhanced"), {{10, 'q'}}), {"RFC5044-7.1.1-5"}},
        Wrong{"OtherKey", "enhanced", with(good_reply_to("enhanced"), {{0, 'm'}}), {"RFC5044-7.1.1-5"}},
        Wrong{"Reserved", "enhanced", with(good_reply_to("enhanced"), {{16, 0x51}}), {"RFC6581-6-4"}},
        Wrong{"RevisionZero", "revision-1", with(good_reply_to("revision-1"), {{17, 0}}), {"RFC5044-7.1.1-24"}},
        Wrong{"Revision2ToRevision1", "revision-1", with(good_reply_to("revision-1"), {{17, 2}}), {"RFC5044-7.1.1-24"}},
        Wrong{"Revision3", "enhanced", with(good_reply_to("enhanced"), {{17, 3}}), {"RFC5044-7.1.1-24"}},
        Wrong{"EnhancedRevision1", "enhanced", with(good_reply_to("enhanced"), {{17, 1}}), {"RFC6581-6-7"}},
        Wrong{"SpeaksRevision3", "revision-3", good_reply_to("revision-3"), {"RFC5044-7.1.1-26"}},
        Wrong{"LengthTooLarge",
              "revision-1",
              with(good_reply_to("revision-1"), {{18, 2}, {19, 1}}),
              {"RFC5044-7.1.1-34"}},
        Wrong{"LengthOf65535",
              "revision-1",
              with(good_reply_to("revision-1"), {{18, 0xFF}, {19, 0xFF}}),
              {"RFC5044-7.1.1-34"}},
        Wrong{"CutShort", "enhanced", with(good_reply_to("enhanced"), {{19, 9}}), {"RFC5044-7.1.1-29"}},
        Wrong{"OctetsBehind", "enhanced", good_reply_to("enhanced") + Bytes(4), {"RFC5044-7.1.2-18"}},
        Wrong{"DroppedS", "enhanced", with(good_reply_to("enhanced"), {{16, 0x40}}), {"RFC6581-10-8"}},
        Wrong{"UnaskedS", "unenhanced", with(good_reply_to("enhanced"), {}), {"RFC6581-10-4"}},
        Wrong{"SWithoutData",
              "unenhanced",
              with(good_reply_to("unenhanced"), {{16, 0x50}}),
              {"RFC6581-6-11", "RFC6581-10-4"}},
        Wrong{"AAnsweredByNotA", "enhanced", with(good_reply_to("enhanced"), {{20, 0}, {22, 0}}), {"RFC6581-9.2-11"}},
        Wrong{"NotAAnsweredByA",
              "client-server",
              with(good_reply_to("client-server"), {{20, 0x80}, {22, 0x80}}),
              {"RFC6581-9.2-23"}},
        Wrong{"FlagsWithoutA", "client-server", with(good_reply_to("client-server"), {{22, 0x40}}), {"RFC6581-9.2-24"}},
        Wrong{"NoForm", "enhanced", with(good_reply_to("enhanced"), {{22, 0}}), {"RFC6581-9.2-16"}},
        Wrong{"OmitsWrite", "enhanced", with(good_reply_to("enhanced"), {{22, 0x40}}), {"RFC6581-9.2-12"}},
        Wrong{"OrdAboveIrd", "enhanced", with(good_reply_to("enhanced"), {{23, 9}}), {"RFC6581-9.1-12"}},
        Wrong{"OrdNotLeftToUlp",
              "depth-ulp",
              with(good_reply_to("depth-ulp"), {{22, 0xC0}, {23, 128}}),
              {"RFC6581-9.1-27"}},
        Wrong{"IrdNotLeftToUlp",
              "depth-ulp",
              with(good_reply_to("depth-ulp"), {{20, 0x80}, {21, 128}}),
              {"RFC6581-9.1-24"}},
        Wrong{"ReadRtrWithoutIrd", "rtr-read", with(good_reply_to("rtr-read"), {{21, 0}}), {"RFC6581-9.2-6"}},
        Wrong{"MarkersRefused", "markers", with(good_reply_to("markers"), {{16, 0x70}}), {"RFC5044-4.3-2"}},
        Wrong{"ReservedRefused", "reserved-bits", with(good_reply_to("reserved-bits"), {{16, 0x70}}), {"RFC6581-6-5"}},
        Wrong{"ReservedEchoed", "reserved-bits", with(good_reply_to("reserved-bits"), {{16, 0x5F}}), {"RFC6581-6-4"}}),
    [](const auto& p) { return std::string(p.param.name); });

// What RFC 6581 allows, though it looks odd.
TEST(ProbeJudgement, AllowedRepliesHaveNoDeviation) {
  const Bytes reply = good_reply_to("enhanced");
  for (const auto& [why, allowed] :
       {std::pair{"it wants Markers", with(reply, {{16, 0xD0}})},
        {"it wants no CRC", with(reply, {{16, 0x10}})},
        {"its IRD is below our ORD", with(reply, {{21, 0}})},
        {"a form we did not offer", with(reply, {{20, 0xC0}})},
        {"it leaves both to the ULP", with(reply, {{20, 0xBF}, {21, 0xFF}, {22, 0xFF}, {23, 0xFF}})}}) {
    EXPECT_THAT(ids(record("enhanced", allowed), kHealthy), IsEmpty()) << why;
  }
  EXPECT_THAT(ids(record("enhanced", with(reply, {{16, 0x70}, {23, 99}})), kHealthy), IsEmpty())
      << "a reject may state the ORD that it needs";
  EXPECT_THAT(ids(record("rtr-read", with(good_reply_to("rtr-read"), {{22, 0x80}})), kHealthy),
              ElementsAre("RFC6581-9.2-12"))
      << "no common form is no deviation, but Read is omitted";
}

TEST(ProbeJudgement, EveryPrefixOfAReplyIsShort) {
  const Bytes whole = good_reply_to("enhanced");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    const char* expected = n < mpa::kStartupHeaderBytes ? "RFC5044-7.1.2-8" : "RFC5044-7.1.1-29";
    EXPECT_THAT(ids(record("enhanced", cut, TcpState::kClosed), kHealthy), ElementsAre(expected)) << n;
  }
}

struct Silent {
  const char* question;
  TcpState tcp;
  const char* id;  // "": no deviation
};

TEST(ProbeJudgement, EndsWithoutReply) {
  for (const Silent& c : {Silent{"enhanced", TcpState::kReset, "RFC5044-7.1.2-8"},
                          {"revision-1", TcpState::kClosed, "RFC6581-6-9"},
                          {"unenhanced", TcpState::kClosed, "RFC6581-10-6"},
                          {"markers", TcpState::kReset, "RFC5044-4.3-2"},
                          {"reserved-bits", TcpState::kClosed, "RFC6581-6-5"},
                          {"private-data-max", TcpState::kClosed, "RFC5044-7.1.2-28"},
                          {"revision-3", TcpState::kOpen, "RFC5044-7.1.1-26"},
                          {"revision-3", TcpState::kReset, ""}}) {
    const auto found = ids(record(c.question, {}, c.tcp), kHealthy);
    EXPECT_EQ(found, *c.id == 0 ? std::vector<std::string>{} : std::vector<std::string>{c.id}) << c.question;
  }
}

TEST(ProbeJudgement, ResponderWithoutRfc6581MayCloseOnEnhancedRequests) {
  Known old;
  old.replies = true;
  EXPECT_THAT(ids(record("enhanced", {}, TcpState::kClosed), old), IsEmpty());
  EXPECT_THAT(ids(record("enhanced", {}, TcpState::kOpen), old), ElementsAre("RFC5044-7.1.2-8"));
}

TEST(ProbeJudgement, CrcRefused) {
  const std::vector<Record> records{record("enhanced", with(good_reply_to("enhanced"), {{16, 0x30}})),
                                    record("crc-off", good_reply_to("crc-off"))};
  const Known known = learn(records);
  EXPECT_THAT(ids(records[0], known), ElementsAre("RFC5044-4.4-1"));
  EXPECT_THAT(ids(records[1], known), IsEmpty());
  EXPECT_THAT(ids(record("enhanced", {}, TcpState::kReset), known), ElementsAre("RFC5044-4.4-1"));
}

TEST(ProbeJudgement, WhatFollowsTheRtr) {
  for (const auto& [fate, id] : {std::pair{Fate::kNoResponse, "RFC6581-9.2-6"},
                                 {Fate::kTerminated, "RFC6581-1.1-2"},
                                 {Fate::kEnded, "RFC6581-1.1-2"},
                                 {Fate::kBadCrc, "RFC5044-7.1.1-16"},
                                 {Fate::kOdd, "RFC6581-9.2-6"}}) {
    Record r = record("enhanced", good_reply_to("enhanced"));
    r.answer.rtr = {.form = mpa::Rtr::kRead, .fate = fate, .code = TerminateCode{2, 0, 7}, .what = ""};
    EXPECT_THAT(ids(r, kHealthy), ElementsAre(id));
  }
}

TEST(ProbeJudgement, ReservedBitsOfRpcPrivateData) {
  Bytes reply = with(good_reply_to("revision-1"), {{19, 9}});
  const auto message = rpcrdma::PrivateData{}.encode();
  reply.push_back(std::byte{0x55});
  reply.insert(reply.end(), message.begin(), message.end());
  EXPECT_THAT(ids(record("revision-1", reply), kHealthy), IsEmpty());
  EXPECT_THAT(ids(record("revision-1", with(reply, {{26, 0x02}})), kHealthy), ElementsAre("RFC8797-4-8"));
  EXPECT_THAT(ids(record("revision-1", with(reply, {{26, 0x02}, {25, 2}})), kHealthy), IsEmpty()) << "version 2";
}

// Every rule is a row of requirements/, with its level.
TEST(ProbeRules, AreRequirements) {
  std::map<std::string, std::string, std::less<>> levels;
  for (const char* name : {"rfc5043", "rfc5044", "rfc6581", "rfc8797"}) {
    std::ifstream in(std::string(IWARP_REQUIREMENTS) + "/" + name + ".tsv");
    for (std::string line; std::getline(in, line);) {
      std::istringstream row(line);
      std::string id, level;
      std::getline(std::getline(row, id, '\t'), level, '\t');
      levels[id] = level;
    }
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(Rule::kCount); ++i) {
    const RuleText& rule = text(static_cast<Rule>(i));
    const auto found = levels.find(rule.id);
    ASSERT_NE(found, levels.end()) << rule.id;
    EXPECT_EQ(found->second, rule.level) << rule.id;
  }
  EXPECT_EQ(section("RFC6581-9.1-12"), "RFC 6581 s9.1");
}

TEST(ProbeSummary, SaysWhatWasNegotiated) {
  std::vector<Record> records;
  for (const char* name : {"enhanced", "crc-off", "rtr-write", "depth-max"})
    records.push_back(record(name, good_reply_to(name)));
  records[1].answer.octets = with(records[1].answer.octets, {{16, 0x50}});
  records[3].answer.octets = with(records[3].answer.octets, {{20, 0x80}, {21, 128}, {22, 0xC0}, {23, 64}});
  std::map<std::string, std::string> facts;
  for (const Fact& f : summarise(records)) facts[std::string(f.name)] = f.value;
  EXPECT_EQ(facts["crc"], "always on");
  EXPECT_THAT(facts["ird_ord"], HasSubstr("IRD/ORD at most 128/64"));
  EXPECT_THAT(facts["rtr"], HasSubstr("of Write and Read: Write+Read; of Write: Write; of Read: not known"));
  EXPECT_THAT(facts["revisions"], HasSubstr("2 enhanced: accepted; 2 unenhanced: not known"));
  EXPECT_EQ(facts["inline"], "not stated (RFC 8797): 1024 octets if this is RPC-over-RDMA");
}

TEST(ProbeReport, GivesTheSameAdviceOnce) {
  const Bytes only_read = with(good_reply_to("enhanced"), {{22, 0x40}});
  const Report r = make_report("peer:1", {record("enhanced", only_read), record("crc-off", only_read),
                                          record("rtr-write", good_reply_to("rtr-write"))});
  EXPECT_EQ(r.deviations[0].size(), 1U);
  EXPECT_THAT(r.deviations[1], IsEmpty());
  EXPECT_EQ(grave(r.deviations), 0U);
  EXPECT_THAT(conclusion(r), HasSubstr("none, 1 piece of advice; not known for 15 questions of 18"));
}

TEST(ProbeSummary, DoesNotGuessWhatItDidNotSee) {
  for (const std::vector<Record>& records :
       {std::vector<Record>{}, std::vector<Record>{record("enhanced", {}, TcpState::kUnreachable)}}) {
    std::map<std::string, std::string> facts;
    for (const Fact& f : summarise(records)) facts[std::string(f.name)] = f.value;
    EXPECT_EQ(facts["crc"], "not known");
    EXPECT_EQ(facts["markers"], "wanted by it: not known; M=1 asked of it: not known");
    EXPECT_EQ(facts["peer_to_peer"], "A=1: not known; A=0: not known");
    EXPECT_EQ(facts["inline"], "not known");
    EXPECT_THAT(facts["ird_ord"], HasSubstr("IRD/ORD at most not known;"));
    EXPECT_EQ(facts["private_data"], "64 octets: not known; 508 octets: not known");
  }
}

TEST(ProbeSummary, HalfOfTheCrcIsNotTheWholeOfIt) {
  const auto crc = [](const std::vector<Record>& records) {
    for (const Fact& f : summarise(records)) {
      if (f.name == "crc") return f.value;
    }
    return std::string("missing");
  };
  const Record with_crc = record("enhanced", good_reply_to("enhanced"));
  const Record without = record("crc-off", good_reply_to("crc-off"));
  EXPECT_EQ(crc({with_crc}), "on where it is wanted; C=0: not known");
  EXPECT_EQ(crc({without}), "off where nobody wants it; C=1: not known");
  EXPECT_EQ(crc({with_crc, without}), "on if either side wants it");
  EXPECT_EQ(crc({with_crc, record("crc-off", {}, TcpState::kClosed)}), "only on: C=0 is closed");
}

TEST(ProbeVerdict, TellsTheKindsOfPeersApart) {
  const Bytes good = good_reply_to("enhanced"), refusal = with(good, {{16, 0x70}});
  const Record gone = record("revision-1", {}, TcpState::kUnreachable);
  const auto of = [](const std::vector<Record>& records) { return name(verdict(make_report("peer:1", records))); };
  EXPECT_EQ(of({}), "unreachable");
  EXPECT_EQ(of({gone}), "unreachable");
  EXPECT_EQ(of({record("enhanced", {}, TcpState::kClosed)}), "no_mpa");
  EXPECT_EQ(of({record("enhanced", good)}), "healthy");
  EXPECT_EQ(of({record("enhanced", good), gone}), "unreachable") << "half of it is not known";
  EXPECT_EQ(of({record("enhanced", refusal)}), "refused");
  EXPECT_EQ(of({record("enhanced", refusal), record("crc-off", good_reply_to("crc-off"))}), "deviations")
      << "CRC refused";
  EXPECT_EQ(of({record("enhanced", with(good, {{16, 0x51}})), gone}), "deviations");
}

TEST(ProbeReport, ConnectionThatWasNotMadeIsNoDeviation) {
  const Report r = make_report(
      "peer:1", {record("enhanced", good_reply_to("enhanced")), record("markers", {}, TcpState::kUnreachable)});
  EXPECT_THAT(r.deviations[1], IsEmpty());
  EXPECT_THAT(conclusion(r), HasSubstr("M=1 asked of it: not known"));
}

}  // namespace
}  // namespace iwarp::test
