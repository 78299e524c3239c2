// One end of a session against a peer of octets.
#include "iwarp/sctp/session.h"

#include <gmock/gmock.h>

#include "tests/sctp/session_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::sctp {
namespace {

using test::Bytes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using test::operator+;

TEST(ActiveSession, InitiateAcceptSegmentsTerminate) {
  COVERS("RFC5043-2-2");
  COVERS("RFC5043-2-3");
  COVERS("RFC5043-6.2-7");
  COVERS("RFC5043-6.6-2");
  COVERS("RFC5043-5.2.3-3");
  COVERS("RFC5043-5.2.3-8");
  COVERS("RFC5043-6.1-1");
  COVERS("RFC5043-6.2-1");
  COVERS("RFC5043-6.2-3");
  COVERS("RFC5043-6.2-5");
  COVERS("RFC6581-10-13");
  End e(plain_options(), "0102");
  EXPECT_THAT(e.sent(), ElementsAre("000000010102"));
  EXPECT_FALSE(e.session().may_send_segment());
  e.control("0000 0002 aabb");
  EXPECT_THAT(e.told(), ElementsAre("Established(plain rtr=none 32/32 pd=aabb)"));
  e.send("c1");
  e.send("c2");
  e.segment("0001 d1d2");
  EXPECT_THAT(e.told(), ElementsAre("Delivered(d1d2)"));
  e.terminate();
  EXPECT_THAT(e.sent(), ElementsAre("0001c1", "0002c2", "00030004"));
  EXPECT_FALSE(e.session().may_send_segment()) << "nothing follows a Terminate";
  e.segment("0002 d3");
  EXPECT_THAT(e.told(), ElementsAre("Delivered(d3)")) << "sent before the peer knew";
  e.control("0003 0004");
  EXPECT_THAT(e.told(), ElementsAre("Ended(peer_closed)"));
  EXPECT_EQ(e.state(), SessionState::kClosed);
  EXPECT_FALSE(e.session().leaves_stream_free()) << "own messages may be under way";
  e.arrived();
  EXPECT_TRUE(e.session().leaves_stream_free());
}

TEST(ActiveSession, AnswersTheTerminateOfThePeer) {
  COVERS("RFC5043-6.2-4");
  COVERS("RFC5043-6.2-5");
  End e(plain_options(), "");
  e.control("0000 0002");
  (void)e.sent();
  e.control("0001 0004");
  EXPECT_THAT(e.sent(), ElementsAre("00010004"));
  EXPECT_THAT(e.told(), ElementsAre("Established(plain rtr=none 32/32 pd=)", "Ended(peer_closed)"));
  EXPECT_FALSE(e.session().may_send_segment());
  e.segment("0002 d1");
  e.control("0003 0004");
  EXPECT_THAT(e.told(), IsEmpty()) << "behind the peer's end: none of this session's";
}

TEST(ActiveSession, SegmentsThatOvertakeTheAcceptWait) {
  COVERS("RFC5043-6.6-4");
  COVERS("RFC5043-6.1-4");
  End e(plain_options(), "");
  e.segment("0002 d2");
  e.control("0003 0004");
  e.segment("0001 d1");
  EXPECT_THAT(e.told(), IsEmpty());
  e.control("0000 0002 aa");
  EXPECT_THAT(e.told(), ElementsAre("Established(plain rtr=none 32/32 pd=aa)", "Delivered(d1)", "Delivered(d2)",
                                    "Ended(peer_closed)"));
}

TEST(ActiveSession, IsRejectedByTheApplication) {
  COVERS("RFC5043-6.3-1");
  COVERS("RFC5043-6.3-3");
  COVERS("RFC5043-5.2.3-7");
  End e(plain_options(), "");
  e.control("0000 0003 0a0b");
  EXPECT_THAT(e.told(), ElementsAre("Rejected(- pd=0a0b)"));
  EXPECT_EQ(e.state(), SessionState::kRejected);
  EXPECT_THAT(e.sent(), ElementsAre("00000001")) << "and nothing else";
  e.terminate();
  e.lost();
  EXPECT_THAT(e.told(), IsEmpty());
  EXPECT_THAT(e.sent(), IsEmpty());
}

TEST(ActiveSession, IsTerminatedInAnswer) {
  COVERS("RFC5043-5.2.3-9");
  COVERS("RFC5043-6.4-4");
  COVERS("RFC6581-7-16");
  COVERS("RFC6581-7-23");
  End plain(plain_options(), "");
  plain.control("0000 0004");
  EXPECT_THAT(plain.told(), ElementsAre("Ended(peer_rejected)"));
  EXPECT_THAT(plain.sent(), ElementsAre("00000001"));
  End enhanced(SessionOptions{}, "");
  enhanced.control("0000 0004");
  EXPECT_THAT(enhanced.told(), ElementsAre("Ended(peer_rejected, try plain)"));
}

TEST(ActiveSession, ATerminateWaitsForTheInitiateToArrive) {
  COVERS("RFC5043-6.6-1");
  COVERS("RFC5043-6.6-3");
  End e(plain_options(), "");
  (void)e.sent();
  e.terminate();
  EXPECT_THAT(e.told(), ElementsAre("Ended(aborted)"));
  EXPECT_THAT(e.sent(), IsEmpty());
  e.arrived();
  EXPECT_THAT(e.sent(), ElementsAre("00010004"));
  e.control("0000 0002");
  e.segment("0001 d1");
  e.control("0002 0004");
  EXPECT_THAT(e.told(), IsEmpty()) << "the application has gone";
  EXPECT_EQ(e.state(), SessionState::kClosed);
}

TEST(ActiveSession, AnAnswerTellsThatTheInitiateHasArrived) {
  COVERS("RFC5043-6.6-3");
  End accepted(plain_options(), "");
  accepted.terminate();
  (void)accepted.sent();
  accepted.control("0000 0002");
  EXPECT_THAT(accepted.sent(), ElementsAre("00010004"));
  EXPECT_EQ(accepted.state(), SessionState::kTerminating);
  for (const char* no : {"0000 0003", "0000 0004"}) {
    End e(plain_options(), "");
    (void)e.sent();
    e.terminate();
    e.control(no);
    EXPECT_THAT(e.sent(), IsEmpty()) << "the session was over before";
    EXPECT_EQ(e.state(), SessionState::kClosed);
  }
}

TEST(ActiveSession, DoesNotWaitForEver) {
  SessionOptions o = plain_options();
  o.answer_timeout = std::chrono::milliseconds(500);
  End e(o, "");
  EXPECT_EQ(e.session().deadline(), kStart + std::chrono::milliseconds(500));
  e.at(std::chrono::milliseconds(499));
  EXPECT_THAT(e.told(), IsEmpty());
  e.arrived();
  (void)e.sent();
  e.at(std::chrono::milliseconds(500));
  EXPECT_THAT(e.told(), ElementsAre("Ended(startup_timeout)"));
  EXPECT_THAT(e.sent(), ElementsAre("00010004"));
  EXPECT_FALSE(e.session().deadline());
}

TEST(ActiveSession, EndsWithItsAssociation) {
  COVERS("RFC5043-11.3-1");
  COVERS("RFC5043-11.3-2");
  COVERS("RFC5043-11.3-3");
  End e(plain_options(), "");
  e.control("0000 0002");
  (void)e.sent();
  (void)e.told();
  e.lost();
  EXPECT_THAT(e.told(), ElementsAre("Ended(connection_lost)"));
  EXPECT_THAT(e.sent(), IsEmpty());
  EXPECT_FALSE(e.session().may_send_segment());
}

TEST(PassiveSession, InitiateAcceptSegmentsTerminate) {
  COVERS("RFC5043-6.2-2");
  COVERS("RFC5043-6.6-4");
  COVERS("RFC6581-7-13");
  End e((SessionOptions()));
  e.control("0000 0001 0102");
  EXPECT_THAT(e.told(), ElementsAre("Requested(- pd=0102)"));
  EXPECT_THAT(e.sent(), IsEmpty());
  EXPECT_FALSE(e.session().may_send_segment());
  e.accept("aabb", {4, 5});
  EXPECT_THAT(e.told(), ElementsAre("Established(plain rtr=none 4/5 pd=)"));
  e.send("c1");
  EXPECT_THAT(e.sent(), ElementsAre("00000002aabb", "0001c1")) << "segments may follow the Accept at once";
  e.segment("0001 d1");
  EXPECT_THAT(e.told(), ElementsAre("Delivered(d1)"));
  e.control("0002 0004");
  EXPECT_THAT(e.told(), ElementsAre("Ended(peer_closed)"));
  EXPECT_THAT(e.sent(), ElementsAre("00020004")) << "the segment has told that the Accept is there";
}

TEST(PassiveSession, ATerminateWaitsForTheAcceptToArrive) {
  COVERS("RFC5043-6.6-1");
  End e((SessionOptions()));
  e.control("0000 0001");
  e.accept();
  e.terminate();
  (void)e.told();
  EXPECT_THAT(e.sent(), ElementsAre("00000002"));
  EXPECT_FALSE(e.session().may_send_segment());
  e.arrived();
  EXPECT_THAT(e.sent(), ElementsAre("00010004"));
}

TEST(PassiveSession, SoDoesTheAnswerToATerminate) {
  End e((SessionOptions()));
  e.control("0000 0001");
  e.accept();
  e.control("0001 0004");
  EXPECT_THAT(e.sent(), ElementsAre("00000002")) << "a Terminate could overtake the Accept";
  e.arrived();
  EXPECT_THAT(e.sent(), ElementsAre("00010004"));
}

TEST(PassiveSession, RejectsForTheApplication) {
  COVERS("RFC5043-6.3-1");
  COVERS("RFC5043-6.3-4");
  COVERS("RFC5043-6.4-1");
  End e((SessionOptions()));
  e.control("0000 0001");
  e.reject("0708");
  EXPECT_THAT(e.sent(), ElementsAre("000000030708"));
  EXPECT_THAT(e.told(), ElementsAre("Requested(- pd=)"));
  EXPECT_EQ(e.state(), SessionState::kRejected);
  e.segment("0001 d1");
  EXPECT_THAT(e.told(), IsEmpty());
  EXPECT_THAT(e.sent(), IsEmpty());
}

TEST(PassiveSession, RefusesWithoutAWordOfTheApplication) {
  COVERS("RFC5043-6.4-4");
  End e((SessionOptions()));
  e.control("0000 0001");
  e.terminate();
  EXPECT_THAT(e.sent(), ElementsAre("00000004"));
  EXPECT_EQ(e.state(), SessionState::kClosed);
  const auto late = e.session().accept({1, 1}, {});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Errc::kInvalidArgument);
}

