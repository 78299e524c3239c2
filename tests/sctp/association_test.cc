// Several sessions on one association.
#include "iwarp/sctp/association.h"

#include <gmock/gmock.h>

#include "tests/sctp/session_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::sctp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Side = Association::Side;

// An association's end; what it sends is "stream:octets", what it tells "stream:event".
class Host {
 public:
  explicit Host(Side side, const AssociationOptions& options = {}, std::uint16_t inbound = 8,
                std::uint16_t outbound = 8)
      : association(options, side) {
    EXPECT_TRUE(association.up(kDdpIndication, inbound, outbound).ok());
  }

  StreamId open(const SessionOptions& options = plain_options()) {
    const auto stream = association.open(options, {}, kStart);
    EXPECT_TRUE(stream.ok());
    return stream.value_or(StreamId{999});
  }
  void receive(unsigned stream, Ppid ppid, const std::string& octets) {
    const test::Bytes bytes = test::hex(octets);
    EXPECT_TRUE(
        association
            .receive(StreamId{static_cast<std::uint16_t>(stream)}, {static_cast<std::uint32_t>(ppid), false, bytes})
            .ok());
    drain();
  }
  void control(unsigned stream, const std::string& octets) { receive(stream, Ppid::kSessionControl, octets); }
  void segment(unsigned stream, const std::string& octets) { receive(stream, Ppid::kDdpSegment, octets); }

  std::vector<std::string> told() {
    drain();
    return std::exchange(told_, {});
  }
  std::vector<std::string> sent() {
    std::vector<std::string> out;
    while (const auto c = association.control()) {
      out.push_back(std::to_string(raw(c->stream)) + ":" + test::to_hex(c->message));
      association.control_taken(c->stream);
    }
    return out;
  }
  Association association;

 private:
  void drain() {
    while (const auto event = association.poll_event())
      told_.push_back(std::to_string(raw(event->stream)) + ":" + text(event->what));
  }
  std::vector<std::string> told_;
};

TEST(SctpAssociation, CarriesDdpOnlyWithAPeerThatIndicatesIt) {
  COVERS("RFC5043-11.1-3");
  COVERS("RFC5043-11.1-5");
  COVERS("RFC5043-7.1-2");
  Association a({}, Side::kConnected);
  EXPECT_EQ(a.open(plain_options(), {}, kStart).error().code, Errc::kNotConnected);
  EXPECT_EQ(a.up(std::nullopt, 8, 8).error().code, Errc::kAdaptation);
  EXPECT_EQ(a.up(2, 8, 8).error().code, Errc::kAdaptation);
  EXPECT_EQ(a.streams(), 0);
  EXPECT_TRUE(a.up(1, 8, 8).ok());
  EXPECT_TRUE(a.open(plain_options(), {}, kStart).ok());
}

TEST(SctpAssociation, PairsStreamsWithTheSameNumber) {
  COVERS("RFC5043-2-1");
  COVERS("RFC5043-8-1");
  Host h(Side::kConnected, {}, 3, 8);
  EXPECT_EQ(h.association.streams(), 3);
  EXPECT_EQ(h.open(), StreamId{0});
  EXPECT_EQ(h.open(), StreamId{2});
  EXPECT_EQ(h.association.open(plain_options(), {}, kStart).error().code, Errc::kResource);
  const test::Bytes m = test::hex("00000001");
  EXPECT_EQ(h.association.receive(StreamId{3}, {17, false, m}).error().code, Errc::kSessionSequence);
}

TEST(SctpAssociation, ItsEndsBeginSessionsOnDifferentStreams) {
  COVERS("RFC5043-6.2-8");
  Host a(Side::kConnected), b(Side::kAccepted);
  EXPECT_EQ(a.open(), StreamId{0});
  EXPECT_EQ(b.open(), StreamId{1});
  EXPECT_EQ(a.open(), StreamId{2});
  EXPECT_EQ(b.open(), StreamId{3});
}

