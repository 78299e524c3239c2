#include "tools/perf_run_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/perf/server.h"
#include "tools/perf_command.h"

namespace iwarp::tools {
namespace {

using namespace perf;

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

std::vector<Test> parse_tests(const std::string& list) {
  std::vector<Test> tests;
  std::istringstream in(list);
  for (std::string wanted; std::getline(in, wanted, ',');) {
    const auto test = test_named(wanted);
    if (!test) {
      std::string text = "unknown test '" + wanted + "': use";
      for (const Test t : all_tests()) text += " " + std::string(name(t));
      throw CLI::ValidationError("TEST", text);
    }
    tests.push_back(*test);
  }
  if (tests.empty()) throw CLI::ValidationError("TEST", "name at least one test, such as write_bw");
  return tests;
}

std::vector<std::uint32_t> sizes_of(const PerfRunFlags& flags, Test test) {
  if (!has_size(test)) return default_sizes(test);
  if (flags.all_sizes) return all_sizes();
  std::vector<std::uint32_t> sizes;
  for (const std::string& s : flags.sizes) sizes.push_back(parse_size(s));
  return sizes.empty() ? default_sizes(test) : sizes;
}

std::chrono::milliseconds length_of_sample(const PerfRunFlags& flags) {
  return std::chrono::milliseconds(static_cast<long>(flags.seconds * 1000));
}

const char* word_of(mpa::FpduPolicy policy) {
  switch (policy) {
    case mpa::FpduPolicy::kEmss:
      return "emss";
    case mpa::FpduPolicy::k16k:
      return "16k";
    case mpa::FpduPolicy::kMax:
      break;
  }
  return "max";
}

Spec spec_of(const PerfRunFlags& flags, Test test, std::uint32_t size) {
  Spec s = flags.spec;
  s.test = test;
  s.size = size;
  stream::ProfileSettings usual;
  usual.stream.fpdu = mpa::FpduPolicy::kMax;  // of this command
  flags.profile.profile().apply(usual);
  s.profile = flags.profile.name();
  s.llp = llp::name(flags.llp.kind());
  s.sctp_packet = flags.llp.sctp().packet_bytes;
  s.crc = flags.crc ? *flags.crc == "on" : usual.policy.crc == mpa::Policy::Crc::kOn;
  s.fpdu = flags.fpdu.value_or(word_of(usual.stream.fpdu));
  s.direct = flags.placement == "direct";
  s.stable = flags.source == "stable";
  s.manual = flags.progress == "manual" || test == Test::kWriteLat;
  s.depth = flags.depth.value_or(default_depth(test, size));
  s.milliseconds = static_cast<std::uint32_t>(length_of_sample(flags).count());
  if (flags.cpus.size() == 2) s.cpu = flags.cpus[1];
  s.list = std::min(flags.list.value_or(default_list(test, s.depth)), s.depth);
  // Checked as the other end will.
  (void)nlohmann::json(baseline_spec(s)).get<Spec>();
  return nlohmann::json(s).get<Spec>();
}

void check_llp(const PerfRunFlags& flags) {
  flags.llp.check();
  if (flags.llp.kind() == llp::Kind::kTcp) return;
  const auto refuse = [](const char* flag) {
    throw CLI::ValidationError(flag, "is about MPA over TCP: leave it out with --llp sctp");
  };
  if (flags.crc) refuse("--crc");
  if (flags.fpdu) refuse("--fpdu");
  if (flags.spec.markers) refuse("--markers");
  if (flags.profile.name() != ProfileFlag{}.name()) refuse("--profile");
  if (flags.recorder.given()) refuse("--trace and --pcap");
}

// The processors of both ends, or of neither. Those of another machine are looked at there.
void check_cpus(const PerfRunFlags& flags) {
  if (flags.cpus.empty()) return;
  if (flags.cpus.size() != 2) throw CLI::ValidationError("--cpus", "give two: for this end and the other, such as 0,1");
  try {
    check_cpu(flags.cpus[0]);
    if (flags.peer.empty()) check_cpu(flags.cpus[1]);
  } catch (const std::runtime_error& e) {
    throw CLI::ValidationError("--cpus", e.what());
  }
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string list_of_tests() {
  std::string text = "Tests:\n";
  for (const Test t : all_tests()) text += fmt::format("  {:<14}{}\n", name(t), describe(t));
  return text;
}

constexpr const char* kFooter =
    "Each test is measured beside plain TCP that does the same work: a sample of each is a pair. A row is printed as\n"
    "soon as it is measured; Ctrl-C prints what there is.\n"
    "Columns: as in perftest.\n"
    "  octets, iterations       of an operation; operations in all samples\n"
    "  BW peak, BW average      the best sample, and the mean of the samples; 1 GB/s is 10^9 octets a second\n"
    "  MsgRate                  millions of operations a second, the mean of the samples\n"
    "  t_min, t_max             microseconds, half of a round trip: the least and the largest of all operations\n"
    "  t_typical ... p99.9      the most frequent (the fullest bin of 5 % of the median), the median, and what 99 % "
    "and 99.9 % did not exceed; medians of the samples' figures\n"
    "  TCP, ratio (range)       plain TCP's average; iwarp / TCP: median, least and largest of the pairs\n"
    "  CPU                      seconds of processor time for 10^9 octets, this end + the other\n"
    "RPC tests: --threads are clients, with a connection each; those of iwarp share an engine, and make the next Call "
    "as\n"
    "soon as a Reply is there. The same messages over plain TCP: with record marks, a thread for each client and\n"
    "connection. The data of rpc_read and rpc_write travel in chunks.\n"
    "Much depends on the congestion control of TCP (--congestion): it is named below the table.\n"
    "Examples:\n"
    "  iwarp perf run write_bw,read_bw\n"
    "  iwarp perf run write_bw --all --gbit --plot sweep.svg\n"
    "  iwarp perf run send_lat --progress manual --cpus 0,1\n"
    "  iwarp perf run read_bw --baseline best --congestion cubic --crc off\n"
    "  iwarp perf run rpc_null --threads 64\n"
    "  iwarp perf run write_bw,send_lat --llp sctp --sctp-packet 65507\n"
    "  iwarp perf run rpc_read,rpc_write --size 1m --crc off\n"
    "  iwarp perf run write_bw 10.0.0.2 --size 1m --threads 2 --json result.json";

}  // namespace

void PerfRunFlags::add(CLI::App& run) {
  run.add_option("TEST", tests, "Tests to run, separated by commas")->required();
  add_peer(run, peer);
  CLI::Option* const size =
      run.add_option("--size", sizes, "Octets per operation, such as 8,64k,1m (throughput: 64k,1m; others: 8)")
          ->delimiter(',')
          ->allow_extra_args(false);  // or PEER behind it would be a size
  run.add_flag("-a,--all", all_sizes, "Sweep: sizes 2, 4, 8 and so on to 8m")->excludes(size);
  run.add_option("--seconds", seconds, "Length of each sample")->check(CLI::Range(0.05, 3600.0))->capture_default_str();
  run.add_option("--pairs", pairs, "Samples of iwarp, and of each way of plain TCP")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  run.add_option("--baseline", baseline,
                 fmt::format("Plain TCP: quick sends and receives in calls of 64 KiB; best first looks for the fastest "
                             "calls, {:.0f} s for each size and direction of throughput, {:.0f} s for send_rate",
                             tools::seconds(search_time(Test::kTcpBw)), tools::seconds(search_time(Test::kTcpRate))))
      ->check(CLI::IsMember({"quick", "best"}))
      ->capture_default_str();
  run.add_option("--depth", depth,
                 "Operations outstanding (throughput: 32, 16 above 64 KiB; send_rate: 512; RPC: 1, at most 200)")
      ->check(CLI::Range(1, 4096));
  run.add_option(
         "--list", list,
         "Operations handed over by one call: send_rate (64), write_bw and read_bw (half of what is outstanding)")
      ->check(CLI::Range(1, 4096));
  run.add_option("--threads", spec.threads, "Connections, with a thread each at both ends")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  llp.add(run, "Options");
  profile.add(run, "Options");
  run.add_option("--crc", crc, "Checksums (CRC32c) over all that is sent")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("on");
  run.add_flag("--markers", spec.markers, "MPA Markers in both directions, by which a receiver finds frames");
  run.add_option("--fpdu", fpdu, "Size of the frames (FPDUs) in the TCP stream: a TCP segment, 16 KiB, or up to 64 KiB")
      ->check(CLI::IsMember({"emss", "16k", "max"}))
      ->default_str("max");
  run.add_option("--placement", placement,
                 "With CRC off: receive large payloads straight into place, or by way of a buffer")
      ->check(CLI::IsMember({"direct", "staged"}))
      ->capture_default_str();
  run.add_option("--source", source,
                 "With CRC on: memory that is read stays as it is, or may change and is copied to be sent")
      ->check(CLI::IsMember({"stable", "changing"}))
      ->capture_default_str();
  run.add_option("--progress", progress,
                 "Who sends and receives: threads of iwarp (auto), or the test, which polls (manual; write_lat always)")
      ->check(CLI::IsMember({"auto", "manual"}))
      ->capture_default_str();
  run.add_option("--congestion", spec.congestion,
                 "TCP congestion control, such as cubic, of iwarp and plain TCP at both ends; "
                 "net.ipv4.tcp_available_congestion_control must list it (without: what each system has)")
      ->type_name("NAME");
  run.add_option("--cpus", cpus, "Processors for this end and the other, such as 0,1: needed where both poll")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 1023));
  run.add_flag("--no-verify", no_verify, "Leave out the untimed pass that compares the data");
  run.add_flag("--gbit,--report_gbits", gbit, "Throughput in Gbit/s");
  run.add_option("--plot", plot, "Draw the results, as SVG")->type_name("FILE");
  json.add(run, "Print all figures as JSON");
  run.add_flag("--markdown", markdown, "Table with bars, as in docs/PERFORMANCE.md");
  recorder.add(run);
  run.footer(list_of_tests() + kFooter);
}

std::vector<Spec> PerfRunFlags::specs() const {
  check_llp(*this);
  std::vector<Spec> all;
  try {
    for (const Test test : parse_tests(tests)) {
      for (const std::uint32_t size : sizes_of(*this, test)) all.push_back(spec_of(*this, test, size));
    }
  } catch (const std::invalid_argument& e) {
    throw CLI::ValidationError("perf run", e.what());
  }
  check_cpus(*this);
  return all;
}

Plan PerfRunFlags::plan() const {
  Plan p;
  p.pairs = pairs;
  p.length = length_of_sample(*this);
  p.best = baseline == "best";
  p.units = {.gbit = gbit};
  p.verify = !no_verify;
  return p;
}

}  // namespace iwarp::tools
