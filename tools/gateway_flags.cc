#include "tools/gateway_flags.h"

#include <map>

namespace iwarp::tools {
namespace {

const std::map<std::string, gateway::ReservedPort> kReservedPorts = {{"prefer", gateway::ReservedPort::kPrefer},
                                                                     {"require", gateway::ReservedPort::kRequire},
                                                                     {"off", gateway::ReservedPort::kOff}};

}  // namespace

void ListenerFlags::add(CLI::App& app) {
  app.add_option("--rdma-listen", rdma_listen, "Serve RPC-over-RDMA clients at ADDR:PORT (NFS/RDMA: port 20049)");
  app.add_option("--tcp", tcp, "... and forward to the TCP server HOST:PORT");
  app.add_option("--tcp-listen", tcp_listen, "Serve TCP clients at ADDR:PORT");
  app.add_option("--rdma", rdma, "... and forward to the RPC-over-RDMA server HOST:PORT");
  app.add_option("--allow", allow,
                 "Clients to serve, CIDR[,CIDR...]; default loopback only: the server sees the gateway's address, not "
                 "the client's");
  app.add_option("--source-map", source_map,
                 "Source address towards the server by client, CIDR=ADDR[,...]; 127.x.y.z tells clients apart for a "
                 "server on loopback");
  app.add_option_function<std::string>(
         "--reserved-port", [this](const std::string& v) { reserved_port = kReservedPorts.at(v); },
         "Port of 512 to 1023 towards the TCP server, so that exports need no 'insecure': prefer (any other when they "
         "run out), require (or no connection), off; default prefer, off without the privilege")
      ->check(CLI::IsMember({"prefer", "require", "off"}).description(""))
      ->type_name("prefer|require|off");
  app.add_flag("--insecure-ports", options.insecure_ports,
               "Serve TCP clients from ports above 1023 too: any user of a client's host may then be any user to the "
               "server");
  app.add_option("--credits", options.credits, "RPCs that a client may have outstanding")
      ->check(CLI::Range(1, 96))
      ->capture_default_str();
  app.add_option("--inline", options.inline_bytes, "Inline threshold, octets, a multiple of 1024")
      ->check(CLI::Range(1024, 65536))
      ->check([](const std::string& v) {
        return std::stoul(v) % 1024 == 0 ? std::string{} : std::string{"must be a multiple of 1024"};
      })
      ->capture_default_str();
  app.add_option("--connection-memory", connection_memory_mib,
                 "Registered memory for Calls, and as much for Replies, of one connection, MiB")
      ->check(CLI::Range(4, 1024))
      ->capture_default_str();
  app.add_option(
         "--max-record", max_record_kib,
         "Longest RPC message either way, KiB; 64 KiB below --connection-memory and an eighth of --memory, at least")
      ->check(CLI::Range(64, 65536))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--pnfs", [this](const std::string& v) { options.pnfs = v == "on"; },
         "Let servers offer layouts, with which clients reach data servers past the gateway: on, or off (the default): "
         "their flags in EXCHANGE_ID's reply are cleared, and the attributes that tell of layouts not asked for; krb5i "
         "and krb5p pass unchanged, mount those with vers=4.0 or 3")
      ->check(CLI::IsMember({"on", "off"}).description(""))
      ->type_name("on|off");
  const auto seconds = [&](const char* flag, unsigned& to, const char* text) {
    app.add_option(flag, to, text)->check(CLI::Range(1, 86400))->capture_default_str();
  };
  seconds("--lost-call", lost_call_seconds,
          "Seconds after which a Call that the client repeats counts as lost: its connections end, so that the client "
          "reconnects and replays");
  seconds("--record-deadline", record_seconds,
          "Seconds for the rest of a record that has begun, or for the next 64 KiB of it");
  seconds("--read-deadline", read_seconds,
          "Seconds for a client to answer one of the RDMA Reads outstanding, or 64 KiB of them");
  seconds("--reply-deadline", reply_seconds,
          "Seconds for a client to take one of the Replies that wait for it, or 64 KiB of them, or to answer a Read");
  policy.add(app, 32, PolicyFlags::First::kClientServer);
}

void LimitFlags::add(CLI::App& app) {
  app.add_option("--max-connections", max_connections, "Connections served at a time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--max-connections-per-client", max_connections_per_client,
                 "... and of these, of one client (an IPv4 address, or an IPv6 network of 64 bits); a gateway in "
                 "front, NAT and the users of this host are one client each")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
}

void ProcessFlags::add(CLI::App& app) {
  app.add_option("--stats", stats,
                 "Write counters as JSON to this file on SIGUSR1 and at the end; - is standard output");
  watch.add(app);
  app.add_option("--memory", memory_mib,
                 "Registered memory of all connections, MiB; default a quarter of what the machine and the control "
                 "groups allow this process. What finds none waits, and new connections are refused")
      ->check(CLI::Range(kLeastMemoryMib, 1u << 24));
  app.add_option("--drain", drain_seconds, "After SIGTERM: seconds for outstanding RPCs")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_option("--log-level", log_level, "What is logged: error, warning, info (the default) or debug")
      ->check(CLI::IsMember({"error", "warning", "info", "debug"}).description(""))
      ->type_name("error|warning|info|debug");
  app.add_option("--state-dir", state_dir,
                 "Directory for the source ports that servers know clients by, so that replays are recognised after a "
                 "restart; default $STATE_DIRECTORY, or none");
  recorder.add(app);
}

}  // namespace iwarp::tools
