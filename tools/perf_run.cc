// `iwarp perf run`: measures, prints rows as they come, and writes them as JSON and as a picture.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "tools/perf/end.h"
#include "tools/perf/plot.h"
#include "tools/perf/rdma_side.h"
#include "tools/perf/server.h"
#include "tools/perf_command.h"
#include "tools/perf_run_flags.h"
#include "tools/standard_output.h"

namespace iwarp::tools {
namespace {

using namespace perf;
using Json = nlohmann::ordered_json;

// The file of --plot, opened at once, so that what cannot be written is known before the work.
class Picture {
 public:
  explicit Picture(const std::string& name) : name_(name) {
    errno = 0;
    file_.open(name_, std::ios::trunc);
    check();
  }
  void write(const std::string& text) {
    errno = 0;
    file_ << text << std::flush;
    check();
  }

 private:
  void check() const {
    if (file_) return;
    const int cause = errno;
    throw std::runtime_error("cannot write " + name_ + (cause != 0 ? std::string(": ") + std::strerror(cause) : ""));
  }

  std::string name_;
  std::ofstream file_;
};

// What one run of the command has come to.
struct Outcome {
  std::vector<Row> rows;
  std::string failure;
  bool output_failed = false;  // that of standard output, which the command line tells
};

Json to_json(const PerfRunFlags& flags, const Outcome& outcome) {
  Json j{{"interrupted", interrupted.load()}, {"baseline", flags.baseline}, {"rows", outcome.rows}};
  if (!outcome.failure.empty()) j["error"] = outcome.failure;
  return j;
}

std::string subtitle(const PerfRunFlags& flags, const Row& first) {
  const Json here = about("perf run");
  return fmt::format("{}, {}, {}; --baseline {}, {}", flags.peer.empty() ? "loopback" : "to " + flags.peer,
                     here.at("kernel").get<std::string>(), first.congestion_control, flags.baseline,
                     here.at("date").get<std::string>().substr(0, 10));
}

// Runs the tests one after the other.
class Session {
 public:
  Session(const PerfRunFlags& flags, std::vector<Spec> specs)
      : flags_(flags), specs_(std::move(specs)), prints_(!flags.json.on_standard_output()) {}

  // What went wrong in the end is in the outcome, with the rows before it.
  Outcome run(const std::optional<gateway::HostPort>& peer) {
    Outcome outcome;
    try {
      OtherEnd other(peer);
      if (!flags_.cpus.empty()) bind_to_cpu(flags_.cpus[0]);
      Plan plan = flags_.plan();
      plan.live = line_.seen();
      Runner runner(other.control(), other.host(), plan, [&](const std::string& text) { say(outcome, text); });
      if (prints_ && flags_.markdown) print(markdown_heading());
      for (const Spec& spec : specs_) {
        if (interrupted) break;
        add(outcome, runner.run(spec));
      }
    } catch (const StandardOutputError& e) {
      outcome.failure = e.what();
      outcome.output_failed = true;
    } catch (const std::runtime_error& e) {
      if (!interrupted) outcome.failure = e.what();
    }
    line_.clear();
    return outcome;
  }

 private:
  void say(const Outcome& outcome, const std::string& text) const {
    line_.say(specs_.size() == 1 ? text
                                 : fmt::format("row {} of {}: {}", outcome.rows.size() + 1, specs_.size(), text));
  }

  void add(Outcome& outcome, Row row) {
    line_.clear();
    if (row.pairs == 0) {
      spdlog::warn("{} {}: interrupted before its first pair was measured", name(row.spec.test),
                   short_size(row.spec.size));
      return;
    }
    const Units units = flags_.plan().units;
    outcome.rows.push_back(std::move(row));
    if (prints_) print(flags_.markdown ? markdown_line(outcome.rows.back(), units) : table_.add(outcome.rows.back()));
  }

  const PerfRunFlags& flags_;
  std::vector<Spec> specs_;
  bool prints_;
  ProgressLine line_;
  Table table_{flags_.plan().units};
};

int run(const PerfRunFlags& flags) {
  tap_maker = flags.recorder.tap_maker();
  std::vector<Spec> specs = flags.specs();
  const auto peer = parse_peer(flags.peer);
  std::optional<JsonOutput> json;
  if (flags.json.given()) json.emplace(flags.json);
  std::optional<Picture> picture;
  if (!flags.plot.empty()) picture.emplace(flags.plot);

  const Outcome outcome = Session(flags, std::move(specs)).run(peer);
  const std::vector<Row>& rows = outcome.rows;
  if (!flags.json.on_standard_output() && !flags.markdown && !rows.empty() && !outcome.output_failed)
    print('\n' + notes(rows, flags.plan().best));
  if (const std::string text = warning(rows); !text.empty()) spdlog::warn("{}", text);
  if (!outcome.failure.empty() && !outcome.output_failed) spdlog::error("{}", outcome.failure);
  if (json) json->write("perf run", to_json(flags, outcome));
  if (picture && !rows.empty()) picture->write(plot(rows, flags.plan().units, subtitle(flags, rows.front())));
  if (interrupted) return kExitInterrupted;
  return outcome.failure.empty() ? kExitOk : kExitFailed;
}

}  // namespace

Run add_perf_run(CLI::App& perf) {
  auto flags = std::make_shared<PerfRunFlags>();
  CLI::App* cmd = perf.add_subcommand("run", "Run tests and print a table");
  flags->add(*cmd);
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
