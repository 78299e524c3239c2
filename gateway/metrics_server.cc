#include "iwarp/gateway/metrics_server.h"

#include <spdlog/spdlog.h>

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "iwarp/cm/accept_pause.h"
#include "iwarp/cm/socket_options.h"
#include "iwarp/cm/system_cause.h"
#include "iwarp/gateway/metrics_text.h"
#include "iwarp/gateway/options.h"

namespace iwarp::gateway {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

Parsed<tcp::endpoint> parse_metrics_address(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (bad == std::errc{} && end == text.data() + text.size() && !text.empty())
    return {tcp::endpoint(boost::asio::ip::address_v4::loopback(), port), {}};
  const auto at = HostPort::parse(text);
  if (!at) return {std::nullopt, at.error + "; a PORT alone is that of 127.0.0.1"};
  boost::system::error_code ec;
  const auto address = boost::asio::ip::make_address(at.value->host, ec);
  if (ec) return {std::nullopt, "'" + at.value->host + "' is not an IP address; 127.0.0.1:9100 or 9100 is right"};
  return {tcp::endpoint(address, at.value->port), {}};
}

namespace {

// An HTTP connection, request by request. `Owner` is the server's state; its page is asked for until it is closed.
template <class Owner>
class Scrape : public std::enable_shared_from_this<Scrape<Owner>> {
 public:
  Scrape(tcp::socket socket, std::shared_ptr<Owner> owner) : stream_(std::move(socket)), owner_(std::move(owner)) {}
  ~Scrape() { owner_->left(this); }
  Scrape(const Scrape&) = delete;
  Scrape& operator=(const Scrape&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(MetricsServer::kMaxHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(owner_->options().time_limit);
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code ec, std::size_t) { self->on_request(ec); });
  }
  void close() { stream_.close(); }

 private:
  using Response = http::response<http::span_body<const char>>;

  void on_request(beast::error_code ec) {
    if (owner_->closed()) return;
    if (ec == http::error::header_limit) return answer(http::status::request_header_fields_too_large, false);
    if (ec == http::error::unexpected_body || ec == http::error::body_limit)
      return answer(http::status::payload_too_large, false);
    // The end, a time limit, TCP: nobody to answer.
    if (ec && ec.category() != make_error_code(http::error::bad_method).category()) return;
    if (ec == http::error::end_of_stream || ec == http::error::partial_message) return;
    if (ec) return answer(http::status::bad_request, false);
    const auto& request = parser_->get();
    const auto target = request.target().substr(0, request.target().find('?'));
    const bool keep = request.keep_alive();
    if (target != "/metrics" && target != "/") return answer(http::status::not_found, keep);
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return answer(http::status::method_not_allowed, keep);
    if (target == "/") return answer(http::status::ok, keep);
    page_ = owner_->page();
    send(Response(http::status::ok, request.version()), kMetricsContentType, *page_, keep);
  }

  // A line of text.
  void answer(http::status status, bool keep) {
    Response response(status, parser_->get().version() == 10 ? 10 : 11);
    if (status == http::status::method_not_allowed) response.set(http::field::allow, "GET, HEAD");
    const std::string reason(http::obsolete_reason(status));
    page_ = std::make_shared<const std::string>(
        status == http::status::ok ? "The counters of this iwarp gateway are at /metrics.\n" : reason + "\n");
    send(std::move(response), "text/plain; charset=utf-8", *page_, keep);
  }

  void send(Response response, const char* type, const std::string& body, bool keep) {
    const bool head = parser_->get().method() == http::verb::head;
    response.set(http::field::content_type, type);
    response.set(http::field::cache_control, "no-store");
    response.keep_alive(keep);
    response.content_length(body.size());
    response.body() = {body.data(), head ? 0 : body.size()};
    response_.emplace(std::move(response));
    serializer_.emplace(*response_);
    stream_.expires_after(owner_->options().time_limit);
    const auto done = [self = this->shared_from_this(), keep](beast::error_code ec, std::size_t) {
      self->on_sent(ec, keep);
    };
    if (head) {
      http::async_write_header(stream_, *serializer_, done);
    } else {
      http::async_write(stream_, *serializer_, done);
    }
  }

