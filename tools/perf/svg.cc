#include "tools/perf/svg.h"

#include <fmt/format.h>

namespace iwarp::tools::perf {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string_view anchor_text(Svg::Anchor anchor) {
  switch (anchor) {
    case Svg::Anchor::kStart:
      return "start";
    case Svg::Anchor::kMiddle:
      return "middle";
    case Svg::Anchor::kEnd:
      break;
  }
  return "end";
}

}  // namespace

void Svg::text(Point at, std::string_view text, Anchor anchor, int size) {
  shapes_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" font-size="{}" fill="{}">{}</text>)", at.x,
                         at.y, anchor_text(anchor), size, colour::kText, escaped(text)) +
             '\n';
}

void Svg::rectangle(Point corner, double width, double height, std::string_view fill) {
  shapes_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>)", corner.x,
                         corner.y, width, height, fill) +
             '\n';
}

void Svg::line(Point from, Point to, Stroke stroke) {
  lines({from, to}, stroke);
}

void Svg::lines(const std::vector<Point>& through, Stroke stroke) {
  std::string points;
  for (const Point& p : through) points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", p.x, p.y);
  shapes_ += fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="{}"{}/>)", points,
                         stroke.colour, stroke.width, stroke.dashed ? R"( stroke-dasharray="5 3")" : "") +
             '\n';
}

std::string Svg::picture(double width, double height, std::string_view title) const {
  return fmt::format(
             R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" )"
             R"(font-family="sans-serif" role="img">)",
             width, height) +
         fmt::format("\n<title>{}</title>\n<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#ffffff\"/>\n",
                     escaped(title), width, height) +
         shapes_ + "</svg>\n";
}

}  // namespace iwarp::tools::perf
