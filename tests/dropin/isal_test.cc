#include "dropin/verbs/isal.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>

#include "iwarp/mpa/crc32c.h"
#include "tests/support/hex.h"

namespace iwarp::dropin {
namespace {

TEST(Isal, IsLoadedWhereItIs) {
  const auto crc = load_isal("libisal.so.2");
  if (crc == nullptr) GTEST_SKIP() << "this host has none";
  auto octets = iwarp::test::pattern(1000);
  EXPECT_EQ(~crc(static_cast<unsigned char*>(static_cast<void*>(octets.data())), 1000, 0xFFFFFFFFU),
            mpa::crc32c_portable(octets));
  EXPECT_EQ(mpa::isal_crc(), crc) << "and is what MPA uses";
}

TEST(Isal, IsDoneWithoutWhereItIsNot) {
  EXPECT_EQ(load_isal("libisal-that-nobody-has.so.2"), nullptr);
  EXPECT_EQ(load_isal("libc.so.6"), nullptr) << "it has no such function";
}

TEST(Isal, CrcIsTheSameBothWays) {
  for (const std::size_t n : {0U, 1U, 7U, 8U, 1000U, 65536U}) {
    const auto octets = iwarp::test::pattern(n);
    EXPECT_EQ(mpa::crc32c(octets), mpa::crc32c_portable(octets)) << n;
  }
}

}  // namespace
}  // namespace iwarp::dropin
