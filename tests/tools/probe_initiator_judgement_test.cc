// What `iwarp probe --listen` says about initiators as they should be and as they should not: pure, no sockets.
#include <gmock/gmock.h>

#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"
#include "tools/probe/initiator_judgement.h"
#include "tools/probe/initiator_report.h"

namespace iwarp::test {
namespace {

using namespace tools::probe;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = FirstMessage::Kind;

// A Request that offers Write and Read, IRD and ORD 4.
Bytes request_bytes(bool peer_to_peer = true) {
  mpa::StartupFrame f;
  f.crc = f.enhanced = true;
  f.enhanced_data = {
      .peer_to_peer = peer_to_peer, .rtr_write = peer_to_peer, .rtr_read = peer_to_peer, .ird = 4, .ord = 4};
  return octets(f);
}

Bytes with(Bytes frame, std::initializer_list<std::pair<std::size_t, unsigned>> changes) {
  for (const auto& [at, value] : changes) frame.at(at) = static_cast<std::byte>(value);
  return frame;
}

FirstMessage rtr(Kind kind) {
  return {.kind = kind, .empty = true};
}
FirstMessage terminate(std::uint8_t code) {
  return {.kind = Kind::kTerminate, .code = {2, 0, code}};
}

Encounter encounter(const std::string& trial, const FirstMessage& first, TcpState end = TcpState::kOpen,
                    Bytes request = request_bytes()) {
  Encounter e{.trial = trial_named(trial), .peer = "peer:1", .request = std::move(request)};
  e.reply = e.trial->reply(*e.parsed_request(), {});
  e.first = first;
  e.octets_behind = first.kind == Kind::kNone ? 0 : 20;
  e.at_end = end;
  return e;
}

std::vector<std::string> ids(const Encounter& e) {
  std::vector<std::string> out;
  for (const Deviation& d : judge(e)) out.emplace_back(text(d.rule).id);
  return out;
}

struct Case {
  const char* name;
  Encounter e;
  std::vector<std::string> ids;
};

class Initiator : public ::testing::TestWithParam<Case> {};

TEST_P(Initiator, IsJudged) {
  EXPECT_EQ(ids(GetParam().e), GetParam().ids);
}

INSTANTIATE_TEST_SUITE_P(
    DoesWell, Initiator,
    ::testing::Values(Case{"SendsTheRead", encounter("accept", rtr(Kind::kRead)), {}},
                      Case{"SendsTheWrite", encounter("accept", rtr(Kind::kWrite)), {}},
                      Case{"SendsTheOnlyOne", encounter("rtr-write", rtr(Kind::kWrite)), {}},
                      Case{"HasNoSend", encounter("rtr-send", terminate(7), TcpState::kClosed), {}},
                      Case{"WritesWithoutReads", encounter("depth-0", rtr(Kind::kWrite)), {}},
                      Case{"RaisesItsIrd", encounter("ord-above", rtr(Kind::kRead)), {}},
                      Case{"DoesNotRaiseIt", encounter("ord-above", terminate(6), TcpState::kClosed), {}},
                      Case{"LeavesAfterReject", encounter("reject", {}, TcpState::kClosed), {}},
                      Case{"MayKeepTcpAfterReject", encounter("reject", {}), {}},
                      Case{"ClosesOnWrongKey", encounter("wrong-key", {}, TcpState::kReset), {}},
                      Case{"ClosesOnWrongLength", encounter("wrong-length", {}, TcpState::kClosed), {}},
                      Case{"MayCloseOnRevision1", encounter("revision-1", {}, TcpState::kClosed), {}},
                      Case{"IsSilentWithoutRtr", encounter("accept", {}, TcpState::kOpen, request_bytes(false)), {}},
                      Case{"SendsDataWithoutRtr",
                           encounter("accept", {.kind = Kind::kSend}, TcpState::kOpen, request_bytes(false)),
                           {}}),
    [](const auto& p) { return std::string(p.param.name); });

// Octets of a Request: 16 flags M 80 C 40 R 20 S 10, 17 Rev, 18 PD_Length, 20 A 80 B 40 IRD, 22 C 80 D 40 ORD.
INSTANTIATE_TEST_SUITE_P(
    BreaksARule, Initiator,
    ::testing::Values(
        Case{"SendsNoRtr", encounter("accept", {}), {"RFC6581-9.2-17"}},
        Case{"Leaves", encounter("accept", {}, TcpState::kClosed), {"RFC6581-9.2-17"}},
        Case{"SendsWhatIsNotNamed", encounter("rtr-write", rtr(Kind::kRead)), {"RFC6581-9.2-17"}},
        Case{"SendsDataFirst", encounter("accept", {.kind = Kind::kSend}), {"RFC6581-5-2"}},
        Case{"SendsNoFpdu", encounter("accept", {.kind = Kind::kNoFpdu, .what = "x"}), {"RFC6581-9.2-17"}},
        Case{"SendsAWrongCrc", encounter("crc", {.kind = Kind::kBadCrc}), {"RFC5044-7.1.1-16"}},
        Case{"GoesOnWithoutAForm", encounter("rtr-send", rtr(Kind::kWrite)), {"RFC6581-9.2-18"}},
        Case{"LeavesWithoutAWord", encounter("rtr-send", {}, TcpState::kReset), {"RFC6581-9.2-18"}},
        Case{"SaysAnotherCode", encounter("rtr-send", terminate(5), TcpState::kClosed), {"RFC6581-9.2-20"}},
        Case{"StaysAfterTerminate", encounter("rtr-send", terminate(7)), {"RFC6581-9.2-19"}},
        Case{"ReadsWithIrd0", encounter("depth-0", rtr(Kind::kRead)), {"RFC6581-9.1-16"}},
        Case{"SaysAnotherCodeOfIrd", encounter("ord-above", terminate(5), TcpState::kClosed), {"RFC6581-9.1-19"}},
        Case{"ChecksReservedBits", encounter("reserved-bits", {}, TcpState::kClosed), {"RFC6581-6-5"}},
        Case{"HasNoRoom", encounter("private-data-max", {}, TcpState::kReset), {"RFC5044-7.1.2-28"}},
        Case{"GoesOnAfterReject", encounter("reject", rtr(Kind::kWrite)), {"RFC5044-7.1.2-16"}},
        Case{"TakesAnyKey", encounter("wrong-key", rtr(Kind::kWrite)), {"RFC5044-7.1.1-7"}},
        Case{"WaitsForAnotherKey", encounter("wrong-key", {}), {"RFC5044-7.1.1-7"}},
        Case{"TakesAnyLength", encounter("wrong-length", {}), {"RFC5044-7.1.2-14"}},
        Case{
            "LeavesWithoutRtr", encounter("accept", {}, TcpState::kClosed, request_bytes(false)), {"RFC5044-7.1.2-17"}},
        Case{"SpeaksFirst",
             encounter("accept", rtr(Kind::kWrite), TcpState::kOpen, request_bytes() + Bytes(4)),
             {"RFC5044-7.1.2-13"}},
        Case{"SetsReservedBits",
             encounter("accept", rtr(Kind::kWrite), TcpState::kOpen, with(request_bytes(), {{16, 0x51}})),
             {"RFC6581-6-4"}},
        Case{"RejectsInARequest",
             encounter("accept", rtr(Kind::kWrite), TcpState::kOpen, with(request_bytes(), {{16, 0x70}})),
             {"RFC5044-7.1.1-19"}},
        Case{"OffersNoForm",
             encounter("accept", terminate(7), TcpState::kClosed, with(request_bytes(), {{22, 0}})),
             {"RFC6581-9.2-9"}},
        Case{"OffersFormsWithoutA",
             encounter("accept", {}, TcpState::kOpen, with(request_bytes(false), {{22, 0x80}})),
             {"RFC6581-9.2-24"}},
        Case{"IsOfRevision3",
             encounter("accept", rtr(Kind::kWrite), TcpState::kOpen, with(request_bytes(), {{17, 3}})),
             {"RFC5044-7.1.1-24"}}),
    [](const auto& p) { return std::string(p.param.name); });

TEST(ProbeInitiator, WhatIsNoRequestIsNamed) {
  const std::string_view text = "GET / HTTP/1.1\r\nHost: x\r\n";
  const auto bytes = std::as_bytes(std::span(text));
  Encounter e{.trial = trial_named("accept"), .peer = "peer:1", .request = {bytes.begin(), bytes.end()}};
  EXPECT_THAT(ids(e), ElementsAre("RFC5044-7.1.1-2"));
  EXPECT_THAT(line(e), HasSubstr("no MPA but HTTP: \"GET / HTTP/1.1\""));
  EXPECT_EQ(verdict(make_report({e})), Verdict::kNoMpa);
}

TEST(ProbeInitiator, SummaryDoesNotGuess) {
  const InitiatorReport r = make_report({encounter("accept", rtr(Kind::kRead))});
  EXPECT_EQ(verdict(r), Verdict::kHealthy);
  const std::string says = conclusion(r);
  EXPECT_THAT(says, HasSubstr("revisions     2 enhanced\n"));
  EXPECT_THAT(says, HasSubstr("crc           C=1; of its FPDUs: right\n"));
  EXPECT_THAT(says, HasSubstr("offered: Write+Read; all named: Read RTR; only Write: not known;"));
  EXPECT_THAT(says, HasSubstr("IRD/ORD 4/4; with IRD 0 of the peer: not known;"));
  EXPECT_THAT(says, HasSubstr("fallback      not known\n"));
  EXPECT_THAT(says, HasSubstr("deviations    none; not known for 14 questions of 15\n"));
  EXPECT_EQ(verdict(make_report({})), Verdict::kUnreachable);
  EXPECT_EQ(conclusion(make_report({})), "nobody has connected\n");
}

TEST(ProbeInitiator, SecondTryAfterACloseIsNamed) {
  Encounter e = encounter("close", {});
  EXPECT_THAT(e.reply, IsEmpty());
  EXPECT_THAT(line(e), HasSubstr("; no other Request in time"));
  e.next_request = with(request_bytes(), {{16, 0x40}, {17, 1}});
  EXPECT_THAT(line(e), HasSubstr("; tries again with revision 1\n"));
  e.next_request = request_bytes(false);
  EXPECT_THAT(line(e), HasSubstr("; tries again with revision 2 enhanced, A=0\n"));
}

TEST(ProbeTrial, RepliesAreFormedAsAsked) {
  const Bytes request = request_bytes();
  const RawFrame asked = *RawFrame::parse(request);
  const auto said = [&](const char* trial) {
    const Bytes reply = trial_named(trial)->reply(asked, {});
    return RawFrame::parse(reply)->to_string();
  };
  EXPECT_EQ(said("accept"), "M=0 C=1 R=0 S=1 rev=2 A=1 B=0 C_write=1 D=1 IRD=4 ORD=4");
  EXPECT_EQ(said("rtr-send"), "M=0 C=1 R=0 S=1 rev=2 A=1 B=1 C_write=0 D=0 IRD=4 ORD=4");
  EXPECT_EQ(said("crc"), "M=0 C=0 R=0 S=1 rev=2 A=1 B=0 C_write=1 D=1 IRD=4 ORD=4");
  EXPECT_EQ(said("depth-0"), "M=0 C=1 R=0 S=1 rev=2 A=1 B=0 C_write=1 D=1 IRD=0 ORD=4");
  EXPECT_EQ(said("ord-above"), "M=0 C=1 R=0 S=1 rev=2 A=1 B=0 C_write=1 D=1 IRD=4 ORD=5");
  EXPECT_THAT(said("reserved-bits"), HasSubstr("reserved=15"));
  EXPECT_THAT(said("private-data-max"), HasSubstr(", 508 octets of private data"));
  EXPECT_EQ(said("revision-1"), "M=0 C=1 R=0 S=0 rev=1");
  EXPECT_THAT(said("reject"), HasSubstr("R=1 S=1 rev=2 A=1"));
  const Bytes wrong = trial_named("wrong-length")->reply(asked, {});
  EXPECT_EQ(RawFrame::parse(wrong)->private_data_length, 520);
  EXPECT_FALSE(RawFrame::parse(trial_named("wrong-key")->reply(asked, {}))->is_reply());
}

// An initiator that is not enhanced gets what it understands.
TEST(ProbeTrial, RepliesToRevision1AreOfRevision1) {
  mpa::StartupFrame f;
  f.revision = 1;
  const Bytes request = octets(f);
  for (const Trial& t : trials()) {
    const Bytes reply = t.reply(*RawFrame::parse(request), {});
    if (t.answer != Trial::Answer::kAccept) continue;
    const auto said = RawFrame::parse(reply);
    EXPECT_FALSE(said->s_bit) << t.name;
    EXPECT_EQ(said->revision, 1) << t.name;
  }
}

TEST(ProbeFirstMessage, IsToldByItsFpdu) {
  const auto of = [](const Bytes& octets) {
    Bytes copy = octets;
    const auto found = first_message(true, copy);
    return found ? found->to_string() : "more";
  };
  EXPECT_EQ(of(fpdu(write_segment(Stag{1}, 1, {}), true)), "Write RTR");
  EXPECT_EQ(of(fpdu(write_segment(Stag{1}, 1, Bytes(8)), true)), "Write with data");
  EXPECT_EQ(of(fpdu(send_segment({}), true)), "Send RTR");
  EXPECT_EQ(of(fpdu(read_request_segment({.size = 0}), true)), "Read RTR");
  EXPECT_EQ(of(fpdu(read_request_segment({.size = 9}), true)), "Read with data");
  EXPECT_EQ(of(fpdu(hex("0102"), true)).substr(0, 22), "a segment that is none");
  Bytes wrong = fpdu(send_segment({}), true);
  wrong.back() ^= std::byte{1};
  EXPECT_EQ(of(wrong), "an FPDU with a wrong CRC");
  wrong.pop_back();
  EXPECT_EQ(of(wrong), "more");
  const rdmap::ReadRequest asked{.sink_stag = Stag{7}, .sink_to = 9};
  EXPECT_EQ(read_response(asked, true), fpdu(tagged_segment(rdmap::Opcode::kReadResponse, Stag{7}, 9, {}), true));
}

}  // namespace
}  // namespace iwarp::test
