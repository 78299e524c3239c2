#include "tools/top/fetch.h"

#include <spdlog/fmt/fmt.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <utility>

namespace iwarp::tools::top {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;

constexpr std::size_t kMaxPageBytes = std::size_t{64} << 20;

class Fetch : public std::enable_shared_from_this<Fetch> {
 public:
  Fetch(boost::asio::io_context& io, gateway::HostPort from, std::function<void(Fetched)> done)
      : from_(std::move(from)), done_(std::move(done)), resolver_(io), stream_(io), timer_(io) {
    parser_.body_limit(kMaxPageBytes);
  }

  void begin(std::chrono::milliseconds limit) {
    timer_.expires_after(limit);
    timer_.async_wait([self = shared_from_this()](beast::error_code ec) {
      if (!ec) self->finish(fmt::format("{} does not answer: is it a gateway's --metrics address?", self->at()));
    });
    resolver_.async_resolve(
        from_.host, std::to_string(from_.port),
        [self = shared_from_this()](beast::error_code ec, const tcp::resolver::results_type& found) {
          if (ec) return self->finish(fmt::format("{}: {}", self->from_.host, ec.message()));
          self->connect(found);
        });
  }

 private:
  void connect(const tcp::resolver::results_type& found) {
    stream_.async_connect(found, [self = shared_from_this()](beast::error_code ec, const tcp::endpoint&) {
      if (ec == boost::asio::error::connection_refused)
        return self->finish(
            fmt::format("nothing listens at {}: start the gateway with --metrics {}", self->at(), self->from_.port));
      if (ec) return self->finish(fmt::format("cannot connect to {}: {}", self->at(), ec.message()));
      self->request();
    });
  }

  void request() {
    request_ = {http::verb::get, "/metrics", 11};
    request_.set(http::field::host, at());
    request_.set(http::field::user_agent, "iwarp-top");
    request_.keep_alive(false);
    http::async_write(stream_, request_, [self = shared_from_this()](beast::error_code ec, std::size_t) {
      if (ec) return self->finish(fmt::format("{} closed the connection: {}", self->at(), ec.message()));
      http::async_read(self->stream_, self->buffer_, self->parser_,
                       [self](beast::error_code bad, std::size_t) { self->on_response(bad); });
    });
  }

  void on_response(beast::error_code ec) {
    if (ec == http::error::end_of_stream || ec == boost::asio::error::connection_reset)
      return finish(fmt::format("{} closed the connection: perhaps as many are served as may be", at()));
    if (ec) return finish(fmt::format("{} does not speak HTTP: is it a gateway's --metrics address?", at()));
    const auto& response = parser_.get();
    if (response.result() != http::status::ok)
      return finish(fmt::format("{} answers \"{} {}\": it is no --metrics address of a gateway", at(),
                                response.result_int(), std::string(response.reason())));
    finish({}, parser_.release().body());
  }

  void finish(std::string error, std::string text = {}) {
    if (!done_) return;
    timer_.cancel();
    resolver_.cancel();
    stream_.close();
    std::exchange(done_, {})({std::move(error), std::move(text)});
  }
  [[nodiscard]] std::string at() const { return from_.to_string(); }

  gateway::HostPort from_;
  std::function<void(Fetched)> done_;
  tcp::resolver resolver_;
  beast::tcp_stream stream_;
  boost::asio::steady_timer timer_;
  http::request<http::empty_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
};

}  // namespace

void fetch(boost::asio::io_context& io, const gateway::HostPort& from, std::chrono::milliseconds limit,
           std::function<void(Fetched)> done) {
  std::make_shared<Fetch>(io, from, std::move(done))->begin(limit);
}

}  // namespace iwarp::tools::top
