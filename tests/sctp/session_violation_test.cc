// Messages that fit no legal sequence.
#include <gmock/gmock.h>

#include <utility>

#include "tests/sctp/session_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::sctp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What the peer must not send where; each ends the session by a Terminate.
struct Violation {
  const char* name;
  std::vector<std::pair<std::uint32_t, const char*>> messages;  // PPID and octets
  Errc code;
};

TEST(ActiveSession, IsTerminatedByWhatFitsNoLegalSequence) {
  COVERS("RFC5043-5.1-1");
  COVERS("RFC5043-5.2-1");
  COVERS("RFC5043-5.2.3-2");
  COVERS("RFC5043-5.2.3-5");
  COVERS("RFC5043-6.1-2");
  COVERS("RFC5043-6.1-3");
  COVERS("RFC5043-6.2-8");
  COVERS("RFC6581-7-22");
  const std::string longest = "00000002" + std::string(std::size_t{2} * 513, '0');
  const Violation kCases[] = {
      {"a segment first", {{16, "0000c1"}}, Errc::kSessionSequence},
      {"an Initiate that crosses", {{17, "00000001"}}, Errc::kSessionSequence},
      {"an enhanced Initiate that crosses", {{17, "0000000500200020"}}, Errc::kSessionSequence},
      {"an enhanced Accept of a plain Initiate", {{17, "0000000600200020"}}, Errc::kSessionSequence},
      {"an enhanced Reject of a plain Initiate", {{17, "0000000700200020"}}, Errc::kSessionSequence},
      {"an unknown code", {{17, "00000008"}}, Errc::kSessionControl},
      {"the experimental code", {{17, "0000ffff"}}, Errc::kSessionControl},
      {"a control message of 3 octets", {{17, "000000"}}, Errc::kSessionControl},
      {"a message of 1 octet", {{17, "00"}}, Errc::kSessionSequence},
      {"too much private data", {{17, longest.c_str()}}, Errc::kPrivateDataTooLong},
      {"another PPID", {{0, "0000c1"}}, Errc::kSessionSequence},
      {"a PPID in the wrong octet order", {{16U << 24, "0000c1"}}, Errc::kSessionSequence},
      {"a second Accept", {{17, "00000002"}, {17, "00010002"}}, Errc::kSessionSequence},
      {"a Reject behind the Accept", {{17, "00000002"}, {17, "00010003"}}, Errc::kSessionSequence},
      {"a DDP-SSN again", {{17, "00000002"}, {16, "0000c1"}}, Errc::kDdpSsn},
      {"a DDP-SSN too far ahead", {{17, "00000002"}, {16, "1001c1"}}, Errc::kDdpSsn},
  };
  for (const Violation& v : kCases) {
    SCOPED_TRACE(v.name);
    End e(plain_options(), "");
    e.arrived();
    (void)e.sent();
    for (const auto& [ppid, octets] : v.messages) e.receive({ppid, false, test::hex(octets)});
    const auto told = e.told();
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back(), std::string("Ended(") + name(v.code) + ")");
    EXPECT_THAT(e.sent(), ElementsAre("00010004"));
    EXPECT_EQ(e.state(), SessionState::kFailed);
    e.segment("0001 d1");
    e.control("0001 0004");
    EXPECT_THAT(e.told(), IsEmpty());
    EXPECT_FALSE(e.session().leaves_stream_free());
  }
}

// Nothing legal comes before an Initiate, but for a Terminate that withdraws it and has overtaken it.
TEST(PassiveSession, KeepsNothingOfAPeerThatIsNotAccepted) {
  COVERS("RFC5043-6.1-3");
  for (const char* before : {"", "00000001"}) {
    SCOPED_TRACE(before);
    End e(plain_options());
    if (*before != 0) e.control(before);
    (void)e.told();
    const std::size_t held = e.held();
    e.segment("0002 c1");
    EXPECT_EQ(e.held(), held);
    EXPECT_THAT(e.told(), ElementsAre("Ended(session_sequence)"));
    EXPECT_THAT(e.sent(), ElementsAre("00000004"));
    EXPECT_EQ(e.state(), SessionState::kFailed);
  }
}

// SCTP tells of what has arrived when nothing is under way any more, which may be long on a busy association.
TEST(PassiveSession, ASegmentTellsThatTheAcceptHasArrived) {
  COVERS("RFC5043-6.6-3");
  End e(plain_options());
  e.control("0000 0001");
  e.accept();
  e.terminate();
  EXPECT_THAT(e.sent(), ElementsAre("00000002"));
  e.segment("0001 c1");
  EXPECT_THAT(e.sent(), ElementsAre("00010004"));
  EXPECT_EQ(e.state(), SessionState::kTerminating);
}

