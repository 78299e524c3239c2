// Operations that the oracle of xdr_differential_test.cc does not know.
#include "iwarp/rpcrdma/nfs_compound.h"

#include <gtest/gtest.h>

#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::rpcrdma::test {
namespace {

struct Sample {
  std::uint32_t op;
  Bytes arguments, results;
};

// RFC 8276: GETXATTR, SETXATTR, LISTXATTRS, REMOVEXATTR.
TEST(NfsCompound, StepsOverExtendedAttributes) {
  const Bytes name = opaque(Bytes(5, std::byte{0x75}));
  const Bytes value = opaque(Bytes(6, std::byte{0x76}));
  const Bytes change = words({1, 0, 1, 0, 2});
  for (const Sample& s :
       {Sample{72, name, value}, Sample{73, words({1}) + name + value, change},
        Sample{74, words({0, 0, 100}), words({0, 9, 2}) + name + name + words({1})}, Sample{75, name, change}}) {
    for (const bool results : {false, true}) {
      const Bytes whole = results ? s.results : s.arguments;
      for (std::size_t n = 0; n <= whole.size(); ++n) {
        ReadCursor in(ConstBytes(whole).first(n));
        EXPECT_EQ(results ? skip_results(in, s.op) : skip_arguments(in, s.op), n == whole.size()) << s.op << ' ' << n;
      }
      const Bytes more = whole + words({1});
      ReadCursor in(more);
      EXPECT_TRUE(results ? skip_results(in, s.op) : skip_arguments(in, s.op));
      EXPECT_EQ(in.remaining(), 4u);
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
