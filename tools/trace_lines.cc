#include <cstdio>

#include "tools/trace_output.h"

namespace iwarp::tools {
namespace {

class Lines final : public TraceOutput {
 public:
  explicit Lines(const trace::LineStyle& style) : style_(style), writer_(style) {}
  void start(Duration since_1970) override {
    style_.start = since_1970;
    writer_ = trace::LineWriter(style_);
  }
  void add(const trace::Record& record) override { std::puts(writer_.line(record).c_str()); }

 private:
  trace::LineStyle style_;
  trace::LineWriter writer_;
};

}  // namespace

std::unique_ptr<TraceOutput> make_trace_lines(const trace::LineStyle& style) {
  return std::make_unique<Lines>(style);
}

}  // namespace iwarp::tools