TEST(PassiveSession, TheActiveSideMayWithdraw) {
  End e((SessionOptions()));
  e.control("0001 0004");
  e.control("0000 0001");
  EXPECT_THAT(e.told(), ElementsAre("Requested(- pd=)", "Ended(peer_closed)"));
  EXPECT_THAT(e.sent(), ElementsAre("00000004"));
}

TEST(PassiveSession, ChecksWhatTheApplicationAnswers) {
  COVERS("RFC5043-5.2.3-5");
  COVERS("RFC6581-7-7");
  for (const bool enhanced : {false, true}) {
    End e((SessionOptions()));
    e.control(enhanced ? "0000 0005 0020 0020" : "0000 0001");
    const std::size_t most = enhanced ? 508 : 512;
    EXPECT_EQ(e.session().accept({1, 1}, test::pattern(most + 1)).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(e.session().reject(test::pattern(most + 1)).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(e.session().accept({16383, 1}, {}).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(e.session().accept({1, 1}, {}, enhanced::Depths{1, 16383}).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(e.session().reject({}, 16383).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(e.state(), SessionState::kDeciding);
    EXPECT_TRUE(e.session().accept({1, 1}, test::pattern(most)).ok());
    EXPECT_EQ(e.session().control().size(), 516U);
  }
}

// The segment of an early message, while it may be delivered later; "-" if it is not to be touched.
std::string early(const Session& s, const std::string& octets, std::uint32_t ppid = 16, bool ordered = false) {
  const test::Bytes m = test::hex(octets);
  const auto e = s.early({ppid, ordered, m});
  return e ? test::to_hex(e->segment) + "@" + std::to_string(e->position) : "-";
}

TEST(ActiveSession, ShowsWhatIsEarlyWhileItMayBeDelivered) {
  COVERS("RFC5041-3-6");
  COVERS("RFC5041-3-7");
  End e(plain_options(), "");
  EXPECT_EQ(early(e.session(), "0002 c1"), "-") << "the Accept has not come";
  e.control("0000 0002");
  EXPECT_EQ(early(e.session(), "0001 c1"), "-") << "due";
  EXPECT_EQ(early(e.session(), "0002 c1"), "c1@2");
  EXPECT_EQ(early(e.session(), "0002"), "@2");
  EXPECT_EQ(early(e.session(), "00"), "-");
  EXPECT_EQ(early(e.session(), "0002 0004", 17), "-");
  EXPECT_EQ(early(e.session(), "0002 c1", 0), "-");
  EXPECT_EQ(early(e.session(), "0002 c1", 16, true), "-") << "the end of the session, when it is due";
  e.segment("0002 c1");
  EXPECT_EQ(early(e.session(), "0002 c1"), "-") << "twice";
  EXPECT_EQ(early(e.session(), "0003 c1"), "c1@3");
  e.arrived();
  e.terminate();
  EXPECT_EQ(early(e.session(), "0003 c1"), "c1@3") << "what the peer sends still comes";
  (void)e.told();
  e.segment("0001 c2");
  EXPECT_THAT(e.told(), ElementsAre("Delivered(c2)", "Delivered(c1)"));
  e.control("0003 0004");
  EXPECT_EQ(early(e.session(), "0005 c1"), "-") << "the peer is over";
}

TEST(PassiveSession, ShowsWhatIsEarlyOnceItHasAccepted) {
  COVERS("RFC5041-3-6");
  End e((SessionOptions()));
  EXPECT_EQ(early(e.session(), "0002 c1"), "-");
  e.control("0000 0001");
  EXPECT_EQ(early(e.session(), "0002 c1"), "-");
  e.accept();
  EXPECT_EQ(early(e.session(), "0002 c1"), "c1@2");
  e.control("0001 0001");
  EXPECT_EQ(early(e.session(), "0002 c1"), "-") << "it has failed";
}

TEST(ActiveSession, PausesWith32767MessagesUnderWay) {
  COVERS("RFC5043-10-6");
  COVERS("RFC5043-10-7");
  End e(plain_options(), "");
  e.control("0000 0002");
  for (int i = 0; i < 32766; ++i) {
    ASSERT_TRUE(e.session().may_send_segment());
    e.session().segment_taken();
  }
  EXPECT_FALSE(e.session().may_send_segment()) << "with the Initiate";
  e.terminate();
  EXPECT_TRUE(e.session().control().empty()) << "the Terminate is a message too";
  e.session().arrived(1);
  ASSERT_FALSE(e.session().control().empty());
  EXPECT_EQ(test::to_hex(e.session().control()), "7fff0004");
}

TEST(SessionOptions, AreChecked) {
  EXPECT_TRUE(validate(SessionOptions{}).ok());
  const auto with = [](auto change) {
    SessionOptions o;
    change(o);
    return validate(o).ok();
  };
  EXPECT_FALSE(with([](auto& o) { o.offer.depths.ird = 16383; }));
  EXPECT_FALSE(with([](auto& o) { o.offer.max_ird = 16383; }));
  EXPECT_FALSE(with([](auto& o) { o.offer.forms = {}; }));
  EXPECT_TRUE(with([](auto& o) { o.enhanced = false, o.offer.forms = {}; }));
  EXPECT_FALSE(with([](auto& o) { o.answer_timeout = std::chrono::milliseconds(0); }));
  EXPECT_FALSE(with([](auto& o) { o.ahead = 0; }));
  EXPECT_TRUE(with([](auto& o) { o.ahead = 32767; }));
  EXPECT_FALSE(with([](auto& o) { o.ahead = 32768; }));
}

}  // namespace
}  // namespace iwarp::sctp
