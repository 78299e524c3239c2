#include "tools/perf/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "tools/perf/chart.h"

namespace iwarp::tools::perf {
namespace {

constexpr std::array<std::string_view, 6> kColours = {"#2b7bba", "#e08214", "#1b7837", "#b2182b", "#762a83", "#4d4d4d"};
constexpr std::size_t kSweep = 3;  // so many sizes of a test are one
constexpr double kHeader = 44;

using Rows = std::vector<const Row*>;

// Figures as they are drawn.
struct Scale {
  double factor;
  std::string unit;
};
Scale scale_of(Unit unit, Units units) {
  if (unit == Unit::kOctetsPerSecond) return {units.gbit ? 8e-9 : 1e-9, units.gbit ? "Gbit/s" : "GB/s"};
  if (unit == Unit::kOperationsPerSecond) return {1e-3, "thousands a second"};
  return {1, "us"};
}

std::string title_of(Unit unit) {
  if (unit == Unit::kOctetsPerSecond) return "Throughput";
  if (unit == Unit::kOperationsPerSecond) return "Operations";
  return "Latency, one way";
}

std::string_view colour_of(std::size_t number) {
  return kColours.at(number % kColours.size());
}

// One line of a sweep, with the spread of the samples; latencies from t_min to p99.
Series sweep_line(const Rows& rows, bool tcp, double factor, std::string_view colour) {
  Series s;
  s.label = std::string(name(rows.front()->spec.test)) + (tcp && !is_raw(rows.front()->spec.test) ? ": plain TCP" : "");
  s.stroke = {colour, 2, tcp};
  for (const Row* row : rows) {
    const Figures& f = tcp ? row->tcp : row->iwarp;
    const double size = row->spec.size;
    s.points.push_back({size, f.median * factor});
    const bool latency = unit_of(row->spec.test) == Unit::kMicroseconds;
    s.spread.push_back(
        {{size, (latency ? f.latency.least : f.least) * factor}, {size, (latency ? f.latency.p99 : f.most) * factor}});
  }
  return s;
}

Chart sweep(const std::vector<Rows>& tests, Unit unit, Units units) {
  const Scale scale = scale_of(unit, units);
  Chart chart;
  chart.title =
      title_of(unit) + (unit == Unit::kMicroseconds ? ": median; vertical lines: t_min to p99"
                                                    : ": median of the samples; vertical lines: least to largest");
  double least = 1e300, most = 0, smallest = 1e300, largest = 0;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    for (const bool tcp : {false, true}) {
      if (!tcp && is_raw(tests[i].front()->spec.test)) continue;
      Series s = sweep_line(tests[i], tcp, scale.factor, colour_of(i));
      for (const auto& [from, to] : s.spread) {
        least = std::min(least, from.y);
        most = std::max(most, to.y);
        smallest = std::min(smallest, from.x);
        largest = std::max(largest, from.x);
      }
      chart.series.push_back(std::move(s));
    }
  }
  chart.x = size_axis(smallest, largest);
  chart.y = unit == Unit::kMicroseconds ? logarithmic_axis(scale.unit, least, most) : linear_axis(scale.unit, most);
  return chart;
}

Chart distribution(const Rows& rows) {
  Chart chart;
  chart.title = title_of(Unit::kMicroseconds) + ": part of the operations that took no longer";
  double least = 1e300, most = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = *rows[i];
    const std::string label = fmt::format("{} {}", name(row.spec.test), short_size(row.spec.size));
    for (const bool tcp : {false, true}) {
      if (!tcp && is_raw(row.spec.test)) continue;
      const Latency& l = (tcp ? row.tcp : row.iwarp).latency;
      Series s{label + (tcp && !is_raw(row.spec.test) ? ": plain TCP" : ""), {colour_of(i), 2, tcp}, {}, {}};
      for (std::size_t q = 0; q < kQuantiles; ++q) s.points.push_back({l.quantiles[q], quantile_fractions()[q]});
      least = std::min(least, l.quantiles.front());
      most = std::max(most, l.p999);
      chart.series.push_back(std::move(s));
    }
  }
  chart.x = logarithmic_axis("us", std::max(least, 1e-3), most);
  chart.y = linear_axis("", 1);
  return chart;
}

