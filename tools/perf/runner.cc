#include "tools/perf/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "tools/perf/server.h"
#include "tools/perf/tcp_socket.h"
#include "tools/perf/ticker.h"

namespace iwarp::tools::perf {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kSearch{100};  // a sample in the search for the best calls
constexpr std::chrono::milliseconds kMostWarmUp{100};
constexpr auto kLongSample = 2s;

double to_seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

double to_unit(const Spec& spec, const Sample& s) {
  switch (unit_of(spec.test)) {
    case Unit::kOctetsPerSecond:
      return static_cast<double>(s.octets) / s.seconds;
    case Unit::kOperationsPerSecond:
      return static_cast<double>(s.operations) / s.seconds;
    case Unit::kMicroseconds:
      break;
  }
  return 0;
}

// All connections' samples of one run, as one.
Sample merge(std::vector<Sample>& parts) {
  Sample all;
  for (Sample& s : parts) {
    all.operations += s.operations;
    all.octets += s.octets;
    all.seconds = std::max(all.seconds, s.seconds);
    all.microseconds.insert(all.microseconds.end(), s.microseconds.begin(), s.microseconds.end());
  }
  return all;
}

Sample run_all(std::vector<std::unique_ptr<Active>>& ends, std::chrono::milliseconds duration) {
  std::vector<Sample> samples(ends.size());
  if (ends.size() == 1) {
    samples[0] = ends[0]->run(duration);
    return merge(samples);
  }
  std::mutex mu;
  std::string failure;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          samples[i] = ends[i]->run(duration);
        } catch (const std::exception& e) {
          const std::lock_guard lock(mu);
          failure = e.what();
        }
      });
    }
  }
  if (!failure.empty()) throw std::runtime_error(failure);
  return merge(samples);
}

Spec with(Spec raw, const Way& way) {
  raw.call = way.send;
  raw.receive = way.receive;
  raw.manual = way.spin;
  raw.nodelay = way.nodelay;
  return raw;
}

// What could be the best way of a raw test; none when there is nothing to choose.
std::vector<Way> ways_of(Test raw, std::uint32_t size, bool spin) {
  if (raw == Test::kTcpBw) return bulk_ways(spin);
  if (raw == Test::kTcpRate) return frame_ways(size, spin);
  return {};
}

// "write_bw 64k".
std::string what(const Spec& spec) {
  return std::string(name(spec.test)) + (has_size(spec.test) ? " " + short_size(spec.size) : "");
}

}  // namespace

Runner::Runner(Control& control, std::string host, Plan plan, std::function<void(const std::string&)> progress)
    : control_(control), host_(std::move(host)), plan_(plan), progress_(std::move(progress)) {}

double Runner::server_cpu() {
  return control_.ask({{"command", "cpu"}}).at("seconds").get<double>();
}

void Runner::report(std::string text) {
  reported_ = std::move(text);
  progress_(reported_);
}

