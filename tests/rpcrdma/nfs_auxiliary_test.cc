#include "iwarp/rpcrdma/nfs_auxiliary.h"

#include <gtest/gtest.h>

#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/reply_bounds.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using iwarp::test::Bytes;
using iwarp::test::nfs_call;
using iwarp::test::nfs_reply;
using iwarp::test::Xdr;

constexpr std::uint32_t kMount = 100005, kNlm = 100021, kNsm = 100024, kNfsacl = 100227;

void expect_fits(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, const Xdr& longest) {
  SCOPED_TRACE(testing::Message() << program << ' ' << version << ' ' << procedure);
  const auto bound = reply_bound(nfs_call(version, procedure, program).bytes());
  ASSERT_TRUE(bound);
  EXPECT_GE(*bound, longest.size());
  EXPECT_LE(*bound, longest.size() + 500);  // the verifier of the Reply is shorter here
}

TEST(NfsAuxiliary, TheLongestResultsFit) {
  COVERS("RFC8267-5-1");
  COVERS("RFC8267-5.2-3");
  expect_fits(kMount, 1, 1, nfs_reply().w(0).fill(32));
  expect_fits(kMount, 3, 3, nfs_reply());
  expect_fits(kMount, 3, 4, nfs_reply());
  for (const std::uint32_t version : {1u, 3u, 4u}) {
    expect_fits(kNlm, version, 1, nfs_reply().opaque(1024).words({1, 1, 77}).opaque(1024).d(0).d(9));
    for (const std::uint32_t procedure : {2u, 3u, 4u, 5u})
      expect_fits(kNlm, version, procedure, nfs_reply().opaque(1024).w(0));
  }
  for (const std::uint32_t procedure : {20u, 21u})
    expect_fits(kNlm, 4, procedure, nfs_reply().opaque(1024).words({0, 9}));
  for (const std::uint32_t procedure : {1u, 2u, 3u, 4u, 5u, 6u})
    expect_fits(kNsm, 1, procedure, nfs_reply().words({0, 7}));
  expect_fits(kNfsacl, 3, 2, nfs_reply().words({0, 1}).fill(84));
  expect_fits(kNfsacl, 2, 2, nfs_reply().w(0).fill(68));
  expect_fits(kNfsacl, 2, 4, nfs_reply().w(0).fill(68).w(1));
}

TEST(NfsAuxiliary, ListsAndAclsHaveNoBound) {
  for (const std::uint32_t procedure : {1u, 2u, 5u, 9u}) EXPECT_FALSE(auxiliary_results_bound(kMount, 3, procedure));
  for (const std::uint32_t version : {0u, 2u, 5u}) EXPECT_FALSE(auxiliary_results_bound(kNlm, version, 1));
  for (const std::uint32_t procedure : {16u, 19u, 24u}) EXPECT_FALSE(auxiliary_results_bound(kNlm, 4, procedure));
  EXPECT_FALSE(auxiliary_results_bound(kNlm, 1, 20));
  EXPECT_FALSE(auxiliary_results_bound(kNsm, 1, 7));
  EXPECT_FALSE(auxiliary_results_bound(kNsm, 2, 1));
  EXPECT_FALSE(auxiliary_results_bound(kNfsacl, 3, 1));
  EXPECT_FALSE(auxiliary_results_bound(kNfsacl, 3, 3));
  EXPECT_FALSE(auxiliary_results_bound(100000, 2, 3));
}

// 1024 entries of both kinds, with attributes.
TEST(NfsAuxiliary, TheGuessForGetaclHoldsTheLongestAclOfLinux) {
  COVERS("RFC8267-5.2-3");
  COVERS("RFC8267-5.2-4");
  const Xdr longest =
      nfs_reply().words({0, 1}).fill(84).w(15).words({1024, 1024}).fill(12 * 1024).words({1024, 1024}).fill(12 * 1024);
  for (const std::uint32_t version : {1u, 2u, 3u}) {
    const auto guess = reply_guess(nfs_call(version, 1, kNfsacl).opaque(32).w(15).bytes());
    ASSERT_TRUE(guess) << version;
    EXPECT_GE(*guess, longest.size());
    EXPECT_LT(*guess, 32u * 1024);
  }
  EXPECT_FALSE(auxiliary_results_guess(kNfsacl, 4, 1));
  EXPECT_FALSE(auxiliary_results_guess(kNfsacl, 3, 2));
  EXPECT_FALSE(auxiliary_results_guess(kMount, 3, 1));
}

TEST(NfsAuxiliary, NothingIsEligible) {
  COVERS("RFC8267-5-1");
  COVERS("RFC8267-5.2-2");
  COVERS("RFC8267-6.5.1-1");
  COVERS("RFC8267-6.5.2-3");
  // Bodies that would be a READ, a WRITE or a COMPOUND of NFS; the last program is that of callbacks.
  for (const std::uint32_t program : {kMount, kNlm, kNsm, kNfsacl, 0x40000000u}) {
    for (const std::uint32_t version : {1u, 2u, 3u, 4u}) {
      for (std::uint32_t procedure = 0; procedure < 24; ++procedure) {
        const Bytes write = nfs_call(version, procedure, program).opaque(32).d(0).words({8, 2}).opaque(8).bytes();
        EXPECT_EQ(ArgumentWalker(write).next(), std::nullopt);
        EXPECT_EQ(ResultBinding::for_call(write).max_items(), 0u);
        const Bytes compound = nfs_call(version, procedure, program).words({0, 1, 1, 27}).bytes();
        EXPECT_EQ(ResultBinding::for_call(compound).max_items(), 0u);
      }
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma
