// Peer profiles: what each sets, that docs/PROFILES.md says the same, and how negotiation with such peers goes.
#include "iwarp/stream/profile.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sstream>

#include "iwarp/mpa/negotiation.h"
#include "tests/support/hex.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::hex;
using test::to_hex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

mpa::Policy policy_for(std::string_view name, mpa::Policy policy = {}) {
  find_profile(name)->apply(policy);
  return policy;
}

TEST(Profile, NamesAreTheKnownOnes) {
  std::vector<std::string_view> names;
  for (const Profile& p : profiles()) {
    names.push_back(p.name());
    EXPECT_EQ(find_profile(p.name()), &p);
    EXPECT_FALSE(p.peer().empty());
  }
  EXPECT_THAT(names,
              ElementsAre("generic", "linux-siw", "linux-cxgb4", "linux-irdma", "windows-chelsio", "windows-smbd"));
  EXPECT_EQ(find_profile("linux"), nullptr);
  EXPECT_EQ(find_profile(""), nullptr);
}

TEST(Profile, GenericChangesNothing) {
  mpa::Policy policy{.peer_to_peer = false, .ird = 7};
  Options options;
  options.rfc7306 = true;
  const mpa::Policy policy_before = policy;
  const Options options_before = options;
  find_profile("generic")->apply(policy);
  find_profile("generic")->apply(options);
  EXPECT_EQ(policy, policy_before);
  EXPECT_EQ(options, options_before);
}

TEST(Profile, EachGivesValidSettings) {
  for (const Profile& p : profiles()) {
    ProfileSettings s;
    p.apply(s);
    EXPECT_TRUE(mpa::validate(s.policy).ok()) << p.name();
    EXPECT_TRUE(validate(s.stream).ok()) << p.name();
  }
}

// Every value through the member that its option names, so that no two options share one.
TEST(Profile, SetsWhatItListsAndNothingElse) {
  for (const Profile& p : profiles()) {
    ProfileSettings all;
    p.apply(all);
    for (const ProfileValue& v : p.values()) {
      EXPECT_EQ(v.option->get(all), v.value) << p.name() << ' ' << v.option->name;
      EXPECT_EQ(v.default_value(), v.option->get(ProfileSettings{}));
      const std::int64_t other = v.option->kind == ProfileOption::Kind::kFlag ? 1 - v.value : v.value + 1;
      v.option->set(all, other);
      EXPECT_EQ(v.option->get(all), other);
      v.option->set(all, v.default_value());
    }
    EXPECT_EQ(all, ProfileSettings{}) << p.name() << " changes what it does not list";
  }
}

TEST(Profile, PartsApplyByThemselves) {
  const Profile& p = *find_profile("linux-cxgb4");
  ProfileSettings all;
  p.apply(all);
  mpa::Policy policy;
  Options options;
  p.apply(policy);
  p.apply(options);
  EXPECT_EQ(policy, all.policy);
  EXPECT_EQ(options, all.stream);
  EXPECT_NE(policy, mpa::Policy{});
  EXPECT_NE(options, Options{});
}

TEST(Profile, WhatIsSetAfterwardsStands) {
  mpa::Policy policy = policy_for("linux-cxgb4");
  policy.rtr_write = true;
  EXPECT_TRUE(policy.rtr_write);
  EXPECT_TRUE(policy.rtr_read);
}

// --- docs/PROFILES.md is what people read; the code is what runs.

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    out.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return out;
}

struct Documented {
  std::string peer;                            // the line below the heading
  std::vector<std::vector<std::string>> rows;  // option, value, default, why, evidence
};

std::map<std::string, Documented> documented() {
  std::ifstream in(std::string(IWARP_SOURCE_DIR) + "/docs/PROFILES.md");
  std::map<std::string, Documented> out;
  Documented* section = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) {
      section = find_profile(line.substr(3)) != nullptr ? &out[line.substr(3)] : nullptr;
    } else if (section != nullptr && section->peer.empty() && !line.empty()) {
      section->peer = line;
    } else if (section != nullptr && line.starts_with("| `")) {
      section->rows.push_back(cells(line));
    }
  }
  return out;
}

