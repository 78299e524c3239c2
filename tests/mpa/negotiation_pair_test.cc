// An Initiator and a Responder joined in memory, in virtual time, over every combination of policies that matters.
#include <gtest/gtest.h>

#include <random>

#include "iwarp/mpa/negotiation.h"
#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::mpa {
namespace {

using test::Bytes;
using test::to_hex;

constexpr TimePoint kStart{};
using Crc = Policy::Crc;

struct Pair {
  Pair(const Policy& initiator_policy, const Policy& responder_policy, std::size_t max_chunk)
      : initiator(initiator_policy, Bytes(7, std::byte{1}), kStart),
        responder(responder_policy, kStart),
        max_chunk_bytes(max_chunk) {}

  // Moves bytes both ways until nothing moves any more.
  void run() {
    for (int step = 0; step < 10000; ++step) {
      bool moved = move_bytes(initiator, responder);
      moved |= move_bytes(responder, initiator);
      while (const auto e = initiator.poll_event()) initiator_events.push_back(*e);
      while (const auto e = responder.poll_event()) {
        responder_events.push_back(*e);
        if (std::holds_alternative<RequestReceived>(*e)) {
          const auto decided =
              accept ? responder.accept(ird, ord, Bytes(9, std::byte{2})) : responder.reject(Bytes(9, std::byte{2}));
          EXPECT_TRUE(decided.ok());
        }
        moved = true;
      }
      EXPECT_TRUE(initiator.is_consistent() && responder.is_consistent());
      if (!moved && (initiator.tx_bytes().empty() && responder.tx_bytes().empty())) {
        if (!close_on_responder_failure()) return;
      }
    }
    ADD_FAILURE() << "no end";
  }

  Initiator initiator;
  Responder responder;
  std::size_t max_chunk_bytes;
  bool accept = true;
  std::uint16_t ird = 32;
  std::uint16_t ord = 32;
  std::vector<Initiator::Event> initiator_events;
  std::vector<Responder::Event> responder_events;

 private:
  template <class From, class To>
  bool move_bytes(From& from, To& to) {
    const ConstBytes ready = from.tx_bytes();
    if (ready.empty()) return false;
    const ConstBytes chunk = ready.first(std::min(ready.size(), max_chunk_bytes));
    const Bytes copy(chunk.begin(), chunk.end());
    from.tx_commit(copy.size());
    EXPECT_EQ(to.rx(copy, kStart), copy.size());
    return true;
  }
  bool close_on_responder_failure() {
    if (responder.state() != ResponderState::kFailed || initiator.state() != InitiatorState::kWaitReply) return false;
    initiator.rx_end(false);
    return true;
  }
};

struct Expected {
  std::string outcome;  // of the Initiator: to_string(), "rejected" or the Errc
  std::string responder;
};

// The rules of RFC 5044 s7.1 and RFC 6581 s9, told once more from above.
Expected oracle(const Policy& i, const Policy& r) {
  if (i.revision > r.revision) return {"connection_lost", "unsupported_revision"};
  const bool enhanced = i.revision == 2;
  if (i.crc == Crc::kOn && r.crc == Crc::kOff) return {"rejected", "crc_refused"};
  const bool p2p = enhanced && i.peer_to_peer;
  const std::string rev = enhanced ? "rev=2 enhanced=1" : "rev=1 enhanced=0";
  const bool crc = i.crc == Crc::kOn || r.crc == Crc::kOn;
  const bool named_read = i.rtr_read && r.rtr_read ? true : i.rtr_write && r.rtr_write ? false : r.rtr_read;
  const std::string rtr = !p2p ? "none" : named_read ? "read" : "write";
  const std::string rest =
      rev + " crc=" + (crc ? "1" : "0") + " p2p=" + (p2p ? "1" : "0") + " rtr=" + rtr + " ird=32 ord=32";
  if (i.crc == Crc::kOff && r.crc == Crc::kOn) return {"crc_refused", rest};
  if (p2p && !(named_read ? i.rtr_read : i.rtr_write)) return {"no_matching_rtr", rest};
  return {rest, rest};
}

template <class Event>
std::string text(const Event& event) {
  return std::visit(
      [](const auto& e) -> std::string {
        using E = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<E, Established>) return e.negotiated.to_string();
        if constexpr (std::is_same_v<E, Rejected>) return "rejected";
        if constexpr (std::is_same_v<E, Failed>) return name(e.error.code);
        return "request";
      },
      event);
}

