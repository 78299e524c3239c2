#include "tools/gateway_watch.h"

#include <spdlog/spdlog.h>

#include "iwarp/cm/description.h"
#include "iwarp/gateway/metrics_text.h"

namespace iwarp::tools {
namespace {

// What --rpcbind stands for without a value.
constexpr const char* kNfs = "nfs";

gateway::Parsed<std::vector<gateway::ServedProgram>> programs(const std::string& text) {
  if (text == kNfs) return {gateway::nfs_programs(), {}};
  return gateway::parse_served_programs(text);
}

}  // namespace

void WatchFlags::add(CLI::App& app) {
  app.add_option("--metrics", metrics,
                 "Serve counters to Prometheus and `iwarp top` at http://ADDR:PORT/metrics; a PORT alone is that of "
                 "127.0.0.1. Without login: whoever reaches it reads them")
      ->type_name("[ADDR:]PORT")
      ->check([](const std::string& v) { return gateway::parse_metrics_address(v).error; });
  app.add_option_function<std::string>(
         "--rpcbind", [this](const std::string& v) { rpcbind = v.empty() ? kNfs : v; },
         "Tell rpcbind of this host of the NFS/RDMA listeners, and withdraw that at the end: programs and versions, "
         "PROGRAM:VERSION[,...]; nfs is 100003:3,100003:4")
      ->expected(0, 1)
      ->check([](const std::string& v) { return v.empty() ? std::string() : programs(v).error; })
      ->type_name("PROGRAMS")
      ->default_str(kNfs);
  app.add_option("--rpcbind-socket", rpcbind_socket, "... where rpcbind listens")
      ->type_name("FILE")
      ->capture_default_str();
}

GatewayWatch::GatewayWatch(boost::asio::io_context& io, const gateway::Service& service, const WatchFlags& flags)
    : io_(io), service_(service), flags_(flags) {}

bool GatewayWatch::open() {
  if (!flags_.rpcbind.empty()) {
    gateway::RpcbindOptions options;
    options.programs = *programs(flags_.rpcbind).value;
    options.socket = flags_.rpcbind_socket;
    rpcbind_.emplace(options);
  }
  if (flags_.metrics.empty()) return true;
  gateway::MetricsServerOptions options;
  options.listen = *gateway::parse_metrics_address(flags_.metrics).value;
  auto opened = gateway::MetricsServer::open(io_, options, [this] { return page(); });
  if (!opened) {
    spdlog::error("cannot serve metrics at {}: {}", cm::to_string(options.listen), opened.error);
    return false;
  }
  metrics_ = std::move(*opened.value);
  spdlog::info("metrics at http://{}/metrics", cm::to_string(metrics_->local()));
  return true;
}

void GatewayWatch::listeners_changed() {
  if (!rpcbind_) return;
  std::vector<boost::asio::ip::tcp::endpoint> listeners;
  for (const gateway::FrontStatus& front : service_.fronts()) {
    if (front.listening && front.direction == gateway::Direction::kRdmaToTcp) listeners.push_back(front.local);
  }
  if (listeners.empty()) {
    spdlog::warn(
        "rpcbind: there is nothing to register: no listener serves RDMA clients; give one with --rdma-listen, or leave "
        "--rpcbind out");
  }
  rpcbind_->serve(listeners);
}

void GatewayWatch::ending() {
  if (rpcbind_) rpcbind_->serve({});
}

std::string GatewayWatch::page() const {
  std::vector<gateway::ListenerMetrics> listeners;
  for (gateway::FrontStatus& front : service_.fronts()) {
    const std::string local = cm::to_string(front.local);
    const std::string called = front.name.empty() ? local : front.name;
    // Its counters go with it, which must not look as if those of another listener began anew.
    listeners.push_back({front.listening ? called : called + ":removed", name(front.direction), local,
                         front.server.to_string(), std::move(front.stats)});
  }
  const std::size_t limit = service_.process().options().memory_bytes;
  return gateway::metrics_text(listeners, {IWARP_VERSION, limit == SIZE_MAX ? 0 : limit});
}

}  // namespace iwarp::tools
