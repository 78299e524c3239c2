// `iwarp perf`: what the stack does, beside what plain TCP does in the same minute on the same machine.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <charconv>
#include <csignal>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>

#include "iwarp/cm/connection.h"
#include "iwarp/gateway/options.h"
#include "tools/command.h"
#include "tools/perf/idle.h"
#include "tools/perf/own_server.h"
#include "tools/perf/rdma_side.h"
#include "tools/perf/report.h"
#include "tools/perf/server.h"
#include "tools/recorder.h"

namespace iwarp::tools {
namespace {

using namespace perf;
using boost::asio::ip::tcp;
using gateway::HostPort;

constexpr std::uint16_t kPort = 7175;

struct Flags {
  std::string listen = "[::]:" + std::to_string(kPort);
  bool once = false;
  unsigned patience = 10;
  bool with_parent = false;

  std::string tests;
  std::string peer;
  std::vector<std::string> sizes;
  double seconds = 0.5;
  unsigned pairs = 9;
  Spec spec;
  std::uint32_t list = 64;
  std::optional<std::uint32_t> depth;
  std::string crc = "on";
  std::string progress = "auto";
  std::string placement = "direct";
  std::string source = "stable";
  std::string json;
  std::vector<int> cpus;
  bool markdown = false;
  bool no_verify = false;
  bool no_calibration = false;
  std::size_t connections = 10000;
  RecorderFlags recorder;
};

void on_signal(int) {
  interrupt();
}

// "HOST:PORT", "[V6]:PORT"; without a port, the usual one: "HOST", "V6", "[V6]".
HostPort address(const std::string& text, const char* flag) {
  const auto colons = std::count(text.begin(), text.end(), ':');
  std::string full = colons > 1 && text.front() != '[' ? "[" + text + "]" : text;
  if (colons == 0 || full.back() == ']') full += ":" + std::to_string(kPort);
  auto parsed = HostPort::parse(full);
  if (!parsed) throw CLI::ValidationError(flag, parsed.error);
  return std::move(*parsed.value);
}

int run_serve(const Flags& flags) {
  if (flags.with_parent) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const HostPort at = address(flags.listen, "--listen");
  boost::system::error_code bad;
  const auto host = boost::asio::ip::make_address(at.host, bad);
  if (bad) throw CLI::ValidationError("--listen", "'" + flags.listen + "' is not ADDRESS:PORT");
  try {
    serve({host, at.port}, flags.once, std::chrono::seconds(flags.patience),
          [](const tcp::endpoint& on) { std::cout << "listening on " << cm::to_string(on) << std::endl; });
  } catch (const boost::system::system_error& e) {
    spdlog::error("cannot listen on {}: {}", flags.listen, e.what());
    return kExitFailed;
  }
  return interrupted && !flags.with_parent ? kExitInterrupted : kExitOk;
}

// One line on a terminal, written over again and again, and gone in the end.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (terminal_) std::cerr << "\r\033[K";
  }
  ProgressLine() = default;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  [[nodiscard]] bool seen() const { return terminal_; }
  void say(const std::string& text) const {
    if (terminal_) std::cerr << "\r\033[K" + text << std::flush;
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
};

// Calls `use` with a control connection to `peer`, and the host's name; without a peer, to a server of our own. The
// exit code: failures are logged.
int with_server(const std::string& peer, const std::function<void(Control&, const std::string&)>& use) {
  std::optional<HostPort> at;
  if (!peer.empty()) at = address(peer, "PEER");
  try {
    std::optional<OwnServer> own;
    if (!at) at = address("127.0.0.1:" + own.emplace().port(), "PEER");
    Control control(at->host, std::to_string(at->port));
    use(control, at->host);
  } catch (const std::runtime_error& e) {
    if (interrupted) return kExitInterrupted;
    spdlog::error("{}", e.what());
    return kExitFailed;
  }
  return kExitOk;
}

std::uint32_t parse_size(const std::string& text) {
  constexpr std::uint64_t kMost = 16U << 20;
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, value);
  const std::string unit(rest, end);
  const std::uint64_t scale = unit.empty()                 ? 1
                              : unit == "k" || unit == "K" ? 1024
                              : unit == "m" || unit == "M" ? 1048576
                                                           : 0;
  if (bad != std::errc{} || value == 0 || scale == 0 || value > kMost / scale)
    throw CLI::ValidationError("--size", "'" + text + "' is no size: 1 to 16m, such as 8, 64k, 1m");
  return static_cast<std::uint32_t>(value * scale);
}

