// How a start by the Initiator fails: wrong answers, rejects, the end of the connection, timeouts.
#include "tests/mpa/initiator_fixture.h"

namespace iwarp::mpa::initiator_fixture {
namespace {

TEST(MpaInitiator, AnswersOfTheWrongRevisionOrKindEndTheStart) {
  COVERS("RFC5044-7.1.1-24");
  COVERS("RFC5044-7.1.1-25");
  COVERS("RFC5044-7.1.1-26");
  COVERS("RFC5044-7.1.1-27");
  COVERS("RFC5044-C.2.2-1");
  COVERS("RFC6581-10-2");
  COVERS("RFC6581-10-9");
  const Policy v1 = with([](Policy& p) { p.revision = 1; });
  const Policy unmarked = with([](Policy& p) { p.markers = Policy::Markers::kRefuse; });
  struct {
    const char* name;
    Policy policy;
    const char* rest;
    Errc code;
  } const kCases[] = {
      {"revision 0", Policy{}, "c0 00 0000", Errc::kUnsupportedRevision},
      {"revision 3", Policy{}, "50 03 0004 8020 4020", Errc::kUnsupportedRevision},
      {"revision 2 to revision 1", v1, "40 02 0000", Errc::kUnsupportedRevision},
      {"revision 2, enhanced, to revision 1", v1, "50 02 0004 8020 4020", Errc::kUnsupportedRevision},
      {"revision 1 to revision 2", Policy{}, "40 01 0000", Errc::kConnectionModel},
      {"S=0 to S=1", Policy{}, "40 02 0000", Errc::kConnectionModel},
      {"Markers", unmarked, "d0 02 0004 8020 4020", Errc::kMarkersRefused},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto f = after_reply<Failed>(c.policy, c.rest);
    EXPECT_EQ(f.error.code, c.code);
    EXPECT_FALSE(f.error.tell_peer);
    EXPECT_EQ(f.fallback, Fallback::kNone);
  }
}

TEST(MpaInitiator, ClosesOnAMalformedReply) {
  COVERS("RFC5044-7.1.2-14");
  COVERS("RFC5044-7.1.2-20");
  COVERS("RFC5044-8-4");
  COVERS("RFC5044-8-10");
  struct {
    const char* name;
    Bytes bytes;
    Errc code;
  } const kCases[] = {
      {"HTTP", hex("48545450"), Errc::kMalformedStartupFrame},
      {"a Request: crossed start", hex("4d504120 49442052 65712046 72616d65 50020004 80204020"),
       Errc::kMalformedStartupFrame},
      {"513 octets of private data", reply("50 02 0201"), Errc::kPrivateDataTooLong},
      {"enhanced without enhanced data", reply("50 02 0003"), Errc::kMalformedStartupFrame},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    Initiator i(Policy{}, {}, kStart);
    send_all(i);
    (void)i.rx(c.bytes, kStart);
    EXPECT_TRUE(i.is_consistent());
    EXPECT_EQ(i.state(), InitiatorState::kFailed);
    const auto f = expect<Failed>(i);
    EXPECT_EQ(f.error.code, c.code);
    EXPECT_FALSE(f.error.tell_peer) << "no Terminate before Full Operation";
    EXPECT_EQ(i.rx(reply("50 02 0004 8020 4020"), kStart), 0u) << "too late";
    EXPECT_FALSE(i.poll_event());
  }
}

TEST(MpaInitiator, LeavesARejectToTheApplication) {
  COVERS("RFC5044-7.1.2-16");
  COVERS("RFC5044-7.1.2-6");
  COVERS("RFC5044-7.1.1-21");
  COVERS("RFC5044-7.1.4.2-2");
  COVERS("RFC6581-9.1-13");
  COVERS("RFC6581-9.1-20");
  COVERS("RFC5044-7.1.4.2-1");
  Initiator i(Policy{}, {}, kStart);
  send_all(i);
  (void)i.rx(reply("70 02 0006 8020 7000 aabb"), kStart);
  i.rx_end(false);  // the peer may close or not: the reject is what counts
  EXPECT_EQ(i.state(), InitiatorState::kRejected);
  const auto r = expect<Rejected>(i);
  ASSERT_TRUE(r.enhanced);
  EXPECT_EQ(r.enhanced->ord, 0x3000) << "more than our IRD: what the peer needs";
  EXPECT_EQ(to_hex(r.private_data), "aabb");
}

TEST(MpaInitiator, TakesARejectWhateverElseItsFlagsSay) {
  EXPECT_FALSE(after_reply<Rejected>(Policy{}, "20 01 0000").enhanced) << "unenhanced";
  EXPECT_TRUE(after_reply<Rejected>(Policy{}, "f0 02 0004 0000 0000").enhanced) << "with M and A=0";
}

TEST(MpaInitiator, SuggestsRevision1WhenThePeerEndsBeforeItsReply) {
  COVERS("RFC6581-10-12");
  COVERS("RFC6581-10-11");
  COVERS("RFC5044-8-1");
  for (const bool reset : {false, true}) {
    Initiator i(Policy{}, {}, kStart);
    send_all(i);
    i.rx_end(reset);
    const auto f = expect<Failed>(i);
    EXPECT_EQ(f.error.code, Errc::kConnectionLost);
    EXPECT_FALSE(f.error.tell_peer);
    EXPECT_EQ(f.fallback, Fallback::kRevision1) << (reset ? "RST" : "FIN");
    EXPECT_FALSE(i.deadline());
    i.rx_end(reset);
    EXPECT_FALSE(i.poll_event()) << "told once";
  }
}

TEST(MpaInitiator, SuggestsNoFallbackOtherwise) {
  const auto suggests = [](const Policy& policy, std::size_t reply_bytes, bool reset, Errc code) {
    Initiator i(policy, {}, kStart);
    send_all(i);
    (void)i.rx(ConstBytes(reply("50 02 0004 8020 4020")).first(reply_bytes), kStart);
    i.rx_end(reset);
    const auto f = expect<Failed>(i);
    EXPECT_EQ(f.error.code, code);
    return f.fallback != Fallback::kNone;
  };
  EXPECT_FALSE(suggests(with([](Policy& p) { p.allow_revision_1_fallback = false; }), 0, true, Errc::kConnectionLost));
  EXPECT_FALSE(suggests(with([](Policy& p) { p.revision = 1; }), 0, true, Errc::kConnectionLost))
      << "nothing lower left";
  EXPECT_FALSE(suggests(Policy{}, 1, true, Errc::kConnectionLost)) << "it had begun to answer";
}

TEST(MpaInitiator, CallsAFinInsideTheReplyMalformed) {
  COVERS("RFC5044-7.1.1-31");
  const Bytes whole = reply("50 02 0008 8020 4020 aabbccdd");
  for (std::size_t n = 1; n < whole.size(); ++n) {
    Initiator i(Policy{}, {}, kStart);
    send_all(i);
    (void)i.rx(ConstBytes(whole).first(n), kStart);
    i.rx_end(false);
    const auto f = expect<Failed>(i);
    EXPECT_EQ(f.error.code, Errc::kMalformedStartupFrame) << n;
    EXPECT_EQ(f.fallback, Fallback::kNone);
  }
}

TEST(MpaInitiator, TimesOutOverTheWholeReplyNotOverEachOctet) {
  COVERS("RFC5044-7.1.2-31");
  Initiator i(Policy{}, {}, kStart);
  send_all(i);
  ASSERT_EQ(i.deadline(), kStart + 5000ms);
  const Bytes whole = reply("50 02 0004 8020 4020");
  for (std::size_t n = 0; n < 10; ++n) {
    (void)i.rx(ConstBytes(whole).subspan(n, 1), kStart + std::chrono::milliseconds(n * 400));
    EXPECT_EQ(i.deadline(), kStart + 5000ms);
  }
  i.on_deadline(kStart + 4999ms);
  EXPECT_FALSE(i.poll_event()) << "woken too early";
  i.on_deadline(kStart + 5000ms);
  const auto f = expect<Failed>(i);
  EXPECT_EQ(f.error.code, Errc::kStartupTimeout);
  EXPECT_EQ(f.fallback, Fallback::kNone);
  EXPECT_FALSE(i.deadline());
}

// It may have lain in the socket while nobody drove.
TEST(MpaInitiator, AWholeReplyIsNotLateAndPartOfOneIs) {
  Initiator whole(Policy{}, {}, kStart);
  send_all(whole);
  (void)whole.rx(reply("50 02 0004 8020 4020"), kStart + 5000ms);
  (void)expect<Established>(whole);
  Initiator part(Policy{}, {}, kStart);
  send_all(part);
  (void)part.rx(ConstBytes(reply("50 02 0004 8020 4020")).first(20), kStart + 5000ms);
  EXPECT_EQ(expect<Failed>(part).error.code, Errc::kStartupTimeout);
}

TEST(MpaInitiator, HasNoDeadlineOnceEstablished) {
  Initiator i(Policy{}, {}, kStart);
  send_all(i);
  (void)i.rx(reply("50 02 0004 8020 4020"), kStart);
  EXPECT_FALSE(i.deadline());
  i.on_deadline(kStart + 9999ms);
  (void)expect<Established>(i);
}

}  // namespace
}  // namespace iwarp::mpa::initiator_fixture