// Two bars for each row: iwarp, and plain TCP below it.
class Bars {
 public:
  Bars(const Rows& rows, Unit unit, Units units) : rows_(rows), unit_(unit), units_(units) {}
  [[nodiscard]] double height() const { return kAbove + kStep * static_cast<double>(rows_.size()) + 56; }

  void draw(Svg& svg, double top) const {
    const Scale scale = scale_of(unit_, units_);
    double most = 0;
    for (const Row* row : rows_) most = std::max({most, row->iwarp.most, row->tcp.most});
    const Axis axis = linear_axis(scale.unit, most * scale.factor);
    const auto x = [&](double value) { return kLeft + axis.place(value) * kWidth; };
    const double bottom = top + kAbove + kStep * static_cast<double>(rows_.size());
    svg.text({16, top + 24}, title_of(unit_) + ": bar: median of the samples; line: least to largest",
             Svg::Anchor::kStart, 15);
    legend(svg, top + 34);
    for (const auto& [value, text] : axis.ticks) {
      svg.line({x(value), top + kAbove - 4}, {x(value), bottom}, {colour::kFaint});
      svg.text({x(value), bottom + 16}, text, Svg::Anchor::kMiddle);
    }
    svg.text({kLeft + kWidth / 2, bottom + 36}, axis.label, Svg::Anchor::kMiddle);
    double y = top + kAbove;
    const auto bar = [&](const Figures& f, double at, std::string_view colour) {
      svg.rectangle({kLeft, at}, x(f.median * scale.factor) - kLeft, kBar, colour);
      const double middle = at + kBar / 2;
      svg.line({x(f.least * scale.factor), middle}, {x(f.most * scale.factor), middle}, {colour::kText, 1.5});
    };
    for (const Row* row : rows_) {
      const std::string size = has_size(row->spec.test) ? " " + short_size(row->spec.size) : "";
      svg.text({kLeft - 10, y + kBar + 4}, std::string(name(row->spec.test)) + size, Svg::Anchor::kEnd);
      if (!is_raw(row->spec.test)) bar(row->iwarp, y, kColours.front());
      bar(row->tcp, y + kBar + 1, colour::kTcp);
      svg.text({kLeft + kWidth + 12, y + kBar + 4}, brief(*row, units_));
      y += kStep;
    }
  }

 private:
  static constexpr double kLeft = 150, kWidth = 540, kAbove = 62, kStep = 34, kBar = 12;

  static void legend(Svg& svg, double y) {
    svg.rectangle({16, y}, 12, 12, kColours.front());
    svg.text({34, y + 10}, "iwarp");
    svg.rectangle({90, y}, 12, 12, colour::kTcp);
    svg.text({108, y + 10}, "plain TCP");
  }

  const Rows& rows_;
  Unit unit_;
  Units units_;
};

}  // namespace

std::string plot(const std::vector<Row>& rows, Units units, const std::string& subtitle) {
  Svg svg;
  svg.text({16, 28}, "iwarp beside plain TCP", Svg::Anchor::kStart, 17);
  svg.text({kPlotWidth - 16, 28}, subtitle, Svg::Anchor::kEnd);
  double top = kHeader;
  for (const Unit unit : {Unit::kOctetsPerSecond, Unit::kOperationsPerSecond, Unit::kMicroseconds}) {
    std::map<Test, Rows> tests;
    for (const Row& row : rows) {
      if (row.pairs > 0 && unit_of(row.spec.test) == unit) tests[row.spec.test].push_back(&row);
    }
    std::vector<Rows> sweeps;
    Rows others;
    for (auto& [test, of_test] : tests) {
      if (of_test.size() >= kSweep && has_size(test)) {
        std::ranges::sort(of_test, {}, [](const Row* row) { return row->spec.size; });
        sweeps.push_back(of_test);
      } else {
        others.insert(others.end(), of_test.begin(), of_test.end());
      }
    }
    if (!sweeps.empty()) {
      sweep(sweeps, unit, units).draw(svg, top);
      top += Chart::kHeight;
    }
    if (!others.empty() && unit == Unit::kMicroseconds) {
      distribution(others).draw(svg, top);
      top += Chart::kHeight;
    } else if (!others.empty()) {
      const Bars bars(others, unit, units);
      bars.draw(svg, top);
      top += bars.height();
    }
  }
  return svg.picture(kPlotWidth, top, "iwarp beside plain TCP");
}

}  // namespace iwarp::tools::perf
