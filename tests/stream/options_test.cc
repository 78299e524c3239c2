// Options that cannot work are refused in words, and those that mean "for ever" do.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(StreamOptions, NameWhatIsOutOfRange) {
  EXPECT_TRUE(validate(Options{}).ok());
  const auto refused = [](auto change, const char* option) {
    Options o;
    change(o);
    const auto ok = validate(o);
    return !ok && ok.error().code == Errc::kInvalidArgument &&
           std::string(ok.error().why).find(option) != std::string::npos;
  };
  EXPECT_TRUE(refused([](Options& o) { o.sq_depth = (1U << 24) + 1; }, "sq_depth must be 0 to 16777216"));
  EXPECT_TRUE(refused([](Options& o) { o.rq_depth = ~std::size_t{0}; }, "rq_depth must be 0 to 16777216"));
  EXPECT_TRUE(refused([](Options& o) { o.max_inline = (1U << 24) + 1; }, "max_inline must be 0 to 16777216"));
  EXPECT_TRUE(refused([](Options& o) { o.first_fpdu_timeout = -1ms; }, "first_fpdu_timeout must be 0 ms or more"));
  EXPECT_TRUE(refused([](Options& o) { o.close_timeout = milliseconds::min(); }, "close_timeout must be 0 ms or more"));
  EXPECT_TRUE(refused([](Options& o) { o.drain_timeout = -1ms; }, "drain_timeout must be 0 ms or more"));
  EXPECT_TRUE(refused([](Options& o) { o.unheard_wait = -1ms; }, "unheard_wait must be 0 ms or more"));
}

TEST(StreamOptions, TheGreatestTimeoutMeansForEver) {
  test::RawPeerOptions o;
  o.peer_to_peer = true;
  o.stream.first_fpdu_timeout = o.stream.close_timeout = o.stream.drain_timeout = milliseconds::max();
  test::RawPeer opening(o);
  EXPECT_EQ(opening.end.conn().deadline(), TimePoint::max());
  opening.end.expire(opening.now + 100h);
  EXPECT_EQ(opening.end.conn().phase(), Phase::kFull);

  o.peer_to_peer = false;
  test::RawPeer closing(o);
  closing.end.disconnect(closing.now);
  EXPECT_EQ(closing.end.conn().deadline(), TimePoint::max());
  closing.end.expire(closing.now + 100h);
  EXPECT_EQ(closing.end.conn().phase(), Phase::kEndWait);
}

TEST(StreamOptions, TheGreatestStartupTimeoutMeansForEver) {
  mpa::Policy policy;
  policy.startup_timeout = milliseconds::max();
  const TimePoint now{1000s};
  EXPECT_EQ(mpa::Initiator(policy, {}, now).deadline(), TimePoint::max());
  EXPECT_EQ(mpa::Responder(policy, now).deadline(), TimePoint::max());
}

}  // namespace
}  // namespace iwarp::stream
