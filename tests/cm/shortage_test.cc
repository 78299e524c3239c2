// An allocation fails while the application ends a connection: both sides still hear of the end.
#include "tests/support/shortage.h"

#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

TEST(ShortOfMemory, AnAbortIsToldToBothSides) {
  Engine engine;
  const auto listener = listen(engine);
  bool happened = true;
  for (std::size_t n = 0; happened; ++n) {
    Node client(engine), server(engine);
    const Ends ends = join(client, server, *listener);
    const Shortage shortage(n);
    {
      const Shortage::Short now;
      client.qp->abort();
    }
    happened = Shortage::happened();
    EXPECT_TRUE(eventually([&] { return ends.server.connection->disconnected().has_value(); })) << "allocation " << n;
    EXPECT_TRUE(eventually([&] { return ends.client.connection->disconnected().has_value(); })) << "allocation " << n;
    ASSERT_LT(n, 1000U);
  }
}

}  // namespace
}  // namespace iwarp::cm