TEST(Profile, IsDocumentedValueByValueWithItsEvidence) {
  const auto pages = documented();
  for (const Profile& p : profiles()) {
    ASSERT_EQ(pages.count(std::string(p.name())), 1U) << p.name() << " has no section in docs/PROFILES.md";
    const Documented& section = pages.at(std::string(p.name()));
    EXPECT_THAT(section.peer, HasSubstr(std::string(p.peer())));
    ASSERT_EQ(section.rows.size(), p.values().size()) << p.name();
    for (std::size_t i = 0; i < section.rows.size(); ++i) {
      const ProfileValue& v = p.values()[i];
      SCOPED_TRACE(std::string(p.name()) + " " + std::string(v.option->name));
      ASSERT_EQ(section.rows[i].size(), 5U);
      EXPECT_EQ(section.rows[i][0], "`" + std::string(v.option->name) + "`");
      EXPECT_EQ(section.rows[i][1], v.text());
      EXPECT_EQ(section.rows[i][2], v.value == v.default_value() ? "the same" : v.option->text(v.default_value()));
      EXPECT_EQ(section.rows[i][3], v.reason);
      EXPECT_THAT(section.rows[i][4], ::testing::MatchesRegex("(read|reported|measured|inferred): .+"));
    }
  }
}

// --- Negotiation with such peers. Frames behind the Key; octets 16 flags M 80 C 40 R 20 S 10, 17 Rev, 18 PD_Length,
// 20 A 80 B 40 IRD, 22 C 80 D 40 ORD.

constexpr TimePoint kStart{};

std::string request_of(const mpa::Policy& policy) {
  return to_hex(mpa::Initiator(policy, {}, kStart).tx_bytes()).substr(32);
}

// What comes of it when the responder answers so.
mpa::Initiator::Event after_reply(const mpa::Policy& policy, const std::string& rest) {
  mpa::Initiator i(policy, {}, kStart);
  i.tx_commit(i.tx_bytes().size());
  const Bytes reply = hex("4d504120 49442052 65702046 72616d65 " + rest);
  EXPECT_EQ(i.rx(reply, kStart), reply.size());
  auto event = i.poll_event();
  EXPECT_TRUE(event);
  return std::move(*event);
}

std::string agreed(const mpa::Initiator::Event& event) {
  const auto* established = std::get_if<mpa::Established>(&event);
  return established == nullptr ? "not established" : established->negotiated.to_string();
}

// The Reply to a Request, when the application accepts with IRD and ORD 32.
std::string reply_to(const mpa::Policy& policy, const std::string& rest) {
  mpa::Responder r(policy, kStart);
  const Bytes request = hex("4d504120 49442052 65712046 72616d65 " + rest);
  EXPECT_EQ(r.rx(request, kStart), request.size());
  (void)r.poll_event();
  EXPECT_TRUE(r.accept(32, 32, {}).ok());
  return to_hex(r.tx_bytes()).substr(32);
}

mpa::Fallback fallback_of(const mpa::Policy& policy) {
  mpa::Initiator i(policy, {}, kStart);
  i.tx_commit(i.tx_bytes().size());
  i.rx_end(true);
  const auto event = i.poll_event();
  return std::get<mpa::Failed>(*event).fallback;
}

TEST(ProfileNegotiation, SiwIsAskedForClientServerAndForNothingElseThen) {
  const mpa::Policy policy = policy_for("linux-siw");
  EXPECT_EQ(request_of(policy),
            "50020004"
            "0020"
            "0020")
      << "A=0, no RTR form";
  // siw repeats the flags of the Request.
  EXPECT_EQ(agreed(after_reply(policy, "50020004 0020 0020")), "rev=2 enhanced=1 crc=1 p2p=0 rtr=none ird=32 ord=32");
  EXPECT_EQ(agreed(after_reply(policy, "50020004 0020 0080")), "rev=2 enhanced=1 crc=1 p2p=0 rtr=none ird=128 ord=32")
      << "its greatest ORD is taken";
  EXPECT_EQ(fallback_of(policy), mpa::Fallback::kNone);
  // Its Requests, those of rping and of an NFS client, are taken as ever.
  for (const char* request : {"10020004 0001 0001", "1002000c 0080 0000 f6ab0e18 01010303"})
    EXPECT_EQ(reply_to(policy, request), reply_to(mpa::Policy{}, request));
}

