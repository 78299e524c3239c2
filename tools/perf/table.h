// Results for people: lines of a table, each as soon as its row is measured.
#pragma once

#include <string>
#include <vector>

#include "tools/perf/row.h"

namespace iwarp::tools::perf {

// Bulk tests in Gbit/s instead of GB/s, which is 10^9 octets a second.
struct Units {
  bool gbit = false;
};

// The columns have widths of their own, whatever stands in them; throughput, rates and latency have different ones.
class Table {
 public:
  explicit Table(Units units) : units_(units) {}
  // The line of a row that has a pair or more, and a heading before it when its columns are not those of the row
  // before.
  [[nodiscard]] std::string add(const Row& row);

 private:
  Units units_;
  std::string heading_;
};

// The same as Markdown, in the columns of docs/PERFORMANCE.md: medians, and how plain TCP was best.
[[nodiscard]] std::string markdown_heading();
[[nodiscard]] std::string markdown_line(const Row& row, Units units);

// "4.63 GB/s", "3.98 M/s", "4.1 us".
[[nodiscard]] std::string value_text(Unit unit, double value, Units units);
// "4.63 GB/s, 0.57 of plain TCP".
[[nodiscard]] std::string brief(const Row& row, Units units);
// How plain TCP was measured, below a table: its congestion control, and with which calls unless `best` were sought.
[[nodiscard]] std::string notes(const std::vector<Row>& rows, bool best);
// What to beware of in these rows; empty when nothing.
[[nodiscard]] std::string warning(const std::vector<Row>& rows);

}  // namespace iwarp::tools::perf
