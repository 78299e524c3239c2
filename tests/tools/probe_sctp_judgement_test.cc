// What `iwarp probe --llp sctp` says about answers as they should be and as they should not: pure, no sockets.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sstream>

#include "iwarp/rpcrdma/private_data.h"
#include "tests/tools/probe_sctp_answers.h"
#include "tools/probe/sctp_report.h"
#include "tools/probe/sctp_summary.h"

namespace iwarp::test {
namespace {

using namespace tools::probe;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Fate = RtrResult::Fate;
using Messages = std::vector<SctpMessage>;

const SctpQuestion& question(const std::string& name) {
  return *sctp_question_named(name);
}
SctpRecord record(const std::string& name, SctpAnswer answer) {
  return {&question(name), std::move(answer)};
}
// One that does all it is asked for.
SctpRecord good(const std::string& name) {
  const SctpQuestion& q = question(name);
  if (!q.known()) return record(name, heard({control(0, kTerminate)}));
  SctpAnswer a = heard({accept(q), control(1, kTerminate)});
  if (q.sessions != SctpQuestion::Sessions::kOne)
    a.sessions.push_back({.stream = static_cast<std::uint16_t>(q.sessions == SctpQuestion::Sessions::kTwo ? 2 : 0),
                          .heard = {accept(q), read_response(1), control(2, kTerminate)}});
  return record(name, std::move(a));
}

constexpr SctpKnown kHealthy{.answers = true,
                             .enhanced = true,
                             .accepts = true,
                             .accepts_plain = true,
                             .names = {.send = false, .write = true, .read = true}};
constexpr SctpKnown kOld{.answers = true, .enhanced = false, .accepts = false, .accepts_plain = true, .names = {}};

std::vector<std::string> ids(const SctpRecord& r, const SctpKnown& known = kHealthy) {
  std::vector<std::string> out;
  for (const Deviation& d : judge(r, known)) out.emplace_back(text(d.rule).id);
  return out;
}
std::vector<std::string> ids(const std::string& name, Messages messages, const SctpKnown& known = kHealthy) {
  return ids(record(name, heard(std::move(messages))), known);
}

TEST(ProbeSctpQuestions, AreInitiatesAsTheyShouldBe) {
  const Bytes chosen = hex("0102");
  for (const SctpQuestion& q : sctp_questions()) {
    const Bytes message = q.initiate(chosen);
    const auto parsed = sctp::SessionControl::parse(message);
    if (!q.known()) {
      EXPECT_EQ(parsed.error().code, Errc::kSessionControl) << q.name;
      EXPECT_NE(q.code, sctp::kExperimentalFunctionCode);
      continue;
    }
    ASSERT_TRUE(parsed) << q.name;
    EXPECT_EQ(parsed->ssn.value, 0);
    EXPECT_EQ(sctp::plain(parsed->function), sctp::Function::kInitiate);
    EXPECT_EQ(parsed->data.has_value(), q.enhanced());
    if (parsed->data) {
      EXPECT_EQ(*parsed->data, q.data);
    }
    EXPECT_EQ(parsed->private_data.size(), q.private_data_bytes.value_or(chosen.size()));
  }
  EXPECT_EQ(question("private-data-max").initiate({}).size(), 516U);
  EXPECT_EQ(question("private-data-512").initiate({}).size(), 516U);
  EXPECT_EQ(sctp_question_named("crc-off"), nullptr);
}

TEST(ProbeSctpJudgement, GoodAnswersHaveNoDeviation) {
  for (const SctpQuestion& q : sctp_questions()) EXPECT_THAT(ids(good(std::string(q.name))), IsEmpty()) << q.name;
}

struct WrongSctp {
  const char* name;
  const char* question;
  Messages heard;
  std::vector<std::string> ids;
};

class BadSctpAnswer : public ::testing::TestWithParam<WrongSctp> {};

TEST_P(BadSctpAnswer, IsNamed) {
  EXPECT_EQ(ids(GetParam().question, GetParam().heard), GetParam().ids);
}

SctpMessage ordered(SctpMessage m) {
  m.ordered = true;
  return m;
}
SctpMessage with_ppid(SctpMessage m, std::uint32_t ppid) {
  m.ppid = ppid;
  return m;
}
// An EnhancedAccept with this in place of what was asked for. Octets: A 80 B 40 IRD, IRD, C 80 D 40 ORD, ORD.
SctpMessage says(const char* enhanced) {
  return control(0, kEnhancedAccept, hex(enhanced));
}
const SctpMessage kGood = says("0008 0008"), kPlainGood = control(0, kAccept);

INSTANTIATE_TEST_SUITE_P(
    Rules, BadSctpAnswer,
    ::testing::Values(
        WrongSctp{"Ordered", "enhanced", {ordered(kGood), ordered(control(1, kTerminate))}, {"RFC5043-10-1"}},
        WrongSctp{"OtherPpid", "enhanced", {kGood, with_ppid(segment(1), 46)}, {"RFC5043-5.2-1"}},
        WrongSctp{"AllOfOtherPpid", "enhanced", {with_ppid(kGood, 0)}, {"RFC5043-5.2-1", "RFC5043-5.2.3-7"}},
        WrongSctp{"PpidInHostOrder", "enhanced", {with_ppid(kGood, 0x11000000)}, {"RFC5043-5.2-1", "RFC5043-5.2.3-7"}},
        WrongSctp{"NoSsn", "enhanced", {kGood, {16, false, hex("00")}}, {"RFC5043-5.2.1-1"}},
        WrongSctp{"NoFunctionCode", "enhanced", {kGood, {17, false, hex("0001 00")}}, {"RFC5043-5.2.3-1"}},
        WrongSctp{"UnknownFunctionCode", "enhanced", {control(0, 8)}, {"RFC5043-5.2.3-2"}},
        WrongSctp{"ExperimentalCodeLater", "enhanced", {kGood, control(1, 0xFFFF)}, {"RFC5043-5.2.3-2"}},
        WrongSctp{"TooMuchPrivateData",
                  "enhanced",
                  {control(0, kEnhancedAccept, hex("0008 0008") + Bytes(509))},
                  {"RFC5043-5.2.3-5"}},
        WrongSctp{
            "TerminateWithPrivateData", "enhanced", {kGood, control(1, kTerminate, Bytes(1))}, {"RFC5043-5.2.3-6"}},
        WrongSctp{
            "AcceptWithoutEnhancedData", "enhanced", {control(0, kEnhancedAccept, hex("000800"))}, {"RFC6581-7-21"}},
        WrongSctp{"BeginsWith1", "enhanced", {control(1, kEnhancedAccept, hex("0008 0008"))}, {"RFC5043-6.1-1"}},
        WrongSctp{"CountsNotAtAll", "enhanced", {kGood, control(0, kTerminate)}, {"RFC5043-5.2.1-2"}},
        WrongSctp{"LeavesAGap", "enhanced", {kGood, control(2, kTerminate)}, {"RFC5043-6-2"}},
        WrongSctp{
            "SegmentFirst", "enhanced", {segment(0), control(1, kEnhancedAccept, hex("0008 0008"))}, {"RFC5043-6.1-2"}},
        WrongSctp{
            "AcceptsTwice", "enhanced", {kGood, control(1, kEnhancedAccept, hex("0008 0008"))}, {"RFC5043-6.1-2"}},
        WrongSctp{"InitiateComesBack", "plain", {control(0, 1)}, {"RFC5043-6.1-2"}},
        WrongSctp{"BehindTheTerminate", "plain", {kPlainGood, control(1, kTerminate), segment(2)}, {"RFC5043-6.1-2"}},
        WrongSctp{"BehindTheReject", "plain", {control(0, kReject), control(1, kTerminate)}, {"RFC5043-6.1-2"}},
        WrongSctp{"BehindTheTerminateThatAnswers",
                  "rtr-send",
                  {control(0, kTerminate), control(1, kTerminate)},
                  {"RFC5043-6.1-2"}},
        WrongSctp{"AcceptsAnUnknownCode", "unknown-code", {kPlainGood}, {"RFC5043-6.1-3"}},
        WrongSctp{"RejectsAnUnknownCode", "unknown-code", {control(0, kReject)}, {"RFC5043-6.1-3"}},
        WrongSctp{"PlainAcceptToEnhanced", "enhanced", {kPlainGood}, {"RFC6581-7-22"}},
        WrongSctp{"EnhancedAcceptToPlain", "plain", {kGood}, {"RFC6581-7-22"}},
        WrongSctp{"EnhancedRejectToPlain", "plain", {control(0, kEnhancedReject, hex("0008 0008"))}, {"RFC6581-7-22"}},
        WrongSctp{"PlainRejectToEnhanced", "enhanced", {control(0, kReject)}, {"RFC6581-7-3"}},
        WrongSctp{"PlainIsTerminated", "plain", {control(0, kTerminate)}, {"RFC6581-10-13"}},
        WrongSctp{"PlainIsNotAnswered", "plain", {}, {"RFC6581-10-13"}},
        WrongSctp{"MuchPrivateDataIsTerminated", "private-data-max", {control(0, kTerminate)}, {"RFC5043-9-3"}},
        WrongSctp{"MuchPrivateDataIsNotAnswered", "private-data-512", {}, {"RFC5043-9-3"}},
        WrongSctp{"NotAnswered", "depth-0", {}, {"RFC5043-5.2.3-7"}},
        WrongSctp{"AAnsweredByNotA", "peer-to-peer", {says("0008 0008")}, {"RFC6581-9.2-11"}},
        WrongSctp{"NotAAnsweredByA", "enhanced", {says("8008 8008")}, {"RFC6581-9.2-23"}},
        WrongSctp{"FlagsWithoutA", "enhanced", {says("0008 4008")}, {"RFC6581-9.2-24"}},
        WrongSctp{"NoForm", "peer-to-peer", {says("8008 0008")}, {"RFC6581-9.2-16"}},
        WrongSctp{"OmitsWrite", "peer-to-peer", {says("8008 4008")}, {"RFC6581-9.2-12"}},
        WrongSctp{"OrdAboveIrd", "enhanced", {says("0008 0009")}, {"RFC6581-9.1-12"}},
        WrongSctp{"OrdNotLeftToUlp", "depth-ulp", {says("3fff 0080")}, {"RFC6581-9.1-27"}},
        WrongSctp{"IrdNotLeftToUlp", "depth-ulp", {says("0080 3fff")}, {"RFC6581-9.1-24"}},
        WrongSctp{"ReadRtrWithoutIrd", "rtr-read", {says("8000 4008")}, {"RFC6581-9.2-6"}}),
    [](const auto& p) { return std::string(p.param.name); });

// What the documents allow, though it looks odd.
TEST(ProbeSctpJudgement, AllowedAnswersHaveNoDeviation) {
  const Messages overtaking{control(2, kTerminate), segment(1), kGood};
  EXPECT_THAT(ids("enhanced", overtaking), IsEmpty()) << "unordered messages come in any order";
  EXPECT_THAT(ids("enhanced", {kGood}), IsEmpty()) << "nobody can count on a Terminate of the peer";
  EXPECT_THAT(ids("plain", {kPlainGood, segment(1), segment(2)}), IsEmpty()) << "it may speak first";
  EXPECT_THAT(ids("plain", {control(0, kReject, hex("01"))}), IsEmpty());
  EXPECT_THAT(ids("enhanced", {control(0, kEnhancedReject, hex("0000 3000"))}), IsEmpty())
      << "a reject may state the ORD that it needs";
  EXPECT_THAT(ids("enhanced", {control(0, kEnhancedReject)}), IsEmpty()) << "without enhanced data it is a reject";
  EXPECT_THAT(ids("rtr-send", {control(0, kEnhancedReject, hex("8000 c000"))}), IsEmpty()) << "of its Provider";
  EXPECT_THAT(ids("depth-0", {control(0, kTerminate)}), IsEmpty()) << "it may be for want of room";
  EXPECT_THAT(ids("private-data", {control(0, kEnhancedReject, hex("0000 0000"))}), IsEmpty()) << "its ULP may";
  EXPECT_THAT(ids("enhanced", {says("0000 0000")}), IsEmpty()) << "its IRD is below our ORD";
  EXPECT_THAT(ids("unknown-code", {}), IsEmpty()) << "no document says by what a session is ended";
  EXPECT_THAT(ids(record("unknown-code", heard({}, SctpState::kAborted))), IsEmpty());
}

TEST(ProbeSctpJudgement, WhatIsUnderWayIsNotMissed) {
  SctpAnswer cut = heard({kGood, segment(3)}, SctpState::kAborted);
  EXPECT_THAT(ids(record("enhanced", cut)), IsEmpty());
  cut = heard({segment(1)}, SctpState::kAborted);
  EXPECT_THAT(ids(record("depth-0", cut)), ElementsAre("RFC5043-5.2.3-7"));
}

TEST(ProbeSctpJudgement, PeerWithoutRfc6581MayEndEnhancedSessions) {
  for (const char* name : {"enhanced", "peer-to-peer", "private-data-max", "two-sessions"}) {
    EXPECT_THAT(ids(name, {control(0, kTerminate)}, kOld), IsEmpty()) << name;
    EXPECT_THAT(ids(record(name, heard({}, SctpState::kAborted)), kOld), IsEmpty()) << name;
  }
  EXPECT_THAT(ids("enhanced", {}, kOld), ElementsAre("RFC5043-5.2.3-7")) << "but not pass it over";
  EXPECT_THAT(ids("private-data-512", {control(0, kTerminate)}, kOld), ElementsAre("RFC5043-9-3"));
}

TEST(ProbeSctpJudgement, AssociationThatEndsInPlaceOfAnAnswer) {
  for (const SctpState state : {SctpState::kAborted, SctpState::kShutDown}) {
    EXPECT_THAT(ids(record("depth-1", heard({}, state))), ElementsAre("RFC5043-5.2.3-7"));
    EXPECT_THAT(ids(record("plain", heard({}, state))), ElementsAre("RFC6581-10-13"));
    EXPECT_THAT(ids(record("private-data", heard({}, state))), ElementsAre("RFC5043-9-3"));
  }
}

TEST(ProbeSctpJudgement, SessionsOfAnAssociation) {
  SctpRecord r = good("two-sessions");
  r.answer.sessions[1].left = true;
  EXPECT_THAT(ids(r), ElementsAre("RFC5043-11.3-5"));
  r.answer.sessions[1].rtr = {.form = mpa::Rtr::kRead, .fate = Fate::kEnded, .code = {}, .what = ""};
  EXPECT_THAT(ids(r), ElementsAre("RFC5043-11.3-5")) << "which explains it";
  r.answer.sessions[0].left = true;
  EXPECT_THAT(ids(r), ElementsAre("RFC6581-1.1-2")) << "it had ended both";
  r = good("two-sessions");
  r.answer.sessions[1].heard = {control(0, kTerminate)};
  r.answer.sessions[1].left = true;
  EXPECT_THAT(ids(r), IsEmpty()) << "it has no room for two";
  r = good("stream-again");
  r.answer.sessions[1].heard = {control(2, kEnhancedAccept, hex("0008 0008"))};
  EXPECT_THAT(ids(r), ElementsAre("RFC5043-6.1-1")) << "it counts on";
}

TEST(ProbeSctpJudgement, AssociationItself) {
  SctpRecord r = good("enhanced");
  r.answer.init->inbound = 10;
  EXPECT_THAT(ids(r), ElementsAre("RFC5043-8-4"));
  r = good("enhanced");
  r.answer.strays = {5, 5};
  EXPECT_THAT(ids(r), ElementsAre("RFC5043-6.1-2"));
  r.answer.init->indication = 7;
  EXPECT_THAT(ids(r), IsEmpty()) << "not DDP: nothing to judge";
  r.answer.init.reset();
  EXPECT_THAT(ids(r), IsEmpty());
}

TEST(ProbeSctpJudgement, WhatFollowsTheRtr) {
  const Bytes terminate = hex("4147 00000000 00000002 00000001 00000000 11020000");
  EXPECT_EQ(rtr_result(mpa::Rtr::kRead, heard({kGood, read_response(1)}).sessions[0])->fate, Fate::kTaken);
  EXPECT_EQ(rtr_result(mpa::Rtr::kRead, heard({kGood, segment(1, terminate)}).sessions[0])->fate, Fate::kTerminated);
  EXPECT_EQ(rtr_result(mpa::Rtr::kRead, heard({kGood, segment(1, hex("0000"))}).sessions[0])->fate, Fate::kOdd);
  EXPECT_FALSE(rtr_result(mpa::Rtr::kRead, heard({kGood, control(1, kTerminate)}).sessions[0]));
  for (const auto& [fate, id] : {std::pair{Fate::kNoResponse, "RFC6581-9.2-6"},
                                 {Fate::kTerminated, "RFC6581-1.1-2"},
                                 {Fate::kEnded, "RFC6581-1.1-2"},
                                 {Fate::kOdd, "RFC6581-9.2-6"}}) {
    SctpRecord r = good("rtr-read");
    r.answer.sessions[0].rtr = {.form = mpa::Rtr::kRead, .fate = fate, .code = TerminateCode{1, 1, 2}, .what = ""};
    EXPECT_THAT(ids(r), ElementsAre(id));
  }
}

TEST(ProbeSctpJudgement, ReservedBitsOfRpcPrivateData) {
  const auto message = rpcrdma::PrivateData{}.encode();
  Bytes field(message.begin(), message.end());
  EXPECT_THAT(ids("plain", {control(0, kAccept, field)}), IsEmpty());
  field[5] = std::byte{2};
  EXPECT_THAT(ids("plain", {control(0, kAccept, field)}), ElementsAre("RFC8797-4-8"));
}

TEST(ProbeSctpJudgement, LearnsFromAllAnswers) {
  EXPECT_FALSE(learn(std::vector<SctpRecord>{record("enhanced", heard({control(0, 99)}))}).answers);
  const SctpKnown old =
      learn(std::vector<SctpRecord>{record("enhanced", heard({control(0, kTerminate)})), good("plain")});
  EXPECT_TRUE(old.answers && old.accepts_plain && !old.enhanced && !old.accepts);
  const SctpKnown both = learn(std::vector<SctpRecord>{good("enhanced"), good("plain"), good("rtr-write")});
  EXPECT_TRUE(both.enhanced && both.accepts && both.accepts_plain && both.names.write && !both.names.read);
  EXPECT_FALSE(learn(std::vector<SctpRecord>{good("private-data-max")}).accepts);
}

TEST(ProbeSctpControl, EveryPrefixIsReadAsFarAsItGoes) {
  const SctpMessage whole = control(3, kEnhancedAccept, hex("8008 4001 aa"));
  for (std::size_t n = 0; n <= whole.octets.size(); ++n) {
    SctpMessage cut = whole;
    cut.octets.resize(n);
    const auto c = RawControl::parse(cut);
    ASSERT_EQ(c.has_value(), n >= 4) << n;
    if (!c) continue;
    EXPECT_EQ(c->ssn, 3);
    EXPECT_EQ(c->enhanced.has_value(), n >= 8) << n;
    EXPECT_EQ(c->private_data().size(), n >= 8 ? n - 8 : n - 4);
  }
  EXPECT_EQ(RawControl::parse(whole)->to_string(),
            "EnhancedAccept A=1 B=0 C_write=0 D=1 IRD=8 ORD=1, 1 octets of private data");
  EXPECT_FALSE(RawControl::parse(segment(0, whole.octets)));
}

TEST(ProbeSctpControl, ASessionIsOverWhenAllHasCome) {
  EXPECT_FALSE(is_over(heard({kGood}).sessions[0]));
  EXPECT_FALSE(is_over(heard({kGood, control(2, kTerminate)}).sessions[0])) << "a segment is under way";
  EXPECT_TRUE(is_over(heard({control(2, kTerminate), kGood, segment(1)}).sessions[0]));
  EXPECT_TRUE(is_over(heard({control(0, kReject)}).sessions[0]));
}

TEST(ProbeSctpReport, SaysWhatWasSeen) {
  std::vector<SctpRecord> records;
  for (const SctpQuestion& q : sctp_questions()) records.push_back(good(std::string(q.name)));
  EXPECT_EQ(line(records[0]), "enhanced          accepted: EnhancedAccept A=0 B=0 C_write=0 D=0 IRD=8 ORD=8\n");
  const SctpReport report = make_report("peer:1", records);
  EXPECT_EQ(verdict(report), Verdict::kHealthy);
  EXPECT_THAT(conclusion(report),
              AllOf(HasSubstr("association   adaptation indication 1; streams 64 from it, 64 to it; 1400 octets"),
                    HasSubstr("sessions      enhanced: accepted; plain: accepted; unknown Function Code: Terminate"),
                    HasSubstr("two on an association: accepted, and each ends by itself; a stream again: accepted"),
                    HasSubstr("of all: Send+Write+Read; of Write and Read: Write+Read"),
                    HasSubstr("IRD/ORD at most 16382/16382; asked for 0/0: 0/0; for 1/1: 1/1; left to the ULP: left"),
                    HasSubstr("deviations    none\n"), Not(HasSubstr("not known"))));
  const auto j = to_json(report);
  EXPECT_EQ(j["llp"], "sctp");
  EXPECT_EQ(j["verdict"], "healthy");
  EXPECT_EQ(j["connections"][0]["association"]["indication"], 1);
  EXPECT_EQ(j["connections"][0]["sessions"][0]["answer"]["function"], "EnhancedAccept");
  EXPECT_EQ(j["connections"][0]["sessions"][0]["terminate"], true);
  EXPECT_EQ(j["connections"][14]["sessions"].size(), 2U);
}

TEST(ProbeSctpReport, Verdicts) {
  const auto of = [](std::vector<SctpRecord> records) { return verdict(make_report("p", std::move(records))); };
  SctpAnswer nobody;
  nobody.why = "no answer";
  EXPECT_EQ(of({}), Verdict::kUnreachable);
  EXPECT_EQ(of({record("enhanced", nobody)}), Verdict::kUnreachable);
  EXPECT_EQ(of({good("enhanced"), record("plain", nobody)}), Verdict::kUnreachable);
  EXPECT_EQ(of({record("enhanced", heard({})), record("plain", heard({}))}), Verdict::kNoMpa);
  EXPECT_EQ(of({record("enhanced", heard({control(0, kTerminate)}))}), Verdict::kRefused);
  EXPECT_EQ(of({record("enhanced", heard({control(0, kReject)}))}), Verdict::kDeviations);
  EXPECT_EQ(of({record("plain", heard({control(0, kReject)}))}), Verdict::kRefused);
  SctpAnswer other = heard({});
  other.sessions.clear();
  other.init->indication.reset();
  const SctpReport report = make_report("p", {record("enhanced", other)});
  EXPECT_EQ(sctp_name(verdict(report)), "no_ddp");
  EXPECT_THAT(conclusion(report),
              HasSubstr("p is not known as a DDP peer over SCTP: SCTP, but no DDP: its INIT ACK has "
                        "no adaptation indication"));
  EXPECT_EQ(to_json(report)["connections"][0]["association"]["indication"], nullptr);
}

TEST(ProbeSctpReport, DoesNotGuessWhatItDidNotSee) {
  SctpAnswer nobody;
  for (const std::vector<SctpRecord>& records : {std::vector<SctpRecord>{}, {record("enhanced", nobody)}}) {
    for (const Fact& f : summarise(records)) EXPECT_THAT(f.value, HasSubstr("not known")) << f.name;
  }
  std::map<std::string, std::string> facts;
  SctpRecord again = good("stream-again");
  again.answer.sessions.resize(1);
  SctpRecord together = good("two-sessions");
  together.answer.sessions[1].left = true;
  for (const Fact& f : summarise(std::vector<SctpRecord>{again, together})) facts[std::string(f.name)] = f.value;
  EXPECT_EQ(facts["several"],
            "two on an association: accepted, but they end together; a stream again: not asked: it sent no Terminate "
            "behind the first session");
}

}  // namespace
}  // namespace iwarp::test