std::chrono::milliseconds length_of_sample(const Flags& flags) {
  return std::chrono::milliseconds(static_cast<long>(flags.seconds * 1000));
}

std::vector<Spec> plan(const Flags& flags) {
  std::vector<Spec> specs;
  std::istringstream wanted_tests(flags.tests);
  for (std::string wanted; std::getline(wanted_tests, wanted, ',');) {
    const auto test = test_named(wanted);
    if (!test) {
      std::string text = "unknown test '" + wanted + "': use";
      for (const Test t : all_tests()) text += " " + std::string(name(t));
      throw CLI::ValidationError("TEST", text);
    }
    std::vector<std::uint32_t> sizes;
    for (const std::string& s : flags.sizes) sizes.push_back(parse_size(s));
    if (sizes.empty() || !has_size(*test)) sizes = default_sizes(*test);
    for (const std::uint32_t size : sizes) {
      Spec s = flags.spec;
      s.test = *test;
      s.size = size;
      s.crc = flags.crc == "on";
      s.direct = flags.placement == "direct";
      s.stable = flags.source == "stable";
      s.manual = flags.progress == "manual" || *test == Test::kWriteLat;
      s.depth = flags.depth.value_or(default_depth(*test, size));
      s.milliseconds = static_cast<std::uint32_t>(length_of_sample(flags).count());
      if (flags.cpus.size() == 2) s.cpu = flags.cpus[1];
      s.list = std::min(flags.list, s.depth);
      // Checked as the other end will.
      (void)nlohmann::json(baseline_spec(s)).get<Spec>();
      specs.push_back(nlohmann::json(s).get<Spec>());
    }
  }
  if (specs.empty()) throw CLI::ValidationError("TEST", "name at least one test, such as write_bw");
  return specs;
}

// The processors of both ends, or of neither. Those of another machine are looked at there.
void check_cpus(const Flags& flags) {
  if (flags.cpus.empty()) return;
  if (flags.cpus.size() != 2) throw CLI::ValidationError("--cpus", "give two: for this end and the other, such as 0,1");
  try {
    check_cpu(flags.cpus[0]);
    if (flags.peer.empty()) check_cpu(flags.cpus[1]);
  } catch (const std::runtime_error& e) {
    throw CLI::ValidationError("--cpus", e.what());
  }
}

int run_client(const Flags& flags) {
  std::vector<Spec> specs;
  try {
    specs = plan(flags);
  } catch (const std::invalid_argument& e) {
    throw CLI::ValidationError("perf run", e.what());
  }
  check_cpus(flags);
  std::ofstream json;
  if (!flags.json.empty()) {
    json.open(flags.json);
    if (!json) {
      spdlog::error("cannot write {}", flags.json);
      return kExitFailed;
    }
  }
  Plan p;
  p.pairs = flags.pairs;
  p.seconds = length_of_sample(flags);
  p.verify = !flags.no_verify;
  p.calibrate = !flags.no_calibration;
  std::vector<Row> rows;
  int code = with_server(flags.peer, [&](Control& control, const std::string& host) {
    if (!flags.cpus.empty()) bind_to_cpu(flags.cpus[0]);
    const ProgressLine line;
    p.live = line.seen();
    Runner runner(control, host, p, [&](const std::string& text) { line.say(text); });
    for (const Spec& spec : specs) rows.push_back(runner.run(spec));
  });
  if (!rows.empty()) {
    std::cout << table(rows, flags.markdown);
    if (!flags.markdown)
      std::cout << "TCP congestion control" << (flags.spec.congestion.empty() ? " here: " : ": ")
                << rows.front().congestion_control << '\n';
    if (const std::string text = warning(rows); !text.empty()) spdlog::warn("{}", text);
  }
  if (json.is_open()) {
    json << nlohmann::json(rows).dump(2) << std::endl;
    if (!json) {
      spdlog::error("cannot write {}", flags.json);
      code = kExitFailed;
    }
  }
  return code;
}

