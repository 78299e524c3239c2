// `iwarp gateway`: joins ONC RPC over TCP with RPC-over-RDMA, in either direction.
#include <spdlog/spdlog.h>

#include <boost/asio/signal_set.hpp>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "iwarp/gateway/machine_memory.h"
#include "iwarp/gateway/rdma_front.h"
#include "iwarp/gateway/tcp_front.h"
#include "tools/async_log.h"
#include "tools/command.h"
#include "tools/connection_log.h"
#include "tools/descriptor_limit.h"
#include "tools/policy_flags.h"
#include "tools/recorder.h"

namespace iwarp::tools {
namespace {

using boost::asio::ip::tcp;
using gateway::HostPort;

constexpr unsigned kLeastMemoryMib = 16;

struct Flags {
  std::string rdma_listen, tcp_listen, tcp, rdma;
  std::string allow, source_map, stats;
  std::optional<gateway::ReservedPort> reserved_port;
  gateway::Options options;
  unsigned memory_mib = 0, connection_memory_mib = 16;
  unsigned drain_seconds = 10;
  unsigned max_record_kib = 1088;
  unsigned lost_call_seconds = 30, record_seconds = 60, read_seconds = 60, reply_seconds = 60;
  PolicyFlags policy;
  RecorderFlags recorder;
};

const std::map<std::string, gateway::ReservedPort> kReservedPorts = {{"prefer", gateway::ReservedPort::kPrefer},
                                                                     {"require", gateway::ReservedPort::kRequire},
                                                                     {"off", gateway::ReservedPort::kOff}};

// Preferred where that needs nothing; whoever asks for it gets it, or is told.
gateway::ReservedPort choose_reserved_port(std::optional<gateway::ReservedPort> asked) {
  const bool may = gateway::may_bind_reserved_ports();
  if (!asked) return may ? gateway::ReservedPort::kPrefer : gateway::ReservedPort::kOff;
  if (!may && *asked == gateway::ReservedPort::kRequire)
    throw CLI::ValidationError("--reserved-port", "require needs CAP_NET_BIND_SERVICE: be root, or grant it");
  if (!may && *asked == gateway::ReservedPort::kPrefer)
    spdlog::warn("--reserved-port prefer without CAP_NET_BIND_SERVICE: all ports will be above 1023");
  return *asked;
}

const char* name(gateway::ReservedPort choice) {
  switch (choice) {
    case gateway::ReservedPort::kOff:
      return "off";
    case gateway::ReservedPort::kPrefer:
      return "prefer";
    case gateway::ReservedPort::kRequire:
      return "require";
  }
  return "?";
}

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
  const AsyncLog log;
  const bool rdma_front = !flags.rdma_listen.empty();
  if (rdma_front == !flags.tcp_listen.empty())
    throw CLI::ValidationError("gateway",
                               "choose one direction: --rdma-listen with --tcp, or --tcp-listen with --rdma");
  if (rdma_front && (flags.tcp.empty() || !flags.rdma.empty()))
    throw CLI::ValidationError("gateway", "--rdma-listen goes with --tcp HOST:PORT, the TCP server");
  if (!rdma_front && (flags.rdma.empty() || !flags.tcp.empty()))
    throw CLI::ValidationError("gateway", "--tcp-listen goes with --rdma HOST:PORT, the RPC-over-RDMA server");
  if (rdma_front && flags.options.insecure_ports)
    throw CLI::ValidationError("--insecure-ports", "goes with --tcp-listen: ports of RDMA clients mean nothing");
  if (!rdma_front && flags.reserved_port)
    throw CLI::ValidationError("--reserved-port", "goes with --rdma-listen: RDMA servers do not look at ports");

  gateway::Options options = flags.options;
  options.policy = flags.policy.policy();
  if (!rdma_front && options.policy.ird == 0)
    throw CLI::ValidationError("--ird", "0 does not go with --tcp-listen: the server reads long Calls from us");
  flags.policy.apply(options.stream);
  options.memory_bytes = std::size_t{flags.connection_memory_mib} << 20;
  options.process_memory_bytes = flags.memory_mib > 0
                                     ? std::size_t{flags.memory_mib} << 20
                                     : std::max(gateway::memory_of_process() / 4, std::size_t{kLeastMemoryMib} << 20);
  options.max_record_bytes = std::size_t{flags.max_record_kib} << 10;
  const std::size_t message_bytes = options.max_record_bytes + gateway::Options::kMessageRoom;
  if (message_bytes > options.memory_bytes)
    throw CLI::ValidationError("--max-record",
                               "must be at least 64 KiB below --connection-memory, which holds such messages");
  if (message_bytes > options.process_memory_bytes / 8)
    throw CLI::ValidationError("--max-record",
                               fmt::format("must be at least 64 KiB below an eighth of --memory, which is {} MiB{}",
                                           options.process_memory_bytes >> 20, flags.memory_mib > 0 ? "" : " here"));
  options.drain_timeout = std::chrono::seconds(flags.drain_seconds);
  options.lost_call_limit = std::chrono::seconds(flags.lost_call_seconds);
  options.record_deadline = std::chrono::seconds(flags.record_seconds);
  options.read_deadline = std::chrono::seconds(flags.read_seconds);
  options.reply_deadline = std::chrono::seconds(flags.reply_seconds);
  if (!flags.allow.empty()) options.allow = need(gateway::AccessList::parse(flags.allow), "--allow");
  if (!flags.source_map.empty()) options.source_map = need(gateway::SourceMap::parse(flags.source_map), "--source-map");
  const tcp::endpoint listen = rdma_front ? listen_address(flags.rdma_listen, "--rdma-listen")
                                          : listen_address(flags.tcp_listen, "--tcp-listen");
  const HostPort server =
      rdma_front ? need(HostPort::parse(flags.tcp), "--tcp") : need(HostPort::parse(flags.rdma), "--rdma");
  if (server.port == 0) throw CLI::ValidationError(rdma_front ? "--tcp" : "--rdma", "port 0 is no port to forward to");

