#include "iwarp/rdmap/read_request.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/segments.h"

namespace iwarp::rdmap {
namespace {

using test::Bytes;
using test::hex;

TEST(ReadRequest, FieldsHaveTheirPlaces) {
  COVERS("RFC5040-4.4-1");
  COVERS("RFC5040-4.4-2");
  COVERS("RFC5040-A.2-1");
  //                       SinkSTag | SinkTO           | size     | SrcSTag  | SrcTO
  const Bytes bytes = hex("01020304 | 1112131415161718 | 21222324 | 31323334 | 4142434445464748");
  const auto parsed = ReadRequest::parse(bytes);
  ASSERT_TRUE(parsed);
  const ReadRequest expected{Stag{0x01020304}, 0x1112131415161718, 0x21222324, Stag{0x31323334}, 0x4142434445464748};
  EXPECT_EQ(*parsed, expected);
  EXPECT_EQ(test::header_bytes(expected), bytes);
}

TEST(ReadRequest, HasExactly28Octets) {
  COVERS("RFC5040-4.2-3");
  COVERS("RFC5040-4.2-1");
  const Bytes whole(40);
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    EXPECT_EQ(ReadRequest::parse(ConstBytes(whole).first(n)).has_value(), n == 28) << n;
  }
}

}  // namespace
}  // namespace iwarp::rdmap