std::vector<Policy> all_policies() {
  std::vector<Policy> out;
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    for (const Crc crc : {Crc::kOn, Crc::kPreferOff, Crc::kOff}) {
      for (const bool p2p : {false, true}) {
        for (const int forms : {1, 2, 3}) {
          Policy p;
          p.revision = revision;
          p.crc = crc;
          p.peer_to_peer = p2p;
          p.rtr_write = (forms & 1) != 0;
          p.rtr_read = (forms & 2) != 0;
          out.push_back(p);
        }
      }
    }
  }
  return out;
}

std::string describe(const Policy& p) {
  return "rev " + std::to_string(p.revision) + " crc " + std::to_string(static_cast<int>(p.crc)) + " p2p " +
         std::to_string(p.peer_to_peer) + " write " + std::to_string(p.rtr_write) + " read " +
         std::to_string(p.rtr_read);
}

TEST(NegotiationPair, EveryCombinationOfPoliciesEndsAsTheRulesSay) {
  COVERS("RFC5044-7.1.2-3");
  COVERS("RFC5044-7.1.2-13");
  COVERS("RFC5044-4.4-2");
  COVERS("RFC5044-4.4-8");
  COVERS("RFC6581-9.3-3");
  for (const Policy& i : all_policies()) {
    for (const Policy& r : all_policies()) {
      SCOPED_TRACE(describe(i) + " / " + describe(r));
      const Expected want = oracle(i, r);
      for (const std::size_t chunk : {1000u, 1u, 5u}) {
        Pair pair(i, r, chunk);
        pair.run();
        ASSERT_EQ(pair.initiator_events.size(), 1u);
        ASSERT_FALSE(pair.responder_events.empty());
        EXPECT_EQ(text(pair.initiator_events.back()), want.outcome);
        EXPECT_EQ(text(pair.responder_events.back()), want.responder);
      }
    }
  }
}

// RFC 5044 Appendix C.3: each direction by the M of the end that receives.
TEST(NegotiationPair, MarkersGoWhereTheirReceiverAsksForThem) {
  COVERS("RFC5044-C.3-1");
  COVERS("RFC5044-7.1.1-13");
  COVERS("RFC5044-7.1.1-9");
  COVERS("RFC5044-7.1.1-10");
  COVERS("RFC5044-7.1.1-11");
  COVERS("RFC5044-7.1.1-12");
  using enum Policy::Markers;
  const char* const kWant[3][3] = {
      // Responder: kServe, kAsk, kRefuse
      {"-/-", "sent/received", "-/-"},
      {"received/sent", "both/both", "rejected/markers_refused"},
      {"-/-", "markers_refused/received", "-/-"},
  };
  const auto markers = [](const auto& event) -> std::string {
    const std::string line = text(event);
    const auto at = line.find(" markers=");
    return line.find("rev=") != 0 ? line : at == std::string::npos ? "-" : line.substr(at + 9);
  };
  for (const auto i : {kServe, kAsk, kRefuse}) {
    for (const auto r : {kServe, kAsk, kRefuse}) {
      for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
        Policy initiator, responder;
        initiator.markers = i;
        responder.markers = r;
        initiator.revision = revision;
        Pair pair(initiator, responder, 1000);
        pair.run();
        ASSERT_EQ(pair.initiator_events.size(), 1U);
        EXPECT_EQ(markers(pair.initiator_events[0]) + "/" + markers(pair.responder_events.back()),
                  kWant[static_cast<int>(i)][static_cast<int>(r)]);
      }
    }
  }
}

