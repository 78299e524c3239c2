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

TEST(ShortOfMemory, ARequestThatCannotMoveToAnotherEngineIsUsedUp) {
  Engine first, client_engine;
  Engine second(Engine::Mode::kAutomatic, Engine::kUsualSpin, first.context());
  const auto listener = listen(first);
  mpa::Policy once;  // a client that tries again would be a second request
  once.allow_peer_to_peer_fallback = once.allow_revision_1_fallback = false;
  bool happened = true, used_up = false;
  for (std::size_t n = 0; happened; ++n) {
    Node client(client_engine), server(first);
    auto connecting = start_connect(client, to(*listener, once));
    const auto request = next_request(*listener);
    const Shortage shortage(n);
    Result<void> moved;
    try {
      const Shortage::Short now;
      moved = request->move_to(second);
    } catch (const std::bad_alloc&) {  // it has moved, or not, and is undecided
    }
    happened = Shortage::happened();
    ASSERT_LT(n, 1000U);
    if (moved) {
      request->reject();
      EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kPeerRejected) << "allocation " << n;
      continue;
    }
    used_up = true;
    EXPECT_EQ(moved.error().code, Errc::kResource);
    EXPECT_EQ(get_outcome(request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future))).error.code,
              Errc::kInvalidArgument);
    EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kConnectionLost) << "allocation " << n;
  }
  EXPECT_TRUE(used_up);
}

}  // namespace
}  // namespace iwarp::cm
