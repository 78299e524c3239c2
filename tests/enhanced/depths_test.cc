// IRD and ORD of both ends, every combination of the values that are treated apart, relaxed and strict, against the
// rules of RFC 6581 s9.1 told once more.
#include <gtest/gtest.h>

#include "iwarp/enhanced/settlement.h"
#include "tests/support/covers.h"

namespace iwarp::enhanced {
namespace {

using Value = std::uint16_t;
constexpr Value kOpen = kNoIrdOrdNegotiation;
constexpr Value kOwn[] = {0, 1, 32, 200, kMaxIrdOrd};
constexpr Value kTold[] = {0, 1, 32, 128, 200, kMaxIrdOrd, kOpen};
constexpr Value kMax[] = {0, 128};  // strict, relaxed

std::string describe(Depths own, Depths peer, Value max_ird) {
  return "own " + std::to_string(own.ird) + "/" + std::to_string(own.ord) + " peer " + std::to_string(peer.ird) + "/" +
         std::to_string(peer.ord) + " max " + std::to_string(max_ird);
}

template <class Check>
void each(const Check& check) {
  for (const Value ird : kOwn) {
    for (const Value ord : kOwn) {
      for (const Value peer_ird : kTold) {
        for (const Value peer_ord : kTold) {
          for (const Value max_ird : kMax) {
            SCOPED_TRACE(describe({ird, ord}, {peer_ird, peer_ord}, max_ird));
            check(Depths{ird, ord}, Depths{peer_ird, peer_ord}, max_ird);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
}

// What the rules make of an IRD: nullopt, it cannot be as high as the peer's ORD wants.
std::optional<Value> raised(Value ird, Value wanted, Value max_ird) {
  if (wanted == kOpen || wanted <= ird) return ird;
  if (ird == 0 || wanted > max_ird) return std::nullopt;
  return wanted;
}
Value lowered(Value ord, Value allowed) {
  return allowed == kOpen || allowed >= ord ? ord : allowed;
}

TEST(Depths, InitiatorAdaptsOrEndsWithTerminate206) {
  COVERS("RFC6581-9.1-15");
  COVERS("RFC6581-9.1-16");
  COVERS("RFC6581-9.1-17");
  COVERS("RFC6581-9.1-19");
  COVERS("RFC6581-9.1-22");
  COVERS("RFC6581-9.1-25");
  COVERS("RFC6581-9.1-28");
  COVERS("RFC6581-12-1");
  for (const bool negotiate : {true, false}) {
    each([&](Depths own, Depths reply, Value max_ird) {
      const Offer offer{.depths = own, .max_ird = max_ird, .negotiate_depths = negotiate};
      Settled settled;
      const auto ok = settle_reply(offer, {.ird = reply.ird, .ord = reply.ord}, settled);
      const auto ird = raised(own.ird, reply.ord, max_ird);
      EXPECT_EQ(ok.ok(), ird.has_value());
      EXPECT_EQ(settled.depths.ord, lowered(own.ord, reply.ird));
      if (ird) {
        EXPECT_EQ(settled.depths.ird, *ird);
      } else {
        EXPECT_EQ(ok.error().code, Errc::kInsufficientIrd);
        EXPECT_EQ(*ok.error().tell_peer, (TerminateCode{2, 0, 6}));
      }
    });
  }
}

TEST(Depths, ResponderAdaptsAndSaysWhatItUses) {
  COVERS("RFC6581-9.1-4");
  COVERS("RFC6581-9.1-5");
  COVERS("RFC6581-9.1-10");
  COVERS("RFC6581-9.1-12");
  COVERS("RFC6581-9.1-23");
  COVERS("RFC6581-9.1-24");
  COVERS("RFC6581-9.1-26");
  COVERS("RFC6581-9.1-27");
  each([](Depths own, Depths asked, Value max_ird) {
    const Offer offer{.forms = {.write = true}, .depths = own, .max_ird = max_ird};
    const EnhancedData request{.ird = asked.ird, .ord = asked.ord};
    const Settled settled = settle_request(offer, request);
    EXPECT_EQ(settled.depths.ord, lowered(own.ord, asked.ird));
    // It comes as near as it may: the Initiator lowers its ORD to what it says.
    const Value near = own.ird == 0 ? Value{0} : std::max(own.ird, std::min(asked.ord, max_ird));
    EXPECT_EQ(settled.depths.ird, asked.ord == kOpen ? own.ird : near);
    const EnhancedData reply = make_reply(offer.forms, settled.depths, request);
    EXPECT_EQ(reply.ird, asked.ord == kOpen ? kOpen : settled.depths.ird);
    EXPECT_EQ(reply.ord, asked.ird == kOpen ? kOpen : settled.depths.ord);
    EXPECT_FALSE(reply.peer_to_peer);
  });
}

// Two ends of this library never overrun each other's queue, unless their applications settle it.
TEST(Depths, BothEndsFit) {
  COVERS("RFC6581-9.1-6");
  COVERS("RFC6581-9.1-7");
  for (const bool peer_to_peer : {false, true}) {
    for (const bool negotiate : {true, false}) {
      each([&](Depths a, Depths b, Value max_ird) {
        if (b.ird == kOpen || b.ord == kOpen) return;
        const RtrForms forms{.write = true, .read = true};
        const Offer initiator{peer_to_peer, forms, a, max_ird, negotiate};
        const Offer responder{false, forms, b, max_ird, true};
        const EnhancedData request = make_request(initiator);
        const Settled r = settle_request(responder, request);
        Settled i;
        ASSERT_TRUE(settle_reply(initiator, make_reply(forms, r.depths, request), i));
        EXPECT_EQ(i.rtr == Rtr::kNone, !peer_to_peer);
        EXPECT_TRUE(i.rtr != Rtr::kRead || (r.depths.ird >= 1 && i.depths.ord >= 1));
        if (negotiate) {
          EXPECT_LE(i.depths.ord, r.depths.ird);
          EXPECT_LE(r.depths.ord, i.depths.ird);
        } else {
          EXPECT_EQ(i.depths.ird, a.ird);
          EXPECT_EQ(r.depths.ord, b.ord);
        }
      });
    }
  }
}

}  // namespace
}  // namespace iwarp::enhanced
