// An allocation fails while the application ends a connection: both sides still hear of the end.
#include "tests/support/shortage.h"

#include <optional>

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

// Whatever a turn lacks memory for: the connection goes on or ends, and never stands still.
TEST(ShortOfMemory, ATurnThatFailsEndsTheConnection) {
  Engine server_engine, engine(Engine::Mode::kManual);
  const auto listener = listen(server_engine);
  bool happened = true;
  for (std::size_t n = 0; happened; ++n) {
    SCOPED_TRACE(n);
    Node client(engine), server(server_engine);
    auto connecting = start_connect(client, to(*listener));
    const auto comes = [&](auto& future) {
      return eventually([&] {
        engine.poll();
        return future.wait_for(0s) == std::future_status::ready;
      });
    };
    auto asked = listener->async_accept(as_error(boost::asio::use_future));
    ASSERT_TRUE(comes(asked));
    const auto request = std::get<1>(asked.get());
    auto accepting = request->async_accept(server.qp, {}, as_error(boost::asio::use_future));
    ASSERT_TRUE(comes(connecting));
    const Outcome c = get_outcome(std::move(connecting)), s = get_outcome(std::move(accepting));
    ASSERT_EQ(c.error.code, Errc::kOk) << c.error.why;
    ASSERT_EQ(s.error.code, Errc::kOk) << s.error.why;
    verbs::Completion done;
    const auto read = [&] {
      const verbs::Sge into{server.in.data(), 100, server.in_mr.stag()};
      return server.qp
          ->post_send({.wr_id = 1,
                       .op = verbs::SendOp::kRead,
                       .sges = into,
                       .remote_stag = client.out_mr.stag(),
                       .remote_to = client.out_mr.base_to()})
          .ok();
    };
    ASSERT_TRUE(read());
    const Shortage shortage(n);
    const auto hears_of = [&](bool is_short) {
      return eventually([&] {
        try {
          std::optional<Shortage::Short> now;
          if (is_short) now.emplace();
          engine.poll();
        } catch (const std::bad_alloc&) {  // outside of the turn
        }
        return server.cq.poll(std::span{&done, 1}) == 1;
      });
    };
    EXPECT_TRUE(hears_of(true));
    happened = Shortage::happened();
    if (read()) {  // it goes on, or the end is under way
      EXPECT_TRUE(hears_of(false));
    }
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
