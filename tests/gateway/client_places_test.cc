#include "iwarp/gateway/client_places.h"

#include <gtest/gtest.h>

namespace iwarp::gateway {
namespace {

using boost::asio::ip::make_address;

TEST(ClientPlaces, AreLimitedForEachClient) {
  ClientPlaces places(2);
  auto first = places.take(make_address("10.0.0.1"));
  const auto second = places.take(make_address("10.0.0.1"));
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(places.take(make_address("10.0.0.1")));
  EXPECT_TRUE(places.take(make_address("10.0.0.2")));
  first.reset();
  EXPECT_TRUE(places.take(make_address("10.0.0.1")));
}

TEST(ClientPlaces, KnowAnAddressInEitherForm) {
  ClientPlaces places(1);
  const auto held = places.take(make_address("::ffff:10.0.0.1"));
  EXPECT_TRUE(held);
  EXPECT_FALSE(places.take(make_address("10.0.0.1")));
}

TEST(ClientPlaces, TakeANetworkOfIpv6ForOneClient) {
  ClientPlaces places(1);
  const auto held = places.take(make_address("2001:db8::1"));
  EXPECT_TRUE(held);
  EXPECT_FALSE(places.take(make_address("2001:db8:0:0:ffff::2")));
  EXPECT_TRUE(places.take(make_address("2001:db8:0:1::1")));
}

TEST(ClientPlaces, MayEndBeforeThePlaces) {
  ClientPlaces::Place held;
  {
    ClientPlaces places(1);
    held = places.take(make_address("10.0.0.1"));
  }
  EXPECT_TRUE(held);
}

TEST(ClientPlaces, OfNobodyWithALimitOfNone) {
  ClientPlaces places(0);
  EXPECT_FALSE(places.take(make_address("10.0.0.1")));
}

}  // namespace
}  // namespace iwarp::gateway