TEST(PassiveSession, IsTerminatedByWhatFitsNoLegalSequence) {
  COVERS("RFC5043-6.5-1");
  COVERS("RFC5043-6.1-2");
  COVERS("RFC5043-6.1-3");
  COVERS("RFC5043-6.3-1");
  const Violation kCases[] = {
      {"a segment first", {{16, "0000c1"}}, Errc::kSessionSequence},
      {"an Accept first", {{17, "00000002"}}, Errc::kSessionSequence},
      {"a Reject first", {{17, "00000003"}}, Errc::kSessionSequence},
      {"a Terminate first", {{17, "00000004"}}, Errc::kSessionSequence},
      {"an unknown code", {{17, "00000000"}}, Errc::kSessionControl},
      {"an enhanced Initiate without its data", {{17, "00000005002000"}}, Errc::kSessionControl},
      {"a second Initiate", {{17, "00000001"}, {17, "00010001"}}, Errc::kSessionSequence},
      {"a segment before the answer", {{17, "00000001"}, {16, "0001c1"}}, Errc::kSessionSequence},
  };
  for (const Violation& v : kCases) {
    SCOPED_TRACE(v.name);
    End e((SessionOptions()));
    for (const auto& [ppid, octets] : v.messages) e.receive({ppid, false, test::hex(octets)});
    const auto told = e.told();
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back(), std::string("Ended(") + name(v.code) + ")");
    EXPECT_THAT(e.sent(), ElementsAre("00000004"));
    EXPECT_EQ(e.state(), SessionState::kFailed);
  }
}

TEST(ActiveSession, OrderedDataChunksEndIt) {
  COVERS("RFC5043-8-3");
  End e(plain_options(), "");
  e.receive(Ppid::kSessionControl, test::hex("00000002"), true);
  EXPECT_THAT(e.told(), ElementsAre("Ended(session_sequence)"));
  EXPECT_EQ(e.state(), SessionState::kFailing) << "its Initiate may still be under way";
  EXPECT_THAT(e.sent(), ElementsAre("00000001"));
  e.arrived();
  EXPECT_THAT(e.sent(), ElementsAre("00010004"));
}

// SCTP takes nothing for a while, and the peer answers what it cannot have seen. Found by fuzzing.
TEST(ActiveSession, IsNotAnsweredBeforeItHasAsked) {
  for (const bool withdrawn : {false, true}) {
    for (const char* answer : {"0000 0002", "0000 0003", "0000 0004"}) {
      HoldBudget budget;
      Session s(plain_options(), budget, {}, kStart);
      if (withdrawn) s.terminate();
      const test::Bytes octets = test::hex(answer);
      s.receive({17, false, octets});
      EXPECT_EQ(s.state(), SessionState::kFailing);
      EXPECT_EQ(test::to_hex(s.control()), "00000001");
      s.control_taken();
      s.arrived(1);
      EXPECT_EQ(test::to_hex(s.control()), "00010004");
    }
  }
}

TEST(PassiveSession, HearsNoSegmentBeforeItsAcceptHasLeft) {
  for (const bool ending : {false, true}) {
    HoldBudget budget;
    Session session(plain_options(), budget);
    const auto receive = [&](Ppid ppid, const char* octets) {
      session.receive({static_cast<std::uint32_t>(ppid), false, test::hex(octets)});
    };
    receive(Ppid::kSessionControl, "0000 0001");
    ASSERT_TRUE(session.accept({1, 1}, {}).ok());
    if (ending) session.terminate();
    const test::Bytes ahead = test::hex("0002 c1");
    EXPECT_FALSE(session.early({static_cast<std::uint32_t>(Ppid::kDdpSegment), false, ahead})) << "nothing is placed";
    receive(Ppid::kDdpSegment, "0001 c1");
    EXPECT_EQ(session.state(), SessionState::kFailing);
    EXPECT_EQ(test::to_hex(session.control()), "00000002") << "the Terminate waits for it";
    session.control_taken();
    receive(Ppid::kDdpSegment, "0003 c1");
    session.arrived(1);
    EXPECT_EQ(test::to_hex(session.control()), "00010004");
    EXPECT_EQ(session.state(), SessionState::kFailed);
  }
}

TEST(PassiveSession, AViolationBehindAnAcceptWaitsForIt) {
  COVERS("RFC5043-6.6-1");
  End e((SessionOptions()));
  e.control("0000 0001");
  e.accept();
  (void)e.sent();
  (void)e.told();
  e.control("0001 0001");
  EXPECT_THAT(e.told(), ElementsAre("Ended(session_sequence)"));
  EXPECT_THAT(e.sent(), IsEmpty());
  EXPECT_FALSE(e.session().may_send_segment());
  e.arrived();
  EXPECT_THAT(e.sent(), ElementsAre("00010004"));
  EXPECT_EQ(e.state(), SessionState::kFailed);
}

}  // namespace
}  // namespace iwarp::sctp
