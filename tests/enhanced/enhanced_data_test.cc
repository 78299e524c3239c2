#include "iwarp/enhanced/enhanced_data.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::enhanced {
namespace {

using test::hex;
using test::to_hex;

EnhancedData parsed(const std::string& octets) {
  const auto bytes = hex(octets);
  return EnhancedData::parse(ConstBytes(bytes).first<kEnhancedDataBytes>());
}

TEST(EnhancedData, EachBitHasItsPlace) {
  COVERS("RFC6581-9-4");
  COVERS("RFC6581-9-5");
  COVERS("RFC6581-9.2-2");
  const struct {
    const char* octets;
    EnhancedData data;
  } kRows[] = {
      {"00000000", {}},
      {"80000000", {.peer_to_peer = true}},
      {"40000000", {.rtr_send = true}},
      {"00008000", {.rtr_write = true}},
      {"00004000", {.rtr_read = true}},
      {"3fff0000", {.ird = kNoIrdOrdNegotiation}},
      {"00003fff", {.ord = kNoIrdOrdNegotiation}},
      {"20000001", {.ird = 0x2000, .ord = 1}},
      {"80204001", {.peer_to_peer = true, .rtr_read = true, .ird = 32, .ord = 1}},  // iw_cxgb4
      {"c010c002", {.peer_to_peer = true, .rtr_send = true, .rtr_write = true, .rtr_read = true, .ird = 16, .ord = 2}},
      {"ffffffff",
       {.peer_to_peer = true, .rtr_send = true, .rtr_write = true, .rtr_read = true, .ird = 0x3FFF, .ord = 0x3FFF}},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(parsed(row.octets), row.data) << row.octets;
    std::array<std::byte, kEnhancedDataBytes> out{};
    row.data.write_to(out);
    EXPECT_EQ(to_hex(out), row.octets);
  }
}

TEST(EnhancedData, EverySingleBitComesBack) {
  COVERS("RFC6581-9-3");
  for (int bit = 0; bit < 32; ++bit) {
    std::array<std::byte, kEnhancedDataBytes> in{}, out{};
    in[static_cast<std::size_t>(bit) / 8] = static_cast<std::byte>(0x80 >> bit % 8);
    EnhancedData::parse(in).write_to(out);
    EXPECT_EQ(in, out) << "bit " << bit;
  }
}

}  // namespace
}  // namespace iwarp::enhanced
