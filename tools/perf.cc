// `iwarp perf`: what the stack does, beside what plain TCP does in the same minute on the same machine.
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>

#include "iwarp/cm/connection.h"
#include "tools/command.h"
#include "tools/perf/idle.h"
#include "tools/perf/rdma_side.h"
#include "tools/perf/report.h"
#include "tools/perf/server.h"
#include "tools/recorder.h"

namespace iwarp::tools {
namespace {

using namespace perf;
using boost::asio::ip::tcp;

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
  std::optional<std::uint32_t> depth;
  std::string crc = "on";
  std::string progress = "auto";
  std::string placement = "direct";
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

// "HOST:PORT", "HOST", "[V6]:PORT"
std::pair<std::string, std::string> split(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto bracket = text.rfind(']');
  std::string host = text, port = std::to_string(kPort);
  if (colon != std::string::npos && (bracket == std::string::npos ? text.find(':') == colon : colon > bracket)) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (!host.empty() && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {host, port};
}

int run_serve(const Flags& flags) {
  if (flags.with_parent) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const auto [host, port] = split(flags.listen);
  boost::system::error_code bad;
  const auto address = boost::asio::ip::make_address(host, bad);
  std::uint16_t number = 0;
  if (std::istringstream in(port); bad || !(in >> number) || !in.eof())
    throw CLI::ValidationError("--listen", "'" + flags.listen + "' is not ADDRESS:PORT");
  try {
    serve({address, number}, flags.once, std::chrono::seconds(flags.patience),
          [](const tcp::endpoint& at) { std::cout << "listening on " << cm::to_string(at) << std::endl; });
  } catch (const boost::system::system_error& e) {
    spdlog::error("cannot listen on {}: {}", flags.listen, e.what());
    return kExitFailed;
  }
  return interrupted && !flags.with_parent ? kExitInterrupted : kExitOk;
}

// `iwarp perf serve` as a child on loopback.
class OwnServer {
 public:
  OwnServer() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::array<std::string, 6> words = {"iwarp", "perf", "serve", "--listen=127.0.0.1:0", "--once", "--with-parent"};
    std::array<char*, 7> argv{};
    std::transform(words.begin(), words.end(), argv.begin(), [](std::string& w) { return w.data(); });
    const int failed = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed != 0) throw std::runtime_error("cannot start the other end of the test");
    std::string line;
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    ::close(ends[0]);
    const auto colon = line.rfind(':');
    if (colon == std::string::npos) throw std::runtime_error("the other end of the test did not start");
    port_ = line.substr(colon + 1);
  }
  ~OwnServer() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;
  [[nodiscard]] const std::string& port() const { return port_; }

 private:
  pid_t pid_ = -1;
  std::string port_;
};

std::uint32_t parse_size(const std::string& text) {
  std::uint64_t value = 0;
  std::string unit;
  std::istringstream in(text);
  if (in >> value) in >> unit;
  const std::uint64_t scale = unit.empty()                 ? 1
                              : unit == "k" || unit == "K" ? 1024
                              : unit == "m" || unit == "M" ? 1048576
                                                           : 0;
  if (value == 0 || scale == 0 || value * scale > (16U << 20))
    throw CLI::ValidationError("--size", "'" + text + "' is no size: 1 to 16m, such as 8, 64k, 1m");
  return static_cast<std::uint32_t>(value * scale);
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
      s.manual = flags.progress == "manual" || *test == Test::kWriteLat;
      s.depth = flags.depth.value_or(default_depth(*test, size));
      if (flags.cpus.size() == 2) s.cpu = flags.cpus[1];
      s.list = std::min(s.list, s.depth);
      if (s.test == Test::kTcpRate) s.call = s.size;
      specs.push_back(nlohmann::json(s).get<Spec>());  // checked as the other end will
    }
  }
  return specs;
}