std::string to_text(const DescriptorLimit& l) {
  return l.before == l.now ? fmt::format("{}", l.now) : fmt::format("{} (raised from {})", l.now, l.before);
}

int run_idle(const Flags& flags) {
  return with_server(flags.peer, [&](Control& control, const std::string& host) {
    IdleReport r;
    {
      const ProgressLine line;
      r = measure_idle(control, host, flags.connections, [&](const std::string& text) { line.say(text); });
    }
    fmt::print("{} idle connections      this end   other end\n", r.connections);
    fmt::print("  memory of each, octets {:9.0f}   {:9.0f}\n", r.client_bytes_each, r.server_bytes_each);
    fmt::print("  descriptors of each    {:9.2f}   {:9.2f}\n", r.client_descriptors_each, r.server_descriptors_each);
    fmt::print("  wake-ups in {:.0f} s        {:9}   {:9}\n", r.seconds_quiet, r.client_sleeps, r.server_sleeps);
    fmt::print("  connect: {:.3f} ms with none open, {:.3f} ms with all open\n", r.first_ms, r.last_ms);
    fmt::print("  RLIMIT_NOFILE: {} here, {} there\n", to_text(r.client_limit), to_text(r.server_limit));
  });
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string list_of_tests() {
  std::string text = "Tests:\n";
  for (const Test t : all_tests()) text += fmt::format("  {:<13}{}\n", name(t), describe(t));
  return text;
}

}  // namespace

