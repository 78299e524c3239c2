// Where the records of `iwarp trace` go: lines, JSON, a summary or a page.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "iwarp/trace/capture.h"
#include "iwarp/trace/line_writer.h"
#include "tools/json_file.h"

namespace iwarp::tools {

class TraceOutput {
 public:
  virtual ~TraceOutput() = default;
  // When the first packet was captured, since 1970. Before any record.
  virtual void start(Duration) {}
  // Each record, wanted or not, before it is added.
  virtual void seen(const trace::Record&) {}
  // A record that is wanted.
  virtual void add(const trace::Record& record) = 0;
  // Nothing more comes. What cannot be written is an error for the caller to find in the file, or throws
  // std::runtime_error.
  virtual void finish(const trace::Capture::Counts&) {}
};

// To standard output: a line for each record, or a summary of them all.
[[nodiscard]] std::unique_ptr<TraceOutput> make_trace_lines(const trace::LineStyle& style);
[[nodiscard]] std::unique_ptr<TraceOutput> make_trace_summary();
// The same as JSON, where the flag says. What cannot be written throws, in add() as well.
[[nodiscard]] std::unique_ptr<TraceOutput> make_trace_json(const JsonFlag& to);
[[nodiscard]] std::unique_ptr<TraceOutput> make_trace_json_summary(const JsonFlag& to);
// To a file, a page for browsers. Throws std::runtime_error when it cannot be made.
[[nodiscard]] std::unique_ptr<TraceOutput> make_trace_html(const std::string& file);

}  // namespace iwarp::tools
