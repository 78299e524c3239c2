// An allocation fails while the application ends a connection, or while octets move: both sides still hear of the end.
#include "tests/support/shortage.h"

#include <boost/asio/io_context.hpp>

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

// The server's octets move in this thread, and nowhere else.
class ShortDriver : public ::testing::Test {
 protected:
  template <class T>
  T run_for(std::future<T> f) {
    if (!run_until([&] { return f.wait_for(0s) == std::future_status::ready; }))
      throw std::runtime_error("operation never ended");
    return f.get();
  }
  template <class Condition>
  bool run_until(Condition condition) {
    return eventually([&] {
      io_.restart();
      io_.poll();
      return condition();
    });
  }
  // One allocation of the driver may fail from now on. `condition` is asked in between.
  template <class Condition>
  bool run_short_until(Condition condition) {
    return eventually([&] {
      io_.restart();
      {
        const Shortage::Short now;
        io_.poll();
      }
      return condition();
    });
  }
  boost::asio::io_context io_;
  Engine client_engine_, server_engine_{io_};
};

TEST_F(ShortDriver, IsNotDeafAfterwards) {
  constexpr std::size_t kBytes = 600'000;  // some turns
  const auto listener = listen(server_engine_);
  bool happened = true;
  for (std::size_t n = 0; happened; ++n) {
    Node client(client_engine_, {}, kBytes), server(server_engine_, {}, kBytes);
    auto connecting = start_connect(client, to(*listener));
    const auto request = std::get<1>(run_for(listener->async_accept(as_error(boost::asio::use_future))));
    auto accepting = request->async_accept(server.qp, {}, as_error(boost::asio::use_future));
    const auto c = std::get<1>(run_for(std::move(connecting)));
    const auto s = std::get<1>(run_for(std::move(accepting)));
    ASSERT_TRUE(c && s);
    client.read(1, server, kBytes);
    {
      const Shortage shortage(n);
      ASSERT_TRUE(run_short_until([&] { return !client.cq.empty(); })) << "allocation " << n;
      happened = Shortage::happened();
    }
    if (client.next().status == Errc::kOk) {
      EXPECT_EQ(client.in, server.out) << "allocation " << n;
    } else {
      EXPECT_TRUE(happened);
      EXPECT_TRUE(run_until([&] { return s->disconnected() && c->disconnected(); })) << "allocation " << n;
    }
    ASSERT_LT(n, 1000U);
  }
}

}  // namespace
}  // namespace iwarp::cm
