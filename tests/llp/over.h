// A lower layer, a listener, and what it takes to connect two nodes over it.
#pragma once

#include <gmock/gmock.h>

#include "iwarp/llp/lower_layer.h"
#include "tests/cm/node.h"

namespace iwarp::llp {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using boost::asio::use_future;
using ::testing::HasSubstr;

inline std::vector<std::byte> octets(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Over : public ::testing::TestWithParam<Kind> {
 protected:
  using Connected = std::tuple<Error, std::shared_ptr<Connection>>;

  void SetUp() override {
    if (!has(GetParam())) GTEST_SKIP() << "built without";
    auto made = LowerLayer::make(engine, GetParam(), {.packet_bytes = 8000});
    ASSERT_TRUE(made) << made.error().why;
    layer = *std::move(made);
    listener = listen("127.0.0.1");
  }
  std::unique_ptr<Listener> listen(const char* address) {
    cm::ListenOptions o;
    o.endpoint = {boost::asio::ip::make_address(address), 0};
    auto made = layer->listen(o);
    EXPECT_TRUE(made) << made.error().why;
    return *std::move(made);
  }
  static cm::ConnectOptions to(const Listener& listener) {
    cm::ConnectOptions o;
    o.host = listener.local().address().to_string();
    o.port = listener.local().port();
    o.policy.startup_timeout = kPatience;
    return o;
  }
  std::future<Connected> connecting(Node& node, const cm::ConnectOptions& options) {
    return layer->async_connect(node.qp, options, cm::as_error(use_future));
  }
  static std::unique_ptr<ConnectRequest> request(Listener& listener) {
    auto [error, request] = get(listener.async_accept(cm::as_error(use_future)));
    EXPECT_FALSE(error) << error.why;
    return std::move(request);
  }
  // Why no connection comes of it.
  Error refusal(const cm::ConnectOptions& options) {
    Node node(engine);
    return std::get<0>(get(connecting(node, options)));
  }
  struct Joined {
    std::shared_ptr<Connection> active, passive;
  };
  Joined join(Node& client, Node& server, const cm::ConnectOptions& options) {
    auto connected = connecting(client, options);
    const auto r = request(*listener);
    const auto [bad, passive] = get(
        r->async_accept(server.qp, {.ird = 8, .ord = 4, .private_data = octets("welcome")}, cm::as_error(use_future)));
    EXPECT_FALSE(bad) << bad.why;
    const auto [error, active] = get(std::move(connected));
    EXPECT_FALSE(error) << error.why;
    return {active, passive};
  }
  static stream::Disconnected ending(Connection& connection) {
    return std::get<1>(get(connection.async_wait_disconnected(cm::as_error(use_future))));
  }

  cm::Engine engine;
  std::unique_ptr<LowerLayer> layer;
  std::unique_ptr<Listener> listener;
};

}  // namespace iwarp::llp
