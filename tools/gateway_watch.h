// How a gateway shows itself: --metrics to whoever watches it, --rpcbind to clients that look for it.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "iwarp/gateway/metrics_server.h"
#include "iwarp/gateway/rpcbind.h"
#include "iwarp/gateway/service.h"

namespace iwarp::tools {

// Makes flags of its members; it must outlive the parsing, in its place.
struct WatchFlags {
  std::string metrics;  // empty: none
  std::string rpcbind;  // programs; empty: none
  std::string rpcbind_socket = gateway::RpcbindOptions{}.socket;

  void add(CLI::App& app);
  friend bool operator==(const WatchFlags&, const WatchFlags&) = default;
};

// One thread: that of `io`.
class GatewayWatch {
 public:
  // `service` must outlive this object.
  GatewayWatch(boost::asio::io_context& io, const gateway::Service& service, const WatchFlags& flags);

  // Serves the metrics, if that was asked for. False: it cannot, which the log tells.
  [[nodiscard]] bool open();
  // The service's listeners may be others than before.
  void listeners_changed();
  // No listener takes clients any more.
  void ending();

 private:
  [[nodiscard]] std::string page() const;

  boost::asio::io_context& io_;
  const gateway::Service& service_;
  const WatchFlags flags_;
  std::unique_ptr<gateway::MetricsServer> metrics_;
  std::optional<gateway::Rpcbind> rpcbind_;
};

}  // namespace iwarp::tools
