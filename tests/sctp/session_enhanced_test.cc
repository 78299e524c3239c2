// Sessions with the enhanced session control of RFC 6581 s7.
#include <gmock/gmock.h>

#include "tests/sctp/session_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::sctp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SessionOptions peer_to_peer(const enhanced::RtrForms& forms) {
  SessionOptions o;
  o.offer.peer_to_peer = true;
  o.offer.forms = forms;
  return o;
}

TEST(EnhancedSession, SettlesDepthsAsMpaDoes) {
  COVERS("RFC6581-7-1");
  COVERS("RFC6581-7-4");
  COVERS("RFC6581-7-5");
  COVERS("RFC6581-7-6");
  COVERS("RFC6581-7-12");
  COVERS("RFC6581-7-14");
  COVERS("RFC6581-7-17");
  COVERS("RFC6581-9-6");
  SessionOptions o;
  o.offer.depths = {8, 16};
  End a(o, "0102");
  const auto initiate = a.sent();
  EXPECT_THAT(initiate, ElementsAre("0000000500080010"
                                    "0102"));
  End p((SessionOptions()));
  p.control(initiate[0]);
  EXPECT_THAT(p.told(), ElementsAre("Requested(none 8/16 pd=0102)"));
  p.accept("aabb", {4, 32});
  EXPECT_THAT(p.told(), ElementsAre("Established(enhanced rtr=none 16/8 pd=)")) << "IRD raised to 16, ORD lowered to 8";
  const auto accept = p.sent();
  EXPECT_THAT(accept, ElementsAre("0000000600100008"
                                  "aabb"));
  a.control(accept[0]);
  EXPECT_THAT(a.told(), ElementsAre("Established(enhanced rtr=none 8/16 pd=aabb)"));
  a.terminate();
  EXPECT_THAT(a.sent(), ElementsAre("00010004")) << "the ordinary Terminate";
}

TEST(EnhancedSession, ReportsTheDataAsReceived) {
  COVERS("RFC6581-7-9");
  COVERS("RFC6581-7-10");
  HoldBudget budget;
  Session s(SessionOptions{}, budget);
  const test::Bytes initiate = test::hex("0000 0005 3fff 3fff 0d");
  s.receive({17, false, initiate});
  const auto event = s.poll_event();
  const auto& requested = std::get<Session::Requested>(*event);
  EXPECT_EQ(requested.data->ird, enhanced::kNoIrdOrdNegotiation);
  EXPECT_EQ(requested.data->ord, enhanced::kNoIrdOrdNegotiation);
  EXPECT_EQ(test::to_hex(requested.private_data), "0d");
  ASSERT_TRUE(s.accept({5, 6}, {}, enhanced::Depths{3, 4}).ok());
  const auto established = s.poll_event();
  const auto& e = std::get<Session::Established>(*established);
  EXPECT_EQ(e.settled.depths, (enhanced::Depths{5, 3})) << "what was left open, the applications settle";
  EXPECT_EQ(e.peer, requested.data);
  EXPECT_EQ(test::to_hex(s.control()), "000000063fff3fff");
}

TEST(EnhancedSession, ThePeerToPeerModelHasItsRtrOverSctpToo) {
  COVERS("RFC6581-7-13");
  COVERS("RFC6581-7-25");
  End a(peer_to_peer({.send = false, .write = true, .read = true}), "");
  const auto initiate = a.sent();
  EXPECT_THAT(initiate, ElementsAre("000000058020c020"));
  End p((SessionOptions()));
  p.control(initiate[0]);
  p.accept();
  EXPECT_THAT(p.told(), ElementsAre("Requested(p2p Write+Read 32/32 pd=)", "Established(enhanced rtr=read 32/32 pd=)"));
  EXPECT_TRUE(p.session().may_send_segment() || !p.session().control().empty());
  const auto accept = p.sent();
  EXPECT_TRUE(p.session().may_send_segment()) << "nothing waits for the RTR";
  a.control(accept[0]);
  EXPECT_THAT(a.told(), ElementsAre("Established(enhanced rtr=read 32/32 pd=)"));
}

