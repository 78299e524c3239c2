#include "iwarp/mpa/policy.h"

#include <gtest/gtest.h>

#include "iwarp/mpa/startup_frame.h"
#include "tests/support/covers.h"

namespace iwarp::mpa {
namespace {

TEST(Policy, DefaultsAreSafe) {
  COVERS("RFC5044-4.4-5");
  const Policy p;
  EXPECT_TRUE(validate(p).ok());
  EXPECT_EQ(p.crc, Policy::Crc::kOn);
  EXPECT_EQ(p.markers, Policy::Markers::kServe);
  EXPECT_EQ(p.revision, 2);
  EXPECT_TRUE(p.peer_to_peer && p.rtr_read && p.rtr_write);
  EXPECT_FALSE(p.rtr_send);
  EXPECT_TRUE(p.negotiate_depths);
}

TEST(Policy, RefusesContradictions) {
  COVERS("RFC6581-9.2-10");
  COVERS("RFC6581-9.1-22");
  const auto broken = [](auto change) {
    Policy p;
    change(p);
    const auto r = validate(p);
    return !r.ok() && r.error().code == Errc::kInvalidArgument;
  };
  EXPECT_TRUE(broken([](Policy& p) { p.revision = 0; }));
  EXPECT_TRUE(broken([](Policy& p) { p.revision = 3; }));
  EXPECT_TRUE(broken([](Policy& p) { p.ird = kNoIrdOrdNegotiation; }));
  EXPECT_TRUE(broken([](Policy& p) { p.ord = kNoIrdOrdNegotiation; }));
  EXPECT_TRUE(broken([](Policy& p) { p.max_ird = 0xFFFF; }));
  EXPECT_TRUE(broken([](Policy& p) { p.rtr_read = p.rtr_write = false; }));
  EXPECT_TRUE(broken([](Policy& p) { p.startup_timeout = std::chrono::milliseconds(0); }));
  EXPECT_FALSE(broken([](Policy& p) { p.revision = 1, p.rtr_read = p.rtr_write = false; })) << "revision 1 has no RTR";
  EXPECT_FALSE(broken([](Policy& p) { p.rtr_read = p.rtr_write = false, p.rtr_send = true; }));
  EXPECT_FALSE(broken([](Policy& p) { p.ird = p.ord = kMaxIrdOrd; }));
}

TEST(Policy, IsAnOffer) {
  Policy p;
  p.ird = 3, p.ord = 4, p.max_ird = 5, p.rtr_send = true, p.rtr_read = false, p.negotiate_depths = false;
  const enhanced::Offer offer = offer_of(p);
  EXPECT_EQ(offer.depths, (enhanced::Depths{3, 4}));
  EXPECT_EQ(offer.max_ird, 5);
  EXPECT_EQ(offer.forms, (enhanced::RtrForms{.send = true, .write = true, .read = false}));
  EXPECT_TRUE(offer.peer_to_peer);
  EXPECT_FALSE(offer.negotiate_depths);
  p.peer_to_peer = false;
  EXPECT_FALSE(offer_of(p).peer_to_peer);
}

TEST(Negotiated, PrintsOneLine) {
  Negotiated n;
  n.enhanced = n.peer_to_peer = true;
  n.rtr = Rtr::kRead;
  n.ird = n.ord = 32;
  EXPECT_EQ(n.to_string(), "rev=2 enhanced=1 crc=1 p2p=1 rtr=read ird=32 ord=32");
  n = {};
  n.revision = 1;
  n.crc = false;
  EXPECT_EQ(n.to_string(), "rev=1 enhanced=0 crc=0 p2p=0 rtr=none ird=0 ord=0");
  n.rtr = Rtr::kWrite;
  EXPECT_NE(n.to_string().find("rtr=write"), std::string::npos);
  n.markers_sent = true;
  EXPECT_EQ(n.to_string(), "rev=1 enhanced=0 crc=0 p2p=0 rtr=write ird=0 ord=0 markers=sent");
  n.markers_received = true;
  EXPECT_NE(n.to_string().find(" markers=both"), std::string::npos);
  n.markers_sent = false;
  EXPECT_NE(n.to_string().find(" markers=received"), std::string::npos);
}

}  // namespace
}  // namespace iwarp::mpa