Run add_perf(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd = app.add_subcommand("perf", "Measures throughput and latency beside plain TCP");
  cmd->require_subcommand(1);
  cmd->footer(
      "Examples:\n"
      "  iwarp perf run write_bw,read_bw\n"
      "  iwarp perf run --help");
  CLI::App* serve = cmd->add_subcommand("serve", "The other end: waits for `iwarp perf run`");
  serve->add_option("--listen", flags->listen, "ADDRESS:PORT of the control connection; tests use any free ports")
      ->capture_default_str();
  serve->add_flag("--once", flags->once, "End when the first client has gone");
  serve
      ->add_option("--patience", flags->patience,
                   "Seconds that a client may take between its tests before another one gets its turn")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  serve->add_flag("--with-parent", flags->with_parent)->group("");
  flags->recorder.add(*serve);
  serve->footer(
      "Examples:\n"
      "  iwarp perf serve\n"
      "  iwarp perf serve --listen 10.0.0.2:7175 --once");

  CLI::App* run = cmd->add_subcommand("run", "Runs tests and prints a table");
  run->add_option("TEST", flags->tests, "Tests to run, separated by commas")->required();
  run->add_option("PEER", flags->peer, "HOST[:PORT] of `iwarp perf serve`; default: a process of its own on loopback");
  run->add_option(
         "--size", flags->sizes,
         "Octets per operation, such as 8,64k,1m (default: 64k,1m for throughput, else 8; connections have none)")
      ->delimiter(',')
      ->allow_extra_args(false);  // or PEER behind it would be a size
  run->add_option("--seconds", flags->seconds, "Length of each sample")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  run->add_option("--pairs", flags->pairs, "Turns: a sample of ours and one of each way of the baseline")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  run->add_option("--depth", flags->depth,
                  "Operations outstanding (default: throughput 32, 16 above 64 KiB; rates 512)")
      ->check(CLI::Range(1, 4096));
  run->add_option("--list", flags->list, "send_rate: work requests posted by one call")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  run->add_option("--threads", flags->spec.threads, "Connections, with a thread each at both ends")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  run->add_option("--crc", flags->crc, "CRC32c of FPDUs")->check(CLI::IsMember({"on", "off"}))->capture_default_str();
  run->add_option("--fpdu", flags->spec.fpdu, "FPDU size")
      ->check(CLI::IsMember({"emss", "16k", "max"}))
      ->capture_default_str();
  run->add_option("--placement", flags->placement,
                  "With CRC off: receive large payloads straight into place, or by way of staging")
      ->check(CLI::IsMember({"direct", "staged"}))
      ->capture_default_str();
  run->add_option(
         "--source", flags->source,
         "With CRC on: what is read stays as it is (stable), or may change (changing) and is copied to be sent")
      ->check(CLI::IsMember({"stable", "changing"}))
      ->capture_default_str();
  run->add_option("--progress", flags->progress,
                  "Who does the I/O: auto (engine and waiting threads) or manual (polling; write_lat always)")
      ->check(CLI::IsMember({"auto", "manual"}))
      ->capture_default_str();
  run->add_option("--congestion", flags->spec.congestion,
                  "TCP congestion control of both ends, ours and plain TCP's, such as cubic (default: each system's); "
                  "net.ipv4.tcp_available_congestion_control must list it at both ends");
  run->add_option("--cpus", flags->cpus, "Processors for this end and the other, such as 0,1: needed where both spin")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 1023));
  run->add_option("--json", flags->json, "Write all figures to this file as well");
  run->add_flag("--markdown", flags->markdown, "Table with bars");
  run->add_flag(
      "--no-calibration", flags->no_calibration,
      fmt::format(
          "Do not look for the calls with which plain TCP is best ({:.0f} s for each size and direction of throughput, "
          "{:.0f} s of rates): sleep (with --progress manual: spin), with TCP_NODELAY, and take 64 KiB",
          seconds(calibration_time(Test::kTcpBw)), seconds(calibration_time(Test::kTcpRate))));
  run->add_flag("--no-verify", flags->no_verify, "Leave out the untimed pass that compares the data");
  flags->recorder.add(*run);
  run->footer(
      list_of_tests() +
      "Each test is measured in turn with plain TCP doing the same work, throughput and send_rate in two ways of "
      "which\n"
      "the better one counts; the ratio is the median of the turns.\n"
      "Throughput 10^9 octets per second; latency one way; CPU seconds per 10^9 octets, this end + the other.\n"
      "Much depends on the congestion control of TCP (--congestion): it is named below the table (not with "
      "--markdown)\n"
      "and in --json; where it was not chosen, that of this end.\n"
      "Examples:\n"
      "  iwarp perf run write_bw,read_bw\n"
      "  iwarp perf run send_lat --progress manual --cpus 0,1\n"
      "  iwarp perf run read_bw --congestion cubic --crc off\n"
      "  iwarp perf run write_bw 10.0.0.2 --size 1m --threads 2 --json result.json");

  CLI::App* idle = cmd->add_subcommand("idle", "Opens many connections and tells what they cost while they do nothing");
  idle->add_option("PEER", flags->peer, "HOST[:PORT] of `iwarp perf serve`; default: a process of its own on loopback");
  idle->add_option("--connections", flags->connections, "How many")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  flags->recorder.add(*idle);
  idle->footer(
      "Wake-ups are those of all threads but the one that counts, which sleeps meanwhile; idle connections cause "
      "none.\n"
      "Memory is resident memory, with queue pairs of default options and nothing posted.\n"
      "Examples:\n"
      "  iwarp perf idle --connections 1000\n"
      "  iwarp perf idle 10.0.0.2");
  return [flags, serve, idle]() -> int {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    tap_maker = flags->recorder.tap_maker();
    if (serve->parsed()) return run_serve(*flags);
    return idle->parsed() ? run_idle(*flags) : run_client(*flags);
  };
}

}  // namespace iwarp::tools
