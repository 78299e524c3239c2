#include "iwarp/device/life.h"

#include <gtest/gtest.h>

#include <string>

namespace iwarp::device::test {
namespace {

TEST(DeviceLife, IsThisTable) {
  std::string table;
  for (std::size_t from = 0; from < kLives; ++from) {
    for (std::size_t on = 0; on < kLifeInputs; ++on) {
      const auto to = next(static_cast<Life>(from), static_cast<LifeInput>(on));
      if (to)
        table += std::string(name(static_cast<Life>(from))) + " " + name(static_cast<LifeInput>(on)) + " " + name(*to) +
                 "\n";
    }
  }
  EXPECT_EQ(table,
            "new connect address\nnew accept accepting\nnew end over\n"
            "address address_resolved route\naddress end over\n"
            "route route_resolved connecting\nroute end over\n"
            "connecting established up\nconnecting peer_left over\nconnecting end over\n"
            "accepting established up\naccepting peer_left over\naccepting end over\n"
            "up disconnect finishing\nup flushed suspect\nup peer_left over\nup end over\n"
            "finishing all_sent leaving\nfinishing flushed suspect\nfinishing peer_left over\nfinishing end over\n"
            "leaving peer_left over\nleaving end over\n"
            "suspect peer_left over\nsuspect end over\n");
}

TEST(DeviceLife, EndsFromEverywhereAndNeverBegins) {
  for (std::size_t from = 0; from < kLives; ++from) {
    const Life life = static_cast<Life>(from);
    EXPECT_EQ(next(life, LifeInput::kEnd).has_value(), life != Life::kOver);
  }
  for (std::size_t on = 0; on < kLifeInputs; ++on)
    EXPECT_FALSE(next(Life::kOver, static_cast<LifeInput>(on))) << name(static_cast<LifeInput>(on));
}

}  // namespace
}  // namespace iwarp::device::test
