// What the operator of `iwarp gateway` may say: by flags, or by keys of the same names in a configuration file
// (gateway_config.h). Defined once, with ranges and help, as flags. What belongs to the process stands apart from what
// each listener has, since a file may have several of these.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "iwarp/gateway/options.h"
#include "iwarp/gateway/process.h"
#include "tools/gateway_watch.h"
#include "tools/llp_flags.h"
#include "tools/policy_flags.h"
#include "tools/recorder.h"

namespace iwarp::tools {

// Each makes flags of its members; it must outlive the parsing, in its place.
struct ProcessFlags {
  static constexpr unsigned kLeastMemoryMib = 16;

  std::string stats, state_dir;
  std::string log_level;    // empty: as --debug says
  unsigned memory_mib = 0;  // 0: what suits the machine
  unsigned drain_seconds = 10;
  unsigned workers = 0;  // 0: what suits the machine
  WatchFlags watch;
  RecorderFlags recorder;

  void add(CLI::App& app);
};

struct LimitFlags {
  std::size_t max_connections = 1024;
  std::size_t max_connections_per_client = 256;

  void add(CLI::App& app);
};

struct ListenerFlags {
  static constexpr std::uint32_t kUsualAlignment = 512;
  static constexpr unsigned kUsualDoneSeconds = 10;

  std::string rdma_listen, tcp_listen, tcp, rdma;
  std::string allow, source_map;
  std::optional<gateway::ReservedPort> reserved_port;
  gateway::Options options;  // what needs no conversion
  unsigned connection_memory_mib = 16;
  unsigned max_record_kib = 1088;
  unsigned lost_call_seconds = 30, record_seconds = 60, read_seconds = 60, reply_seconds = 60;
  // Nothing: not said. Where they would have no effect, whoever says them is told.
  std::optional<std::uint32_t> config_program, align;
  std::optional<unsigned> done_seconds;
  bool reply_reads = false;
  LlpFlags llp;
  PolicyFlags policy;

  void add(CLI::App& app);
};

}  // namespace iwarp::tools