  void on_sent(beast::error_code ec, bool keep) {
    if (ec || owner_->closed()) return;
    if (keep) return read();
    // What the client still sends must not make TCP drop the answer: it is read, within the time limit.
    stream_.socket().shutdown(tcp::socket::shutdown_send, ec);
    drain();
  }
  void drain() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = this->shared_from_this()](beast::error_code ec, std::size_t) {
                              if (!ec) self->drain();
                            });
  }

  beast::tcp_stream stream_;
  std::shared_ptr<Owner> owner_;
  beast::flat_buffer buffer_{2 * MetricsServer::kMaxHeaderBytes};
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::shared_ptr<const std::string> page_;  // what the response points to
  std::optional<Response> response_;
  std::optional<http::serializer<false, http::span_body<const char>>> serializer_;
};

}  // namespace

class MetricsServer::State : public std::enable_shared_from_this<State> {
 public:
  State(boost::asio::io_context& io, const MetricsServerOptions& options, Text text)
      : options_(options),
        text_(std::move(text)),
        acceptor_(io),
        pause_(io, [](const Error& e) { spdlog::warn("metrics: short of resources: {}", e.why); }) {}

  // Why it cannot.
  [[nodiscard]] std::optional<std::string> listen() {
    beast::error_code ec;
    cm::open_tcp(acceptor_, options_.listen.protocol(), ec);
    if (!ec) acceptor_.set_option(boost::asio::socket_base::reuse_address(true), ec);
    if (!ec) acceptor_.bind(options_.listen, ec);
    if (!ec) acceptor_.listen(boost::asio::socket_base::max_listen_connections, ec);
    if (ec) return cm::listen_error(ec).why;
    local_ = acceptor_.local_endpoint(ec);
    accept();
    return std::nullopt;
  }
  void close() {
    closed_ = true;
    text_ = {};
    beast::error_code ec;
    acceptor_.close(ec);
    pause_.cancel();
    const auto scrapes = scrapes_;  // they leave meanwhile
    for (Scrape<State>* s : scrapes) s->close();
  }

  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] const MetricsServerOptions& options() const { return options_; }
  [[nodiscard]] const tcp::endpoint& local() const { return local_; }
  [[nodiscard]] std::size_t connections() const { return scrapes_.size(); }
  void left(Scrape<State>* scrape) { scrapes_.erase(scrape); }

  [[nodiscard]] std::shared_ptr<const std::string> page() {
    const auto now = Clock::now();
    if (!page_ || now - made_ >= kMaxAge) {
      page_ = std::make_shared<const std::string>(text_());
      made_ = now;
    }
    return page_;
  }

 private:
  void accept() {
    // Asio's own accept would let children inherit the connection.
    acceptor_.async_wait(tcp::acceptor::wait_read, [self = shared_from_this()](beast::error_code ec) {
      if (self->closed_ || ec == boost::asio::error::operation_aborted) return;
      tcp::socket socket(self->acceptor_.get_executor());
      if (!ec) cm::accept_tcp(self->acceptor_, socket, self->local_.protocol(), ec);
      if (ec && !cm::gone_meanwhile(ec)) {
        return self->pause_.begin(ec, [self] {
          if (!self->closed_) self->accept();
        });
      }
      if (!ec) self->serve(std::move(socket));
      self->accept();
    });
  }
  void serve(tcp::socket socket) {
    if (scrapes_.size() >= options_.max_connections) return;  // closed at once
    const auto scrape = std::make_shared<Scrape<State>>(std::move(socket), shared_from_this());
    scrapes_.insert(scrape.get());
    scrape->read();
  }

  const MetricsServerOptions options_;
  Text text_;
  tcp::acceptor acceptor_;
  cm::AcceptPause pause_;
  tcp::endpoint local_;
  std::set<Scrape<State>*> scrapes_;
  std::shared_ptr<const std::string> page_;
  Clock::time_point made_{};
  bool closed_ = false;
};

Parsed<std::unique_ptr<MetricsServer>> MetricsServer::open(boost::asio::io_context& io,
                                                           const MetricsServerOptions& options, Text text) {
  auto state = std::make_shared<State>(io, options, std::move(text));
  if (const auto why = state->listen()) return {std::nullopt, *why};
  return {std::unique_ptr<MetricsServer>(new MetricsServer(std::move(state))), {}};
}

MetricsServer::~MetricsServer() {
  state_->close();
}

tcp::endpoint MetricsServer::local() const {
  return state_->local();
}

std::size_t MetricsServer::connections() const {
  return state_->connections();
}

}  // namespace iwarp::gateway