int run_client(const Flags& flags) {
  std::vector<Spec> specs;
  try {
    specs = plan(flags);
  } catch (const std::invalid_argument& e) {
    throw CLI::ValidationError("perf run", e.what());
  }
  std::optional<OwnServer> own;
  if (flags.peer.empty()) own.emplace();
  const auto [host, port] = own ? std::pair<std::string, std::string>{"127.0.0.1", own->port()} : split(flags.peer);
  Control control(host, port);
  if (flags.cpus.size() == 2) bind_to_cpu(flags.cpus[0]);
  Plan p;
  p.pairs = flags.pairs;
  p.seconds = std::chrono::milliseconds(static_cast<long>(flags.seconds * 1000));
  p.verify = !flags.no_verify;
  p.calibrate = !flags.no_calibration;
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  Runner runner(control, host, p, [&](const std::string& text) {
    if (terminal) std::cerr << "\r\033[K" << text << std::flush;
  });
  std::vector<Row> rows;
  int code = kExitOk;
  for (const Spec& spec : specs) {
    try {
      rows.push_back(runner.run(spec));
    } catch (const std::runtime_error& e) {
      if (terminal) std::cerr << '\n';
      if (!interrupted) spdlog::error("{}", e.what());
      code = interrupted ? kExitInterrupted : kExitFailed;
      break;
    }
  }
  if (terminal) std::cerr << "\r\033[K";
  if (!rows.empty()) std::cout << table(rows, flags.markdown);
  if (!flags.json.empty()) {
    std::ofstream out(flags.json);
    out << nlohmann::json(rows).dump(2) << '\n';
    if (!out) {
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
  std::optional<OwnServer> own;
  if (flags.peer.empty()) own.emplace();
  const auto [host, port] = own ? std::pair<std::string, std::string>{"127.0.0.1", own->port()} : split(flags.peer);
  Control control(host, port);
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  try {
    const IdleReport r = measure_idle(control, host, flags.connections, [&](const std::string& text) {
      if (terminal) std::cerr << "\r\033[K" << text << std::flush;
    });
    if (terminal) std::cerr << "\r\033[K";
    fmt::print("{} idle connections      this end   other end\n", r.connections);
    fmt::print("  memory of each, octets {:9.0f}   {:9.0f}\n", r.client_bytes_each, r.server_bytes_each);
    fmt::print("  descriptors of each    {:9.2f}   {:9.2f}\n", r.client_descriptors_each, r.server_descriptors_each);
    fmt::print("  wake-ups in {:.0f} s        {:9}   {:9}\n", r.seconds_quiet, r.client_sleeps, r.server_sleeps);
    fmt::print("  connect: {:.3f} ms with none open, {:.3f} ms with all open\n", r.first_ms, r.last_ms);
    fmt::print("  RLIMIT_NOFILE: {} here, {} there\n", to_text(r.client_limit), to_text(r.server_limit));
  } catch (const std::runtime_error& e) {
    if (interrupted) return kExitInterrupted;
    spdlog::error("{}", e.what());
    return kExitFailed;
  }
  return kExitOk;
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
  serve->footer("Example:\n  iwarp perf serve --listen 10.0.0.2:7175");

  CLI::App* run = cmd->add_subcommand("run", "Runs tests and prints a table");
  run->add_option("TEST", flags->tests, "Tests to run, separated by commas")->required();
  run->add_option("--peer,PEER", flags->peer,
                  "HOST[:PORT] of `iwarp perf serve`; default: a process of its own on loopback");
  run->add_option(
         "--size", flags->sizes,
         "Octets per operation, such as 8,64k,1m (default: 64k,1m for throughput, else 8; connections have none)")
      ->delimiter(',');
  run->add_option("--seconds", flags->seconds, "Length of each sample")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  run->add_option("--pairs", flags->pairs, "Samples of ours and of the baseline, in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  run->add_option("--depth", flags->depth,
                  "Operations outstanding (default: throughput 32, 16 above 64 KiB; rates 256)")
      ->check(CLI::Range(1, 4096));
  run->add_option("--list", flags->spec.list, "send_rate: work requests posted by one call")
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
  run->add_option("--progress", flags->progress,
                  "Who does the I/O: auto (engine and waiting threads) or manual (polling; write_lat always)")
      ->check(CLI::IsMember({"auto", "manual"}))
      ->capture_default_str();
  run->add_option("--cpus", flags->cpus, "Processors for this end and the other, such as 0,1: needed where both spin")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(0, 1023));
  run->add_option("--json", flags->json, "Write all figures to this file as well");
  run->add_flag("--markdown", flags->markdown, "Table with bars");
  run->add_flag(
      "--no-calibration", flags->no_calibration,
      "Do not look for the calls with which tcp_bw is best (seven seconds for each size): sleep, and take 64 KiB");
  run->add_flag("--no-verify", flags->no_verify, "Leave out the untimed pass that compares the data");
  flags->recorder.add(*run);
  run->footer(
      list_of_tests() +
      "Each test is measured in pairs with plain TCP doing the same work; the ratio is the median of the pairs.\n"
      "Throughput 10^9 octets per second; latency one way; CPU seconds per 10^9 octets, this end + the other.\n"
      "Examples:\n"
      "  iwarp perf run write_bw,read_bw\n"
      "  iwarp perf run send_lat --progress manual --cpus 0,1\n"
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
      "Memory is resident memory, with queue pairs of four entries a queue.\n"
      "Example:\n  iwarp perf idle --connections 1000");
  return [flags, serve, idle]() -> int {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    tap_maker = flags->recorder.tap_maker();
    if (serve->parsed()) return run_serve(*flags);
    return idle->parsed() ? run_idle(*flags) : run_client(*flags);
  };
}

}  // namespace iwarp::tools
