// `iwarp perf idle`: what connections cost that do nothing.
#include <fmt/format.h>

#include "tools/json_file.h"
#include "tools/perf/end.h"
#include "tools/perf/idle.h"
#include "tools/perf/rdma_side.h"
#include "tools/perf_command.h"
#include "tools/profile_flag.h"
#include "tools/recorder.h"

namespace iwarp::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string peer;
  std::size_t connections = 10000;
  ProfileFlag profile;
  JsonFlag json;
  RecorderFlags recorder;
};

std::string to_text(const DescriptorLimit& l) {
  return l.before == l.now ? fmt::format("{}", l.now) : fmt::format("{} (raised from {})", l.now, l.before);
}

std::string to_text(const perf::IdleReport& r) {
  return fmt::format("{} idle connections      this end   other end\n", r.connections) +
         fmt::format("  memory of each, octets {:9.0f}   {:9.0f}\n", r.client_bytes_each, r.server_bytes_each) +
         fmt::format("  descriptors of each    {:9.2f}   {:9.2f}\n", r.client_descriptors_each,
                     r.server_descriptors_each) +
         fmt::format("  wake-ups in {:.0f} s        {:9}   {:9}\n", r.seconds_quiet, r.client_sleeps, r.server_sleeps) +
         fmt::format("  connect: {:.3f} ms with none open, {:.3f} ms with all open\n", r.first_ms, r.last_ms) +
         fmt::format("  RLIMIT_NOFILE: {} here, {} there\n", to_text(r.client_limit), to_text(r.server_limit));
}

Json to_json(const perf::IdleReport& r) {
  const auto end = [](double bytes, double descriptors, std::uint64_t sleeps, const DescriptorLimit& limit) {
    return Json{{"memory_each_octets", bytes},
                {"descriptors_each", descriptors},
                {"wake_ups", sleeps},
                {"descriptor_limit", limit.now},
                {"descriptor_limit_before", limit.before}};
  };
  return {{"connections", r.connections},
          {"quiet_seconds", r.seconds_quiet},
          {"this_end", end(r.client_bytes_each, r.client_descriptors_each, r.client_sleeps, r.client_limit)},
          {"other_end", end(r.server_bytes_each, r.server_descriptors_each, r.server_sleeps, r.server_limit)},
          {"connect_ms", {{"none_open", r.first_ms}, {"all_open", r.last_ms}}}};
}

int run(const Flags& flags) {
  perf::tap_maker = flags.recorder.tap_maker();
  const auto peer = parse_peer(flags.peer);
  std::optional<JsonOutput> json;
  if (flags.json.given()) json.emplace(flags.json);
  perf::IdleReport report;
  try {
    OtherEnd other(peer);
    const ProgressLine line;
    report = perf::measure_idle(other.control(), other.host(), flags.connections, flags.profile.name(),
                                [&](const std::string& text) { line.say(text); });
  } catch (const std::runtime_error&) {
    if (perf::interrupted) return kExitInterrupted;
    throw;
  }
  if (!flags.json.on_standard_output()) print(to_text(report));
  if (json) json->write("perf idle", to_json(report));
  return kExitOk;
}

}  // namespace

Run add_perf_idle(CLI::App& perf) {
  auto flags = std::make_shared<Flags>();
  CLI::App* idle = perf.add_subcommand("idle", "Open many connections, and tell what they cost while they do nothing");
  add_peer(*idle, flags->peer);
  idle->add_option("--connections", flags->connections, "How many")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  flags->profile.add(*idle, "Options");
  flags->json.add(*idle, "Print the figures as JSON");
  flags->recorder.add(*idle);
  idle->footer(
      "Wake-ups are those of all threads but the one that counts, which sleeps meanwhile; idle connections cause "
      "none.\n"
      "Memory is resident memory, with queue pairs of default options and nothing posted.\n"
      "Examples:\n"
      "  iwarp perf idle --connections 1000\n"
      "  iwarp perf idle 10.0.0.2");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