TEST(SctpAssociation, SessionsEndOneByOne) {
  COVERS("RFC5043-6-1");
  COVERS("RFC5043-11.3-5");
  COVERS("RFC5043-2-1");
  Host a(Side::kConnected);
  (void)a.open();
  (void)a.open();
  EXPECT_THAT(a.sent(), ElementsAre("0:00000001", "2:00000001"));
  a.control(2, "0000 0002");
  a.control(0, "0000 0002");
  EXPECT_THAT(a.told(),
              ElementsAre("2:Established(plain rtr=none 32/32 pd=)", "0:Established(plain rtr=none 32/32 pd=)"));
  a.segment(0, "0002 c2");  // early on one stream
  a.segment(2, "0001 d1");
  EXPECT_THAT(a.told(), ElementsAre("2:Delivered(d1)")) << "there is no order between streams";
  a.control(0, "0001 0001");  // which breaks the rules
  EXPECT_THAT(a.told(), ElementsAre("0:Ended(session_sequence)"));
  EXPECT_THAT(a.sent(), ElementsAre("0:00010004"));
  EXPECT_EQ(a.association.budget().held(), 0U);
  EXPECT_TRUE(a.association.find(StreamId{2})->may_send_segment());
  a.segment(2, "0002 d2");
  a.association.terminate(StreamId{2});
  a.control(2, "0003 0004");
  EXPECT_THAT(a.told(), ElementsAre("2:Delivered(d2)", "2:Ended(peer_closed)"));
  EXPECT_THAT(a.sent(), ElementsAre("2:00010004"));
  EXPECT_TRUE(a.association.idle());
}

TEST(SctpAssociation, AllSessionsEndWithIt) {
  COVERS("RFC5043-11.3-1");
  COVERS("RFC5043-11.3-2");
  COVERS("RFC5043-11.3-3");
  Host a(Side::kConnected);
  (void)a.open();
  (void)a.open();
  a.control(1, "0000 0001");
  (void)a.told();
  a.association.lost(make_error(Errc::kConnectionLost));
  EXPECT_THAT(a.told(),
              ElementsAre("0:Ended(connection_lost)", "1:Ended(connection_lost)", "2:Ended(connection_lost)"));
  EXPECT_THAT(a.sent(), IsEmpty());
  EXPECT_TRUE(a.association.idle());
  EXPECT_EQ(a.association.open(plain_options(), {}, kStart).error().code, Errc::kNotConnected);
}

TEST(SctpAssociation, AsksTheApplicationAboutAFiniteNumberOfInitiates) {
  COVERS("RFC5043-5.2.3-9");
  COVERS("RFC5043-5.2.3-10");
  COVERS("RFC5043-6.4-2");
  COVERS("RFC5043-6.4-3");
  COVERS("RFC5043-6.4-4");
  AssociationOptions o;
  o.max_deciding = 2;
  Host h(Side::kAccepted, o);
  for (const unsigned stream : {0U, 2U, 4U}) h.control(stream, "0000 0001");
  EXPECT_THAT(h.told(), ElementsAre("0:Requested(- pd=)", "2:Requested(- pd=)")) << "and no word of the third";
  EXPECT_THAT(h.sent(), ElementsAre("4:00000004"));
  EXPECT_TRUE(h.association.reject(StreamId{0}, {}).ok());
  h.control(6, "0000 0001");
  EXPECT_THAT(h.told(), ElementsAre("6:Requested(- pd=)")) << "one has been decided on";
  EXPECT_FALSE(h.association.accept(StreamId{4}, {1, 1}, {}).ok());
  EXPECT_FALSE(h.association.accept(StreamId{7}, {1, 1}, {}).ok());
}

TEST(SctpAssociation, AStreamIsUsedAgainWhenNothingOfItIsUnderWay) {
  COVERS("RFC5043-6-1");
  COVERS("RFC5043-6.1-1");
  COVERS("RFC5043-6.6-5");
  AssociationOptions o;
  Host h(Side::kConnected, o, 2, 2);  // one stream for own sessions
  EXPECT_EQ(h.association.number(StreamId{0}), 0u);
  EXPECT_EQ(h.open(), StreamId{0});
  EXPECT_EQ(h.association.number(StreamId{0}), 1u);
  const auto none_free = [&] { return h.association.open(plain_options(), {}, kStart).ok() == false; };
  (void)h.sent();
  h.control(0, "0000 0002");
  EXPECT_TRUE(none_free());
  h.association.terminate(StreamId{0});
  (void)h.sent();
  EXPECT_TRUE(none_free());
  h.association.all_arrived();
  EXPECT_TRUE(none_free()) << "the peer may still be sending";
  h.control(0, "0001 0004");
  (void)h.told();
  EXPECT_EQ(h.open(), StreamId{0});
  EXPECT_THAT(h.sent(), ElementsAre("0:00000001")) << "from 0 again";
  h.control(0, "0000 0003");
  EXPECT_THAT(h.told(), ElementsAre("0:Rejected(- pd=)"));
  EXPECT_TRUE(none_free()) << "SCTP has not acknowledged the Initiate yet";
  h.association.arrived(StreamId{0}, 1);
  EXPECT_EQ(h.association.number(StreamId{0}), 2u);
  EXPECT_EQ(h.open(), StreamId{0});
  EXPECT_EQ(h.association.number(StreamId{0}), 3u);
}