TEST(NegotiationPair, BothSidesAgreeOnDepthsThatFit) {
  COVERS("RFC6581-9.1-6");
  COVERS("RFC6581-9.1-7");
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Policy i;
    i.ird = static_cast<std::uint16_t>(1 + random() % 100);
    i.ord = static_cast<std::uint16_t>(random() % 300);
    i.peer_to_peer = random() % 2 == 0;
    i.rtr_write = random() % 2 == 0;
    Pair pair(i, Policy{}, 1000);
    pair.ird = static_cast<std::uint16_t>(random() % 100);
    pair.ord = static_cast<std::uint16_t>(random() % 300);
    pair.run();
    ASSERT_EQ(pair.initiator_events.size(), 1u);
    ASSERT_TRUE(std::holds_alternative<Established>(pair.initiator_events[0])) << text(pair.initiator_events[0]);
    const auto& a = std::get<Established>(pair.initiator_events[0]).negotiated;
    const auto& b = std::get<Established>(pair.responder_events.back()).negotiated;
    EXPECT_LE(a.ord, b.ird) << "round " << round;
    EXPECT_LE(b.ord, a.ird) << "round " << round;
    EXPECT_EQ(a.peer_ird, b.ird);
    EXPECT_EQ(a.peer_ord, b.ord);
    if (a.rtr == Rtr::kRead) {
      EXPECT_GE(a.ord, 1);
    }
  }
}

TEST(NegotiationPair, CarriesPrivateDataBothWays) {
  COVERS("RFC5044-7.1-8");
  Pair pair(Policy{}, Policy{}, 3);
  pair.run();
  EXPECT_EQ(to_hex(std::get<RequestReceived>(pair.responder_events.at(0)).private_data), "01010101010101");
  EXPECT_EQ(to_hex(std::get<Established>(pair.responder_events.at(1)).private_data), "01010101010101");
  EXPECT_EQ(to_hex(std::get<Established>(pair.initiator_events.at(0)).private_data), "020202020202020202");
}

TEST(NegotiationPair, CarriesARejectWithItsPrivateData) {
  COVERS("RFC5044-7.1.2-5");
  COVERS("RFC5044-7.1.2-16");
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    Policy p;
    p.revision = revision;
    Pair pair(p, Policy{}, 4);
    pair.accept = false;
    pair.run();
    const auto& r = std::get<Rejected>(pair.initiator_events.at(0));
    EXPECT_EQ(to_hex(r.private_data), "020202020202020202");
    EXPECT_EQ(r.enhanced.has_value(), revision == 2);
    EXPECT_TRUE(std::holds_alternative<Rejected>(pair.responder_events.back()));
  }
}

TEST(NegotiationPair, FallsBackToRevision1OnASecondConnection) {
  COVERS("RFC6581-10-10");
  COVERS("RFC6581-10-12");
  Policy old;
  old.revision = 1;
  Pair first(Policy{}, old, 1000);
  first.run();
  const auto& failed = std::get<Failed>(first.initiator_events.at(0));
  ASSERT_EQ(failed.fallback, Fallback::kRevision1);
  Pair second(with_fallback(Policy{}, failed.fallback), old, 1000);
  second.run();
  EXPECT_EQ(text(second.initiator_events.at(0)), "rev=1 enhanced=0 crc=1 p2p=0 rtr=none ird=32 ord=32");
}

TEST(NegotiationPair, EveryFlippedBitEndsInOrderlyFashion) {
  const Bytes request = [] {
    const Initiator i(Policy{}, Bytes(7), kStart);
    return Bytes(i.tx_bytes().begin(), i.tx_bytes().end());
  }();
  for (std::size_t bit = 0; bit < request.size() * 8; ++bit) {
    Bytes bad = request;
    bad[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
    Responder r(Policy{}, kStart);
    (void)r.rx(bad, kStart);
    if (r.state() == ResponderState::kWaitRequest) r.on_deadline(*r.deadline());
    EXPECT_TRUE(r.is_consistent());
    EXPECT_TRUE(r.poll_event()) << "bit " << bit;
    EXPECT_TRUE(r.state() == ResponderState::kDeciding || r.state() == ResponderState::kFailed) << "bit " << bit;
  }
}

TEST(NegotiationPair, TwoRespondersTimeOutAndTwoInitiatorsRecogniseEachOther) {
  COVERS("RFC5044-7.1.2-25");
  COVERS("RFC5044-7.1.2-26");
  COVERS("RFC5044-7.1-10");
  Responder a(Policy{}, kStart);
  ASSERT_TRUE(a.deadline());
  a.on_deadline(*a.deadline());
  EXPECT_EQ(text(*a.poll_event()), "startup_timeout");
  Initiator x(Policy{}, {}, kStart);
  const Initiator y(Policy{}, {}, kStart);
  (void)x.rx(y.tx_bytes(), kStart);
  EXPECT_EQ(text(*x.poll_event()), "malformed_startup_frame");
}

}  // namespace
}  // namespace iwarp::mpa
