#include "iwarp/stream/tx_gather.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace iwarp::stream {
namespace {

// A list that never runs empty: its peer always leaves half of the last FPDU.
TEST(TxGather, SlowPeerDoesNotMakeItGrow) {
  constexpr std::size_t kFpduBytes = 1000;
  TxGather gather;
  std::vector<TxGather::Done> done;
  std::size_t most = 0;
  std::uint8_t next = 0, expected = 0;
  std::size_t offset = 0;  // in the FPDU that is due
  for (int round = 0; round < 20000; ++round) {
    const MutBytes own = gather.allocate(kFpduBytes);
    std::fill(own.begin(), own.end(), std::byte{next++});
    gather.append(own);
    gather.end_fpdu({}, false);
    std::size_t n = round == 0 ? kFpduBytes / 2 : kFpduBytes;
    const std::size_t take = n;
    for (const ConstBytes& span : gather.spans()) {
      for (std::size_t i = 0; i < span.size() && n > 0; ++i, --n) {
        ASSERT_EQ(span[i], std::byte{expected}) << "round " << round;
        if (++offset == kFpduBytes) {
          offset = 0;
          ++expected;
        }
      }
    }
    gather.commit(take, done);
    most = std::max(most, gather.staged_bytes());
  }
  EXPECT_LE(most, 32u * 1024);
}

TEST(TxGather, KeepsABlockUntilItsLastOctetHasLeft) {
  constexpr std::size_t kBlockBytes = 10000;
  TxGather gather;
  std::vector<TxGather::Done> done;
  for (int i = 0; i < 2; ++i) {
    const MutBytes own = gather.allocate(kBlockBytes);
    std::fill(own.begin(), own.end(), std::byte{0x5A});
    gather.append(own);
    gather.end_fpdu({}, false);
  }
  EXPECT_EQ(gather.staged_bytes(), 2 * kBlockBytes);
  gather.commit(kBlockBytes - 1, done);
  EXPECT_EQ(gather.staged_bytes(), 2 * kBlockBytes);
  EXPECT_EQ(gather.spans()[0].front(), std::byte{0x5A});
  gather.commit(1, done);
  EXPECT_EQ(gather.staged_bytes(), kBlockBytes);
}

}  // namespace
}  // namespace iwarp::stream