TEST(SctpAssociation, ThePeerMayBeginAgainOnAStream) {
  COVERS("RFC5043-6-1");
  COVERS("RFC5043-6.2-4");
  Host h(Side::kAccepted);
  h.control(0, "0000 0001 01");
  EXPECT_TRUE(h.association.accept(StreamId{0}, {1, 1}, {}).ok());
  (void)h.sent();
  h.association.all_arrived();
  h.association.terminate(StreamId{0});
  (void)h.told();
  h.control(0, "0000 0001 02");
  EXPECT_THAT(h.told(), ElementsAre("0:Ended(ddp_ssn)")) << "its Terminate has not even left";
  (void)h.sent();
  h.control(0, "0000 0001 03");
  EXPECT_THAT(h.told(), ElementsAre("0:Requested(- pd=03)")) << "behind a session that is over";
  EXPECT_TRUE(h.association.accept(StreamId{0}, {1, 1}, {}).ok());
  (void)h.sent();
  h.association.all_arrived();
  h.association.terminate(StreamId{0});
  EXPECT_THAT(h.sent(), ElementsAre("0:00010004"));
  (void)h.told();
  h.control(0, "0000 0001 04");
  EXPECT_THAT(h.told(), ElementsAre("0:Ended(peer_closed)", "0:Requested(- pd=04)"))
      << "the peer sends no Terminate of its own";
}

TEST(SctpAssociation, SessionsShareTheBudgetOfEarlyMessages) {
  COVERS("RFC5043-10-9");
  AssociationOptions o;
  o.hold_bytes = 2 * (4 + SsnWindow::kHoldOverheadBytes);
  Host h(Side::kAccepted, o);
  h.control(0, "0001 0004");
  h.control(2, "0001 0004");
  EXPECT_EQ(h.association.budget().held(), o.hold_bytes);
  h.control(4, "0001 0004");
  EXPECT_THAT(h.told(), ElementsAre("4:Ended(resource)"));
  EXPECT_THAT(h.sent(), ElementsAre("4:00000004"));
  EXPECT_EQ(h.association.budget().held(), o.hold_bytes);
}

TEST(SctpAssociation, WhatIsPlacedCostsItsFront) {
  COVERS("RFC5041-3-6");
  Host h(Side::kAccepted);
  const test::Bytes octets = test::hex("0002 c1c2c3c4");
  EXPECT_FALSE(h.association.early(StreamId{6}, {16, false, octets})) << "no session";
  h.control(0, "0000 0001");
  (void)h.told();
  ASSERT_TRUE(h.association.accept(StreamId{0}, {4, 4}, {}).ok());
  (void)h.sent();
  (void)h.told();
  const auto early = h.association.early(StreamId{0}, {16, false, octets});
  ASSERT_TRUE(early);
  EXPECT_EQ(test::to_hex(early->segment), "c1c2c3c4");
  EXPECT_TRUE(h.association.receive(StreamId{0}, {16, false, ConstBytes(octets).first(3), 3}).ok());
  EXPECT_EQ(h.association.budget().held(), 3 + SsnWindow::kHoldOverheadBytes);
  EXPECT_FALSE(h.association.early(StreamId{0}, {16, false, octets})) << "twice";
  h.segment(0, "0001 d1");
  EXPECT_THAT(h.told(), ElementsAre("0:Delivered(d1)", "0:Delivered(c1 and more)"));
  EXPECT_EQ(h.association.budget().held(), 0U);
}

TEST(SctpAssociation, HasTheEarliestDeadline) {
  Host h(Side::kConnected);
  EXPECT_FALSE(h.association.deadline());
  SessionOptions late = plain_options(), early = plain_options();
  early.answer_timeout = std::chrono::milliseconds(10);
  (void)h.open(late);
  (void)h.open(early);
  EXPECT_EQ(h.association.deadline(), kStart + std::chrono::milliseconds(10));
  h.association.on_deadline(kStart + std::chrono::milliseconds(10));
  EXPECT_THAT(h.told(), ElementsAre("2:Ended(startup_timeout)"));
  EXPECT_EQ(h.association.deadline(), kStart + late.answer_timeout);
  EXPECT_FALSE(h.association.idle());
}

TEST(SctpAssociation, RefusesWhatCannotBeSent) {
  COVERS("RFC5043-5.2.3-5");
  COVERS("RFC6581-7-20");
  Host h(Side::kConnected);
  EXPECT_EQ(h.association.open(plain_options(), test::pattern(513), kStart).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(h.association.open({}, test::pattern(509), kStart).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(h.association.open(plain_options(), test::pattern(512), kStart).ok());
  EXPECT_TRUE(h.association.open({}, test::pattern(508), kStart).ok());
  SessionOptions bad;
  bad.ahead = 0;
  EXPECT_EQ(h.association.open(bad, {}, kStart).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace iwarp::sctp
