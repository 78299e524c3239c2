// The page of metrics over real HTTP: while RPCs go through, and to clients that ask badly, stall or come in crowds.
#include "iwarp/gateway/metrics_server.h"

#include <gmock/gmock.h>

#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include "iwarp/gateway/metrics_text.h"
#include "tests/gateway/chained.h"
#include "tests/gateway/exposition.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class MetricsServerTest : public Chained {
 protected:
  void serve_metrics(MetricsServer::Text text, MetricsServerOptions with = {}) {
    auto opened = MetricsServer::open(loop.io, with, std::move(text));
    ASSERT_TRUE(opened) << opened.error;
    metrics = std::move(*opened.value);
  }
  std::shared_ptr<tcp::socket> connect() {
    auto s = std::make_shared<tcp::socket>(loop.io);
    s->connect(metrics->local());
    return s;
  }
  // All that comes for `request` until the server closes.
  std::string ask(const std::string& request) { return ask(connect(), request); }
  std::string ask(const std::shared_ptr<tcp::socket>& s, const std::string& request) {
    std::string answer;
    bool over = false;
    boost::asio::async_write(*s, boost::asio::buffer(request), [](boost::system::error_code, std::size_t) {});
    boost::asio::async_read(*s, boost::asio::dynamic_buffer(answer),
                            [&](boost::system::error_code, std::size_t) { over = true; });
    EXPECT_TRUE(loop.until([&] { return over; }));
    return answer;
  }
  static std::string get(const std::string& target, const std::string& method = "GET") {
    return method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  }
  static std::string body(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }
  // That many connections at the server.
  bool connections(std::size_t n) {
    return loop.until([&] { return metrics->connections() == n; });
  }

  std::unique_ptr<MetricsServer> metrics;
};

