// `iwarp gateway`: joins ONC RPC over TCP with RPC-over-RDMA, in either direction.
#include <spdlog/spdlog.h>

#include <boost/asio/signal_set.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "iwarp/gateway/rdma_front.h"
#include "iwarp/gateway/tcp_front.h"
#include "tools/command.h"
#include "tools/connection_log.h"
#include "tools/descriptor_limit.h"
#include "tools/policy_flags.h"
#include "tools/recorder.h"

namespace iwarp::tools {
namespace {

using boost::asio::ip::tcp;
using gateway::HostPort;

struct Flags {
  std::string rdma_listen, tcp_listen, tcp, rdma;
  std::string allow, source_map, stats;
  gateway::Options options;
  unsigned memory_mib = 16;
  unsigned drain_seconds = 10;
  PolicyFlags policy;
  RecorderFlags recorder;
};

template <class T>
T need(gateway::Parsed<T> parsed, const char* flag) {
  if (!parsed) throw CLI::ValidationError(flag, parsed.error);
  return std::move(*parsed.value);
}

tcp::endpoint listen_address(const std::string& text, const char* flag) {
  const HostPort at = need(HostPort::parse(text), flag);
  boost::system::error_code ec;
  const auto address = boost::asio::ip::make_address(at.host, ec);
  if (ec)
    throw CLI::ValidationError(flag,
                               "'" + at.host + "' is not an IP address of this host; 0.0.0.0 or [::] listens on all");
  return {address, at.port};
}

void write_stats(const gateway::Front& front, const std::string& file) {
  if (file.empty()) return;
  nlohmann::json json;
  gateway::to_json(json, front.snapshot());
  if (file == "-") {
    std::cout << json.dump() << std::endl;
    return;
  }
  // Written aside and renamed, so that a reader never sees half of it.
  const std::string aside = file + ".new";
  std::ofstream out(aside);
  out << json.dump(2) << '\n';
  out.close();
  if (!out || std::rename(aside.c_str(), file.c_str()) != 0) spdlog::error("cannot write {}", file);
}

int run(const Flags& flags) {
  const bool rdma_front = !flags.rdma_listen.empty();
  if (rdma_front == !flags.tcp_listen.empty())
    throw CLI::ValidationError("gateway",
                               "choose one direction: --rdma-listen with --tcp, or --tcp-listen with --rdma");
  if (rdma_front && (flags.tcp.empty() || !flags.rdma.empty()))
    throw CLI::ValidationError("gateway", "--rdma-listen goes with --tcp HOST:PORT, the TCP server");
  if (!rdma_front && (flags.rdma.empty() || !flags.tcp.empty()))
    throw CLI::ValidationError("gateway", "--tcp-listen goes with --rdma HOST:PORT, the RPC-over-RDMA server");

  gateway::Options options = flags.options;
  options.policy = flags.policy.policy();
  options.stream.fpdu = flags.policy.fpdu();
  options.memory_bytes = std::size_t{flags.memory_mib} << 20;
  options.drain_timeout = std::chrono::seconds(flags.drain_seconds);
  if (!flags.allow.empty()) options.allow = need(gateway::AccessList::parse(flags.allow), "--allow");
  if (!flags.source_map.empty()) options.source_map = need(gateway::SourceMap::parse(flags.source_map), "--source-map");
  const tcp::endpoint listen = rdma_front ? listen_address(flags.rdma_listen, "--rdma-listen")
                                          : listen_address(flags.tcp_listen, "--tcp-listen");
  const HostPort server =
      rdma_front ? need(HostPort::parse(flags.tcp), "--tcp") : need(HostPort::parse(flags.rdma), "--rdma");
  if (server.port == 0) throw CLI::ValidationError(rdma_front ? "--tcp" : "--rdma", "port 0 is no port to forward to");

  // A connection has a socket on either side.
  if (const std::size_t limit = raise_descriptor_limit().now; limit / 2 < flags.options.max_connections) {
    spdlog::warn(
        "{} descriptors (RLIMIT_NOFILE) are too few for --max-connections {}: raise the hard limit "
        "(ulimit -Hn, LimitNOFILE=), or clients will have to wait",
        limit, flags.options.max_connections);
  }
  boost::asio::io_context io(1);
  cm::Engine engine(io);
  flags.recorder.apply(engine);
  // Before anybody can know that we listen, and send one.
  boost::asio::signal_set ends(io, SIGINT, SIGTERM);
  boost::asio::signal_set asks(io, SIGUSR1);
  std::unique_ptr<gateway::Front> front;
  const auto keep = [&](auto opened) -> bool {
    if (!opened) {
      spdlog::error("cannot listen on {}: {}", cm::to_string(listen), opened.error().why);
      return false;
    }
    front = std::move(*opened);
    return true;
  };
  if (!(rdma_front ? keep(gateway::RdmaFront::open(engine, listen, server, options))
                   : keep(gateway::TcpFront::open(engine, listen, server, options))))
    return kExitFailed;
  spdlog::info("listening on {} for {}, forwarding to {} over {}; allowed: {}", cm::to_string(front->local()),
               rdma_front ? "RPC-over-RDMA" : "TCP", server.to_string(), rdma_front ? "TCP" : "RPC-over-RDMA",
               options.allow.to_string());

  bool draining = false;
  std::function<void(boost::system::error_code, int)> on_end = [&](boost::system::error_code ec, int) {
    if (ec) return;
    if (std::exchange(draining, true)) {
      io.stop();
      return;
    }
    spdlog::info("shutting down: no new clients, waiting for outstanding RPCs (a second signal ends at once)");
    front->drain([&] { io.stop(); });
    ends.async_wait(on_end);
  };
  std::function<void(boost::system::error_code, int)> on_ask = [&](boost::system::error_code ec, int) {
    if (ec) return;
    write_stats(*front, flags.stats.empty() ? "-" : flags.stats);
    asks.async_wait(on_ask);
  };
  ends.async_wait(on_end);
  asks.async_wait(on_ask);
  io.run();
  write_stats(*front, flags.stats);
  return kExitOk;
}

}  // namespace

Run add_gateway(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd =
      app.add_subcommand("gateway", "Give a TCP ONC RPC (NFS) server an RPC-over-RDMA front, or the reverse");
  cmd->add_option("--rdma-listen", flags->rdma_listen,
                  "Serve RPC-over-RDMA clients at ADDR:PORT (NFS/RDMA: port 20049)");
  cmd->add_option("--tcp", flags->tcp, "... and forward to the TCP server HOST:PORT");
  cmd->add_option("--tcp-listen", flags->tcp_listen, "Serve TCP clients at ADDR:PORT");
  cmd->add_option("--rdma", flags->rdma, "... and forward to the RPC-over-RDMA server HOST:PORT");
  cmd->add_option("--allow", flags->allow,
                  "Clients to serve, CIDR[,CIDR...]; default loopback only: the server sees the gateway's address, not "
                  "the client's");
  cmd->add_option("--source-map", flags->source_map,
                  "Source address towards the server by client, CIDR=ADDR[,...]; 127.x.y.z tells clients apart for a "
                  "server on loopback");
  cmd->add_option("--stats", flags->stats,
                  "Write counters as JSON to this file on SIGUSR1 and at the end; - is standard output");
  cmd->add_option("--credits", flags->options.credits, "RPCs that a client may have outstanding")
      ->check(CLI::Range(1, 96))
      ->capture_default_str();
  cmd->add_option("--inline", flags->options.inline_bytes, "Inline threshold, octets, a multiple of 1024")
      ->check(CLI::Range(1024, 65536))
      ->check([](const std::string& v) {
        return std::stoul(v) % 1024 == 0 ? std::string{} : std::string{"must be a multiple of 1024"};
      })
      ->capture_default_str();
  cmd->add_option("--memory", flags->memory_mib, "Registered memory for Calls, and for Replies, of one connection, MiB")
      ->check(CLI::Range(4, 1024))
      ->capture_default_str();
  cmd->add_option("--max-connections", flags->options.max_connections, "Connections served at a time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  cmd->add_option("--drain", flags->drain_seconds, "After SIGTERM: seconds for outstanding RPCs")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  flags->policy.add(*cmd, 32);
  flags->recorder.add(*cmd);
  cmd->footer(
      "Examples:\n"
      "  iwarp gateway --rdma-listen 0.0.0.0:20049 --tcp 127.0.0.1:2049 --allow 10.0.0.0/8\n"
      "      gives the NFS server on this host an NFS/RDMA front; on a client:\n"
      "      mount -t nfs -o rdma,port=20049,vers=4.1 THIS_HOST:/export /mnt\n"
      "  iwarp gateway --tcp-listen 127.0.0.1:2050 --rdma 10.0.0.2:20049\n"
      "      lets TCP clients of this host reach the NFS/RDMA server 10.0.0.2:\n"
      "      mount -t nfs -o port=2050,vers=4.1 127.0.0.1:/export /mnt\n"
      "Kernel exports behind the gateway need the option 'insecure'. An NFSv3 client finds MOUNT by "
      "nolock,mountaddr=,mountport=,mountproto=tcp.\n"
      "Signals: SIGTERM and Ctrl-C drain and end, SIGUSR1 prints the counters.");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