TEST(ProfileNegotiation, Cxgb4IsAskedForAReadAndToldOne) {
  // Even where the Initiator speaks first by nature, as a gateway.
  for (const bool peer_to_peer : {false, true}) {
    const mpa::Policy policy = policy_for("linux-cxgb4", {.peer_to_peer = peer_to_peer});
    EXPECT_EQ(request_of(policy),
              "50020004"
              "8020"
              "4020")
        << "A=1, Read alone";
    EXPECT_EQ(agreed(after_reply(policy, "50020004 8002 4001")), "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=2");
    EXPECT_EQ(fallback_of(policy), mpa::Fallback::kNone);
    // It names Read to whom offers Write alone; then only the profile helps.
    EXPECT_EQ(agreed(after_reply(policy_for("generic", {.rtr_read = false}), "50020004 8002 4001")), "not established");
  }
  // It ends the connection unless the Reply to its Request (ird 32, ord 1, Read) names Read alone.
  EXPECT_EQ(reply_to(policy_for("linux-cxgb4"), "50020004 8020 4001"),
            "50020004"
            "8020"
            "4020");
  EXPECT_EQ(reply_to(policy_for("linux-cxgb4"), "50020004 8020 c001"),
            "50020004"
            "8020"
            "4020");
}

TEST(ProfileNegotiation, IrdmaIsAskedForPeerToPeerAtOnce) {
  const mpa::Policy policy = policy_for("linux-irdma", {.peer_to_peer = false});
  EXPECT_EQ(request_of(policy),
            "50020004"
            "8020"
            "c020")
      << "A=1 with a form, or it resets the connection";
  EXPECT_EQ(agreed(after_reply(policy, "50020004 8020 4020")), "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=32");
  EXPECT_EQ(agreed(after_reply(policy, "50020004 8020 8020")), "rev=2 enhanced=1 crc=1 p2p=1 rtr=write ird=32 ord=32");
  // 0x3FFF: it leaves IRD and ORD to the application.
  EXPECT_EQ(agreed(after_reply(policy, "50020004 bfff 7fff")), "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=32");
  EXPECT_EQ(reply_to(policy, "50020004 8020 c020"),
            "50020004"
            "8020"
            "4020")
      << "one form, Read";
  EXPECT_EQ(reply_to(policy, "50020004 bfff ffff"),
            "50020004"
            "bfff"
            "7fff");
}

TEST(ProfileNegotiation, WindowsGetsNoWriteAndIsReachedInRevision1) {
  for (const char* name : {"windows-chelsio", "windows-smbd"}) {
    const mpa::Policy policy = policy_for(name, {.peer_to_peer = false, .allow_revision_1_fallback = false});
    EXPECT_EQ(request_of(policy),
              "50020004"
              "8020"
              "4020")
        << "A=1, Read alone";
    EXPECT_EQ(agreed(after_reply(policy, "50020004 8020 4020")), "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=32");
    ASSERT_EQ(fallback_of(policy), mpa::Fallback::kRevision1) << "T404 knows no other";
    EXPECT_EQ(request_of(mpa::with_fallback(policy, mpa::Fallback::kRevision1)), "40010000");
    EXPECT_EQ(reply_to(policy, "50020004 8020 c020"),
              "50020004"
              "8020"
              "4020")
        << "Write is not named";
  }
}

// The eight octets of SMB Direct over revision 1 are private data of the application.
TEST(ProfileNegotiation, SmbDirectHasItsPrivateDataForItself) {
  mpa::Responder r(policy_for("windows-smbd"), kStart);
  const Bytes request = hex("4d504120 49442052 65712046 72616d65 40010008 00000020 00000001");
  EXPECT_EQ(r.rx(request, kStart), request.size());
  const auto event = r.poll_event();
  ASSERT_TRUE(event && std::holds_alternative<mpa::RequestReceived>(*event));
  EXPECT_EQ(to_hex(std::get<mpa::RequestReceived>(*event).private_data), "0000002000000001");
  const Bytes answer = hex("00000001 00000020");
  ASSERT_TRUE(r.accept(32, 32, answer).ok());
  EXPECT_EQ(to_hex(r.tx_bytes()).substr(32),
            "40010008"
            "00000001"
            "00000020");
}

}  // namespace
}  // namespace iwarp::stream
