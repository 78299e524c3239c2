#include "tools/gateway_flags.h"

#include <charconv>
#include <map>

namespace iwarp::tools {
namespace {

const std::map<std::string, gateway::ReservedPort> kReservedPorts = {{"prefer", gateway::ReservedPort::kPrefer},
                                                                     {"require", gateway::ReservedPort::kRequire},
                                                                     {"off", gateway::ReservedPort::kOff}};

}  // namespace

void ListenerFlags::add(CLI::App& app) {
  app.add_option("--rdma-listen", rdma_listen, "Serve NFS/RDMA clients at this address (usual port: 20049)")
      ->type_name("ADDR:PORT");
  app.add_option("--tcp", tcp, "... and forward to this TCP server")->type_name("HOST:PORT");
  app.add_option("--tcp-listen", tcp_listen, "Serve TCP clients at this address")->type_name("ADDR:PORT");
  app.add_option("--rdma", rdma, "... and forward to this NFS/RDMA server")->type_name("HOST:PORT");
  app.add_option("--device", options.device,
                 "RDMA over this device of rdma-core (`rdma link` lists them: an RNIC, RoCE, or the kernel's siw) in "
                 "place of iwarp's own stack. Of the connection set-up only --ird and --ord count then, and --trace "
                 "and --pcap see nothing")
      ->type_name("NAME");
  app.add_option("--allow", allow,
                 "Clients to serve, by address or network such as 10.0.0.0/8. The server sees the gateway's address, "
                 "not the client's, so its own list is no help (default loopback only)")
      ->type_name("CIDR[,CIDR...]");
  app.add_option("--source-map", source_map,
                 "Source address towards the server, by the client's; addresses 127.x.y.z tell clients apart for a "
                 "server on this host")
      ->type_name("CIDR=ADDR[,...]");
  app.add_option_function<std::string>(
         "--reserved-port", [this](const std::string& v) { reserved_port = kReservedPorts.at(v); },
         "Connect to the TCP server from a port of 512 to 1023, so that its exports need no 'insecure'. prefer: from "
         "any other when they run out; require: or not at all (default prefer, or off without the privilege)")
      ->check(CLI::IsMember({"prefer", "require", "off"}).description(""))
      ->type_name("prefer|require|off");
  app.add_flag("--insecure-ports", options.insecure_ports,
               "Serve TCP clients from ports above 1023, too: any user of a client's host may then be any user to the "
               "server");
  app.add_option("--credits", options.credits, "RPCs that a client may have under way at a time")
      ->check(CLI::Range(1, 96))
      ->capture_default_str();
  app.add_option("--inline", options.inline_bytes,
                 "Longest message that is sent as it is, without an RDMA transfer of its own: octets, a multiple of "
                 "1024")
      ->type_name("OCTETS")
      ->check(CLI::Range(1024, 65536))
      ->check([](const std::string& v) {
        return std::stoul(v) % 1024 == 0 ? std::string{} : std::string{"must be a multiple of 1024"};
      })
      ->capture_default_str();
  app.add_option("--rpcrdma-version", options.rpcrdma_version,
                 "Highest version of RPC-over-RDMA: 2 is asked for, or served beside 1, with messages of 4096 octets "
                 "and more in line. Linux has version 1 only")
      ->type_name("1|2")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  app.add_flag(
      "--draft-2005", options.draft_2005.enabled,
      "Use what draft-ietf-nfsv4-rpcrdma-01 (2005) has beyond version 1: CONFIG_RDMA, RDMA_MSGP, RDMA_DONE. For "
      "a peer that is known to have it, such as another gateway with this flag");
  app.add_option("--config-program", config_program,
                 "... its number of CONFIG_RDMA, the same at both ends (default 0x20050201)")
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{1}, UINT32_MAX));
  app.add_option("--align", align,
                 "... with --rdma-listen: ask clients to let data of 1 KiB and more begin at a multiple of so many "
                 "octets, by RDMA_MSGP, and do so in replies to those that have CONFIG_RDMA. A power of two from 8; 0: "
                 "do not")
      ->type_name("OCTETS")
      ->check(CLI::Range(std::uint32_t{0}, rpcrdma::kMaxAlignment))
      ->check([](const std::string& v) {
        std::uint32_t to = 0;
        const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), to);
        const bool fine = error == std::errc{} && end == v.data() + v.size();
        return fine && (to == 0 || rpcrdma::good_alignment(to))
                   ? std::string{}
                   : std::string{"must be 0 or a power of two from 8 to 65536"};
      })
      ->default_str(std::to_string(kUsualAlignment));
  app.add_flag("--reply-reads", reply_reads,
               "... with --tcp-listen: offer the server no memory for long replies, so that it offers them for RDMA "
               "Reads, which RDMA_DONE ends");
  app.add_option("--connection-memory", connection_memory_mib,
                 "Memory for the requests of one connection, and as much for its replies, MiB")
      ->type_name("MIB")
      ->check(CLI::Range(4, 1024))
      ->capture_default_str();
  app.add_option("--max-record", max_record_kib,
                 "Longest RPC message either way, KiB. --connection-memory and an eighth of --memory must each be 64 "
                 "KiB more, at least")
      ->type_name("KIB")
      ->check(CLI::Range(64, 65536))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--pnfs", [this](const std::string& v) { options.pnfs = v == "on"; },
         "on: pass on the server's offer of pNFS, with which clients go to data servers past the gateway. off: leave "
         "it out of what the server says. With krb5i and krb5p it cannot be left out: mount those with vers=4.0 or 3")
      ->check(CLI::IsMember({"on", "off"}).description(""))
      ->type_name("on|off")
      ->default_str("off");
  const auto seconds = [&](const char* flag, auto& to, const char* text) {
    return app.add_option(flag, to, text)->type_name("SECONDS")->check(CLI::Range(1, 86400))->capture_default_str();
  };
  seconds("--lost-call", lost_call_seconds,
          "Time after which a request that the client repeats counts as lost: its connections end, so that the client "
          "connects anew and repeats all");
  seconds("--record-deadline", record_seconds,
          "Time for the rest of a TCP message that has begun, or for the next 64 KiB of it");
  seconds("--read-deadline", read_seconds,
          "Time for a client to answer one of the gateway's RDMA Reads, or 64 KiB of them");
  seconds("--reply-deadline", reply_seconds,
          "Time for a client to take one of the replies that wait for it, or 64 KiB of them, or to answer an RDMA "
          "Read");
  seconds("--done-deadline", done_seconds,
          "With --draft-2005 and --rdma-listen: time for a client to say RDMA_DONE of a reply that it reads. Then the "
          "memory is taken back")
      ->default_str(std::to_string(kUsualDoneSeconds));
  llp.add(app, "Connection set-up");
  policy.add(app, 32, PolicyFlags::First::kClientServer);
}

