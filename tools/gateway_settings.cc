#include "tools/gateway_settings.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "iwarp/cm/description.h"
#include "iwarp/gateway/machine_memory.h"

namespace iwarp::tools {
namespace {

// Threads: more bring little to who needs a gateway at all.
constexpr unsigned kMostByDefault = 8;

using boost::asio::ip::tcp;
using gateway::HostPort;

// Preferred where that needs nothing; whoever asks for it gets it, or is told.
gateway::ReservedPort choose_reserved_port(std::optional<gateway::ReservedPort> asked) {
  const bool may = gateway::may_bind_reserved_ports();
  if (!asked) return may ? gateway::ReservedPort::kPrefer : gateway::ReservedPort::kOff;
  if (!may && *asked == gateway::ReservedPort::kRequire)
    throw SettingError("--reserved-port", "require needs CAP_NET_BIND_SERVICE: be root, or grant it");
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
  if (!parsed) throw SettingError(flag, parsed.error);
  return std::move(*parsed.value);
}

tcp::endpoint listen_address(const std::string& text, const char* flag) {
  const HostPort at = need(HostPort::parse(text), flag);
  boost::system::error_code ec;
  const auto address = boost::asio::ip::make_address(at.host, ec);
  if (ec)
    throw SettingError(flag, "'" + at.host + "' is not an IP address of this host; 0.0.0.0 or [::] listens on all");
  return {address, at.port};
}

// Throws when the flags do not tell one direction.
gateway::Direction direction(const ListenerFlags& flags) {
  const bool rdma_front = !flags.rdma_listen.empty();
  if (rdma_front == !flags.tcp_listen.empty())
    throw SettingError("", "choose one direction: --rdma-listen with --tcp, or --tcp-listen with --rdma");
  if (rdma_front && (flags.tcp.empty() || !flags.rdma.empty()))
    throw SettingError("--rdma-listen", "goes with --tcp HOST:PORT, the TCP server");
  if (!rdma_front && (flags.rdma.empty() || !flags.tcp.empty()))
    throw SettingError("--tcp-listen", "goes with --rdma HOST:PORT, the RPC-over-RDMA server");
  if (rdma_front && flags.options.insecure_ports)
    throw SettingError("--insecure-ports", "goes with --tcp-listen: ports of RDMA clients mean nothing");
  if (!rdma_front && flags.reserved_port)
    throw SettingError("--reserved-port", "goes with --rdma-listen: RDMA servers do not look at ports");
  return rdma_front ? gateway::Direction::kRdmaToTcp : gateway::Direction::kTcpToRdma;
}

mpa::Policy connection_policy(const ListenerFlags& flags) {
  try {
    flags.llp.check();
    const bool sctp = flags.llp.kind() == llp::Kind::kSctp;
    if (sctp && !flags.options.device.empty())
      throw CLI::ValidationError("--device", "does not go with --llp sctp: a device has a lower layer of its own");
    return sctp ? flags.policy.policy_for_sctp() : flags.policy.policy();
  } catch (const CLI::ValidationError& e) {
    throw SettingError("", e.what());
  }
}

void check_memory(const gateway::Options& options, std::size_t process_bytes, bool chosen) {
  const std::size_t message_bytes = options.max_record_bytes + gateway::Options::kMessageRoom;
  if (message_bytes > options.memory_bytes)
    throw SettingError("--max-record", "must be at least 64 KiB below --connection-memory, which holds such messages");
  if (message_bytes > process_bytes / 8)
    throw SettingError("--max-record", fmt::format("must be at least 64 KiB below an eighth of --memory, which is {} "
                                                   "MiB{}",
                                                   process_bytes >> 20, chosen ? "" : " here"));
}

rpcrdma::Draft2005Options draft_2005(const ListenerFlags& flags, bool rdma_front) {
  rpcrdma::Draft2005Options out = flags.options.draft_2005;
  if (out.enabled && flags.options.rpcrdma_version != rpcrdma::kVersion1)
    throw SettingError("--draft-2005", "does not go with --rpcrdma-version 2: the draft has version 1 only");
  if (flags.config_program && !out.enabled)
    throw SettingError("--config-program", "goes with --draft-2005: there is no CONFIG_RDMA without it");
  if (flags.align && (!out.enabled || !rdma_front))
    throw SettingError("--align", "goes with --draft-2005 and --rdma-listen: it is the server that asks for it");
  if (flags.reply_reads && (!out.enabled || rdma_front))
    throw SettingError("--reply-reads", "goes with --draft-2005 and --tcp-listen: it is the client that offers memory");
  if (flags.done_seconds && (!out.enabled || !rdma_front))
    throw SettingError("--done-deadline", "goes with --draft-2005 and --rdma-listen: it is the server that waits");
  out.config_program = flags.config_program.value_or(rpcrdma::kConfigProgram);
  out.align = out.reply_align = flags.align.value_or(ListenerFlags::kUsualAlignment);
  out.done.patience = std::chrono::seconds(flags.done_seconds.value_or(ListenerFlags::kUsualDoneSeconds));
  out.offer_reply_memory = !flags.reply_reads;
  return out;
}

}  // namespace

gateway::ProcessOptions process_options(const ProcessFlags& flags, const LimitFlags& limits) {
  gateway::ProcessOptions o;
  constexpr std::size_t kLeast = std::size_t{ProcessFlags::kLeastMemoryMib} << 20;
  o.memory_bytes =
      flags.memory_mib > 0 ? std::size_t{flags.memory_mib} << 20 : std::max(gateway::memory_of_process() / 4, kLeast);
  o.max_connections = limits.max_connections;
  o.max_connections_per_client = limits.max_connections_per_client;
  o.drain_timeout = std::chrono::seconds(flags.drain_seconds);
  o.workers = flags.workers > 0 ? flags.workers : std::clamp(std::thread::hardware_concurrency(), 1U, kMostByDefault);
  return o;
}

gateway::ListenerSettings listener_settings(const std::string& listener, const ListenerFlags& flags,
                                            const LimitFlags& limits, const ProcessFlags& process) {
  gateway::ListenerSettings s;
  s.name = listener;
  s.direction = direction(flags);
  const bool rdma_front = s.direction == gateway::Direction::kRdmaToTcp;
  gateway::Options& options = s.options = flags.options;
  options.policy = connection_policy(flags);
  options.sctp = flags.llp.kind() == llp::Kind::kSctp;
  options.sctp_packet_bytes = flags.llp.sctp().packet_bytes;
  if (!rdma_front && options.policy.ird == 0)
    throw SettingError("--ird", "0 does not go with --tcp-listen: the server reads long Calls from the gateway");
  flags.policy.apply(options.stream);
  options.max_connections = limits.max_connections;
  options.max_connections_per_client = limits.max_connections_per_client;
  options.memory_bytes = std::size_t{flags.connection_memory_mib} << 20;
  options.max_record_bytes = std::size_t{flags.max_record_kib} << 10;
  check_memory(options, process_options(process, limits).memory_bytes, process.memory_mib > 0);
  options.lost_call_limit = std::chrono::seconds(flags.lost_call_seconds);
  options.record_deadline = std::chrono::seconds(flags.record_seconds);
  options.read_deadline = std::chrono::seconds(flags.read_seconds);
  options.reply_deadline = std::chrono::seconds(flags.reply_seconds);
  options.draft_2005 = draft_2005(flags, rdma_front);
  if (!flags.allow.empty()) options.allow = need(gateway::AccessList::parse(flags.allow), "--allow");
  if (!flags.source_map.empty()) options.source_map = need(gateway::SourceMap::parse(flags.source_map), "--source-map");
  s.listen = rdma_front ? listen_address(flags.rdma_listen, "--rdma-listen")
                        : listen_address(flags.tcp_listen, "--tcp-listen");
  const char* const to = rdma_front ? "--tcp" : "--rdma";
  s.server = need(HostPort::parse(rdma_front ? flags.tcp : flags.rdma), to);
  if (s.server.port == 0) throw SettingError(to, "port 0 is no port to forward to");
  if (rdma_front) options.reserved_port = choose_reserved_port(flags.reserved_port);
  return s;
}

void complete(gateway::ServiceSettings& settings) {
  std::size_t& part = settings.process.least_part_bytes;
  for (const auto& listener : settings.listeners) part = std::max(part, listener.options.least_part());
}

std::string describe(const gateway::ListenerSettings& s, const tcp::endpoint& at) {
  const bool rdma_front = s.direction == gateway::Direction::kRdmaToTcp;
  const std::string ports = rdma_front
                                ? fmt::format(", reserved ports towards the server: {}", name(s.options.reserved_port))
                                : std::string(s.options.insecure_ports ? ", from any port" : ", from ports below 1024");
  const std::string below = s.options.sctp ? "SCTP" : s.options.device;
  const std::string rdma = "RPC-over-RDMA" + (below.empty() ? "" : " (" + below + ")");
  return fmt::format("{} for {}, forwarding to {} over {}; allowed: {}{}", cm::to_string(at), rdma_front ? rdma : "TCP",
                     s.server.to_string(), rdma_front ? "TCP" : rdma, s.options.allow.to_string(), ports);
}

std::string log_prefix(const std::string& listener) {
  return listener.empty() ? "" : listener + ": ";
}

}  // namespace iwarp::tools
