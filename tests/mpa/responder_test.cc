#include "tests/mpa/responder_fixture.h"

namespace iwarp::mpa::responder_fixture {
namespace {

TEST(MpaResponder, SaysNothingBeforeARequest) {
  COVERS("RFC5044-7.1.2-3");
  COVERS("RFC5044-7.1.2-12");
  Responder r(Policy{}, kStart);
  EXPECT_TRUE(r.tx_bytes().empty());
  EXPECT_FALSE(r.poll_event());
  EXPECT_FALSE(r.accept(1, 1, {}).ok());
  EXPECT_FALSE(r.reject({}).ok());
  EXPECT_TRUE(r.tx_bytes().empty());
}

TEST(MpaResponder, ReportsTheRequestAsReceived) {
  COVERS("RFC5044-7.1.1-33");
  COVERS("RFC5044-7.1.2-2");
  COVERS("RFC6581-9.1-8");
  COVERS("RFC5044-7.1-3");
  Responder r(Policy{}, kStart);
  (void)r.rx(request("50 02 000c 8080 7fff f6ab0e18 01010303"), kStart);
  const auto e = expect<RequestReceived>(r);
  EXPECT_EQ(to_hex(e.private_data), "f6ab0e1801010303");
  EXPECT_EQ(e.peer_ird, 128);
  EXPECT_EQ(e.peer_ord, 0x3FFF);
  EXPECT_EQ(e.request.to_string(),
            "Request(rev=2, crc=1, markers=0, enhanced=1, p2p=1, rtr_send=0, rtr_write=0, rtr_read=1, ird=128, "
            "ord=16383, pd=8)");
  EXPECT_TRUE(r.tx_bytes().empty()) << "the application decides first";
  EXPECT_FALSE(r.deadline());
  const Responder moved = std::move(r);
  EXPECT_EQ(to_hex(e.private_data), "f6ab0e1801010303");
}

TEST(MpaResponder, AnswersTheDefaultRequest) {
  COVERS("RFC5044-7.1.2-8");
  COVERS("RFC5044-7.1.2-9");
  COVERS("RFC5044-7.1.2-10");
  COVERS("RFC5044-4.4-5");
  COVERS("RFC6581-9.3-2");
  COVERS("RFC6581-9.2-2");
  COVERS("RFC5044-7.1-5");
  COVERS("RFC5044-7.1.1-21");
  const Accepted a = accepted(Policy{}, kDefaultRequest, 32, 32, hex("aabb"));
  EXPECT_EQ(a.reply,
            "50020006"
            "8020"
            "4020"
            "aabb");
  EXPECT_EQ(a.established.negotiated.to_string(), "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=32");
  EXPECT_EQ(a.established.rtr_to_send, Rtr::kNone);
}

// Requests of real peers, and what we answer.
TEST(MpaResponder, AnswersRealPeers) {
  COVERS("RFC6581-6-8");
  COVERS("RFC6581-6-9");
  COVERS("RFC6581-10-4");
  COVERS("RFC6581-10-6");
  COVERS("RFC6581-10-8");
  COVERS("RFC6581-10-9");
  COVERS("RFC6581-9.2-23");
  struct {
    const char* name;
    const char* request;
    const char* reply;
    const char* outcome;
  } static const kCases[] = {
      {"siw-rping", "10 02 0004 0001 0001", "5002000400200001", "rev=2 enhanced=1 crc=1 p2p=0 rtr=none ird=32 ord=1"},
      {"siw-crc-rping", "50 02 0004 0001 0001", "5002000400200001",
       "rev=2 enhanced=1 crc=1 p2p=0 rtr=none ird=32 ord=1"},
      {"siw-p2p-rping", "10 02 0004 8001 c001", "5002000480204001",
       "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=1"},
      {"siw-v1-rping", "00 01 0000", "40010000", "rev=1 enhanced=0 crc=1 p2p=0 rtr=none ird=32 ord=32"},
      {"revision 2 without S", "00 02 0000", "40020000", "rev=2 enhanced=0 crc=1 p2p=0 rtr=none ird=32 ord=32"},
      {"revision 1 with S: a reserved bit", "10 01 0000", "40010000",
       "rev=1 enhanced=0 crc=1 p2p=0 rtr=none ird=32 ord=32"},
      {"siw NFS client", "10 02 000c 0080 0000 f6ab0e18 01010303", "5002000400200020",
       "rev=2 enhanced=1 crc=1 p2p=0 rtr=none ird=32 ord=32"},
      {"cxgb4", "50 02 0004 8020 4001", "5002000480204020", "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=32"},
      {"irdma", "50 02 0004 803f c03f", "50020004803f4020", "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=63 ord=32"},
      {"reserved bits", "1f 02 0004 0001 0001", "5002000400200001",
       "rev=2 enhanced=1 crc=1 p2p=0 rtr=none ird=32 ord=1"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const Accepted a = accepted(Policy{}, c.request);
    EXPECT_EQ(a.reply, c.reply);
    EXPECT_EQ(a.established.negotiated.to_string(), c.outcome);
  }
}

TEST(MpaResponder, DoesNotLookAtRInARequest) {
  COVERS("RFC5044-7.1.1-20");
  EXPECT_EQ(accepted(Policy{}, "70 02 0004 8020 c020").reply, "5002000480204020");
}

TEST(MpaResponder, SetsMToAskForMarkersWhateverThePeerWants) {
  COVERS("RFC5044-7.1.1-8");
  COVERS("RFC5044-7.1.1-11");
  COVERS("RFC5044-7.1.1-9");
  COVERS("RFC5044-7.1.1-12");
  const Policy ask = with([](Policy& p) { p.markers = Policy::Markers::kAsk; });
  for (const bool wanted : {false, true}) {
    const char* const rest = wanted ? "d0 02 0004 8020 c020" : kDefaultRequest;
    const auto unmarked = accepted(Policy{}, rest);
    EXPECT_EQ(unmarked.reply.substr(0, 2), "50");
    EXPECT_EQ(unmarked.established.negotiated.markers_sent, wanted);
    EXPECT_FALSE(unmarked.established.negotiated.markers_received);
    const auto marked = accepted(ask, rest);
    EXPECT_EQ(marked.reply.substr(0, 2), "d0");
    EXPECT_EQ(marked.established.negotiated.markers_sent, wanted);
    EXPECT_TRUE(marked.established.negotiated.markers_received);
  }
}

TEST(MpaResponder, RefusesMarkersWithARejectIfPolicySaysSo) {
  const Policy policy = with([](Policy& p) { p.markers = Policy::Markers::kRefuse; });
  for (const char* rest : {"d0 02 0004 8020 c020", "c0 01 0000"}) {
    const auto [reply, f] = refused(policy, request(rest));
    EXPECT_EQ(f.error.code, Errc::kMarkersRefused);
    ASSERT_FALSE(reply.empty());
    EXPECT_EQ(reply.substr(0, 2), rest[0] == 'd' ? "70" : "60") << "R=1, M=0";
  }
}

TEST(MpaResponder, CrcFollowsPolicyAndPeer) {
  COVERS("RFC5044-7.1.1-16");
  COVERS("RFC5044-7.1.1-17");
  COVERS("RFC5044-4.4-6");
  COVERS("RFC5044-4.4-4");
  COVERS("RFC5044-4.4-3");
  COVERS("RFC5044-7.1.1-15");
  const Policy prefer_off = with([](Policy& p) { p.crc = Policy::Crc::kPreferOff; });
  const Policy off = with([](Policy& p) { p.crc = Policy::Crc::kOff; });
  struct {
    Policy policy;
    const char* request;
    const char* flags;
    bool crc;
  } const kCases[] = {
      {Policy{}, "10 02 0004 8020 c020", "50", true},    {Policy{}, "50 02 0004 8020 c020", "50", true},
      {prefer_off, "10 02 0004 8020 c020", "10", false}, {prefer_off, "50 02 0004 8020 c020", "50", true},
      {off, "10 02 0004 8020 c020", "10", false},
  };
  for (const auto& c : kCases) {
    const Accepted a = accepted(c.policy, c.request);
    EXPECT_EQ(a.reply.substr(0, 2), c.flags);
    EXPECT_EQ(a.established.negotiated.crc, c.crc);
  }
  const auto [reply, f] = refused(off, request("50 02 0004 8020 c020"));
  EXPECT_EQ(f.error.code, Errc::kCrcRefused);
  EXPECT_EQ(reply.substr(0, 4), "3002") << "R=1, C=0";
}

TEST(MpaResponder, SettlesIrdAndOrd) {
  COVERS("RFC6581-9.1-4");
  COVERS("RFC6581-9.1-5");
  COVERS("RFC6581-9.1-10");
  COVERS("RFC6581-9.1-11");
  COVERS("RFC6581-9.1-12");
  COVERS("RFC6581-9.1-23");
  COVERS("RFC6581-9.1-24");
  COVERS("RFC6581-9.1-26");
  COVERS("RFC6581-9.1-27");
  COVERS("RFC6581-12-1");
  struct {
    const char* name;
    const char* words;  // of the Request
    std::uint16_t ird, ord;
    const char* reply;
    std::uint16_t used_ird, used_ord;
  } static const kCases[] = {
      {"as offered", "0020 0020", 32, 32, "00200020", 32, 32},
      {"ORD is lowered to the peer's IRD", "0004 0020", 32, 32, "00200004", 32, 4},
      {"ORD is not raised", "0080 0020", 32, 8, "00200008", 32, 8},
      {"IRD is raised to the peer's ORD", "0020 0040", 32, 32, "00400020", 64, 32},
      {"up to the maximum", "0020 2000", 32, 32, "00800020", 128, 32},
      {"IRD is not lowered", "0020 0001", 32, 32, "00200020", 32, 32},
      {"an IRD above the maximum stays", "0020 2000", 200, 32, "00c80020", 200, 32},
      {"an IRD of 0 forbids Reads", "0020 0020", 0, 32, "00000020", 0, 32},
      {"but an RTR by Read needs one", "8020 4020", 0, 32, "80014020", 1, 32},
      {"peer's ORD 0, RTR by Read", "8020 4000", 0, 32, "80014020", 1, 32},
      {"ORD not negotiated: IRD stays, 3FFF comes back", "0010 3fff", 8, 32, "3fff0010", 8, 16},
      {"IRD not negotiated: ORD stays, 3FFF comes back", "3fff 0020", 32, 64, "00203fff", 32, 64},
      {"neither negotiated", "bfff 7fff", 5, 6, "bfff7fff", 5, 6},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const Accepted a = accepted(Policy{}, std::string("50 02 0004 ") + c.words, c.ird, c.ord);
    EXPECT_EQ(a.established.negotiated.peer_ird, std::stoul(std::string(c.words, 4), nullptr, 16) & 0x3FFF);
    EXPECT_EQ(a.established.negotiated.peer_ord, std::stoul(std::string(c.words + 5, 4), nullptr, 16) & 0x3FFF);
    EXPECT_EQ(a.reply, std::string("50020004") + c.reply);
    EXPECT_EQ(a.established.negotiated.ird, c.used_ird);
    EXPECT_EQ(a.established.negotiated.ord, c.used_ord);
  }
}

TEST(MpaResponder, NamesExactlyOneRtr) {
  COVERS("RFC6581-9.2-11");
  COVERS("RFC6581-9.2-12");
  COVERS("RFC6581-9.2-14");
  COVERS("RFC6581-9.2-16");
  COVERS("RFC6581-9.2-25");
  COVERS("RFC6581-9.2-1");
  COVERS("RFC6581-9.2-3");
  COVERS("RFC6581-9.2-4");
  COVERS("RFC6581-9.2-13");
  const Policy both;
  const Policy read = with([](Policy& p) { p.rtr_write = false; });
  const Policy write = with([](Policy& p) { p.rtr_read = false; });
  const Policy all = with([](Policy& p) { p.rtr_send = true; });
  struct {
    const char* name;
    Policy policy;
    const char* words;
    const char* reply;
    Rtr rtr;
  } const kCases[] = {
      {"both offered: Read", both, "8020 c020", "80204020", Rtr::kRead},
      {"Read offered", both, "8020 4020", "80204020", Rtr::kRead},
      {"Write offered", both, "8020 8020", "80208020", Rtr::kWrite},
      {"only Send offered: still one", both, "c020 0020", "80204020", Rtr::kRead},
      {"nothing offered: still one", both, "8020 0020", "80204020", Rtr::kRead},
      {"both offered, Write supported", write, "8020 c020", "80208020", Rtr::kWrite},
      {"Read offered, Write supported", write, "8020 4020", "80208020", Rtr::kWrite},
      {"Write offered, Read supported", read, "8020 8020", "80204020", Rtr::kRead},
      {"Send offered, all supported", all, "c020 0020", "c0200020", Rtr::kSend},
      {"all offered, all supported", all, "c020 c020", "80204020", Rtr::kRead},
      {"A=0: B, C and D mean nothing", both, "4020 c020", "00200020", Rtr::kNone},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const Accepted a = accepted(c.policy, std::string("50 02 0004 ") + c.words);
    EXPECT_EQ(a.reply, std::string("50020004") + c.reply);
    EXPECT_EQ(a.established.negotiated.rtr, c.rtr);
    EXPECT_EQ(a.established.negotiated.peer_to_peer, c.rtr != Rtr::kNone);
  }
}

// The application has the peer's depths in its private data: they count for what the Request leaves open.
TEST(MpaResponder, TakesDepthsThatItsApplicationWasTold) {
  COVERS("RFC6581-9.1-22");
  const struct {
    const char* request;
    enhanced::Depths told, want;
  } kCases[] = {
      {"40 01 0000", {5, 40}, {40, 5}},             // revision 1
      {"40 01 0000", {64, 8}, {32, 32}},            // both ends can more
      {"40 01 0000", {5, 200}, {128, 5}},           // as far as max_ird
      {"50 02 0004 3fff 3fff", {5, 40}, {40, 5}},   // left to the applications
      {"50 02 0004 3fff 0028", {5, 100}, {40, 5}},  // one of them
      {"50 02 0004 0005 0028", {1, 100}, {40, 5}},  // settled
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.request);
    Responder r(Policy{}, kStart);
    const Bytes bytes = request(c.request);
    EXPECT_EQ(r.rx(bytes, kStart), bytes.size());
    EXPECT_EQ(r.accept(32, 32, {}, enhanced::Depths{16383, 1}).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(r.accept(32, 32, {}, enhanced::Depths{1, 16383}).error().code, Errc::kInvalidArgument);
    ASSERT_TRUE(r.accept(32, 32, {}, c.told));
    (void)sent(r);
    (void)expect<RequestReceived>(r);
    const Negotiated n = expect<Established>(r).negotiated;
    EXPECT_EQ((enhanced::Depths{n.ird, n.ord}), c.want);
  }
}

}  // namespace
}  // namespace iwarp::mpa::responder_fixture
