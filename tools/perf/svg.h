// A picture as SVG text: the few shapes that plots need, on white. Coordinates in pixels from the top left corner.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace iwarp::tools::perf {

namespace colour {
inline constexpr std::string_view kText = "#222222";
inline constexpr std::string_view kFaint = "#cccccc";
inline constexpr std::string_view kTcp = "#8c8c8c";
}  // namespace colour

struct Point {
  double x = 0, y = 0;
};

class Svg {
 public:
  enum class Anchor : unsigned char { kStart, kMiddle, kEnd };
  struct Stroke {
    std::string_view colour = colour::kText;
    double width = 1;
    bool dashed = false;
  };

  void text(Point at, std::string_view text, Anchor anchor = Anchor::kStart, int size = 12);
  void rectangle(Point corner, double width, double height, std::string_view fill);
  void line(Point from, Point to, Stroke stroke);
  void lines(const std::vector<Point>& through, Stroke stroke);
  // The whole picture; `title` for programs that read it out.
  [[nodiscard]] std::string picture(double width, double height, std::string_view title) const;

 private:
  std::string shapes_;
};

}  // namespace iwarp::tools::perf
