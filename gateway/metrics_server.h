// Serves one page of text by HTTP: GET /metrics, for Prometheus and `iwarp top`. It runs on the gateway's own event
// loop, since counters are read where they are kept; nothing in it waits. A page is made 10 times a second at most,
// however many ask. Header size, time and the number of connections have limits. There is no login and no encryption:
// whoever reaches the address reads it. One thread: that of the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "iwarp/gateway/access.h"

namespace iwarp::gateway {

// "ADDR:PORT", "[IPV6]:PORT", or "PORT" of loopback. The error says what would be right.
[[nodiscard]] Parsed<boost::asio::ip::tcp::endpoint> parse_metrics_address(std::string_view text);

struct MetricsServerOptions {
  boost::asio::ip::tcp::endpoint listen{boost::asio::ip::address_v4::loopback(), 0};  // port 0: any free one
  // For a request, from the one before, and for the taking of its answer. Default 30 s. Lower makes scrapers connect
  // anew each time, which costs little; higher lets those that stall keep their place for longer.
  std::chrono::milliseconds time_limit{30000};
  // At a time; further ones are closed at once. Default 16: a few scrapers and people.
  std::size_t max_connections = 16;
};

class MetricsServer {
 public:
  using Text = std::function<std::string()>;
  // Longest request header, octets: longer ones are answered with 431.
  static constexpr std::size_t kMaxHeaderBytes = 8192;
  // How old a page may be that is sent.
  static constexpr std::chrono::milliseconds kMaxAge{100};

  // `text` makes the page, on the event loop, until this object is destroyed. The error says why it cannot listen.
  [[nodiscard]] static Parsed<std::unique_ptr<MetricsServer>> open(boost::asio::io_context& io,
                                                                   const MetricsServerOptions& options, Text text);
  ~MetricsServer();  // connections are closed
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  [[nodiscard]] boost::asio::ip::tcp::endpoint local() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  class State;
  explicit MetricsServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace iwarp::gateway
