// Lines over two axes, with a legend beside them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/perf/svg.h"

namespace iwarp::tools::perf {

struct Axis {
  std::string label;
  double low = 0, high = 1;  // low > 0 where it is logarithmic
  bool logarithmic = false;
  std::vector<std::pair<double, std::string>> ticks;

  // Where `value` lies: 0 at `low`, 1 at `high`; values beyond stay at the end.
  [[nodiscard]] double place(double value) const;
};
// From 0 to a round number that is no less than `most`; and from 1, 2 or 5 times a power of ten to another one.
[[nodiscard]] Axis linear_axis(std::string label, double most);
[[nodiscard]] Axis logarithmic_axis(std::string label, double least, double most);
// Sizes in octets, logarithmic: a tick for every other power of two where there are many.
[[nodiscard]] Axis size_axis(double least, double most);

struct Series {
  std::string label;
  Svg::Stroke stroke;
  std::vector<Point> points;                    // in units of the axes
  std::vector<std::pair<Point, Point>> spread;  // vertical lines: from, to
};

struct Chart {
  std::string title;
  Axis x, y;
  std::vector<Series> series;

  static constexpr double kHeight = 346;
  // Draws it kHeight high from `top` on, as wide as kPlotWidth.
  void draw(Svg& svg, double top) const;
};

inline constexpr double kPlotWidth = 900;

}  // namespace iwarp::tools::perf
