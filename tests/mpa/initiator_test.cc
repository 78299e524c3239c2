#include "tests/mpa/initiator_fixture.h"

namespace iwarp::mpa::initiator_fixture {
namespace {

TEST(MpaInitiator, SendsOneContiguousRequest) {
  COVERS("RFC5044-7.1.2-1");
  COVERS("RFC5044-4.4-5");
  COVERS("RFC5044-7.1.1-19");
  COVERS("RFC6581-9.1-2");
  COVERS("RFC6581-9.1-3");
  COVERS("RFC6581-9.2-8");
  COVERS("RFC6581-9.2-9");
  COVERS("RFC6581-10-1");
  COVERS("RFC6581-9.3-1");
  COVERS("RFC5044-7.1-5");
  Initiator i(Policy{}, hex("f6ab0e18 01010303"), kStart);
  EXPECT_EQ(to_hex(i.tx_bytes()),
            "4d504120494420526571204672616d65"
            "5002000c"
            "8020c020"
            "f6ab0e1801010303");
  i.tx_commit(10);
  EXPECT_EQ(i.tx_bytes().size(), 22u);
  send_all(i);
  EXPECT_TRUE(i.tx_bytes().empty());
  EXPECT_FALSE(i.poll_event());
}

TEST(MpaInitiator, WritesPolicyIntoTheRequest) {
  COVERS("RFC6581-9.2-22");
  COVERS("RFC6581-9.2-24");
  COVERS("RFC6581-10-5");
  COVERS("RFC5044-4.4-4");
  COVERS("RFC6581-5-1");
  COVERS("RFC6581-9.2-1");
  COVERS("RFC6581-9.2-3");
  COVERS("RFC6581-9.2-4");
  COVERS("RFC6581-9.3-1");
  EXPECT_EQ(request_of(with([](Policy& p) { p.peer_to_peer = false; })),
            "50020004"
            "00200020");
  EXPECT_EQ(request_of(with([](Policy& p) { p.rtr_read = false; })),
            "50020004"
            "80208020");
  EXPECT_EQ(request_of(with([](Policy& p) { p.rtr_write = false; })),
            "50020004"
            "80204020");
  EXPECT_EQ(request_of(with([](Policy& p) { p.crc = Policy::Crc::kPreferOff; })).substr(0, 2), "10");
  EXPECT_EQ(request_of(with([](Policy& p) { p.crc = Policy::Crc::kOff; })).substr(0, 2), "10");
  EXPECT_EQ(request_of(with([](Policy& p) { p.revision = 1; })), "40010000");
  EXPECT_EQ(request_of(with([](Policy& p) { p.revision = 1; }), hex("aabb")), "40010002aabb");
}

TEST(MpaInitiator, AsksForAnOrdOfOneIfItMaySendAnRtrByRead) {
  COVERS("RFC6581-9.2-6");
  EXPECT_EQ(request_of(with([](Policy& p) { p.ord = 0; })),
            "50020004"
            "8020c001");
  EXPECT_EQ(request_of(with([](Policy& p) { p.ord = 0, p.rtr_read = false; })),
            "50020004"
            "80208000");
  EXPECT_EQ(request_of(with([](Policy& p) { p.ord = 0, p.peer_to_peer = false; })),
            "50020004"
            "00200000");
}

TEST(MpaInitiator, RefusesArgumentsThatCannotBeSent) {
  COVERS("RFC5044-7.1.1-34");
  Initiator too_long(Policy{}, Bytes(252), kStart);
  EXPECT_TRUE(too_long.tx_bytes().empty());
  EXPECT_EQ(expect<Failed>(too_long).error.code, Errc::kInvalidArgument);
  EXPECT_EQ(Initiator(Policy{}, Bytes(251), kStart).tx_bytes().size(), 20u + 4 + 251);
  Initiator bad_policy(with([](Policy& p) { p.revision = 7; }), {}, kStart);
  EXPECT_TRUE(bad_policy.tx_bytes().empty());
  EXPECT_FALSE(bad_policy.deadline());
  EXPECT_EQ(expect<Failed>(bad_policy).error.code, Errc::kInvalidArgument);
}

TEST(MpaInitiator, EstablishesWithTheDefaults) {
  COVERS("RFC5044-7.1.2-13");
  COVERS("RFC5044-7.1.2-17");
  COVERS("RFC5044-7.1.2-9");
  COVERS("RFC5044-3-14");
  COVERS("RFC5044-7.1.1-28");
  COVERS("RFC6581-9.2-17");
  COVERS("RFC6581-9.1-8");
  COVERS("RFC6581-9.1-9");
  const auto e = after_reply<Established>(Policy{}, "50 02 0004 8020 4020");
  EXPECT_EQ(e.negotiated.to_string(), "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=32");
  EXPECT_EQ(e.rtr_to_send, Rtr::kRead);
  EXPECT_EQ(e.negotiated.peer_ird, 32);
  EXPECT_EQ(e.negotiated.peer_ord, 32);
  EXPECT_TRUE(e.private_data.empty());
}

TEST(MpaInitiator, HandsOverPrivateDataThatOutlivesAMove) {
  COVERS("RFC5044-7.1.1-33");
  COVERS("RFC5044-7.1.2-9");
  Initiator i(Policy{}, {}, kStart);
  send_all(i);
  (void)i.rx(reply("50 02 000c 8020 4020 f6ab0e18 01000303"), kStart);
  auto event = i.poll_event();
  const Initiator moved = std::move(i);
  ASSERT_TRUE(event);
  EXPECT_EQ(to_hex(std::get<Established>(*event).private_data), "f6ab0e1801000303");
}

TEST(MpaInitiator, LeavesTheFirstFpduToTheCaller) {
  COVERS("RFC5044-7.1.5-1");
  Initiator i(Policy{}, {}, kStart);
  send_all(i);
  const Bytes both = reply("50 02 0004 8020 4020") + hex("000ec140");
  EXPECT_EQ(i.rx(both, kStart), 24u);
  (void)expect<Established>(i);
  EXPECT_EQ(i.rx(hex("000ec140"), kStart), 0u) << "Full Operation is not its business";
}

TEST(MpaInitiator, TakesTheReplyInAnyPieces) {
  COVERS("RFC5044-5.1-6");
  const Bytes whole = reply("50 02 0008 8020 4020 aabbccdd") + hex("ff");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    Initiator i(Policy{}, {}, kStart);
    send_all(i);
    const std::size_t first = i.rx(ConstBytes(whole).first(cut), kStart);
    EXPECT_EQ(first + i.rx(ConstBytes(whole).subspan(first), kStart), 28u) << cut;
    EXPECT_EQ(to_hex(expect<Established>(i).private_data), "aabbccdd");
  }
  Initiator i(Policy{}, {}, kStart);
  send_all(i);
  for (std::size_t n = 0; n < 28; ++n) {
    EXPECT_FALSE(i.poll_event());
    EXPECT_EQ(i.rx(ConstBytes(whole).subspan(n, 1), kStart), 1u);
  }
  (void)expect<Established>(i);
}

TEST(MpaInitiator, CrcIsTheOrOfBothFrames) {
  COVERS("RFC5044-7.1.1-16");
  COVERS("RFC5044-7.1.1-17");
  COVERS("RFC5044-4.4-6");
  COVERS("RFC5044-4.4-11");
  COVERS("RFC5044-4.4-3");
  COVERS("RFC5044-7.1.1-15");
  const Policy on;
  const Policy prefer_off = with([](Policy& p) { p.crc = Policy::Crc::kPreferOff; });
  const Policy off = with([](Policy& p) { p.crc = Policy::Crc::kOff; });
  EXPECT_TRUE(after_reply<Established>(on, "50 02 0004 8020 4020").negotiated.crc);
  EXPECT_TRUE(after_reply<Established>(on, "10 02 0004 8020 4020").negotiated.crc);
  EXPECT_TRUE(after_reply<Established>(prefer_off, "50 02 0004 8020 4020").negotiated.crc);
  EXPECT_FALSE(after_reply<Established>(prefer_off, "10 02 0004 8020 4020").negotiated.crc);
  EXPECT_FALSE(after_reply<Established>(off, "10 02 0004 8020 4020").negotiated.crc);
  EXPECT_EQ(after_reply<Failed>(off, "50 02 0004 8020 4020").error.code, Errc::kCrcRefused);
}

TEST(MpaInitiator, SettlesIrdAndOrd) {
  COVERS("RFC6581-9.1-6");
  COVERS("RFC6581-9.1-7");
  COVERS("RFC6581-9.1-11");
  COVERS("RFC6581-9.1-15");
  COVERS("RFC6581-9.1-16");
  COVERS("RFC6581-9.1-25");
  COVERS("RFC6581-9.1-28");
  COVERS("RFC6581-9.1-22");
  struct {
    const char* name;
    const char* words;  // of the Reply: A=1, RTR by Read
    std::uint16_t ird;
    std::uint16_t ord;
  } static const kCases[] = {
      {"the peer has as much", "8020 4020", 32, 32},
      {"the peer's IRD is lower: so is our ORD", "8008 4020", 32, 8},
      {"the peer's IRD is higher: our ORD stays", "8080 4020", 32, 32},
      {"the peer's ORD is lower: our IRD stays", "8020 4001", 32, 32},
      {"the peer's ORD is higher: our IRD is raised", "8020 4040", 64, 32},
      {"raised up to the maximum", "8020 4080", 128, 32},
      {"IRD of the peer not negotiated: our ORD stays", "bfff 4020", 32, 32},
      {"ORD of the peer not negotiated: our IRD stays", "8020 7fff", 32, 32},
      {"nor does that keep our ORD above its IRD", "8004 7fff", 32, 4},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto n = after_reply<Established>(Policy{}, std::string("50 02 0004 ") + c.words).negotiated;
    EXPECT_EQ(n.ird, c.ird);
    EXPECT_EQ(n.ord, c.ord);
  }
  const auto raw = after_reply<Established>(Policy{}, "50 02 0004 bfff 7fff").negotiated;
  EXPECT_EQ(raw.peer_ird, 0x3FFF) << "told as received";
  EXPECT_EQ(raw.peer_ord, 0x3FFF);
}

TEST(MpaInitiator, OwesATerminateIfItsIrdCannotGrow) {
  COVERS("RFC6581-9.1-17");
  COVERS("RFC6581-9.1-18");
  COVERS("RFC6581-9.1-19");
  COVERS("RFC6581-8-4");
  COVERS("RFC6581-12-1");
  const auto f = after_reply<Failed>(Policy{}, "50 02 0004 8020 4081");
  EXPECT_EQ(f.error.code, Errc::kInsufficientIrd);
  EXPECT_EQ(f.error.tell_peer, (TerminateCode{2, 0, 6}));
  ASSERT_TRUE(f.negotiated) << "the Terminate needs to know how to be framed";
  EXPECT_TRUE(f.negotiated->crc);
  EXPECT_EQ(f.negotiated->peer_ord, 129);
  EXPECT_EQ(f.fallback, Fallback::kNone);
  EXPECT_EQ(after_reply<Failed>(with([](Policy& p) { p.max_ird = 0; }), "50 02 0004 8020 4021").error.code,
            Errc::kInsufficientIrd);
  EXPECT_EQ(after_reply<Failed>(with([](Policy& p) { p.ird = 0; }), "50 02 0004 8020 4001").error.code,
            Errc::kInsufficientIrd)
      << "0 forbids Reads, it is no starting value";
  const auto none = with([](Policy& p) {
    p.ird = 0;
    p.peer_to_peer = false;
  });
  EXPECT_EQ(after_reply<Established>(none, "50 02 0004 0020 0000").negotiated.ird, 0) << "as many as the peer asks for";
}

TEST(MpaInitiator, ChoosesAnRtrThatBothSidesName) {
  COVERS("RFC6581-1.1-2");
  COVERS("RFC6581-9.2-15");
  const Policy both;
  const Policy read = with([](Policy& p) { p.rtr_write = false; });
  const Policy write = with([](Policy& p) { p.rtr_read = false; });
  EXPECT_EQ(after_reply<Established>(both, "50 02 0004 8020 4020").rtr_to_send, Rtr::kRead);
  EXPECT_EQ(after_reply<Established>(both, "50 02 0004 8020 8020").rtr_to_send, Rtr::kWrite);
  EXPECT_EQ(after_reply<Established>(both, "50 02 0004 c020 c020").rtr_to_send, Rtr::kRead)
      << "extra flags are no offence";
  EXPECT_EQ(after_reply<Established>(read, "50 02 0004 8020 c020").rtr_to_send, Rtr::kRead);
  EXPECT_EQ(after_reply<Established>(write, "50 02 0004 8020 c020").rtr_to_send, Rtr::kWrite);
  EXPECT_EQ(after_reply<Established>(both, "50 02 0004 8000 c020").rtr_to_send, Rtr::kWrite)
      << "no Read against an IRD of 0";
}

TEST(MpaInitiator, OwesATerminateIfNoRtrIsCommon) {
  COVERS("RFC6581-9.2-18");
  COVERS("RFC6581-9.2-19");
  COVERS("RFC6581-9.2-20");
  COVERS("RFC6581-8-5");
  const Policy write = with([](Policy& p) { p.rtr_read = false; });
  for (const char* words : {"8020 4020", "c020 0020", "8020 0020"}) {
    const auto f = after_reply<Failed>(write, std::string("50 02 0004 ") + words);
    EXPECT_EQ(f.error.code, Errc::kNoMatchingRtr);
    EXPECT_EQ(f.error.tell_peer, (TerminateCode{2, 0, 7}));
    EXPECT_TRUE(f.negotiated);
  }
  EXPECT_EQ(after_reply<Failed>(Policy{}, "50 02 0004 8000 4020").error.code, Errc::kNoMatchingRtr)
      << "only Read is named, but the peer's IRD is 0";
}

TEST(MpaInitiator, RefusesTheOtherConnectionModel) {
  COVERS("RFC6581-9.2-11");
  COVERS("RFC6581-9.2-23");
  const auto f = after_reply<Failed>(Policy{}, "50 02 0004 0020 4020");
  EXPECT_EQ(f.error.code, Errc::kConnectionModel);
  EXPECT_EQ(f.error.tell_peer, (TerminateCode{2, 0, 7}));
  const Policy client_server = with([](Policy& p) { p.peer_to_peer = false; });
  EXPECT_EQ(after_reply<Failed>(client_server, "50 02 0004 8020 4020").error.code, Errc::kConnectionModel);
}

TEST(MpaInitiator, IgnoresRtrFlagsInTheClientServerModel) {
  COVERS("RFC6581-9.2-25");
  const Policy client_server = with([](Policy& p) { p.peer_to_peer = false; });
  const auto e = after_reply<Established>(client_server, "50 02 0004 4020 c020");
  EXPECT_EQ(e.negotiated.to_string(), "rev=2 enhanced=1 crc=1 p2p=0 rtr=none ird=32 ord=32");
  EXPECT_EQ(e.rtr_to_send, Rtr::kNone);
}

TEST(MpaInitiator, WorksUnenhancedWithRevision1) {
  COVERS("RFC6581-6-6");
  const Policy v1 = with([](Policy& p) { p.revision = 1; });
  const auto e = after_reply<Established>(v1, "00 01 0002 aabb");
  EXPECT_EQ(e.negotiated.to_string(), "rev=1 enhanced=0 crc=1 p2p=0 rtr=none ird=32 ord=32");
  EXPECT_EQ(e.negotiated.peer_ird, 0);
}

}  // namespace
}  // namespace iwarp::mpa::initiator_fixture
