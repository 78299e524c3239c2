#include "tools/perf/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/perf/row.h"

namespace iwarp::tools::perf {
namespace {

constexpr double kLeft = 70, kRight = 690, kAbove = 62, kBelow = 54;  // of the area of the lines, from each edge

// The largest of 1, 2 and 5 times a power of ten that is no more than `value`, and the next of them.
double round_down(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {5.0, 2.0}) {
    if (value >= step * power * 0.999999) return step * power;
  }
  return power;
}
double next_round(double value) {
  return round_down(value * 2.6);
}

}  // namespace

double Axis::place(double value) const {
  const double part =
      logarithmic ? std::log(std::max(value, low) / low) / std::log(high / low) : (value - low) / (high - low);
  return std::clamp(part, 0.0, 1.0);
}

Axis linear_axis(std::string label, double most) {
  const double step = round_down(std::max(most, 1e-9) / 4);
  const double steps = std::ceil(std::max(most, 1e-9) / step);
  Axis axis{.label = std::move(label), .low = 0, .high = step * steps, .logarithmic = false, .ticks = {}};
  for (int i = 0; i <= static_cast<int>(steps); ++i) axis.ticks.emplace_back(i * step, fmt::format("{:g}", i * step));
  return axis;
}

Axis logarithmic_axis(std::string label, double least, double most) {
  Axis axis{.label = std::move(label), .low = round_down(least), .high = 0, .logarithmic = true, .ticks = {}};
  double at = axis.low;
  axis.ticks.emplace_back(at, fmt::format("{:g}", at));
  do {
    at = next_round(at);
    axis.ticks.emplace_back(at, fmt::format("{:g}", at));
  } while (at < most);
  axis.high = at;
  return axis;
}

Axis size_axis(double least, double most) {
  Axis axis{.label = "octets", .low = least, .high = most, .logarithmic = true, .ticks = {}};
  const double factor = std::log2(most / least) > 12 ? 4 : 2;
  for (double size = std::exp2(std::ceil(std::log2(least))); size <= most; size *= factor)
    axis.ticks.emplace_back(size, short_size(static_cast<std::uint32_t>(size)));
  return axis;
}

void Chart::draw(Svg& svg, double top) const {
  const double above = top + kAbove, below = top + kHeight - kBelow;
  const auto at = [&](Point p) {
    return Point{kLeft + x.place(p.x) * (kRight - kLeft), below - y.place(p.y) * (below - above)};
  };
  svg.text({16, top + 24}, title, Svg::Anchor::kStart, 15);
  for (const auto& [value, text] : y.ticks) {
    const Point p = at({x.low, value});
    svg.line(p, {kRight, p.y}, {colour::kFaint});
    svg.text({kLeft - 8, p.y + 4}, text, Svg::Anchor::kEnd);
  }
  for (const auto& [value, text] : x.ticks) {
    const Point p = at({value, y.low});
    svg.line(p, {p.x, above}, {colour::kFaint});
    svg.text({p.x, below + 18}, text, Svg::Anchor::kMiddle);
  }
  svg.text({(kLeft + kRight) / 2, below + 38}, x.label, Svg::Anchor::kMiddle);
  svg.text({16, above - 10}, y.label);
  double legend = above + 8;
  for (const Series& s : series) {
    std::vector<Point> points;
    for (const Point& p : s.points) points.push_back(at(p));
    for (const auto& [from, to] : s.spread) svg.line(at(from), at(to), {s.stroke.colour, 1, s.stroke.dashed});
    svg.lines(points, s.stroke);
    svg.line({kRight + 16, legend - 4}, {kRight + 44, legend - 4}, s.stroke);
    svg.text({kRight + 50, legend}, s.label);
    legend += 20;
  }
}

}  // namespace iwarp::tools::perf
