#include "tools/perf/row.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/perf/statistics.h"

namespace iwarp::tools::perf {
namespace {

using Json = nlohmann::ordered_json;

template <class Field>
std::vector<double> each(const std::vector<Measured>& samples, const Field& field) {
  std::vector<double> values;
  for (const Measured& m : samples) values.push_back(field(m));
  return values;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double value_of(const Measured& m) {
  return m.value;
}

Json to_json(const Spec& spec, const Figures& f, const std::vector<Measured>& samples) {
  Json j{{"value", f.median}, {"average", f.average},       {"least", f.least},
         {"most", f.most},    {"operations", f.operations}, {"operations_per_second", f.operations_per_second}};
  if (unit_of(spec.test) == Unit::kOctetsPerSecond) {
    j["client_cpu_seconds_per_gb"] = f.client_cpu_per_gb;
    j["server_cpu_seconds_per_gb"] = f.server_cpu_per_gb;
  }
  if (unit_of(spec.test) == Unit::kMicroseconds) {
    const Latency& l = f.latency;
    j.update({{"t_min", l.least},
              {"t_typical", l.typical},
              {"p50", l.p50},
              {"p99", l.p99},
              {"p999", l.p999},
              {"t_max", l.most}});
    for (std::size_t i = 0; i < kQuantiles; ++i) j["cdf"].push_back({quantile_fractions()[i], l.quantiles[i]});
  }
  for (const Measured& m : samples)
    j["samples"].push_back({{"value", m.value}, {"operations", m.operations}, {"seconds", m.seconds}});
  return j;
}

}  // namespace

Figures figures_of(const std::vector<Measured>& samples) {
  const std::vector<double> values = each(samples, value_of);
  const auto [least, most] = std::ranges::minmax(values);
  Figures f;
  f.median = median(values);
  f.average = mean(values);
  f.least = least;
  f.most = most;
  for (const Measured& m : samples) f.operations += m.operations;
  f.operations_per_second =
      mean(each(samples, [](const Measured& m) { return static_cast<double>(m.operations) / m.seconds; }));
  f.client_cpu_per_gb = median(each(samples, [](const Measured& m) { return m.client_cpu_per_gb; }));
  f.server_cpu_per_gb = median(each(samples, [](const Measured& m) { return m.server_cpu_per_gb; }));
  std::vector<Latency> latencies;
  for (const Measured& m : samples) latencies.push_back(m.latency);
  f.latency = joined(latencies);
  return f;
}

void conclude(Row& row) {
  for (Rival& rival : row.rivals) rival.samples.resize(row.pairs);
  // The highest median: only of throughput and of frames there is more than one.
  const auto best =
      std::ranges::max_element(row.rivals, {}, [](const Rival& r) { return median(each(r.samples, value_of)); });
  row.best = static_cast<std::size_t>(best - row.rivals.begin());
  row.tcp = figures_of(best->samples);
  if (is_raw(row.spec.test)) {
    row.spec = best->spec;
    return;
  }
  row.samples.resize(row.pairs);
  row.iwarp = figures_of(row.samples);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < row.pairs; ++i) ratios.push_back(row.samples[i].value / best->samples[i].value);
  const auto [lowest, highest] = std::ranges::minmax(ratios);
  row.lowest = lowest;
  row.highest = highest;
  row.ratio = median(std::move(ratios));
}

std::string_view unit_text(Unit unit) {
  switch (unit) {
    case Unit::kOctetsPerSecond:
      return "octets/s";
    case Unit::kOperationsPerSecond:
      return "operations/s";
    case Unit::kMicroseconds:
      break;
  }
  return "us";
}

std::string short_size(std::uint32_t size) {
  if (size >= 1048576 && size % 1048576 == 0) return std::to_string(size / 1048576) + "m";
  if (size >= 1024 && size % 1024 == 0) return std::to_string(size / 1024) + "k";
  return std::to_string(size);
}

void to_json(nlohmann::ordered_json& j, const Row& row) {
  j = {{"spec", nlohmann::json(row.spec)},
       {"unit", unit_text(unit_of(row.spec.test))},
       {"pairs", row.pairs},
       {"complete", row.complete()},
       {"congestion_control", row.congestion_control}};
  if (!is_raw(row.spec.test)) {
    j["iwarp"] = to_json(row.spec, row.iwarp, row.samples);
    j["ratio"] = {{"median", row.ratio}, {"lowest", row.lowest}, {"highest", row.highest}};
    j["tcp_spec"] = nlohmann::json(row.baseline());
  }
  j["tcp"] = to_json(row.baseline(), row.tcp, row.rivals[row.best].samples);
  for (const Rival& rival : row.rivals)
    j["rivals"].push_back({{"spec", nlohmann::json(rival.spec)}, {"value", figures_of(rival.samples).median}});
}

}  // namespace iwarp::tools::perf
