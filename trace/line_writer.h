// Records as lines (grammar: docs/TRACE.md):  <time> <conn> rx|tx <layer> <PDU>(field=value, ...)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "iwarp/trace/record.h"

namespace iwarp::trace {

// What stands at the front of a line.
enum class TimeStyle : std::uint8_t {
  kRelative,  // milliseconds since the start of the trace
  kAbsolute,  // 2026-01-31T12:00:00.123456Z
  kDelta,     // milliseconds since the line before
};

// How lines look.
struct LineStyle {
  TimeStyle time = TimeStyle::kRelative;  // at the front
  Duration start{};                       // of the trace, since 1970, for kAbsolute
  std::size_t columns = 0;                // longer lines are cut between two fields and end with "...)"; 0: none is
  bool color = false;                     // with the escape sequences of a terminal
};

class LineWriter {
 public:
  // For a sequence of records: kDelta refers to the line before.
  explicit LineWriter(const LineStyle& style) : style_(style) {}
  // Without the newline.
  [[nodiscard]] std::string line(const Record& record);

 private:
  [[nodiscard]] std::string time(Duration at);

  LineStyle style_;
  Duration last_{};
};

}  // namespace iwarp::trace
