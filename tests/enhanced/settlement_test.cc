#include "iwarp/enhanced/settlement.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"

namespace iwarp::enhanced {
namespace {

constexpr RtrForms kBoth{.write = true, .read = true};

TEST(Settlement, RequestSaysWhatTheOfferIs) {
  COVERS("RFC6581-9.1-2");
  COVERS("RFC6581-9.1-3");
  COVERS("RFC6581-9.2-8");
  COVERS("RFC6581-9.2-9");
  COVERS("RFC6581-9.2-22");
  EXPECT_EQ(make_request({.peer_to_peer = true, .forms = kBoth, .depths = {5, 7}}),
            (EnhancedData{.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 5, .ord = 7}));
  EXPECT_EQ(make_request({.forms = kBoth, .depths = {5, 7}}), (EnhancedData{.ird = 5, .ord = 7}));
}

TEST(Settlement, RtrByReadWantsAnOrdOfOne) {
  COVERS("RFC6581-9.2-6");
  EXPECT_EQ(make_request({.peer_to_peer = true, .forms = {.read = true}}).ord, 1);
  EXPECT_EQ(make_request({.peer_to_peer = true, .forms = {.write = true}}).ord, 0);
  EXPECT_EQ(make_request({.peer_to_peer = false, .forms = {.read = true}}).ord, 0) << "no RTR";
  Settled settled;
  ASSERT_TRUE(settle_reply({.peer_to_peer = true, .forms = {.read = true}},
                           {.peer_to_peer = true, .rtr_read = true, .ird = 1}, settled));
  EXPECT_EQ(settled.rtr, Rtr::kRead);
  EXPECT_EQ(settled.depths.ord, 1);
}

TEST(Settlement, ResponderRaisesAnIrdOfZeroForTheRtrAlone) {
  COVERS("RFC6581-9.1-11");
  const EnhancedData request{.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 8, .ord = 8};
  EXPECT_EQ(settle_request({.forms = kBoth, .max_ird = 8}, request).depths.ird, 1);
  EXPECT_EQ(settle_request({.forms = {.write = true}, .max_ird = 8}, request).depths.ird, 0);
}

TEST(Settlement, DepthsMayBeLeftToTheApplications) {
  COVERS("RFC6581-9.1-22");
  const Offer open{.peer_to_peer = true, .forms = kBoth, .depths = {5, 7}, .max_ird = 8, .negotiate_depths = false};
  const EnhancedData request = make_request(open);
  EXPECT_EQ(request.ird, kNoIrdOrdNegotiation);
  EXPECT_EQ(request.ord, kNoIrdOrdNegotiation);
  Settled settled;
  ASSERT_TRUE(settle_reply(
      open, {.peer_to_peer = true, .rtr_read = true, .ird = kNoIrdOrdNegotiation, .ord = kNoIrdOrdNegotiation},
      settled));
  EXPECT_EQ(settled.depths, (Depths{5, 7}));
  // siw and Chelsio take it for a large number and answer with their own.
  ASSERT_TRUE(settle_reply(open, {.peer_to_peer = true, .rtr_read = true, .ird = 4, .ord = 6}, settled));
  EXPECT_EQ(settled.depths, (Depths{6, 4}));
}

TEST(Settlement, ApplicationsSettleWhatStartupLeavesOpen) {
  COVERS("RFC6581-9.1-22");
  constexpr std::uint16_t kUnsaid = kNoIrdOrdNegotiation;
  EXPECT_EQ(left_open({3, 4}, std::nullopt), (Depths{3, 4})) << "revision 1";
  EXPECT_EQ(left_open({3, 4}, Depths{kUnsaid, kUnsaid}), (Depths{3, 4}));
  EXPECT_EQ(left_open({3, 4}, Depths{kUnsaid, 9}), (Depths{3, kUnsaid}));
  EXPECT_EQ(left_open({3, 4}, Depths{9, kUnsaid}), (Depths{kUnsaid, 4}));
  EXPECT_EQ(left_open({3, 4}, Depths{9, 9}), (Depths{kUnsaid, kUnsaid}));
  EXPECT_EQ(fit({8, 8}, left_open({3, 4}, Depths{9, 9}), 128), (Depths{8, 8})) << "nothing is left to change";
}

TEST(Settlement, ModelsMustBeTheSame) {
  COVERS("RFC6581-9.2-11");
  COVERS("RFC6581-9.2-23");
  for (const bool asked : {false, true}) {
    Settled settled;
    const auto ok =
        settle_reply({.peer_to_peer = asked, .forms = kBoth, .depths = {1, 1}, .max_ird = 8},
                     {.peer_to_peer = !asked, .rtr_write = true, .rtr_read = true, .ird = 1, .ord = 1}, settled);
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().code, Errc::kConnectionModel);
    EXPECT_EQ(*ok.error().tell_peer, (TerminateCode{2, 0, 7}));
  }
}

// The first cause counts: an IRD that cannot be comes before an RTR that cannot.
TEST(Settlement, IrdIsJudgedBeforeTheRtr) {
  Settled settled;
  const auto ok = settle_reply({.peer_to_peer = true, .forms = {.write = true}, .depths = {1, 1}},
                               {.peer_to_peer = true, .rtr_read = true, .ird = 1, .ord = 2}, settled);
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().code, Errc::kInsufficientIrd);
}

}  // namespace
}  // namespace iwarp::enhanced
