// A target of Writes at the passive end, a filled source at the peer's, and what tests ask of them.
#pragma once

#include <gtest/gtest.h>

#include "tests/session/early_fixture.h"

namespace iwarp::session {

using test::Bytes;
using test::list;

// Whether `region` has from `offset` on the octets that `source` has from `from` on.
inline bool same(test::Region& region, std::size_t offset, test::Region& source, std::size_t from, std::size_t bytes) {
  return std::equal(region.bytes().begin() + static_cast<std::ptrdiff_t>(offset),
                    region.bytes().begin() + static_cast<std::ptrdiff_t>(offset + bytes),
                    source.bytes().begin() + static_cast<std::ptrdiff_t>(from));
}
inline bool untouched(test::Region& region) {
  return std::all_of(region.bytes().begin(), region.bytes().end(), [](std::byte b) { return b == std::byte{0}; });
}

// A Send of 10 octets, of which nothing is placed early where it has no Receive; the peer's source is filled.
class EarlySegments : public ::testing::Test {
 protected:
  explicit EarlySegments(const endpoint::Options& options = {}, rdmap::ReceiveSource* shared = nullptr)
      : w(options, {}, shared), source(w.a.region(4000)), target(w.b.region(1000, test::kRemoteAll)) {
    fill(source, 7);
  }
  void post_write(std::size_t from, std::size_t bytes, std::size_t to) {
    ASSERT_TRUE(w.a.core.post_send(test::write_wr(1, list({source.sge(from, bytes)}), target, to)));
  }
  void post_send(std::size_t from, std::size_t bytes) {
    ASSERT_TRUE(w.a.core.post_send(test::send_wr(2, list({source.sge(from, bytes)}))));
  }
  void post_recv(std::uint64_t id, const rdmap::SgeList& sges) {
    ASSERT_TRUE(w.b.core.post_recv({.wr_id = id, .sges = sges}));
    w.b.half.resume(World::kNow);
    w.look();
  }
  // The STag and Receives of b, as its application revokes them: nobody holds them up.
  static void scribble(test::Region& region) {
    region.revoke();
    std::fill(region.bytes().begin(), region.bytes().end(), std::byte{0x5a});
  }
  static bool scribbled(test::Region& region) {
    return std::all_of(region.bytes().begin(), region.bytes().end(), [](std::byte b) { return b == std::byte{0x5a}; });
  }

  World w;
  test::Region& source;
  test::Region& target;
};

}  // namespace iwarp::session