TEST_F(MetricsServerTest, TellsOfTheRpcsThatGoThrough) {
  serve_metrics([&] {
    return metrics_text({{"front", "rdma-to-tcp", "a", "b", front->snapshot()},
                         {"reverse", "tcp-to-rdma", "c", "d", tcp_front->snapshot()}},
                        {"1", 0});
  });
  auto c = warm_client();
  for (std::uint32_t xid = 1; xid <= 20; ++xid) {
    c->send(samples::getattr_call(xid));
    if (xid == 10) (void)Exposition::parse(body(ask(get("/metrics"))));  // amid
    (void)await(*c);
  }
  loop.run_for(MetricsServer::kMaxAge);
  const std::string answer = ask(get("/metrics"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  const auto page = Exposition::parse(body(answer));
  for (const std::string labels :
       {"{listener=\"front\",direction=\"rdma-to-tcp\",", "{listener=\"reverse\",direction=\"tcp-to-rdma\","}) {
    EXPECT_EQ(page.value("iwarp_gateway_calls_total" + labels + "program=\"nfs\"}"), 21);
    EXPECT_EQ(page.value("iwarp_gateway_latency_seconds_count" + labels + "program=\"nfs\"}"), 21);
  }
}

TEST_F(MetricsServerTest, AnswersByTargetAndMethod) {
  serve_metrics([] { return "page\n"; });
  EXPECT_EQ(body(ask(get("/metrics"))), "page\n");
  EXPECT_EQ(body(ask(get("/metrics?name=x"))), "page\n");
  EXPECT_THAT(body(ask(get("/"))), HasSubstr("/metrics"));
  EXPECT_THAT(ask(get("/other")), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  const std::string post = ask(get("/metrics", "POST"));
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(post, HasSubstr("Allow: GET, HEAD\r\n"));
  const std::string head = ask(get("/metrics", "HEAD"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_EQ(body(head), "");
  EXPECT_THAT(ask("GET /metrics HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.0 200 OK\r\n"));
}

TEST_F(MetricsServerTest, KeepsAConnectionForTheNextRequest) {
  serve_metrics([] { return "page\n"; });
  const std::string both = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" + get("/other"));
  EXPECT_THAT(both, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(both, HasSubstr("page\nHTTP/1.1 404 Not Found\r\n"));
}

TEST_F(MetricsServerTest, RefusesWhatIsNoRequest) {
  serve_metrics([] { return "page\n"; });
  EXPECT_THAT(ask("MPA ID Req Frame\r\n\r\n"), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nX: " + std::string(2 * MetricsServer::kMaxHeaderBytes, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  ASSERT_TRUE(connections(0));
}

TEST_F(MetricsServerTest, EndsConnectionsThatStall) {
  MetricsServerOptions with;
  with.time_limit = 200ms;
  serve_metrics([] { return std::string(std::size_t{64} << 20, 'x'); }, with);
  const auto silent = connect(), half = connect(), deaf = connect();
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\n";
  half->write_some(boost::asio::buffer(request));
  deaf->write_some(boost::asio::buffer(request + "\r\n"));  // and reads nothing of the answer
  ASSERT_TRUE(connections(3));
  auto c = warm_client();  // nobody else is held up
  ASSERT_TRUE(connections(0));
  c->send(samples::null_call(1));
  EXPECT_EQ(await(*c), samples::rpc_reply(1));
}

TEST_F(MetricsServerTest, ServesSoManyAtATime) {
  MetricsServerOptions with;
  with.max_connections = 2;
  serve_metrics([] { return "page\n"; }, with);
  auto first = connect(), second = connect();
  ASSERT_TRUE(connections(2));
  EXPECT_EQ(ask(get("/metrics")), "");
  first->close();
  ASSERT_TRUE(connections(1));
  EXPECT_EQ(body(ask(get("/metrics"))), "page\n");
}

// A crowd of scrapers costs the gateway no more than one.
TEST_F(MetricsServerTest, MakesAPageOnceForManyRequests) {
  int made = 0;
  serve_metrics([&made] { return std::to_string(++made); });
  const auto begin = std::chrono::steady_clock::now();
  std::string requests;
  for (int i = 0; i < 500; ++i) requests += "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  (void)ask(requests + get("/metrics"));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(made, 2 + took / MetricsServer::kMaxAge);
}

TEST_F(MetricsServerTest, MayGoAwayAmidRequests) {
  serve_metrics([] { return std::string(std::size_t{16} << 20, 'x'); });
  const auto idle = connect(), busy = connect();
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  busy->write_some(boost::asio::buffer(request));
  ASSERT_TRUE(connections(2));
  loop.run_for(10ms);
  metrics.reset();
  char octet = 0;
  bool closed = false;
  idle->async_read_some(boost::asio::buffer(&octet, 1),
                        [&](boost::system::error_code ec, std::size_t) { closed = bool(ec); });
  EXPECT_TRUE(loop.until([&] { return closed; }));
}

TEST(MetricsAddress, IsLoopbackUnlessSaidOtherwise) {
  const auto parsed = [](const char* text) {
    const auto at = parse_metrics_address(text);
    return at ? cm::to_string(*at.value) : "error: " + at.error;
  };
  EXPECT_EQ(parsed("9100"), "127.0.0.1:9100");
  EXPECT_EQ(parsed("0.0.0.0:9100"), "0.0.0.0:9100");
  EXPECT_EQ(parsed("[::1]:0"), "[::1]:0");
  for (const char* wrong : {"", "65536", "x", "localhost:9100", "::1:9100", "127.0.0.1"})
    EXPECT_THAT(parsed(wrong), HasSubstr("127.0.0.1")) << wrong;
}

TEST_F(MetricsServerTest, SaysWhyItCannotListen) {
  serve_metrics([] { return ""; });
  const auto second = MetricsServer::open(loop.io, {.listen = metrics->local()}, [] { return ""; });
  EXPECT_THAT(second.error, HasSubstr("in use"));
}

}  // namespace
}  // namespace iwarp::gateway::test