// Each: an Accept of our Initiate that does not suit, and the Terminate that RFC 6581 s8 wants.
TEST(EnhancedSession, AnAcceptThatDoesNotSuitIsAnsweredByAnRdmapTerminate) {
  COVERS("RFC6581-8-6");
  struct Case {
    const char* accept;
    Errc code;
    TerminateCode tell;
  };
  SessionOptions strict = peer_to_peer({.send = false, .write = true, .read = false});
  strict.offer.max_ird = 0;
  for (const Case& c : {Case{"0000 0006 8020 8021", Errc::kInsufficientIrd, {2, 0, 6}},
                        Case{"0000 0006 8020 4020", Errc::kNoMatchingRtr, {2, 0, 7}},
                        Case{"0000 0006 0020 0020", Errc::kConnectionModel, {2, 0, 7}}}) {
    HoldBudget budget;
    Session s(strict, budget, {}, kStart);
    s.control_taken();
    const test::Bytes accept = test::hex(c.accept);
    s.receive({17, false, accept});
    const auto event = s.poll_event();
    const auto* ended = std::get_if<Session::Ended>(&*event);
    ASSERT_NE(ended, nullptr);
    EXPECT_EQ(ended->error.code, c.code);
    EXPECT_EQ(ended->error.tell_peer, c.tell);
    const test::Bytes segment = test::hex("0001 c1");
    s.receive({16, false, segment});
    EXPECT_FALSE(s.poll_event()) << "dropped";
    EXPECT_TRUE(s.control().empty());
    ASSERT_TRUE(s.may_send_segment()) << "for the RDMAP Terminate";
    s.segment_taken();
    s.terminate();
    EXPECT_EQ(test::to_hex(s.control()), "00020004") << "behind it";
    s.control_taken();
    EXPECT_EQ(s.state(), SessionState::kTerminating);
  }
}

TEST(EnhancedSession, IsRejectedByTheApplicationInKind) {
  COVERS("RFC6581-7-3");
  COVERS("RFC6581-7-15");
  COVERS("RFC6581-7-19");
  End p((SessionOptions()));
  p.control("0000 0005 0004 0004");
  EXPECT_TRUE(p.session().reject(test::hex("ee"), 12).ok());
  EXPECT_EQ(test::to_hex(p.session().control()),
            "00000007"
            "0020000c"
            "ee")
      << "an ORD of 12 would be needed";
  End a((SessionOptions()), "");
  a.control("0000 0007 0020 000c ee");
  EXPECT_THAT(a.told(), ElementsAre("Rejected(none 32/12 pd=ee)"));
  End b((SessionOptions()), "");
  b.control("0000 0007 ee");
  EXPECT_THAT(b.told(), ElementsAre("Rejected(- pd=ee)")) << "too short for enhanced data";
}

TEST(EnhancedSession, IsRejectedByTheProviderWithoutACommonRtr) {
  COVERS("RFC6581-7-11");
  COVERS("RFC6581-7-24");
  SessionOptions o = peer_to_peer({.send = false, .write = true, .read = true});
  End p(o);
  p.control("0000 0005 c020 0020");
  EXPECT_THAT(p.told(), ElementsAre("Ended(no_matching_rtr)")) << "the application was not asked";
  EXPECT_THAT(p.sent(), ElementsAre("000000078020c020")) << "every form that there is";
  EXPECT_EQ(p.state(), SessionState::kRejected);
  End a(peer_to_peer({.send = true, .write = false, .read = false}), "");
  a.control("0000 0007 8020 c020");
  EXPECT_THAT(a.told(), ElementsAre("Rejected(p2p Write+Read 32/32 pd=)"));
}

TEST(EnhancedSession, LikeIsAnsweredWithLike) {
  COVERS("RFC6581-7-22");
  for (const char* unlike : {"0000 0002", "0000 0003"}) {
    End a((SessionOptions()), "");
    a.arrived();
    (void)a.sent();
    a.control(unlike);
    EXPECT_THAT(a.told(), ElementsAre("Ended(session_sequence)"));
    EXPECT_THAT(a.sent(), ElementsAre("00010004"));
  }
}

TEST(EnhancedSession, AnEndWithoutRfc6581TerminatesAndThePlainFormDoes) {
  COVERS("RFC6581-7-23");
  COVERS("RFC6581-10-13");
  End old(plain_options());
  End a((SessionOptions()), "");
  old.control(a.sent()[0]);
  EXPECT_THAT(old.told(), ElementsAre("Ended(session_control)"));
  a.control(old.sent()[0]);
  EXPECT_THAT(a.told(), ElementsAre("Ended(peer_rejected, try plain)"));
  End again(plain_options(), "");
  End next(plain_options());
  next.control(again.sent()[0]);
  next.accept();
  again.control(next.sent()[0]);
  EXPECT_THAT(again.told(), ElementsAre("Established(plain rtr=none 32/32 pd=)"));
}

TEST(EnhancedSession, APlainInitiateIsServedByAnyEnd) {
  COVERS("RFC6581-10-13");
  COVERS("RFC6581-7-18");
  End p((SessionOptions()));
  p.control("0000 0001 0020 0020");
  EXPECT_THAT(p.told(), ElementsAre("Requested(- pd=00200020)"));
  p.accept("0040 0040", {7, 9});
  EXPECT_THAT(p.told(), ElementsAre("Established(plain rtr=none 7/9 pd=)"));
  EXPECT_THAT(p.sent(), ElementsAre("0000000200400040"));
}

}  // namespace
}  // namespace iwarp::sctp