void LimitFlags::add(CLI::App& app) {
  app.add_option("--max-connections", max_connections, "Connections served at a time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--max-connections-per-client", max_connections_per_client,
                 "... and of these, of one client (an IPv4 address, or an IPv6 network of 64 bits). A gateway in "
                 "front, NAT and the users of this host are one client each")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
}

void ProcessFlags::add(CLI::App& app) {
  app.add_option_function<std::string>(
         "--stats,--json", [this](const std::string& v) { stats = v.empty() ? "-" : v; },
         "Write counters as JSON (docs/JSON.md) on SIGUSR1 and at the end, to this file or, with - or none, to "
         "standard output")
      ->expected(0, 1)
      ->type_name("FILE");
  watch.add(app);
  app.add_option("--memory", memory_mib,
                 "Memory for the messages of all connections, MiB. A message that finds none waits, and new "
                 "connections are refused (default a quarter of what this process may have)")
      ->type_name("MIB")
      ->check(CLI::Range(kLeastMemoryMib, 1u << 24));
  app.add_option("--workers", workers,
                 "Threads that serve connections; a connection has one of them. Read at the start only (default the "
                 "number of processors, at most 8)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, gateway::ProcessOptions::kMostWorkers));
  app.add_option("--drain", drain_seconds, "After SIGTERM: time for the RPCs that are under way")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_option("--log-level", log_level, "What is logged: this, and what is graver")
      ->check(CLI::IsMember({"error", "warning", "info", "debug"}).description(""))
      ->type_name("error|warning|info|debug")
      ->default_str("info");
  app.add_option("--state-dir", state_dir,
                 "Keep the source ports by which servers know clients in this directory, so that repeated requests "
                 "are recognised after a restart (default $STATE_DIRECTORY, or none)")
      ->type_name("DIRECTORY");
  recorder.add(app);
}

}  // namespace iwarp::tools
