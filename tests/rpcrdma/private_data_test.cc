#include "iwarp/rpcrdma/private_data.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::rpcrdma {
namespace {

using test::hex;
using test::operator+;

PrivateData make(std::uint32_t send, std::uint32_t receive, bool invalidate) {
  PrivateData out;
  out.send_bytes = send;
  out.receive_bytes = receive;
  out.remote_invalidation = invalidate;
  return out;
}

TEST(PrivateData, ReadsLinuxClientAndServer) {
  COVERS("RFC8797-4-5");
  COVERS("RFC8797-4-6");
  COVERS("RFC8797-4-7");
  COVERS("RFC8797-4-10");
  COVERS("RFC8797-4-11");
  COVERS("RFC8797-4-12");
  COVERS("RFC8797-8-1");
  const auto client = hex("f6ab0e18 | 01 | 01 | 03 | 03");  // magic, version, R, send 4096, receive 4096
  EXPECT_EQ(PrivateData::parse(client), make(4096, 4096, true));
  EXPECT_EQ(PrivateData::parse(hex("f6ab0e18 01 00 03 03")), make(4096, 4096, false));
  const auto written = make(4096, 4096, true).encode();
  EXPECT_EQ(test::to_hex(written), test::to_hex(client));
}

TEST(PrivateData, FindsTheMagicBehindMpaEnhancedDataAndAtEveryOffset) {
  COVERS("RFC8797-5.2-1");
  COVERS("RFC8797-5-1");
  EXPECT_EQ(PrivateData::parse(hex("00800000 f6ab0e18 01010303")), make(4096, 4096, true));  // as siw delivers it
  for (std::size_t offset = 0; offset < 300; ++offset) {
    const auto data = test::Bytes(offset, std::byte{0xf6}) + hex("f6ab0e18 01 01 00 ff ee");
    EXPECT_EQ(PrivateData::parse(data), make(1024, 262144, true)) << offset;
  }
}

TEST(PrivateData, GivesDefaultsWhenAbsentTruncatedOrOfAnotherVersion) {
  COVERS("RFC8797-5.1-1");
  COVERS("RFC8797-5.2-2");
  COVERS("RFC8797-5.2-3");
  COVERS("RFC8797-6-1");
  COVERS("RFC8797-1-1");
  COVERS("RFC8797-4-4");
  COVERS("RFC8797-5-1");
  COVERS("RFC8166-3.3.3-5");
  const auto whole = hex("f6ab0e18 01 01 03 03");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(PrivateData::parse(ConstBytes(whole).first(n)), PrivateData{}) << n;
  }
  EXPECT_EQ(PrivateData::parse(hex("f6ab0e18 02 01 03 03")), PrivateData{});
  EXPECT_EQ(PrivateData::parse(hex("f6ab0e18 00 01 03 03")), PrivateData{});
  EXPECT_EQ(PrivateData::parse(hex("f6ab0e19 01 01 03 03")), PrivateData{});
  EXPECT_EQ(PrivateData::parse(hex("180eabf6 01 01 03 03")), PrivateData{});
  EXPECT_EQ(PrivateData{}, make(1024, 1024, false));
}

TEST(PrivateData, IgnoresReservedBitsAndSendsThemZero) {
  COVERS("RFC8797-4-8");
  COVERS("RFC8797-4-9");
  EXPECT_EQ(PrivateData::parse(hex("f6ab0e18 01 fe 03 03")), make(4096, 4096, false));
  EXPECT_EQ(PrivateData::parse(hex("f6ab0e18 01 ff 03 03")), make(4096, 4096, true));
  EXPECT_EQ(make(1024, 1024, true).encode()[5], std::byte{1});
  EXPECT_EQ(make(1024, 1024, false).encode()[5], std::byte{0});
}

TEST(PrivateData, SizesAreMultiplesOf1024RoundedDown) {
  COVERS("RFC8797-4.2-1");
  COVERS("RFC8797-4.2-2");
  COVERS("RFC8797-4.2-3");
  struct Row {
    std::uint32_t bytes;
    unsigned code;
  };
  for (const Row& r : {Row{1024, 0}, Row{2047, 0}, Row{2048, 1}, Row{4096, 3}, Row{262144, 255}, Row{300000, 255}}) {
    EXPECT_EQ(std::to_integer<unsigned>(make(r.bytes, 1024, false).encode()[6]), r.code) << r.bytes;
    EXPECT_EQ(std::to_integer<unsigned>(make(1024, r.bytes, false).encode()[7]), r.code) << r.bytes;
  }
  for (std::uint32_t code = 0; code < 256; ++code) {
    const PrivateData d = make((code + 1) * 1024, (256 - code) * 1024, code % 2 == 1);
    EXPECT_EQ(PrivateData::parse(d.encode()), d);
  }
}

TEST(PrivateData, ThresholdsAreTheLesserOfSenderAndReceiver) {
  COVERS("RFC8797-4.2-4");
  COVERS("RFC8797-4.2-5");
  COVERS("RFC8797-4.1-3");
  COVERS("RFC8166-3.3.2-1");
  COVERS("RFC8797-3.1-1");
  const auto limits = negotiate(make(8192, 2048, true), make(65536, 4096, true));
  EXPECT_EQ(limits, (ConnectionLimits{4096, 2048, true}));
  EXPECT_EQ(negotiate(make(4096, 4096, true), {}), (ConnectionLimits{1024, 1024, false}));
  EXPECT_FALSE(negotiate(make(1024, 1024, false), make(1024, 1024, true)).remote_invalidation);
}

TEST(PrivateData, SurvivesAnyBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    test::Bytes data(random() % 64);
    for (auto& b : data) b = static_cast<std::byte>(random());
    const PrivateData d = PrivateData::parse(data);
    EXPECT_EQ(PrivateData::parse(d.encode()), d);
  }
  EXPECT_EQ(make(1024, 4096, true).to_string(), "PrivateData(send=1024, receive=4096, remote_invalidation=1)");
}

}  // namespace
}  // namespace iwarp::rpcrdma
