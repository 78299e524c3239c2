#include "tools/perf/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <thread>

#include "tools/perf/server.h"
#include "tools/perf/statistics.h"
#include "tools/perf/tcp_socket.h"
#include "tools/perf/ticker.h"

namespace iwarp::tools::perf {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kCalibration{100};
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

Measured medians(const std::vector<Measured>& list) {
  const auto middle = [&](double Measured::*field) {
    std::vector<double> values;
    for (const Measured& m : list) values.push_back(m.*field);
    return median(std::move(values));
  };
  return {middle(&Measured::value), middle(&Measured::p99), middle(&Measured::p999),
          middle(&Measured::client_cpu_per_gb), middle(&Measured::server_cpu_per_gb)};
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

// The one with the highest median: only of throughput and of frames there is more than one.
const Rival& best_of(const std::vector<Rival>& rivals) {
  return *std::max_element(rivals.begin(), rivals.end(), [](const Rival& a, const Rival& b) {
    return medians(a.samples).value < medians(b.samples).value;
  });
}

std::vector<double> ratios(const std::vector<Measured>& ours, const std::vector<Measured>& base) {
  std::vector<double> list;
  for (std::size_t i = 0; i < ours.size(); ++i) list.push_back(ours[i].value / base[i].value);
  return list;
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

Measured Runner::sample(const Spec& spec, std::chrono::milliseconds seconds, bool verify) {
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
    (void)run_all(ends, plan_.warm_up);
    server = server_cpu();
    client = cpu_seconds();
    {
      std::optional<Ticker> ticker;
      if (plan_.live && seconds > kLongSample) {
        ticker.emplace(1s, [&](std::chrono::milliseconds elapsed) {
          progress_(
              fmt::format("{}; this sample: {:.0f} of {:.0f} s", reported_, to_seconds(elapsed), to_seconds(seconds)));
        });
      }
      s = run_all(ends, seconds);
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
  if (!s.microseconds.empty()) {
    m.value = percentile(s.microseconds, 0.5);
    m.p99 = percentile(s.microseconds, 0.99);
    m.p999 = percentile(s.microseconds, 0.999);
  }
  if (s.octets > 0) {
    m.client_cpu_per_gb = client / static_cast<double>(s.octets) * 1e9;
    m.server_cpu_per_gb = server / static_cast<double>(s.octets) * 1e9;
  }
  return m;
}

std::vector<Spec> Runner::rivals_of(const Spec& raw) {
  if (!plan_.calibrate || ways_of(raw.test, raw.size, false).empty()) return {raw};
  const auto [at, fresh] = best_ways_.try_emplace({raw.test, raw.fetch, raw.size, raw.depth});
  if (fresh) {
    unsigned tried = 0;
    for (const bool spin : {false, true}) {
      const std::vector<Way> ways = ways_of(raw.test, raw.size, spin);
      at->second.push_back(best_way(ways, [&](const Way& way) {
        report(fmt::format("{} {} octets: looking for the best calls, {}/{}", name(raw.test), raw.size, ++tried,
                           2 * samples_to_find_best(ways.size())));
        return sample(with(raw, way), std::min(kCalibration, plan_.seconds), false).value;
      }));
    }
  }
  std::vector<Spec> rivals;
  for (const Way& way : at->second) rivals.push_back(with(raw, way));
  return rivals;
}

Row Runner::run(const Spec& spec) {
  Row row;
  row.spec = spec;
  row.pairs = plan_.pairs;
  row.congestion_control = spec.congestion.empty() ? congestion_control() : spec.congestion;
  const bool raw = is_raw(spec.test);
  for (const Spec& rival : rivals_of(baseline_spec(spec))) row.rivals.push_back({rival, {}});
  std::vector<Measured> ours;
  report(fmt::format("{} {} octets: 0/{}", name(spec.test), spec.size, plan_.pairs));
  const std::size_t sides = row.rivals.size() + (raw ? 0 : 1);
  for (unsigned i = 0; i < plan_.pairs; ++i) {
    const bool verify = plan_.verify && i == 0;
    for (std::size_t n = 0; n < sides; ++n) {
      const std::size_t side = (n + i) % sides;  // nobody always comes behind the same one
      if (side < row.rivals.size()) {
        row.rivals[side].samples.push_back(sample(row.rivals[side].spec, plan_.seconds, verify));
      } else {
        ours.push_back(sample(spec, plan_.seconds, verify));
      }
    }
    report(fmt::format("{} {} octets: {}/{}{}", name(spec.test), spec.size, i + 1, plan_.pairs,
                       raw ? "" : fmt::format(", ratio {:.2f}", median(ratios(ours, best_of(row.rivals).samples)))));
  }
  const Rival& best = best_of(row.rivals);
  row.baseline = best.spec;
  if (raw) {
    row.spec = best.spec;
    row.ours = medians(best.samples);
    return row;
  }
  row.ours = medians(ours);
  row.base = medians(best.samples);
  const std::vector<double> all = ratios(ours, best.samples);
  row.ratio = median(all);
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  row.lowest = *low;
  row.highest = *high;
  return row;
}

std::chrono::milliseconds calibration_time(Test test) {
  const std::size_t ways = ways_of(baseline_of(test), 1, false).size();
  return 2 * samples_to_find_best(ways) * (kCalibration + Plan{}.warm_up);
}

void to_json(nlohmann::json& j, const Row& row) {
  const auto figures = [](const Spec& spec, const Measured& m) {
    nlohmann::json f{{"value", m.value}};
    if (unit_of(spec.test) == Unit::kMicroseconds) {
      f["p99"] = m.p99;
      f["p999"] = m.p999;
    }
    if (unit_of(spec.test) == Unit::kOctetsPerSecond) {
      f["client_cpu_seconds_per_gb"] = m.client_cpu_per_gb;
      f["server_cpu_seconds_per_gb"] = m.server_cpu_per_gb;
    }
    return f;
  };
  constexpr std::array kUnits = {"octets/s", "operations/s", "us one way"};
  j = {{"spec", row.spec},
       {"unit", kUnits[static_cast<std::size_t>(unit_of(row.spec.test))]},
       {"pairs", row.pairs},
       {"congestion_control", row.congestion_control},
       {"ours", figures(row.spec, row.ours)}};
  for (const Rival& rival : row.rivals)
    j["rivals"].push_back({{"spec", rival.spec}, {"value", medians(rival.samples).value}});
  if (is_raw(row.spec.test)) return;
  j["baseline_spec"] = row.baseline;
  j["baseline"] = figures(row.baseline, row.base);
  j["ratio"] = {{"median", row.ratio}, {"lowest", row.lowest}, {"highest", row.highest}};
}

}  // namespace iwarp::tools::perf