Measured Runner::sample(const Spec& spec, std::chrono::milliseconds length, bool verify) {
  if (interrupted) throw std::runtime_error("interrupted");
  const auto ports = control_.ask({{"command", "start"}, {"spec", spec}}).at("ports").get<std::vector<std::uint16_t>>();
  std::vector<std::unique_ptr<Active>> ends;
  Sample s;
  double client = 0, server = 0;
  try {
    for (const std::uint16_t port : ports)
      ends.push_back(is_raw(spec.test) ? connect_raw(spec, host_, port) : connect_rdma(spec, host_, port));
    if (verify) {
      for (const auto& end : ends) end->verify();
    }
    (void)run_all(ends, std::min(length / 2, kMostWarmUp));
    server = server_cpu();
    client = cpu_seconds();
    {
      std::optional<Ticker> ticker;
      if (plan_.live && length > kLongSample) {
        ticker.emplace(1s, [&](std::chrono::milliseconds elapsed) {
          progress_(
              fmt::format("{}; this sample: {:.0f} of {:.0f} s", reported_, to_seconds(elapsed), to_seconds(length)));
        });
      }
      s = run_all(ends, length);
    }
    if (interrupted) throw std::runtime_error("interrupted");  // cut short
    client = cpu_seconds() - client;
    server = server_cpu() - server;
  } catch (const std::exception& e) {
    // The other end may know better what went wrong.
    ends.clear();
    try {
      control_.ask({{"command", "stop"}});
    } catch (const std::exception& theirs) {
      throw std::runtime_error(fmt::format("{}: {} ({})", name(spec.test), e.what(), theirs.what()));
    }
    throw std::runtime_error(fmt::format("{}: {}", name(spec.test), e.what()));
  }
  ends.clear();
  control_.ask({{"command", "stop"}});
  Measured m;
  m.value = to_unit(spec, s);
  m.operations = s.operations;
  m.seconds = s.seconds;
  if (!s.microseconds.empty()) {
    m.latency = latency_of(s.microseconds);
    m.value = m.latency.p50;
  }
  if (s.octets > 0) {
    m.client_cpu_per_gb = client / static_cast<double>(s.octets) * 1e9;
    m.server_cpu_per_gb = server / static_cast<double>(s.octets) * 1e9;
  }
  return m;
}

std::vector<Spec> Runner::rivals_of(const Spec& raw) {
  if (!plan_.best || ways_of(raw.test, raw.size, false).empty()) return {raw};
  const auto [at, fresh] = best_ways_.try_emplace({raw.test, raw.fetch, raw.size, raw.depth});
  if (fresh) {
    unsigned tried = 0;
    for (const bool spin : {false, true}) {
      const std::vector<Way> ways = ways_of(raw.test, raw.size, spin);
      at->second.push_back(best_way(ways, [&](const Way& way) {
        report(fmt::format("{}: looking for the best calls, sample {} of {}", what(raw), ++tried,
                           2 * samples_to_find_best(ways.size())));
        return sample(with(raw, way), std::min(kSearch, plan_.length), false).value;
      }));
    }
  }
  std::vector<Spec> rivals;
  for (const Way& way : at->second) rivals.push_back(with(raw, way));
  return rivals;
}

void Runner::measure(Row& row) {
  for (const Spec& rival : rivals_of(baseline_spec(row.spec))) row.rivals.push_back({rival, {}});
  const std::size_t sides = row.rivals.size() + (is_raw(row.spec.test) ? 0 : 1);
  std::string so_far;
  while (row.pairs < row.planned) {
    report(fmt::format("{}: pair {} of {}{}", what(row.spec), row.pairs + 1, row.planned, so_far));
    const bool verify = plan_.verify && row.pairs == 0;
    for (std::size_t n = 0; n < sides; ++n) {
      const std::size_t side = (n + row.pairs) % sides;  // nobody always comes behind the same one
      if (side < row.rivals.size()) {
        row.rivals[side].samples.push_back(sample(row.rivals[side].spec, plan_.length, verify));
      } else {
        row.samples.push_back(sample(row.spec, plan_.length, verify));
      }
    }
    ++row.pairs;
    Row now = row;
    conclude(now);
    so_far = "; so far " + brief(now, plan_.units);
  }
}

Row Runner::run(const Spec& spec) {
  Row row;
  row.spec = spec;
  row.planned = plan_.pairs;
  row.congestion_control = spec.congestion.empty() ? congestion_control() : spec.congestion;
  try {
    measure(row);
  } catch (const std::runtime_error&) {
    if (!interrupted) throw;
  }
  if (row.pairs > 0) conclude(row);
  return row;
}

std::chrono::milliseconds search_time(Test test) {
  const std::size_t ways = ways_of(baseline_of(test), 1, false).size();
  return 2 * samples_to_find_best(ways) * (kSearch + kSearch / 2);
}

}  // namespace iwarp::tools::perf
