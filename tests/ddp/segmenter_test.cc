#include "iwarp/ddp/segmenter.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "iwarp/ddp/segment_header.h"
#include "tests/support/covers.h"

namespace iwarp::ddp {
namespace {

std::vector<std::uint32_t> cut_all(std::uint32_t bytes, std::size_t mulpdu, std::size_t header) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t sent = 0;;) {
    const Cut cut = next_cut(bytes - sent, mulpdu, header);
    EXPECT_LE(cut.payload_bytes + header, mulpdu);
    out.push_back(cut.payload_bytes);
    sent += cut.payload_bytes;
    if (cut.last) {
      EXPECT_EQ(sent, bytes);
      return out;
    }
    EXPECT_LT(sent, bytes) << "an intermediate segment must leave something for the last one";
    EXPECT_GT(cut.payload_bytes, 0U);
  }
}

TEST(Segmenter, UntaggedExampleOfTheRfc) {
  COVERS("RFC5041-5.2-9");
  EXPECT_EQ(cut_all(2048, 1500, UntaggedHeader::kSize), (std::vector<std::uint32_t>{1482, 566}));
}

TEST(Segmenter, TaggedExampleOfTheRfc) {
  COVERS("RFC5041-5.2-12");
  EXPECT_EQ(cut_all(2048, 1500, TaggedHeader::kSize), (std::vector<std::uint32_t>{1486, 562}));
}

TEST(Segmenter, ZeroLengthMessageIsOneSegment) {
  COVERS("RFC5041-5.2-14");
  COVERS("RFC5041-4.1-4");
  EXPECT_EQ(cut_all(0, 128, UntaggedHeader::kSize), (std::vector<std::uint32_t>{0}));
}

TEST(Segmenter, NoSegmentExceedsMulpduAndAllOctetsAreSent) {
  COVERS("RFC5041-5.2-1");
  COVERS("RFC5041-5.2-2");
  COVERS("RFC5041-5.2-4");
  COVERS("RFC5041-4.1-5");
  for (const std::size_t mulpdu : {19U, 20U, 128U, 129U, 1442U, 1443U, 16378U, 64766U}) {
    for (const std::size_t header : {TaggedHeader::kSize, UntaggedHeader::kSize}) {
      const auto room = static_cast<std::uint32_t>(mulpdu - header);
      for (const std::uint32_t bytes :
           {1U, room - 1, room, room + 1, 2 * room - 1, 2 * room, 2 * room + 1, 7 * room + 3}) {
        const auto cuts = cut_all(bytes, mulpdu, header);
        EXPECT_EQ(cuts.size(), bytes == 0 ? 1U : (bytes + room - 1) / room);
      }
    }
  }
}

TEST(Segmenter, LongestMessage) {
  COVERS("RFC5041-1.2-5");
  const std::uint32_t longest = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(cut_all(longest, 64766, TaggedHeader::kSize).size(), (longest + std::uint64_t{64752} - 1) / 64752);
}

}  // namespace
}  // namespace iwarp::ddp
