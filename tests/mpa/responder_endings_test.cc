// How a start at the Responder fails: malformed and refused Requests, rejects, the end of the connection, timeouts.
#include "tests/mpa/responder_fixture.h"

namespace iwarp::mpa::responder_fixture {
namespace {

TEST(MpaResponder, ClosesWithoutAWordOnAMalformedRequest) {
  COVERS("RFC5044-7.1.2-4");
  COVERS("RFC5044-7.1.1-4");
  COVERS("RFC5044-7.1.2-20");
  COVERS("RFC5044-7.1.3-2");
  COVERS("RFC5044-8-4");
  COVERS("RFC5044-8-10");
  struct {
    const char* name;
    Bytes bytes;
    Errc code;
  } const kCases[] = {
      {"HTTP", hex("47455420"), Errc::kMalformedStartupFrame},
      {"a Reply", hex("4d504120 49442052 65702046 72616d65 50020004 80204020"), Errc::kMalformedStartupFrame},
      {"513 octets of private data", request("50 02 0201"), Errc::kPrivateDataTooLong},
      {"enhanced without enhanced data", request("50 02 0000"), Errc::kMalformedStartupFrame},
      {"an octet behind the Request", request(kDefaultRequest) + hex("00"), Errc::kMalformedStartupFrame},
      {"a pipelined RTR", request(kDefaultRequest) + hex("000ec140 00000001 00000000 00000000 ebd34c5f"),
       Errc::kMalformedStartupFrame},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto [reply, f] = refused(Policy{}, c.bytes);
    EXPECT_EQ(f.error.code, c.code);
    EXPECT_EQ(reply, "");
  }
}

TEST(MpaResponder, RefusesRevisionsItCannotSpeak) {
  COVERS("RFC5044-7.1.1-25");
  COVERS("RFC5044-7.1.1-26");
  COVERS("RFC5044-7.1.1-27");
  COVERS("RFC5044-C.2.1-1");
  COVERS("RFC6581-10-10");
  COVERS("RFC6581-10-3");
  const Policy v1 = with([](Policy& p) { p.revision = 1; });
  EXPECT_EQ(refused(Policy{}, request("50 03 0004 8020 c020")).second.error.code, Errc::kUnsupportedRevision);
  EXPECT_EQ(refused(Policy{}, request("50 03 0004 8020 c020")).first, "");
  EXPECT_EQ(refused(v1, request(kDefaultRequest)).second.error.code, Errc::kUnsupportedRevision);
  EXPECT_EQ(refused(v1, request(kDefaultRequest)).first, "");
  EXPECT_EQ(accepted(v1, "40 01 0000").reply, "40010000");
  const auto [reply, f] = refused(Policy{}, request("c0 00 0000"));
  EXPECT_EQ(f.error.code, Errc::kUnsupportedRevision);
  EXPECT_EQ(reply, "60010000") << "an RDMA Consortium peer shall see which revision we speak";
}

TEST(MpaResponder, RefusesOctetsBeforeTheDecision) {
  COVERS("RFC5044-7.1.1-31");
  COVERS("RFC5044-7.1.2-11");
  Responder r(Policy{}, kStart);
  (void)r.rx(request(kDefaultRequest), kStart);
  (void)expect<RequestReceived>(r);
  (void)r.rx({}, kStart);
  EXPECT_EQ(r.state(), ResponderState::kDeciding) << "nothing came";
  EXPECT_EQ(r.rx(hex("00"), kStart), 0u);
  EXPECT_EQ(expect<Failed>(r).error.code, Errc::kMalformedStartupFrame);
  EXPECT_FALSE(r.accept(1, 1, {}).ok()) << "too late";
  EXPECT_TRUE(r.tx_bytes().empty());
}

// A driver may learn that the Reply has left only after the peer's first FPDU has come in.
// Found by the fuzzer: whether octets behind a Request come with it or a moment later must not decide its fate.
TEST(MpaResponder, RefusesForTheSameReasonWhateverFollowsTheRequest) {
  const Bytes bad[] = {request("d0 02 0004 8020 c020"), request("50 03 0004 8020 c020"), request("50 00 0000")};
  const Policy policy = with([](Policy& p) { p.markers = Policy::Markers::kRefuse; });
  for (const Bytes& bytes : bad) {
    Responder together(policy, kStart), apart(policy, kStart);
    (void)together.rx(bytes + hex("00"), kStart);
    (void)apart.rx(bytes, kStart);
    EXPECT_EQ(apart.rx(hex("00"), kStart), 0u);
    EXPECT_EQ(sent(together), sent(apart));
    const Errc code = expect<Failed>(together).error.code;
    EXPECT_EQ(code, expect<Failed>(apart).error.code);
    EXPECT_NE(code, Errc::kMalformedStartupFrame);
  }
}

TEST(MpaResponder, LeavesOctetsAfterTheDecisionToTheCaller) {
  Responder r(Policy{}, kStart);
  (void)r.rx(request(kDefaultRequest), kStart);
  (void)expect<RequestReceived>(r);
  ASSERT_TRUE(r.accept(32, 32, {}).ok());
  EXPECT_EQ(r.rx(hex("000ec140"), kStart), 0u);
  EXPECT_FALSE(r.poll_event());
  r.tx_commit(23);
  EXPECT_FALSE(r.poll_event()) << "one octet of the Reply is missing";
  r.tx_commit(1);
  (void)expect<Established>(r);
  EXPECT_EQ(r.rx(hex("000ec140"), kStart), 0u);
}

TEST(MpaResponder, TakesTheRequestInAnyPieces) {
  COVERS("RFC5044-5.1-6");
  const Bytes whole = request("50 02 0008 8020 c020 aabbccdd");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    Responder r(Policy{}, kStart);
    EXPECT_EQ(r.rx(ConstBytes(whole).first(cut), kStart), cut);
    EXPECT_EQ(r.state() == ResponderState::kDeciding, cut == whole.size());
    if (cut < whole.size()) {
      EXPECT_EQ(r.rx(ConstBytes(whole).subspan(cut), kStart), whole.size() - cut);
    }
    EXPECT_EQ(to_hex(expect<RequestReceived>(r).private_data), "aabbccdd");
  }
  Responder r(Policy{}, kStart);
  for (const std::byte& b : whole) EXPECT_EQ(r.rx(ConstBytes(&b, 1), kStart), 1u);
  (void)expect<RequestReceived>(r);
}

TEST(MpaResponder, RejectsForTheApplicationAndLeavesTcpToIt) {
  COVERS("RFC5044-7.1.2-5");
  COVERS("RFC5044-7.1.2-7");
  COVERS("RFC5044-7.1.2-22");
  COVERS("RFC6581-9.1-13");
  COVERS("RFC5044-7.1.1-21");
  struct {
    const char* request;
    std::optional<std::uint16_t> required_ord;
    const char* reply;
  } const kCases[] = {
      {"50 02 0004 8004 c020", std::nullopt,
       "70020006"
       "80204004"
       "aabb"},
      {"50 02 0004 8004 c020", 64,
       "70020006"
       "80204040"
       "aabb"},
      {"10 02 0004 0020 0020", std::nullopt,
       "70020006"
       "00200020"
       "aabb"},
      {"00 01 0000", std::nullopt,
       "60010002"
       "aabb"},
  };
  for (const auto& c : kCases) {
    Responder r(Policy{}, kStart);
    (void)r.rx(request(c.request), kStart);
    (void)expect<RequestReceived>(r);
    ASSERT_TRUE(r.reject(hex("aabb"), c.required_ord).ok());
    EXPECT_FALSE(r.accept(1, 1, {}).ok()) << "decided once";
    EXPECT_FALSE(r.poll_event());
    EXPECT_EQ(sent(r), c.reply);
    (void)expect<Rejected>(r);
    EXPECT_EQ(r.state(), ResponderState::kRejected);
    r.rx_end(false);
    EXPECT_FALSE(r.poll_event());
  }
}

TEST(MpaResponder, RefusesArgumentsThatCannotBeSent) {
  COVERS("RFC5044-7.1.1-34");
  Responder r(Policy{}, kStart);
  (void)r.rx(request(kDefaultRequest), kStart);
  EXPECT_EQ(r.accept(kNoIrdOrdNegotiation, 1, {}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(r.accept(1, kNoIrdOrdNegotiation, {}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(r.accept(1, 1, Bytes(252)).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(r.reject(Bytes(252)).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(r.reject({}, kNoIrdOrdNegotiation).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(r.state(), ResponderState::kDeciding) << "nothing has changed";
  EXPECT_TRUE(r.accept(1, 1, Bytes(251)).ok());
  Responder bad(with([](Policy& p) { p.rtr_read = p.rtr_write = false; }), kStart);
  EXPECT_EQ(expect<Failed>(bad).error.code, Errc::kInvalidArgument);
}

TEST(MpaResponder, ReportsTheEndOfTheConnectionInEveryState) {
  COVERS("RFC5044-7.1.1-31");
  COVERS("RFC5044-8-1");
  for (const bool reset : {false, true}) {
    Responder silent(Policy{}, kStart);
    silent.rx_end(reset);
    EXPECT_EQ(expect<Failed>(silent).error.code, Errc::kConnectionLost);

    Responder cut(Policy{}, kStart);
    (void)cut.rx(ConstBytes(request(kDefaultRequest)).first(23), kStart);
    cut.rx_end(reset);
    EXPECT_EQ(expect<Failed>(cut).error.code, reset ? Errc::kConnectionLost : Errc::kMalformedStartupFrame);

    Responder deciding(Policy{}, kStart);
    (void)deciding.rx(request(kDefaultRequest), kStart);
    deciding.rx_end(reset);
    (void)expect<RequestReceived>(deciding);
    EXPECT_EQ(expect<Failed>(deciding).error.code, Errc::kConnectionLost);

    for (const bool accept : {false, true}) {
      Responder answering(Policy{}, kStart);
      (void)answering.rx(request(kDefaultRequest), kStart);
      (void)expect<RequestReceived>(answering);
      ASSERT_TRUE((accept ? answering.accept(1, 1, {}) : answering.reject({})).ok());
      answering.rx_end(reset);
      EXPECT_EQ(expect<Failed>(answering).error.code, Errc::kConnectionLost);
      EXPECT_TRUE(answering.tx_bytes().empty());
    }
  }
}

TEST(MpaResponder, TimesOutOverTheWholeRequestNotOverEachOctet) {
  COVERS("RFC5044-7.1.2-26");
  COVERS("RFC5044-7.1.2-31");
  Responder r(Policy{}, kStart);
  const Bytes whole = request(kDefaultRequest);
  for (std::size_t n = 0; n < 10; ++n) {
    ASSERT_EQ(r.deadline(), kStart + 5000ms);
    (void)r.rx(ConstBytes(whole).subspan(n, 1), kStart + std::chrono::milliseconds(n * 400));
  }
  r.on_deadline(kStart + 4999ms);
  EXPECT_FALSE(r.poll_event());
  r.on_deadline(kStart + 5000ms);
  EXPECT_EQ(expect<Failed>(r).error.code, Errc::kStartupTimeout);
  EXPECT_FALSE(r.deadline());
  EXPECT_TRUE(r.tx_bytes().empty());
}

// It may have lain in the socket while nobody drove.
TEST(MpaResponder, AWholeRequestIsNotLateAndPartOfOneIs) {
  Responder whole(Policy{}, kStart);
  (void)whole.rx(request(kDefaultRequest), kStart + 5000ms);
  (void)expect<RequestReceived>(whole);
  Responder part(Policy{}, kStart);
  (void)part.rx(ConstBytes(request(kDefaultRequest)).first(20), kStart + 5000ms);
  EXPECT_EQ(expect<Failed>(part).error.code, Errc::kStartupTimeout);
}

TEST(MpaResponder, HasNoDeadlineWhileTheApplicationThinks) {
  Responder r(Policy{}, kStart);
  (void)r.rx(request(kDefaultRequest), kStart + 4999ms);
  EXPECT_FALSE(r.deadline());
  r.on_deadline(kStart + 60000ms);
  (void)expect<RequestReceived>(r);
  EXPECT_FALSE(r.poll_event());
}

TEST(MpaResponder, HonoursALowerPrivateDataLimit) {
  const Policy small = with([](Policy& p) { p.max_private_data_bytes = 8; });
  EXPECT_EQ(refused(small, request("50 02 0009")).second.error.code, Errc::kPrivateDataTooLong);
  (void)accepted(small, "50 02 0008 8020 c020 aabbccdd");
}

}  // namespace
}  // namespace iwarp::mpa::responder_fixture
