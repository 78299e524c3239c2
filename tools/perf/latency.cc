#include "tools/perf/latency.h"

#include <algorithm>

#include "tools/perf/statistics.h"

namespace iwarp::tools::perf {
namespace {

constexpr double kBinOfMedian = 0.05;

// The fullest bin; the lowest of those that are equally full.
double typical(const std::vector<float>& sorted, double median) {
  const double width = median * kBinOfMedian;
  if (width <= 0) return median;
  const auto bin_of = [&](float value) { return static_cast<long>(static_cast<double>(value) / width); };
  long best = 0;
  std::ptrdiff_t fullest = 0;
  for (auto from = sorted.begin(); from != sorted.end();) {
    const long bin = bin_of(*from);
    const auto to = std::find_if(from, sorted.end(), [&](float value) { return bin_of(value) != bin; });
    if (to - from > fullest) {
      fullest = to - from;
      best = bin;
    }
    from = to;
  }
  return (static_cast<double>(best) + 0.5) * width;
}

}  // namespace

const std::array<double, kQuantiles>& quantile_fractions() {
  static const std::array<double, kQuantiles> fractions = [] {
    std::array<double, kQuantiles> all{};
    for (std::size_t i = 0; i < 100; ++i) all[i] = static_cast<double>(i) / 100;
    all[100] = 0.995;
    all[101] = 0.999;
    all[102] = 0.9999;
    all[103] = 1;
    return all;
  }();
  return fractions;
}

Latency latency_of(std::vector<float>& microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  const auto at = [&](double fraction) { return percentile(microseconds, fraction); };
  Latency l;
  l.least = microseconds.front();
  l.p50 = at(0.5);
  l.p99 = at(0.99);
  l.p999 = at(0.999);
  l.most = microseconds.back();
  l.typical = std::clamp(typical(microseconds, l.p50), l.least, l.most);
  for (std::size_t i = 0; i < kQuantiles; ++i) l.quantiles[i] = at(quantile_fractions()[i]);
  return l;
}

Latency joined(const std::vector<Latency>& samples) {
  const auto middle = [&](const auto& figure) {
    std::vector<double> values;
    for (const Latency& l : samples) values.push_back(figure(l));
    return median(std::move(values));
  };
  Latency all;
  all.least = std::ranges::min(samples, {}, &Latency::least).least;
  all.most = std::ranges::max(samples, {}, &Latency::most).most;
  all.typical = middle([](const Latency& l) { return l.typical; });
  all.p50 = middle([](const Latency& l) { return l.p50; });
  all.p99 = middle([](const Latency& l) { return l.p99; });
  all.p999 = middle([](const Latency& l) { return l.p999; });
  for (std::size_t i = 0; i < kQuantiles; ++i)
    all.quantiles[i] = middle([i](const Latency& l) { return l.quantiles[i]; });
  return all;
}

}  // namespace iwarp::tools::perf
