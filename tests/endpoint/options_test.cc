// Options that cannot work are refused in words.
#include "iwarp/endpoint/options.h"

#include <gtest/gtest.h>

#include <string>

namespace iwarp::endpoint {
namespace {

using namespace std::chrono_literals;

TEST(EndpointOptions, NameWhatIsOutOfRange) {
  EXPECT_TRUE(validate({}).ok());
  const auto refused = [](auto change, const char* option) {
    Options o;
    change(o);
    const auto ok = validate(o);
    return !ok && ok.error().code == Errc::kInvalidArgument &&
           std::string(ok.error().why).find(option) != std::string::npos;
  };
  EXPECT_TRUE(refused([](Options& o) { o.sq_depth = (1U << 24) + 1; }, "sq_depth must be 0 to 16777216"));
  EXPECT_TRUE(refused([](Options& o) { o.rq_depth = ~std::size_t{0}; }, "rq_depth must be 0 to 16777216"));
  EXPECT_TRUE(refused([](Options& o) { o.close_timeout = -1ms; }, "close_timeout must be 0 ms or more"));
  EXPECT_TRUE(refused([](Options& o) { o.drain_timeout = -1ms; }, "drain_timeout must be 0 ms or more"));
}

}  // namespace
}  // namespace iwarp::endpoint
