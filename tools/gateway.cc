// `iwarp gateway`: joins ONC RPC over TCP with RPC-over-RDMA, in either direction.
#include <spdlog/spdlog.h>

#include <iostream>

#include "tools/async_log.h"
#include "tools/command.h"
#include "tools/gateway_config.h"
#include "tools/gateway_run.h"
#include "tools/gateway_settings.h"
#include "tools/log_format.h"

namespace iwarp::tools {
namespace {

struct Flags {
  std::string config;
  bool check = false;
  ListenerFlags listener;
  LimitFlags limits;
  ProcessFlags process;
};

GatewayConfig of_flags(const Flags& flags) {
  GatewayConfig config;
  config.process = flags.process;
  config.service.process = process_options(flags.process, flags.limits);
  try {
    config.service.listeners.push_back(listener_settings("", flags.listener, flags.limits, flags.process));
  } catch (const SettingError& e) {
    throw CLI::ValidationError(e.option().empty() ? "gateway" : e.option(), e.what());
  }
  complete(config.service);
  return config;
}

// All that says what is run stands in the file instead.
void refuse_flags_beside_file(const CLI::App& cmd) {
  for (const CLI::Option* o : cmd.get_options()) {
    const std::string name = o->get_name();
    if (o->count() > 0 && name != "--config" && name != "--check" && name != "--stats")
      throw CLI::ValidationError("--config", "does not go with " + name + ": write it into the file");
  }
}

int print(const GatewayConfig& config) {
  const gateway::ProcessOptions& p = config.service.process;
  std::cout << fmt::format("{} MiB of registered memory, {} connections, {} of one client, {} workers, {} s to drain\n",
                           p.memory_bytes >> 20, p.max_connections, p.max_connections_per_client, p.workers,
                           std::chrono::duration_cast<std::chrono::seconds>(p.drain_timeout).count());
  for (const auto& listener : config.service.listeners) {
    std::cout << fmt::format("{}would listen on {}\n", log_prefix(listener.name), describe(listener, listener.listen));
  }
  return kExitOk;
}

int run(const Flags& flags, const CLI::App& cmd) {
  const AsyncLog log("iwarp gateway");
  if (flags.config.empty()) {
    const GatewayConfig config = of_flags(flags);
    return flags.check ? print(config) : run_gateway(config, "");
  }
  refuse_flags_beside_file(cmd);
  ReadConfig read = read_gateway_config(flags.config);
  for (const std::string& error : read.errors) spdlog::error("{}", error);
  if (!read.config) return kExitUsage;
  const bool stats_by_flag = !flags.process.stats.empty();
  if (stats_by_flag) read.config->process.stats = flags.process.stats;
  return flags.check ? print(*read.config) : run_gateway(*read.config, flags.config, stats_by_flag);
}

}  // namespace

Run add_gateway(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd = app.add_subcommand("gateway", "Give an NFS server that speaks TCP an NFS/RDMA front, or the reverse");
  cmd->add_option("--config", flags->config,
                  "Read everything from this TOML file, several listeners if need be, in place of flags (but --stats); "
                  "SIGHUP reads it again")
      ->type_name("FILE");
  cmd->add_flag("--check", flags->check, "Say what would be run, or what is wrong with it, and end");
  flags->listener.add(*cmd);
  flags->limits.add(*cmd);
  flags->process.add(*cmd);
  cmd->footer(
      "Examples:\n"
      "  iwarp gateway --rdma-listen 0.0.0.0:20049 --tcp 127.0.0.1:2049 \\\n"
      "        --allow 10.0.0.0/8\n"
      "      gives the NFS server on this host an NFS/RDMA front; on a client:\n"
      "      mount -t nfs -o rdma,port=20049,vers=4.1 THIS_HOST:/export /mnt\n"
      "  iwarp gateway --tcp-listen 127.0.0.1:2050 --rdma 10.0.0.2:20049\n"
      "      lets TCP clients of this host reach the NFS/RDMA server 10.0.0.2:\n"
      "      mount -t nfs -o port=2050,vers=4.1 127.0.0.1:/export /mnt\n"
      "      (not as root, or with mount -o noresvport: --insecure-ports)\n"
      "  iwarp gateway --config /etc/iwarp/gateway.toml --check\n"
      "      says what that file would run, or which of its lines is wrong.\n"
      "Any ONC RPC program goes through, not only NFS. Exports need the option 'insecure' only without reserved "
      "ports: see --reserved-port. An NFSv3 client finds MOUNT by nolock,mountaddr=,mountport=,mountproto=tcp.\n"
      "Signals: SIGTERM and Ctrl-C let RPCs finish and end, SIGUSR1 prints the counters, SIGHUP reads the file of "
      "--config again, SIGUSR2 is ignored.");
  return [flags, cmd] { return run(*flags, *cmd); };
}

}  // namespace iwarp::tools
