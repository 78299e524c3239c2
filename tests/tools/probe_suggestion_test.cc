// Which profile `iwarp probe` suggests: answers as the drivers give them, by docs/PROFILES.md and docs/PROBE.md, and
// answers that tell of nobody. Pure, no sockets.
#include "tools/probe/suggestion.h"

#include <gmock/gmock.h>

#include "tests/cm/raw_tcp.h"
#include "tools/probe/initiator_report.h"
#include "tools/probe/report.h"

namespace iwarp::test {
namespace {

using namespace tools::probe;
using ::testing::HasSubstr;

// Octets behind the Key: 16 flags M 80 C 40 R 20 S 10, 17 Rev, 18 PD_Length, 20 A 80 B 40 IRD, 22 C 80 D 40 ORD.
Record says(const std::string& question, const std::string& rest) {
  Answer a;
  a.octets = hex("4d504120 49442052 65702046 72616d65 " + rest);
  a.after_reply = a.at_end = TcpState::kOpen;
  return {question_named(question), a};
}
Record ends(const std::string& question, TcpState how = TcpState::kClosed) {
  Answer a;
  a.after_reply = a.at_end = how;
  return {question_named(question), a};
}

using Records = std::vector<Record>;

std::string of(const Records& records) {
  return std::string(suggest(records).profile);
}

// As docs/PROBE.md has it.
const Record kSiwEnhanced = says("enhanced", "50020004 8008 8008"),
             kSiwReserved = says("reserved-bits", "5f020004 8008 8008"),
             kSiwMost = says("depth-max", "50020004 8080 8080"), kSiwMostData = ends("private-data-max");

TEST(ProbeSuggestion, SiwRepeatsReservedBitsOrNamesWriteAndEndsAt128) {
  EXPECT_EQ(of({kSiwEnhanced, kSiwMost, kSiwMostData, kSiwReserved}), "linux-siw");
  EXPECT_EQ(of({kSiwReserved}), "linux-siw");
  EXPECT_EQ(of({kSiwEnhanced, kSiwMost}), "linux-siw");
  EXPECT_EQ(of({kSiwEnhanced}), "generic") << "others may name Write as well";
  EXPECT_EQ(of({kSiwEnhanced, says("depth-max", "50020004 8040 8040")}), "generic");
  // siw would not have taken these.
  EXPECT_EQ(of({kSiwReserved, says("private-data-max", "50020004 8008 8008")}), "generic");
}

TEST(ProbeSuggestion, Cxgb4NamesReadWhateverIsOffered) {
  const Record enhanced = says("enhanced", "50020004 8008 4008"), named = says("rtr-write", "50020004 8008 4008");
  EXPECT_EQ(of({enhanced, named, ends("private-data-max", TcpState::kReset)}), "linux-cxgb4");
  EXPECT_EQ(of({enhanced, named, says("depth-ulp", "50020004 8020 4020")}), "linux-cxgb4");
  EXPECT_EQ(of({enhanced, named}), "generic") << "iwarp with --rtr read does the same";
  EXPECT_EQ(
      of({enhanced, named, says("private-data-max", "50020004 8008 4008"), says("depth-ulp", "50020004 bfff 7fff")}),
      "generic")
      << "that is iwarp";
  EXPECT_EQ(of({enhanced, says("rtr-write", "50020004 8008 8008"), ends("private-data-max")}), "generic");
}

TEST(ProbeSuggestion, IrdmaHangsUpWithoutA) {
  const Record enhanced = says("enhanced", "50020004 8008 4008");
  EXPECT_EQ(of({enhanced, ends("client-server", TcpState::kReset)}), "linux-irdma");
  EXPECT_EQ(of({ends("enhanced", TcpState::kReset), ends("client-server", TcpState::kReset)}), "generic");
  EXPECT_EQ(of({enhanced, ends("client-server", TcpState::kOpen)}), "generic") << "no answer is no end";
  EXPECT_EQ(of({enhanced, ends("client-server", TcpState::kUnreachable)}), "generic");
  EXPECT_EQ(of({enhanced, says("client-server", "50020004 0008 0008")}), "generic");
}

TEST(ProbeSuggestion, NothingIsMadeOfNothing) {
  EXPECT_EQ(of({}), "generic");
  EXPECT_EQ(of({ends("enhanced"), says("revision-1", "40010000")}), "generic") << "revision 1 has many";
  for (const Question& q : questions()) EXPECT_EQ(of({says(std::string(q.name), "")}), "generic");
}

// --- Initiators

Encounter asks(const std::string& trial, const std::string& rest, const FirstMessage& first = {},
               TcpState end = TcpState::kOpen) {
  Encounter e{.trial = trial_named(trial), .peer = "peer:1"};
  e.request = hex("4d504120 49442052 65712046 72616d65 " + rest);
  e.reply = e.trial->reply(*e.parsed_request(), {});
  e.first = first;
  e.octets_behind = first.kind == FirstMessage::Kind::kNone ? 0 : 52;
  e.at_end = end;
  return e;
}
FirstMessage read_rtr(std::uint32_t sink, std::uint64_t sink_to, std::uint32_t source, std::uint64_t source_to) {
  return {.kind = FirstMessage::Kind::kRead,
          .empty = true,
          .read = {.sink_stag = Stag{sink}, .sink_to = sink_to, .source_stag = Stag{source}, .source_to = source_to}};
}

std::string of(const std::vector<Encounter>& encounters) {
  return std::string(suggest(encounters).profile);
}

TEST(ProbeSuggestion, SiwAsInitiatorAsksForLittle) {
  for (const char* request : {"10020004 0001 0001", "1002000c 0080 0000 f6ab0e18 01010303"}) {
    const Encounter first = asks("accept", request);
    EXPECT_EQ(of(std::vector{first}), "linux-siw") << request;
    EXPECT_EQ(of(std::vector{first, asks("private-data-max", request, {}, TcpState::kClosed), asks("close", request)}),
              "linux-siw");
    EXPECT_EQ(of(std::vector{first, asks("private-data-max", request)}), "generic") << "siw would have left";
    Encounter again = asks("close", request);
    again.next_request = asks("close", "00010000").request;
    EXPECT_EQ(of(std::vector{first, again}), "generic") << "siw does not try again";
  }
  EXPECT_EQ(of(std::vector{asks("accept", "50020004 0001 0001")}), "generic") << "C=1";
  EXPECT_EQ(of(std::vector{asks("accept", "10020004 8001 c001")}), "generic")
      << "A=1: siw with another setting, or not";
  EXPECT_EQ(of(std::vector{asks("accept", "10020004 8001 c001", read_rtr(0, 0, 1, 0))}), "linux-siw");
}

TEST(ProbeSuggestion, RnicsAreToldByTheirReadRtr) {
  const std::string cxgb4 = "50020004 8020 4001", both = "50020004 8020 c020";
  EXPECT_EQ(of(std::vector{asks("accept", cxgb4, read_rtr(1, 1, 1, 1))}), "linux-cxgb4");
  EXPECT_EQ(of(std::vector{asks("accept", cxgb4, read_rtr(1, 0, 1, 0))}), "generic") << "that is iwarp's";
  EXPECT_EQ(of(std::vector{asks("accept", cxgb4)}), "generic");
  EXPECT_EQ(of(std::vector{asks("accept", both, read_rtr(1, 1, 1, 1))}), "generic");
  EXPECT_EQ(of(std::vector{asks("accept", both, {.kind = FirstMessage::Kind::kWrite, .empty = true}),
                           asks("rtr-read", both, read_rtr(0xABCD, 0, 0x1234, 0))}),
            "linux-irdma");
  EXPECT_EQ(of(std::vector{asks("accept", both, read_rtr(1, 0, 1, 0))}), "generic") << "iwarp";
}

TEST(ProbeSuggestion, SmbDirectIsToldByItsEightOctets) {
  EXPECT_EQ(of(std::vector{asks("accept", "40010008 00000020 00000001")}), "windows-smbd");
  EXPECT_EQ(of(std::vector{asks("accept", "40010008 20000000 01000000")}), "generic") << "the order of Linux";
  EXPECT_EQ(of(std::vector{asks("accept", "40010008 00000020 00000000")}), "generic") << "both are above 0";
  EXPECT_EQ(of(std::vector{asks("accept", "40010008 f6ab0e18 01010303")}), "generic") << "RPC-over-RDMA";
  EXPECT_EQ(of(std::vector{asks("accept", "40010000")}), "generic");
  EXPECT_EQ(of(std::vector<Encounter>{}), "generic");
}

// --- The reports

TEST(ProbeSuggestion, StandsInBothReports) {
  const Report r = make_report("peer:1", {kSiwEnhanced, kSiwReserved});
  EXPECT_THAT(conclusion(r), HasSubstr("  profile       linux-siw: it repeats the reserved bits of the Request\n"));
  EXPECT_EQ(to_json(r)["profile"]["name"], "linux-siw");
  EXPECT_EQ(to_json(r)["profile"]["why"], "it repeats the reserved bits of the Request");
  const InitiatorReport i = make_report({asks("accept", "10020004 0001 0001")});
  EXPECT_THAT(conclusion(i), HasSubstr("  profile       linux-siw: its Requests have C=0 and A=0\n"));
  EXPECT_EQ(to_json(i)["profile"]["name"], "linux-siw");
  const Report good = make_report("peer:1", {says("enhanced", "50020004 8008 4008")});
  EXPECT_THAT(conclusion(good), HasSubstr("  profile       generic: nothing that was seen tells of a known peer\n"));
  EXPECT_TRUE(to_json(make_report("peer:1", {ends("enhanced")}))["profile"].is_null()) << "no MPA";
}

}  // namespace
}  // namespace iwarp::test
