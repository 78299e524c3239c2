// The whole matrix of RTR offers and answers, in both roles. Letters: S Send, W Write, R Read, - none.
#include "iwarp/enhanced/rtr.h"

#include <gtest/gtest.h>

#include "iwarp/enhanced/settlement.h"
#include "tests/support/covers.h"

namespace iwarp::enhanced {
namespace {

constexpr const char* kSets[8] = {"-", "S", "W", "SW", "R", "SR", "WR", "SWR"};

RtrForms forms(const std::string& letters) {
  const auto has = [&](char c) { return letters.find(c) != std::string::npos; };
  return {.send = has('S'), .write = has('W'), .read = has('R')};
}

char letter(Rtr rtr) {
  switch (rtr) {
    case Rtr::kNone:
      return '-';
    case Rtr::kSend:
      return 'S';
    case Rtr::kWrite:
      return 'W';
    case Rtr::kRead:
      return 'R';
  }
  return '?';
}

TEST(Rtr, ResponderNamesOneForm) {
  COVERS("RFC6581-1.1-1");
  COVERS("RFC6581-9.2-2");
  COVERS("RFC6581-9.2-12");
  COVERS("RFC6581-9.2-13");
  COVERS("RFC6581-9.2-14");
  COVERS("RFC6581-9.2-16");
  const struct {
    const char* supported;
    const char* named;  // for the offers -, S, W, SW, R, SR, WR, SWR
  } kRows[] = {
      {"S", "SSSSSSSS"},  {"W", "WWWWWWWW"},  {"SW", "WSWWWSWW"},  {"R", "RRRRRRRR"},
      {"SR", "RSRSRRRR"}, {"WR", "RRWWRRRR"}, {"SWR", "RSWWRRRR"},
  };
  for (const auto& row : kRows) {
    std::string named;
    for (const char* offered : kSets) {
      const Rtr rtr = name_rtr(forms(row.supported), forms(offered));
      named += letter(rtr);
      // The flags of the Reply say the same.
      EnhancedData request{.peer_to_peer = true, .ird = 1, .ord = 1};
      set_forms(request, forms(offered));
      const EnhancedData reply = make_reply(forms(row.supported), {1, 1}, request);
      EXPECT_EQ(forms_of(reply), forms(std::string(1, letter(rtr)))) << row.supported << " of " << offered;
    }
    EXPECT_EQ(named, row.named) << row.supported;
  }
}

TEST(Rtr, InitiatorSendsACommonFormOrNone) {
  COVERS("RFC6581-1.1-1");
  COVERS("RFC6581-1.1-2");
  COVERS("RFC6581-9.2-15");
  COVERS("RFC6581-9.2-18");
  const struct {
    const char* offered;
    const char* sent;         // for Replies that name -, S, W, SW, R, SR, WR, SWR
    const char* without_ord;  // the same when the peer admits no Read
  } kRows[] = {
      {"S", "-S-S-S-S", "-S-S-S-S"},   {"W", "--WW--WW", "--WW--WW"},  {"SW", "-SWW-SWW", "-SWW-SWW"},
      {"R", "----RRRR", "--------"},   {"SR", "-S-SRRRR", "-S-S-S-S"}, {"WR", "--WWRRRR", "--WW--WW"},
      {"SWR", "-SWWRRRR", "-SWW-SWW"},
  };
  for (const auto& row : kRows) {
    std::string sent, without_ord;
    for (const char* named : kSets) {
      sent += letter(choose_rtr(forms(row.offered), forms(named), 1));
      without_ord += letter(choose_rtr(forms(row.offered), forms(named), 0));
    }
    EXPECT_EQ(sent, row.sent) << row.offered;
    EXPECT_EQ(without_ord, row.without_ord) << row.offered;
  }
}

// Offer by offer the two ends together: what is sent is what was named, or there is no common form.
TEST(Rtr, BothEndsAgreeOrThereIsNoCommonForm) {
  COVERS("RFC6581-9.2-17");
  COVERS("RFC6581-9.2-20");
  for (const char* offered : kSets) {
    if (!forms(offered).any()) continue;
    for (const char* supported : kSets) {
      if (!forms(supported).any()) continue;
      SCOPED_TRACE(std::string(offered) + " to " + supported);
      const Offer initiator{.peer_to_peer = true, .forms = forms(offered), .depths = {4, 4}, .max_ird = 4};
      const Offer responder{.forms = forms(supported), .depths = {4, 4}, .max_ird = 4};
      const EnhancedData request = make_request(initiator);
      EXPECT_EQ(forms_of(request), forms(offered));
      const Settled theirs = settle_request(responder, request);
      Settled settled;
      const auto ok = settle_reply(initiator, make_reply(responder.forms, theirs.depths, request), settled);
      EXPECT_EQ(ok.ok(), forms(offered).common(forms(supported)).any());
      if (ok) {
        EXPECT_EQ(settled.rtr, theirs.rtr);
      } else {
        EXPECT_EQ(ok.error().code, Errc::kNoMatchingRtr);
        ASSERT_TRUE(ok.error().tell_peer);
        EXPECT_EQ(*ok.error().tell_peer, (TerminateCode{2, 0, 7}));
        EXPECT_EQ(settled.rtr, Rtr::kNone);
      }
    }
  }
}

TEST(Rtr, FlagsMeanNothingWithoutA) {
  COVERS("RFC6581-9.2-24");
  COVERS("RFC6581-9.2-25");
  const EnhancedData all{.rtr_send = true, .rtr_write = true, .rtr_read = true, .ird = 1, .ord = 1};
  EXPECT_FALSE(forms_of(all).any());
  const EnhancedData reply = make_reply(forms("SWR"), {1, 1}, all);
  EXPECT_EQ(reply, (EnhancedData{.ird = 1, .ord = 1}));
  Settled settled;
  ASSERT_TRUE(settle_reply({.forms = forms("SWR"), .depths = {1, 1}}, all, settled));
  EXPECT_EQ(settled.rtr, Rtr::kNone);
  EXPECT_EQ(make_request({.forms = forms("SWR"), .depths = {1, 1}}), (EnhancedData{.ird = 1, .ord = 1}));
}

TEST(Rtr, HasNames) {
  EXPECT_STREQ(name(Rtr::kNone), "none");
  EXPECT_STREQ(name(Rtr::kSend), "send");
  EXPECT_STREQ(name(Rtr::kWrite), "write");
  EXPECT_STREQ(name(Rtr::kRead), "read");
  EXPECT_EQ(forms("-").to_string(), "none");
  EXPECT_EQ(forms("SWR").to_string(), "Send+Write+Read");
}

}  // namespace
}  // namespace iwarp::enhanced