  if (rdma_front) options.reserved_port = choose_reserved_port(flags.reserved_port);

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
  boost::asio::signal_set ignored(io, SIGHUP, SIGUSR2);
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
               options.allow.to_string() +
                   (rdma_front ? fmt::format(", reserved ports towards the server: {}", name(options.reserved_port))
                    : options.insecure_ports ? ", from any port"
                                             : ", from ports below 1024"));

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
  std::function<void(boost::system::error_code, int)> on_ignored = [&](boost::system::error_code ec, int number) {
    if (ec) return;
    spdlog::info("{} is ignored: flags are read at the start only", number == SIGHUP ? "SIGHUP" : "SIGUSR2");
    ignored.async_wait(on_ignored);
  };
  ends.async_wait(on_end);
  asks.async_wait(on_ask);
  ignored.async_wait(on_ignored);
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
  cmd->add_option_function<std::string>(
         "--reserved-port", [flags](const std::string& v) { flags->reserved_port = kReservedPorts.at(v); },
         "Port of 512 to 1023 towards the TCP server, so that exports need no 'insecure': prefer (any other when they "
         "run out), require (or no connection), off; default prefer, off without the privilege")
      ->check(CLI::IsMember({"prefer", "require", "off"}).description(""))
      ->type_name("prefer|require|off");
  cmd->add_flag("--insecure-ports", flags->options.insecure_ports,
                "Serve TCP clients from ports above 1023 too: any user of a client's host may then be any user to the "
                "server");
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
  cmd->add_option("--memory", flags->memory_mib,
                  "Registered memory of all connections, MiB; default a quarter of what the machine and the control "
                  "groups allow this process. What finds none waits, and new connections are refused")
      ->check(CLI::Range(kLeastMemoryMib, 1u << 24));
  cmd->add_option("--connection-memory", flags->connection_memory_mib,
                  "... and of it, for Calls, and as much for Replies, of one connection, MiB")
      ->check(CLI::Range(4, 1024))
      ->capture_default_str();
  cmd->add_option("--max-connections", flags->options.max_connections, "Connections served at a time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  cmd->add_option(
         "--max-record", flags->max_record_kib,
         "Longest RPC message either way, KiB; 64 KiB below --connection-memory and an eighth of --memory, at least")
      ->check(CLI::Range(64, 65536))
      ->capture_default_str();
  cmd->add_option_function<std::string>(
         "--pnfs", [flags](const std::string& v) { flags->options.pnfs = v == "on"; },
         "Let servers offer layouts, with which clients reach data servers past the gateway: on, or off (the default): "
         "their flags in EXCHANGE_ID's reply are cleared, and the attributes that tell of layouts not asked for; krb5i "
         "and krb5p pass unchanged, mount those with vers=4.0 or 3")
      ->check(CLI::IsMember({"on", "off"}).description(""))
      ->type_name("on|off");
  cmd->add_option("--max-connections-per-client", flags->options.max_connections_per_client,
                  "... and of these, of one client (an IPv4 address, or an IPv6 network of 64 bits); a gateway in "
                  "front, NAT and "
                  "the users of this host are one client each")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  const auto seconds = [&](const char* flag, unsigned& to, const char* text) {
    cmd->add_option(flag, to, text)->check(CLI::Range(1, 86400))->capture_default_str();
  };
  seconds("--lost-call", flags->lost_call_seconds,
          "Seconds after which a Call that the client repeats counts as lost: its connections end, so that the client "
          "reconnects and replays");
  seconds("--record-deadline", flags->record_seconds,
          "Seconds for the rest of a record that has begun, or for the next 64 KiB of it");
  seconds("--read-deadline", flags->read_seconds,
          "Seconds for a client to answer one of the RDMA Reads outstanding, or 64 KiB of them");
  seconds("--reply-deadline", flags->reply_seconds,
          "Seconds for a client to take one of the Replies that wait for it, or 64 KiB of them, or to answer a Read");
  cmd->add_option("--drain", flags->drain_seconds, "After SIGTERM: seconds for outstanding RPCs")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  flags->policy.add(*cmd, 32, PolicyFlags::First::kClientServer);
  flags->recorder.add(*cmd);
  cmd->footer(
      "Examples:\n"
      "  iwarp gateway --rdma-listen 0.0.0.0:20049 --tcp 127.0.0.1:2049 --allow 10.0.0.0/8\n"
      "      gives the NFS server on this host an NFS/RDMA front; on a client:\n"
      "      mount -t nfs -o rdma,port=20049,vers=4.1 THIS_HOST:/export /mnt\n"
      "  iwarp gateway --tcp-listen 127.0.0.1:2050 --rdma 10.0.0.2:20049\n"
      "      lets TCP clients of this host reach the NFS/RDMA server 10.0.0.2:\n"
      "      mount -t nfs -o port=2050,vers=4.1 127.0.0.1:/export /mnt\n"
      "      Clients that use no reserved port (not root, mount -o noresvport) need --insecure-ports.\n"
      "Kernel exports behind the gateway need the option 'insecure' only without reserved ports: see --reserved-port. "
      "An NFSv3 client finds MOUNT by "
      "nolock,mountaddr=,mountport=,mountproto=tcp.\n"
      "Signals: SIGTERM and Ctrl-C drain and end, SIGUSR1 prints the counters, SIGHUP and SIGUSR2 are ignored.");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
