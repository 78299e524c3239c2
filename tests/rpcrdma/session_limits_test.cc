#include "iwarp/rpcrdma/session_limits.h"

#include <gtest/gtest.h>

#include "iwarp/rpcrdma/nfs_binding.h"
#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::compound_call;
using iwarp::test::compound_reply;
using iwarp::test::Xdr;

constexpr std::uint32_t kCreateSession = 43, kReadlink = 27, kSequence = 53;

// A session is known by the word that its id is full of.
Xdr& id(Xdr& x, std::uint32_t n) {
  return x.words({n, n, n, n});
}
Bytes create_call() {
  Xdr x = compound_call(1);
  x.w(kCreateSession).d(1).words({1, 0});
  for (int channel = 0; channel < 2; ++channel) x.words({0, 4096, 4096, 4096, 8, 16, 0});
  return x.words({0x40000000, 0}).bytes();
}
Bytes create_reply(std::uint32_t n, std::uint32_t max_response, std::uint32_t status = 0) {
  Xdr x = compound_reply(1, status);
  id(x.words({kCreateSession, status}), n).words({1, 0}).words({0, 5000, max_response, 4096, 8, 16, 0});
  return x.words({0, 4096, 4096, 4096, 8, 16, 0}).bytes();
}
Bytes readlink(std::uint32_t n, std::uint32_t minor_version = 1) {
  Xdr x = compound_call(2, minor_version);
  return id(x.w(kSequence), n).words({1, 0, 0, 0}).w(kReadlink).bytes();
}

TEST(SessionLimits, HoldForTheSessionThatSequenceNames) {
  COVERS("RFC8267-6.2.2-1");
  SessionLimits limits;
  EXPECT_FALSE(limits.limit(readlink(7)));
  limits.learn(create_reply(7, 70'000));
  limits.learn(create_reply(8, 80'000));
  EXPECT_EQ(limits.limit(readlink(7)), 70'000u);
  EXPECT_EQ(limits.limit(readlink(8, 2)), 80'000u);
  EXPECT_FALSE(limits.limit(readlink(9)));
  EXPECT_FALSE(limits.limit(readlink(0)));  // as empty places are
  EXPECT_FALSE(limits.limit(compound_call(1, 0).w(kReadlink).bytes()));
  EXPECT_FALSE(limits.limit(getattr_call(1)));
  limits.learn(create_reply(7, 90'000));
  EXPECT_EQ(limits.limit(readlink(7)), 90'000u);
  EXPECT_EQ(limits.limit(readlink(8)), 80'000u);
}

TEST(SessionLimits, AreThoseOfTheLastSessions) {
  SessionLimits limits;
  for (std::uint32_t n = 1; n <= SessionLimits::kMaxSessions + 1; ++n) limits.learn(create_reply(n, 10'000 + n));
  EXPECT_FALSE(limits.limit(readlink(1)));
  for (std::uint32_t n = 2; n <= SessionLimits::kMaxSessions + 1; ++n)
    EXPECT_EQ(limits.limit(readlink(n)), 10'000u + n);
}

TEST(SessionLimits, BrokenAndRefusedAnswersTeachNothing) {
  const Bytes good = create_reply(7, 70'000);
  for (std::size_t n = 0; n < good.size(); ++n) {
    SessionLimits limits;
    limits.learn(ConstBytes(good).first(n));
    const auto limit = limits.limit(readlink(7));
    EXPECT_TRUE(!limit || *limit == 70'000u) << n;
  }
  SessionLimits limits;
  limits.learn(create_reply(7, 70'000, 10'022));
  limits.learn(rpc_reply(7));
  EXPECT_FALSE(limits.limit(readlink(7)));
  for (std::size_t n = 0; n < readlink(7).size(); ++n)
    EXPECT_FALSE(limits.limit(ConstBytes(readlink(7)).first(n))) << n;
  limits.learn(create_reply(7, 0));  // would leave no room for an error
  EXPECT_EQ(limits.limit(readlink(7)), 1024u);
}

TEST(SessionLimits, OnlyCreateSessionMakesOne) {
  EXPECT_TRUE(ResultBinding::for_call(create_call()).creates_session());
  EXPECT_FALSE(ResultBinding::for_call(readlink(7)).creates_session());
  EXPECT_FALSE(ResultBinding::for_call(null_call(1)).creates_session());
}

TEST_F(RequesterTest, OffersNoLargerReplyChunkThanTheSessionAllows) {
  COVERS("RFC8267-6.2.2-1");
  start();
  const auto room = [&] {
    EXPECT_TRUE(call(readlink(7)).ok());
    const Decoded d = received();
    answer(header(d.header.xid, Proc::kMsg, 64), compound_reply(0, 70).bytes());
    EXPECT_TRUE(next<Requester::ReplyReceived>(*requester_));
    return d.header.reply_chunk ? d.header.reply_chunk->length() : 0;
  };
  EXPECT_EQ(room(), RequesterOptions{}.max_reply_bytes);
  ASSERT_TRUE(call(create_call()).ok());
  received();
  answer(header(iwarp::test::kTestXid, Proc::kMsg, 64), create_reply(7, 70'000));
  expect_reply(create_reply(7, 70'000));
  EXPECT_EQ(room(), 70'000u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
